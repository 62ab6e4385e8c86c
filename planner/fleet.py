"""Replicas, devices, power on its three bases, and cost, for designs that serve given rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.evaluate import Design, PhaseUse, RequestMetrics
from planner.schema.catalog import Device
from planner.schema.scenario import Scenario
from planner.words import PHASES, STEP_PHASES, Phase, PowerBasis

COUNT_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Serving:
    """A design and the request rate that it serves."""

    design: Design
    metrics: RequestMetrics
    rate_rps: float


@dataclass(frozen=True)
class PoolUse:
    """Replicas of one (model, device type, degree) for one phase of one serving.

    ``busy``: replica-equivalents at work. ``capacity_need`` and ``memory_need``: replicas that the flow and the held
    sequences ask for. ``replicas``: what is bought. ``forward_w``: forward power of the phase.
    """

    serving: int
    workload: str
    phase: Phase
    device: str
    tensor_parallel: int
    busy: float
    capacity_need: float
    memory_need: float
    replicas: float
    forward_w: float

    @property
    def need(self) -> float:
        """Replicas needed, fractional."""
        return max(self.capacity_need, self.memory_need)

    @property
    def devices(self) -> float:
        """Devices bought."""
        return self.replicas * self.tensor_parallel


def capacity_replicas(rate_rps: float, busy_s: float, max_utilization: float) -> float:
    """Replicas that carry a flow: λ·busy / max_utilization.

    >>> capacity_replicas(10.0, 0.15, 0.75)
    2.0
    """
    return rate_rps * busy_s / max_utilization


def memory_replicas(rate_rps: float, residency_s: float, sequences: float, max_utilization: float) -> float:
    """Replicas that hold the sequences in flight (Little's law): λ·N·step time / (max_utilization·R).

    >>> memory_replicas(10.0, 4.0, 40.0, 1.0)
    1.0
    """
    return 0.0 if math.isinf(sequences) else rate_rps * residency_s / (max_utilization * sequences)


def least_count(need: float, integer: bool) -> float:
    """Give the least number of replicas that covers a need; what is needed at all needs a whole one.

    >>> least_count(2.0000000001, True), least_count(2.1, True), least_count(2.1, False), least_count(1e-12, True)
    (2.0, 3.0, 2.1, 1.0)
    """
    if not integer:
        return need
    return float(max(math.ceil(need - COUNT_TOLERANCE * max(1.0, need)), 1 if need > 0 else 0))


def pool_uses(scenario: Scenario, servings: Sequence[Serving]) -> tuple[PoolUse, ...]:
    """Size a private pool for every phase that every serving runs."""
    return tuple(
        _pool_use(scenario, index, serving, phase, use)
        for index, serving in enumerate(servings)
        for phase in PHASES
        if (use := serving.metrics.phases[phase]) is not None
    )


def _pool_use(scenario: Scenario, index: int, serving: Serving, phase: Phase, use: PhaseUse) -> PoolUse:
    option = serving.design.options[phase]
    assert option is not None  # a phase with a use has an option
    capacity = capacity_replicas(serving.rate_rps, use.busy_s, scenario.max_utilization)
    held = 0.0
    if phase in STEP_PHASES:
        held = memory_replicas(serving.rate_rps, serving.metrics.residency_s, use.sequences, scenario.max_utilization)
    return PoolUse(
        serving=index,
        workload=serving.design.workload,
        phase=phase,
        device=option.device,
        tensor_parallel=option.tensor_parallel,
        busy=serving.rate_rps * use.busy_s,
        capacity_need=capacity,
        memory_need=held,
        replicas=least_count(max(capacity, held), scenario.counts == "integer"),
        forward_w=serving.rate_rps * use.energy_j,
    )


def forward_power_w(servings: Sequence[Serving]) -> float:
    """λ × modelled energy per request, PUE left out."""
    return sum(serving.rate_rps * serving.metrics.energy_j for serving in servings)


def basis_is_known(device: Device, basis: PowerBasis) -> bool:
    """Whether a device has the figure that a power basis needs."""
    if basis == "average":
        return device.idle_power_w is not None
    return basis == "forward" or device.provisioned_power_w is not None


def power_w(
    scenario: Scenario, servings: Sequence[Serving], pools: Sequence[PoolUse], basis: PowerBasis
) -> float | None:
    """Power of a deployment on one basis in W, PUE included; null where a device lacks the figure.

    forward: λ × modelled energy per request. average: host factor × Σ [devices × hot idle power + λ·(energy − idle
    power × busy device-time)]. provisioned: devices × provisioned watts.
    """
    devices = scenario.catalog.devices
    if not all(basis_is_known(devices[pool.device], basis) for pool in pools):
        return None
    if basis == "forward":
        return scenario.pue * forward_power_w(servings)
    if basis == "provisioned":
        return scenario.pue * sum(pool.devices * (devices[pool.device].provisioned_power_w or 0.0) for pool in pools)
    moved = sum(serving.rate_rps * serving.metrics.transfer_energy_j for serving in servings)
    drawn = sum(
        (devices[pool.device].idle_power_w or 0.0) * (pool.devices - pool.busy * pool.tensor_parallel) + pool.forward_w
        for pool in pools
    )
    return scenario.pue * scenario.host_factor * (drawn + moved)


def usd_per_hour(scenario: Scenario, pools: Sequence[PoolUse]) -> float | None:
    """Cost of the devices of the pools; null where a device has no price."""
    total = 0.0
    for pool in pools:
        price = scenario.catalog.devices[pool.device].price
        if price is None:
            return None
        total += pool.devices * price.usd_per_hour
    return total

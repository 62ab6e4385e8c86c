"""Pools, replicas, devices, power on its three bases, and cost, for designs that serve given rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.evaluate import Design, RequestMetrics
from planner.memory import free_bytes, sequence_bytes
from planner.options import Option, hosted_by_verify, models_of
from planner.schema.catalog import Device
from planner.schema.scenario import Scenario
from planner.words import PHASES, STEP_PHASES, Phase, PowerBasis

COUNT_TOLERANCE = 1e-9
# The power limit of a rack whose limit is dropped.
UNLIMITED_KW = 1e15


@dataclass(frozen=True)
class Serving:
    """A design and the request rate that it serves."""

    design: Design
    metrics: RequestMetrics
    rate_rps: float


@dataclass(frozen=True)
class Member:
    """A phase of a serving in a pool.

    ``busy``: replica-equivalents at work. ``capacity_need`` and ``memory_need``: replicas that the flow and the held
    sequences ask for.
    """

    serving: int
    workload: str
    phase: Phase
    busy: float
    capacity_need: float
    memory_need: float

    @property
    def need(self) -> float:
        """Replicas that the phase alone would need, fractional."""
        return max(self.capacity_need, self.memory_need)


@dataclass(frozen=True)
class PoolUse:
    """Replicas of one (model set, device type, degree), and the phases that they serve; ``replicas`` are bought."""

    name: str
    models: tuple[str, ...]
    device: str
    tensor_parallel: int
    members: tuple[Member, ...]
    replicas: float

    @property
    def busy(self) -> float:
        """Replica-equivalents at work."""
        return sum(member.busy for member in self.members)

    @property
    def capacity_need(self) -> float:
        """Replicas that carry all flows."""
        return sum(member.capacity_need for member in self.members)

    @property
    def memory_need(self) -> float:
        """Replicas that hold all sequences."""
        return sum(member.memory_need for member in self.members)

    @property
    def need(self) -> float:
        """Replicas needed to serve, fractional, spares left out."""
        return max(self.capacity_need, self.memory_need)

    @property
    def devices(self) -> float:
        """Devices that the replicas use."""
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


PoolKey = tuple[str, tuple[str, ...], str, int]


def pool_key(scenario: Scenario, serving: int, design: Design, phase: Phase, option: Option) -> PoolKey:
    """Say which pool a phase of a design uses: name, model set, device type, degree.

    Shared pools are one per model set, device type and degree; private ones one per design and phase.
    """
    own = models_of(scenario, phase, design.speculation)
    if scenario.shared_pools:
        models = option.models or own
        name = (
            "+".join(models)
            + f"@{option.device}"
            + (f":tp{option.tensor_parallel}" if option.tensor_parallel > 1 else "")
        )
        return name, models, option.device, option.tensor_parallel
    name = phase if len(scenario.workloads) == 1 else f"{design.workload}.{phase}"
    return (
        name + (f".{serving + 1}" if scenario.max_shares > 1 else ""),
        own,
        option.device,
        option.tensor_parallel,
    )


def pool_uses(scenario: Scenario, servings: Sequence[Serving]) -> tuple[PoolUse, ...]:
    """Size the pools of all servings: the least replicas that carry flows and hold sequences, plus the spares."""
    members: dict[PoolKey, list[Member]] = {}
    for index, serving in enumerate(servings):
        hosted = hosted_by_verify(scenario, serving.design.speculation)
        for phase in PHASES:
            at: Phase = "target_verify" if phase in hosted else phase
            option = serving.design.options[at]
            if option is not None and serving.metrics.phases[phase] is not None:
                key = pool_key(scenario, index, serving.design, at, option)
                holds = phase in STEP_PHASES and phase not in hosted
                sequences = _sequences(scenario, serving, phase, option, key) if holds else math.inf
                members.setdefault(key, []).append(_member(scenario, index, serving, phase, sequences))
    return tuple(_pool(scenario, key, some) for key, some in members.items())


def _pool(scenario: Scenario, key: PoolKey, members: list[Member]) -> PoolUse:
    pool = PoolUse(*key, members=tuple(members), replicas=0.0)
    count = least_count(pool.need, scenario.counts == "integer") + scenario.servers.spare_replicas
    return PoolUse(*key, members=tuple(members), replicas=count)


def _member(scenario: Scenario, index: int, serving: Serving, phase: Phase, sequences: float) -> Member:
    use = serving.metrics.phases[phase]
    assert use is not None  # only phases that run become members
    return Member(
        serving=index,
        workload=serving.design.workload,
        phase=phase,
        busy=serving.rate_rps * use.busy_s,
        capacity_need=capacity_replicas(serving.rate_rps, use.busy_s, scenario.max_utilization),
        memory_need=memory_replicas(serving.rate_rps, serving.metrics.residency_s, sequences, scenario.max_utilization),
    )


def _sequences(scenario: Scenario, serving: Serving, phase: Phase, option: Option, key: PoolKey) -> float:
    use = serving.metrics.phases[phase]
    assert use is not None  # only phases that run become members
    return shared_sequences(scenario, serving.design, phase, option, key[1]) if scenario.shared_pools else use.sequences


def shared_sequences(scenario: Scenario, design: Design, phase: Phase, option: Option, models: Sequence[str]) -> float:
    """Sequences that a replica of a shared pool would hold if it held nothing else, not rounded."""
    free = free_bytes(scenario, option.device, models, option.tensor_parallel)
    own = models_of(scenario, phase, design.speculation)
    kv_bytes = sequence_bytes(scenario, design.workload, option.device, own, option.tensor_parallel)
    return math.inf if math.isinf(free) or not kv_bytes else free / kv_bytes


# ------------------------------------------------------------------------------------------------ devices


@dataclass(frozen=True)
class DeviceCount:
    """Devices of one type: those that pools use, those that are had (whole nodes where bought so), those to buy."""

    device: str
    used: float
    had: float
    nodes: float | None
    bought: float


def device_counts(scenario: Scenario, pools: Sequence[PoolUse]) -> dict[str, DeviceCount]:
    """Count devices by type, in catalog order."""
    used = {name: sum(pool.devices for pool in pools if pool.device == name) for name in scenario.catalog.devices}
    return {name: _device_count(scenario, name, count) for name, count in used.items() if count > 0}


def devices_per_unit(scenario: Scenario, device: str) -> float:
    """Devices of a unit that is bought and housed: of a node where devices are bought so, else one."""
    per_host = scenario.catalog.devices[device].devices_per_host
    return float(per_host) if scenario.servers.by_node and per_host is not None else 1.0


def _device_count(scenario: Scenario, name: str, used: float) -> DeviceCount:
    per_host = scenario.catalog.devices[name].devices_per_host
    had, nodes = used, None
    if scenario.servers.by_node and per_host is not None:
        nodes = least_count(used / per_host, scenario.counts == "integer")
        had = nodes * per_host
    stock = scenario.limits.inventory.get(name)
    return DeviceCount(name, used, had, nodes, max(0.0, had - (stock.owned if stock else 0)))


# -------------------------------------------------------------------------------------------- power and cost


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
    counts = device_counts(scenario, pools).values()
    if basis == "provisioned":
        return scenario.pue * sum(count.had * (devices[count.device].provisioned_power_w or 0.0) for count in counts)
    idle = sum(count.had * (devices[count.device].idle_power_w or 0.0) for count in counts)
    working = sum(pool.busy * pool.tensor_parallel * (devices[pool.device].idle_power_w or 0.0) for pool in pools)
    return scenario.pue * scenario.host_factor * (idle - working + forward_power_w(servings))


def usd_per_hour(scenario: Scenario, pools: Sequence[PoolUse]) -> float | None:
    """Cost of the devices to buy; null where one of them has no price."""
    total = 0.0
    for count in device_counts(scenario, pools).values():
        price = scenario.catalog.devices[count.device].price
        if price is None and count.bought > 0:
            return None
        total += count.bought * (price.usd_per_hour if price else 0.0)
    return total


# -------------------------------------------------------------------------------------------------- deployment

Racked = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Deployed:
    """A scenario's designs at their rates, the pools that carry them, and units by (rack, device type)."""

    scenario: Scenario
    servings: tuple[Serving, ...]
    pools: tuple[PoolUse, ...]
    racks: Racked


def serving_replicas(deployed: Deployed, pool: PoolUse) -> float:
    """Replicas of a pool that serve, its spares left out."""
    return pool.replicas - deployed.scenario.servers.spare_replicas


def house(scenario: Scenario, pools: Sequence[PoolUse], offered: Racked) -> Racked:
    """Take from the racks on offer no more units than the devices need: the last ones stay empty."""
    housed: Racked = {}
    for name, count in device_counts(scenario, pools).items():
        left = count.had / devices_per_unit(scenario, name)
        for (rack, device), units in offered.items():
            if device == name and left > 0:
                taken = min(left, float(round(units)) if scenario.counts == "integer" else units)
                housed[rack, device] = taken
                left -= taken
    return housed


def rack_power_w(deployed: Deployed, rack: str) -> float:
    """Provisioned watts of a rack, PUE included."""
    scenario = deployed.scenario
    return scenario.pue * sum(
        units * devices_per_unit(scenario, device) * (scenario.catalog.devices[device].provisioned_power_w or 0.0)
        for (at, device), units in deployed.racks.items()
        if at == rack
    )

"""Decision variables: slots (a place for one design of one workload), pools, and devices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from planner.bounds import Floats, largest_rates, runnable, usable
from planner.memory import free_bytes, sequence_bytes
from planner.milp.solver import Linear, Program
from planner.options import CostTable, Option, models_of
from planner.schema.scenario import Scenario
from planner.words import PHASES, STEP_PHASES, Phase

Group = tuple[int, ...]

_SHORT: dict[Phase, str] = {
    "target_prefill": "tp",
    "target_verify": "tv",
    "draft_prefill": "dp",
    "draft_decode": "dd",
}


@dataclass(frozen=True)
class Choice:
    """An option of a phase for a group of speculations: x says whether it is chosen, f its flow in rate units."""

    phase: Phase
    option: Option
    o: int
    group: Group
    models: tuple[str, ...]
    x: Any
    f: Any
    largest: float

    @property
    def s(self) -> int:
        """A speculation of the group; costs are the same for all of it."""
        return self.group[0]


@dataclass
class Slot:
    """Variables of one design of one workload.

    Attributes
    ----------
    prefix
        Ends the name of every variable and row of the slot.
    share
        Position among the workload's slots; only the first must be used.
    table
        Its costs.
    delta, rate
        By speculation: whether it is chosen; its request rate in units of ``rate_unit_rps``.
    choices, groups
        By phase.
    """

    prefix: str
    share: int
    table: CostTable
    rate_unit_rps: float
    largest: Floats
    delta: dict[int, Any] = field(default_factory=dict)
    rate: dict[int, Any] = field(default_factory=dict)
    choices: dict[Phase, list[Choice]] = field(default_factory=dict)
    groups: dict[Phase, list[Group]] = field(default_factory=dict)

    @property
    def workload(self) -> str:
        """Name of the workload."""
        return self.table.workload

    def all_choices(self) -> Iterator[Choice]:
        """Give every choice of every phase."""
        for phase in PHASES:
            yield from self.choices[phase]

    def flow(self, coefficients: dict[Phase, Floats]) -> Linear:
        """Σ coefficient·f over all choices, f in requests/s."""
        return Linear(
            (choice.f, self.rate_unit_rps * float(coefficients[choice.phase][choice.o, choice.s]))
            for choice in self.all_choices()
        )

    def request_rate(self) -> Linear:
        """Request rate of the slot in requests/s."""
        return Linear((variable, self.rate_unit_rps) for variable in self.rate.values())


@dataclass(frozen=True)
class PoolCount:
    """Serving replicas m of one (model set, device type, degree), the choices that they may serve, if it is in use.

    Replicas bought are m + spares·used: with m itself in the rows of flow and memory these stay well scaled at almost
    no rate, where a difference of replicas bought and spares would vanish in rounding. ``capacity`` is what a serving
    replica holds: sequences where the pool is private, bytes where it is shared.
    """

    name: str
    models: tuple[str, ...]
    device: str
    tensor_parallel: int
    capacity: float
    members: tuple[tuple[Slot, Choice], ...]
    m: Any
    used: Any

    def of(self, slot: Slot, phase: Phase) -> list[Choice]:
        """Give the choices of one phase of one slot."""
        return [choice for owner, choice in self.members if owner is slot and choice.phase == phase]

    def parts(self) -> list[tuple[Slot, Phase]]:
        """List the phases of slots that may use the pool."""
        return list({(id(slot), choice.phase): (slot, choice.phase) for slot, choice in self.members}.values())


@dataclass(frozen=True)
class DeviceVariables:
    """Devices of one type: those had (whole nodes where bought so) and those bought, both in devices."""

    device: str
    had: Linear
    bought: Linear


def _groups(table: CostTable, phase: Phase, able: list[int]) -> list[Group]:
    """Group the speculations that share a choice: all for the target's prefill, a proposer's for its own."""
    running = [s for s in able if table.runs(phase)[s]]
    if phase == "target_prefill":
        return [tuple(running)] if running else []
    if phase in STEP_PHASES:
        return [(s,) for s in running]
    by_proposer: dict[str | None, list[int]] = {}
    for s in running:
        by_proposer.setdefault(table.speculations[s].proposer, []).append(s)
    return [tuple(group) for group in by_proposer.values()]


def add_slot(
    program: Program,
    scenario: Scenario,
    table: CostTable,
    position: tuple[int, int],
    rate_unit_rps: float,
    most: dict[str, float],
) -> Slot:
    """Add the variables of one slot.

    Parameters
    ----------
    program, scenario, table
        Where to add, and what to choose from.
    position
        Of the workload, and of the slot among the workload's; it makes the names unique.
    rate_unit_rps
        Flows and rates are in units of this, so that they lie between 0 and about 1.
    most
        Request rates that are not exceeded, by workload; missing where only the limits bound them.
    """
    mask = usable(scenario, table)
    by_option, by_speculation = largest_rates(scenario, table, mask)
    by_speculation = np.minimum(by_speculation, most.get(table.workload, np.inf))
    index, share = position
    prefix = f"w{index}" if scenario.max_shares == 1 else f"w{index}k{share}"
    slot = Slot(prefix, share, table, rate_unit_rps, by_speculation / rate_unit_rps)
    able = [int(s) for s in np.flatnonzero(runnable(table, mask) & (by_speculation > 0))]
    for s in able:
        slot.delta[s] = program.variable(f"delta_{prefix}_s{s}", high=1.0, integer=True)
        slot.rate[s] = program.variable(f"rate_{prefix}_s{s}")
    for phase in PHASES:
        slot.groups[phase] = _groups(table, phase, able)
        slot.choices[phase] = [
            choice
            for group in slot.groups[phase]
            for o in range(len(table.phases[phase].options))
            if (mask[phase][o, list(group)] & (by_option[phase][o, list(group)] > 0)).any()
            for choice in _choices(program, scenario, slot, phase, o, group, by_option[phase])
        ]
    return slot


def _choices(
    program: Program, scenario: Scenario, slot: Slot, phase: Phase, o: int, group: Group, by_option: Floats
) -> Iterator[Choice]:
    """Add an option of a group: once in its private pool, or once for every model set of a shared one that fits."""
    option = slot.table.phases[phase].options[o]
    own = models_of(scenario, phase, slot.table.speculations[group[-1]])
    largest = min(float(by_option[o, list(group)].max()) / slot.rate_unit_rps, float(slot.largest[list(group)].max()))
    name = f"{_SHORT[phase]}_{slot.prefix}_o{o}_s{group[0]}"
    for number, models in enumerate(model_sets(scenario, own)):
        if scenario.shared_pools and not _batch_fits(scenario, slot.workload, option, own, models):
            continue
        ending = f"_m{number}" if scenario.shared_pools else ""
        x = program.variable(f"x_{name}{ending}", high=1.0, integer=True)
        f = program.variable(f"f_{name}{ending}")
        yield Choice(phase, replace(option, models=models), o, group, own, x, f, largest)


def model_sets(scenario: Scenario, own: Sequence[str]) -> list[tuple[str, ...]]:
    """List the model sets that a phase's pool may have: private, or every set with the phase's own where shared."""
    if not scenario.shared_pools:
        return [()]
    drafters = (scenario.catalog.proposers[name].model for name in scenario.proposers)
    known = dict.fromkeys(model for model in (scenario.target, *drafters) if model is not None)
    others = [other for other in known if other not in own]
    sets = (set(some) | set(own) for size in range(len(others) + 1) for some in combinations(others, size))
    return [tuple(sorted(some)) for some in sets]


def _batch_fits(scenario: Scenario, workload: str, option: Option, own: Sequence[str], models: Sequence[str]) -> bool:
    free = free_bytes(scenario, option.device, models, option.tensor_parallel)
    kv_bytes = sequence_bytes(scenario, workload, option.device, own, option.tensor_parallel)
    return free > 0 and (kv_bytes is None or free >= option.batch_size * kv_bytes)


def add_pools(program: Program, scenario: Scenario, slots: Sequence[Slot]) -> list[PoolCount]:
    """Add a count and an indicator for every pool that a choice may use."""
    members: dict[tuple[Any, ...], list[tuple[Slot, Choice]]] = {}
    for slot in slots:
        for choice in slot.all_choices():
            option = choice.option
            private = () if scenario.shared_pools else (slot.prefix, choice.phase)
            key = (*private, option.models or choice.models, option.device, option.tensor_parallel)
            members.setdefault(key, []).append((slot, choice))
    numbers: dict[tuple[Any, ...], int] = {}
    return [_pool(program, scenario, key, some, numbers) for key, some in members.items()]


def _pool(
    program: Program,
    scenario: Scenario,
    key: tuple[Any, ...],
    members: list[tuple[Slot, Choice]],
    numbers: dict[tuple[Any, ...], int],
) -> PoolCount:
    *private, models, device, degree = key
    group = tuple(private)
    number = numbers[group] = numbers.get(group, -1) + 1
    name = f"{private[0]}_{_SHORT[private[1]]}_{number}" if private else f"pool{number}"
    slot, choice = members[0]
    if private:
        capacity = float(slot.table.phases[choice.phase].sequences[choice.o, choice.group[-1]])
    else:
        capacity = free_bytes(scenario, device, models, degree)
    return PoolCount(
        name,
        models,
        device,
        degree,
        capacity,
        tuple(members),
        program.variable(f"m_{name}", integer=scenario.counts == "integer"),
        program.variable(f"used_{name}", high=1.0),
    )


def devices_used(scenario: Scenario, pools: Sequence[PoolCount], device: str) -> Linear:
    """Devices of a type in all pools, Σ tensor_parallel·(m + spares·used)."""
    mine = [pool for pool in pools if pool.device == device]
    used = Linear((pool.m, float(pool.tensor_parallel)) for pool in mine)
    spares = scenario.servers.spare_replicas
    return used.add((pool.used, float(spares * pool.tensor_parallel)) for pool in mine)


def add_devices(program: Program, scenario: Scenario, pools: Sequence[PoolCount]) -> dict[str, DeviceVariables]:
    """Add nodes and purchases by device type; devices had are those of the pools where devices are bought singly."""
    found = {}
    for number, device in enumerate(dict.fromkeys(pool.device for pool in pools)):
        had = devices_used(scenario, pools, device)
        per_host = scenario.catalog.devices[device].devices_per_host
        if scenario.servers.by_node and per_host is not None:
            nodes = program.variable(f"nodes_{number}", integer=scenario.counts == "integer")
            had = Linear([(nodes, float(per_host))])
        stock = scenario.limits.inventory.get(device)
        bought = had
        if stock is not None and stock.owned > 0:
            bought = Linear([(program.variable(f"bought_{number}"), 1.0)])
        found[device] = DeviceVariables(device, had, bought)
    return found


def is_finite(pool: PoolCount) -> bool:
    """Whether the pool's memory is described."""
    return math.isfinite(pool.capacity)

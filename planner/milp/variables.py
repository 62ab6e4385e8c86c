"""Decision variables of one slot: a place for one design of one workload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from planner.bounds import Floats, largest_rates, runnable, usable
from planner.milp.solver import Linear, Program
from planner.options import CostTable, Option, model_of
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
    x: Any
    f: Any
    largest: float

    @property
    def s(self) -> int:
        """A speculation of the group; costs are the same for all of it."""
        return self.group[0]


@dataclass(frozen=True)
class PoolCount:
    """Replicas of one (model, device type, degree) for one phase of one slot."""

    phase: Phase
    model: str
    device: str
    tensor_parallel: int
    sequences: float
    n: Any
    choices: tuple[Choice, ...]
    name: str


@dataclass
class Slot:
    """Variables of one design of one workload.

    Attributes
    ----------
    prefix
        Ends the name of every variable and row of the slot.
    table
        Its costs.
    delta, rate
        By speculation: whether it is chosen; its request rate in units of ``rate_unit_rps``.
    choices, pools
        By phase.
    """

    prefix: str
    table: CostTable
    rate_unit_rps: float
    largest: Floats
    delta: dict[int, Any] = field(default_factory=dict)
    rate: dict[int, Any] = field(default_factory=dict)
    choices: dict[Phase, list[Choice]] = field(default_factory=dict)
    groups: dict[Phase, list[Group]] = field(default_factory=dict)
    pools: list[PoolCount] = field(default_factory=list)

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


def _groups(table: CostTable, phase: Phase, able: list[int]) -> list[Group]:
    """Group the speculations that share a choice: all for the target's prefill, a proposer's for its own."""
    if phase == "target_prefill":
        return [tuple(able)] if able else []
    drafting = [s for s in able if table.runs(phase)[s]]
    if phase in STEP_PHASES:
        return [(s,) for s in drafting]
    by_proposer: dict[str | None, list[int]] = {}
    for s in drafting:
        by_proposer.setdefault(table.speculations[s].proposer, []).append(s)
    return [tuple(group) for group in by_proposer.values()]


def add_slot(
    program: Program,
    scenario: Scenario,
    table: CostTable,
    index: int,
    rate_unit_rps: float,
    most: dict[str, float] | None,
) -> Slot:
    """Add the variables of one slot.

    Parameters
    ----------
    program, scenario, table
        Where to add, and what to choose from.
    index
        Position of the slot; it makes the names unique.
    rate_unit_rps
        Flows and rates are in units of this, so that they lie between 0 and about 1.
    most
        Request rates that are not exceeded, by workload; null where only the limits bound them.
    """
    mask = usable(scenario, table)
    by_option, by_speculation = largest_rates(scenario, table, mask)
    if most is not None:
        by_speculation = np.minimum(by_speculation, most[table.workload])
    slot = Slot(f"w{index}", table, rate_unit_rps, by_speculation / rate_unit_rps)
    able = [int(s) for s in np.flatnonzero(runnable(table, mask) & (by_speculation > 0))]
    for s in able:
        slot.delta[s] = program.variable(f"delta_{slot.prefix}_s{s}", high=1.0, integer=True)
        slot.rate[s] = program.variable(f"rate_{slot.prefix}_s{s}")
    for phase in PHASES:
        slot.groups[phase] = _groups(table, phase, able)
        slot.choices[phase] = [
            _choice(program, slot, phase, o, group, by_option[phase])
            for group in slot.groups[phase]
            for o in range(len(table.phases[phase].options))
            if (mask[phase][o, list(group)] & (by_option[phase][o, list(group)] > 0)).any()
        ]
    _add_pools(program, scenario, slot)
    return slot


def _choice(program: Program, slot: Slot, phase: Phase, o: int, group: Group, by_option: Floats) -> Choice:
    name = f"{_SHORT[phase]}_{slot.prefix}_o{o}_s{group[0]}"
    largest = min(float(by_option[o, list(group)].max()) / slot.rate_unit_rps, float(slot.largest[list(group)].max()))
    option = slot.table.phases[phase].options[o]
    x = program.variable(f"x_{name}", high=1.0, integer=True)
    return Choice(phase, option, o, group, x, program.variable(f"f_{name}"), largest)


def _add_pools(program: Program, scenario: Scenario, slot: Slot) -> None:
    members: dict[tuple[Phase, str, str, int], list[Choice]] = {}
    for choice in slot.all_choices():
        model = model_of(scenario, choice.phase, slot.table.speculations[choice.s].proposer)
        if choice.phase == "target_prefill":
            model = scenario.target
        assert model is not None  # a phase that runs has a model
        key = (choice.phase, model, choice.option.device, choice.option.tensor_parallel)
        members.setdefault(key, []).append(choice)
    for number, ((phase, model, device, degree), choices) in enumerate(members.items()):
        name = f"{slot.prefix}_{_SHORT[phase]}_{number}"
        n = program.variable(f"n_{name}", integer=scenario.counts == "integer")
        held = float(slot.table.phases[phase].sequences[choices[0].o, choices[0].s])
        slot.pools.append(PoolCount(phase, model, device, degree, held, n, tuple(choices), name))

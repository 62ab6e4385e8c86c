"""The five objectives, each as an expression to minimize in units of about 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.milp.constraints import Transfers, fleet_cost_usd_per_hour, fleet_power_w, tpot_s
from planner.milp.solver import Linear, Program
from planner.milp.variables import Slot
from planner.schema.scenario import Scenario
from planner.words import MAXIMIZED, PHASES


@dataclass(frozen=True)
class Goal:
    """What is minimized: ``expression`` × ``unit`` is the objective's own figure (negated, or inverted to TPOT)."""

    expression: Linear
    unit: float

    def value(self, scenario: Scenario, minimized: float) -> float | None:
        """Turn a value of the minimization into the objective's unit; null where it says nothing."""
        figure = minimized * self.unit
        if scenario.objective == "throughput":
            return -figure
        if scenario.objective == "interactivity":
            return 1.0 / figure if figure > 0 else None
        return figure


def throughput_tps(scenario: Scenario, slots: Sequence[Slot]) -> Linear:
    """Output tokens/s of the whole deployment, Σ λ·OSL."""
    total = Linear()
    for slot in slots:
        total.add(slot.request_rate().pairs(), float(scenario.workloads[slot.workload].osl_tokens))
    return total


def energy_j_per_token(
    scenario: Scenario, slots: Sequence[Slot], transfers: Sequence[Transfers], rates: dict[str, float]
) -> Linear:
    """Mix-weighted forward energy per output token at fixed rates, Σ mix·(Σ f·e)/(λ·OSL)."""
    mix = {name: workload.mix for name, workload in scenario.workloads.items()}
    total = Linear()
    for slot, moved in zip(slots, transfers, strict=True):
        weight = mix[slot.workload] / sum(mix.values())
        tokens = rates[slot.workload] * scenario.workloads[slot.workload].osl_tokens
        energy = {phase: slot.table.energy_per_request_j(phase) for phase in PHASES}
        total.add(slot.flow(energy).pairs(), weight / tokens).add(moved.energy_w(slot).pairs(), weight / tokens)
    return total


def worst_tpot_s(program: Program, slots: Sequence[Slot], transfers: Sequence[Transfers], unit_s: float) -> Linear:
    """T ≥ TPOT of every slot, in units of ``unit_s``."""
    worst = program.variable("worst_tpot")
    for slot, moved in zip(slots, transfers, strict=True):
        row = tpot_s(slot, moved).scaled(1.0 / unit_s).add([(worst, -1.0)])
        program.row(f"worst_tpot_{slot.prefix}", row, "<=", 0.0)
    return Linear([(worst, 1.0)])


def goal_of(
    program: Program,
    scenario: Scenario,
    slots: Sequence[Slot],
    transfers: Sequence[Transfers],
    rates: dict[str, float] | None,
) -> Goal:
    """Build the scenario's objective."""
    if scenario.objective == "interactivity":
        unit = max((coefficient for slot in slots for _, coefficient in tpot_s(slot, Transfers()).pairs()), default=1.0)
        return Goal(worst_tpot_s(program, slots, transfers, unit), unit)
    if scenario.objective == "throughput":
        figure = throughput_tps(scenario, slots)
    elif scenario.objective == "power":
        figure = fleet_power_w(scenario, slots, transfers)
    elif scenario.objective == "cost":
        figure = fleet_cost_usd_per_hour(scenario, slots)
    else:
        assert rates is not None  # energy is always asked at fixed rates
        figure = energy_j_per_token(scenario, slots, transfers, rates)
    unit = max((abs(coefficient) for _, coefficient in figure.pairs()), default=1.0)
    sign = -1.0 if scenario.objective in MAXIMIZED else 1.0
    return Goal(figure.scaled(sign / unit), unit)

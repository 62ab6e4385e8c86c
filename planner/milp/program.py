"""Assemble the program of a scenario, solve it, and read the designs back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.bounds import largest_rates, runnable, usable
from planner.errors import InputError
from planner.evaluate import Design
from planner.milp import constraints as rows
from planner.milp.constraints import Transfers
from planner.milp.objective import Aim, Goal, goal_of
from planner.milp.solver import FEASIBILITY, Linear, Outcome, Program, solve
from planner.milp.variables import Slot, add_slot
from planner.options import CostTable, Option
from planner.rates import fixed_rates
from planner.schema.scenario import Scenario
from planner.words import PHASES, Phase, Status

_CLOSED_GAP = 1e-6


@dataclass(frozen=True)
class Solution:
    """Designs with rates, and what the solver proved. ``designs`` is empty where there is no incumbent."""

    status: Status
    designs: tuple[tuple[Design, float], ...]
    value: float | None
    best_bound: float | None
    gap: float | None
    runtime_s: float


@dataclass
class Assembled:
    """A program with the parts that are read back."""

    program: Program
    slots: list[Slot]
    transfers: list[Transfers]
    goal: Goal
    rates: dict[str, float] | None


@dataclass(frozen=True)
class Question:
    """What is optimized: an aim (by default the scenario's objective) at exact rates by workload (null: free).

    ``out_of_reach``: rates by workload that are known to be too much, where the limits alone may not bound them.
    """

    aim: Aim
    rates: dict[str, float] | None
    device: str | None = None
    out_of_reach: dict[str, float] | None = None


def question_of(scenario: Scenario) -> Question:
    """Give the scenario's own question."""
    return Question(scenario.objective, fixed_rates(scenario))


def assemble(scenario: Scenario, tables: dict[str, CostTable], question: Question) -> Assembled:
    """Build the whole program.

    Raises
    ------
    InputError
        If nothing bounds the throughput.
    """
    rates = question.rates
    most = question.out_of_reach if rates is None else rates
    unit = _rate_unit_rps(scenario, tables, most) if rates is None else max(rates.values())
    program = Program("phaseplan")
    slots = [add_slot(program, scenario, table, index, unit, most) for index, table in enumerate(tables.values())]
    moved = [rows.transfers_between_devices(program, scenario, slot) for slot in slots]
    for slot, transfers in zip(slots, moved, strict=True):
        rows.one_speculation(program, slot)
        rows.one_option_per_phase(program, slot)
        rows.rate_follows_speculation(program, slot)
        rows.flow_is_carried(program, slot)
        rows.flow_follows_option(program, slot)
        rows.interactivity_floor(program, scenario, slot, transfers)
        rows.ttft_ceiling(program, scenario, slot, transfers)
        rows.pool_capacity(program, scenario, slot)
        rows.pool_is_bought(program, scenario, slot)
        rows.pool_memory(program, scenario, slot, transfers)
    rows.device_inventory(program, scenario, slots)
    rows.power_budget(program, scenario, slots, moved)
    rows.cost_budget(program, scenario, slots)
    rows.demand(program, scenario, slots, rates)
    if rates is None:
        rows.mix(program, scenario, slots, program.variable("scale"))
    goal = goal_of(program, scenario, slots, moved, rates, question.aim, question.device)
    return Assembled(program, slots, moved, goal, rates)


def _rate_unit_rps(scenario: Scenario, tables: dict[str, CostTable], most: dict[str, float] | None) -> float:
    bounds = most or dict.fromkeys(tables, np.inf)
    largest = [min(_largest_rate(scenario, table), bounds[name]) for name, table in tables.items()]
    if not np.isfinite(max(largest)):
        raise InputError(
            "nothing bounds the throughput: some design uses nothing of what is limited; give --budget-kw,"
            " --budget-usd-per-hour, or an inventory for more devices"
        )
    return max(largest) or 1.0


def _largest_rate(scenario: Scenario, table: CostTable) -> float:
    mask = usable(scenario, table)
    by_speculation = largest_rates(scenario, table, mask)[1]
    return float(by_speculation[runnable(table, mask)].max(initial=0.0))


def optimise(
    scenario: Scenario,
    tables: dict[str, CostTable],
    question: Question | None = None,
    time_limit_s: float | None = None,
    polish: bool = True,
) -> Solution:
    """Solve a scenario to proven optimality, or to the best found within a time limit.

    Parameters
    ----------
    scenario, tables
        What is asked, and the costs of every workload.
    question
        What is optimized; by default the scenario's own question.
    time_limit_s
        Limit on the solver's time.
    polish
        Fix the binaries found and re-solve the rest, so that rates are as accurate as a linear program's; among equally
        good plans prefer one of least forward power.

    Raises
    ------
    InputError
        If nothing bounds the throughput.
    """
    start = time.perf_counter()
    built = assemble(scenario, tables, question or question_of(scenario))
    if not all(slot.delta for slot in built.slots):
        return Solution("infeasible", (), None, None, None, time.perf_counter() - start)
    built.program.minimize(built.goal.expression)
    outcome = solve(built.program, time_limit_s)
    if not outcome.has_incumbent:
        status: Status = "infeasible" if outcome.termination == "infeasible" else "no_incumbent"
        return Solution(status, (), None, None, None, time.perf_counter() - start)
    reached = outcome.objective
    if polish:
        left = None if time_limit_s is None else max(1.0, time_limit_s - outcome.runtime_s)
        reached = _prefer_least_energy(built, outcome, left)
    return _solution(built.goal, outcome, reached, tuple(_designs(built)), time.perf_counter() - start)


def _solution(
    goal: Goal, outcome: Outcome, reached: float, designs: tuple[tuple[Design, float], ...], runtime_s: float
) -> Solution:
    # The re-solved value may be better than the bound by rounding; the bound holds for it too.
    value, bound = goal.value(reached), goal.value(min(outcome.bound, reached))
    gap = None if value is None or bound is None else abs(value - bound) / max(abs(value), 1e-12)
    proven = outcome.termination == "optimal" and gap is not None and gap <= _CLOSED_GAP
    return Solution("optimal" if proven else "feasible", designs, value, bound, gap, runtime_s)


def _prefer_least_energy(built: Assembled, outcome: Outcome, time_limit_s: float | None) -> float:
    """Keep speculation and objective, take the options of least forward energy, re-solve, and give the value."""
    program, binaries = built.program, list(_binaries(built.slots))
    first = {variable.name: round(variable.varValue) for variable in binaries}
    for slot in built.slots:
        _fix((delta, first[delta.name]) for delta in slot.delta.values())
    energy = {id(slot): {phase: slot.table.energy_per_request_j(phase) for phase in PHASES} for slot in built.slots}
    forward = Linear()
    for slot, moved in zip(built.slots, built.transfers, strict=True):
        forward.add(slot.flow(energy[id(slot)]).pairs()).add(moved.energy_w(slot).pairs())
    unit = max((abs(coefficient) for _, coefficient in forward.pairs()), default=1.0) or 1.0
    # Well above the solver's own tolerance: a slack of just that makes HiGHS's presolve call the program infeasible.
    slack = 10.0 * FEASIBILITY * max(1.0, abs(outcome.objective))
    program.row("objective_is_kept", built.goal.expression, "<=", outcome.objective + slack)
    program.minimize(forward.scaled(1.0 / unit))
    again = solve(program, time_limit_s)
    chosen = {v.name: round(v.varValue) for v in binaries} if again.has_incumbent else first
    _fix((variable, chosen[variable.name]) for variable in binaries)
    program.minimize(built.goal.expression)
    final = solve(program)
    if not final.has_incumbent:
        raise RuntimeError("the designs that the solver found cannot be solved again with their choices fixed")
    return final.objective


def _binaries(slots: Sequence[Slot]) -> Iterable[Any]:
    for slot in slots:
        yield from slot.delta.values()
        yield from (choice.x for choice in slot.all_choices())


def _fix(values: Iterable[tuple[Any, int]]) -> None:
    for variable, value in values:
        variable.lowBound = value
        variable.upBound = value


def _designs(built: Assembled) -> Iterable[tuple[Design, float]]:
    for slot in built.slots:
        s = next(s for s, delta in slot.delta.items() if delta.varValue > 0.5)
        options: dict[Phase, Option | None] = dict.fromkeys(PHASES)
        for choice in slot.all_choices():
            if choice.x.varValue > 0.5 and s in choice.group:
                options[choice.phase] = choice.option
        rate = slot.rate[s].varValue * slot.rate_unit_rps
        if built.rates is not None:
            rate = built.rates[slot.workload]
        yield Design(slot.workload, slot.table.speculations[s], options), rate

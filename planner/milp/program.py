"""Assemble the program of a scenario, solve it, and read the designs back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.bounds import largest_rates, runnable, usable
from planner.errors import InputError
from planner.evaluate import Design
from planner.milp import constraints as rows
from planner.milp.constraints import Transfers
from planner.milp.objective import Goal, goal_of
from planner.milp.solver import FEASIBILITY, Linear, Outcome, Program, solve
from planner.milp.variables import Slot, add_devices, add_pools, add_slot
from planner.options import CostTable, Option, models_of
from planner.question import CLOSED_GAP, Question, Solution, question_of, relative_gap
from planner.rates import NOTHING_BOUNDS, knows_power
from planner.schema.scenario import Scenario
from planner.words import PHASES, Phase, Status

_NO_SHARE = 1e-7
# Largest rate, in rate units, that is none at all: a plan that serves nothing is no plan.
_NOTHING = 1e-9


@dataclass
class Assembled:
    """A program with the parts that are read back."""

    scenario: Scenario
    program: Program
    slots: list[Slot]
    transfers: list[Transfers]
    goal: Goal
    racked: dict[tuple[str, str], Any]
    preferred: Linear
    rates: dict[str, float] | None


def assemble(scenario: Scenario, tables: dict[str, CostTable], question: Question) -> Assembled:
    """Build the whole program.

    Raises
    ------
    InputError
        If nothing bounds the throughput.
    """
    rates = question.rates
    most = {**question.out_of_reach, **(rates or {})}
    unit = rate_unit_rps(scenario, tables, most)
    program = Program("phaseplan")
    slots = [
        add_slot(program, scenario, table, (index, share), unit, most)
        for index, table in enumerate(tables.values())
        for share in range(scenario.max_shares)
    ]
    moved = [rows.transfers_between_devices(program, scenario, slot) for slot in slots]
    for slot, transfers in zip(slots, moved, strict=True):
        rows.one_speculation(program, slot)
        rows.one_option_per_phase(program, slot)
        rows.rate_follows_speculation(program, slot)
        rows.flow_is_carried(program, slot)
        rows.flow_follows_option(program, slot)
        rows.interactivity_floor(program, scenario, slot, transfers)
        rows.ttft_ceiling(program, scenario, slot, transfers)
    rows.larger_share_first(program, slots)
    pools = add_pools(program, scenario, slots)
    rows.pool_in_use(program, pools)
    rows.pool_capacity(program, scenario, pools)
    rows.pool_is_bought(program, scenario, pools)
    rows.batch_fill(program, scenario, pools)
    rows.pool_memory(program, scenario, slots, moved, pools)
    devices = add_devices(program, scenario, pools)
    rows.whole_nodes(program, scenario, pools, devices)
    rows.purchases(program, scenario, devices)
    rows.device_inventory(program, scenario, devices)
    racked = rows.rack_power(program, scenario, devices)
    power = rows.fleet_power_w(scenario, slots, moved, devices)
    rows.power_budget(program, scenario, power)
    rows.cost_budget(program, scenario, devices)
    rows.demand(program, scenario, slots, rates)
    if rates is None:
        rows.mix(program, scenario, slots, program.variable("scale"))
    goal = goal_of(program, scenario, slots, moved, devices, question)
    preferred = power if knows_power(scenario, tables) else _forward_w(slots, moved)
    return Assembled(scenario, program, slots, moved, goal, racked, preferred, rates)


def _forward_w(slots: Sequence[Slot], transfers: Sequence[Transfers]) -> Linear:
    total = Linear()
    for slot, moved in zip(slots, transfers, strict=True):
        energy = {phase: slot.table.energy_per_request_j(phase) for phase in PHASES}
        total.add(slot.flow(energy).pairs()).add(moved.energy_w(slot).pairs())
    return total


def rate_unit_rps(scenario: Scenario, tables: dict[str, CostTable], most: dict[str, float]) -> float:
    """Give the largest rate that the limits may allow any workload: rates are in units of it."""
    rates = [most.get(name, np.inf) for name in tables]
    largest = [
        rate if np.isfinite(rate) else _largest_rate(scenario, tables[name])
        for name, rate in zip(tables, rates, strict=True)
    ]
    if not np.isfinite(max(largest)):
        raise InputError(NOTHING_BOUNDS)
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
        good plans prefer one of least power.

    Raises
    ------
    InputError
        If nothing bounds the throughput.
    """
    start = time.perf_counter()
    built = assemble(scenario, tables, question or question_of(scenario))
    if not all(slot.delta for slot in built.slots):
        return Solution("infeasible", (), None, None, None, time.perf_counter() - start, "program")
    built.program.minimize(built.goal.expression)
    outcome = solve(built.program, time_limit_s)
    if not outcome.has_incumbent:
        status: Status = "infeasible" if outcome.termination == "infeasible" else "no_incumbent"
        return Solution(status, (), None, None, None, time.perf_counter() - start, "program")
    if built.goal.aim in ("throughput", "rate") and outcome.objective > -_NOTHING:
        return Solution("infeasible", (), None, None, None, time.perf_counter() - start, "program")
    reached = outcome.objective
    if polish:
        left = None if time_limit_s is None else max(1.0, min(0.2 * time_limit_s, time_limit_s - outcome.runtime_s))
        reached = _prefer_least_power(built, outcome, left)
    return _solution(built, outcome, reached, time.perf_counter() - start)


def _solution(built: Assembled, outcome: Outcome, reached: float, runtime_s: float) -> Solution:
    # The re-solved value may be better than the bound by rounding; the bound holds for it too.
    goal = built.goal
    value, bound = goal.value(reached), goal.value(min(outcome.bound, reached))
    gap = None if value is None or bound is None else relative_gap(value, bound)
    proven = outcome.termination == "optimal" and gap is not None and gap <= CLOSED_GAP
    status: Status = "optimal" if proven else "feasible"
    designs = _with_needed_models(built.scenario, _designs(built))
    return Solution(status, tuple(designs), value, bound, gap, runtime_s, "program", _racks(built))


def _prefer_least_power(built: Assembled, outcome: Outcome, time_limit_s: float | None) -> float:
    """Keep speculation and objective, take the options of least power, re-solve, and give the value."""
    program, binaries = built.program, list(_binaries(built.slots))
    first = {variable.name: round(variable.varValue) for variable in binaries}
    for slot in built.slots:
        _fix((delta, first[delta.name]) for delta in slot.delta.values())
    unit = max((abs(coefficient) for _, coefficient in built.preferred.pairs()), default=1.0) or 1.0
    # Well above the solver's own tolerance: a slack of just that makes HiGHS's presolve call the program infeasible.
    slack = 10.0 * FEASIBILITY * max(1.0, abs(outcome.objective))
    program.row("objective_is_kept", built.goal.expression, "<=", outcome.objective + slack)
    program.minimize(built.preferred.scaled(1.0 / unit))
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


def _designs(built: Assembled) -> list[tuple[Design, float]]:
    """Read the designs back; a slot that carries nothing is none, and exact rates are kept exactly."""
    found = [(slot, *_design(slot)) for slot in built.slots if any(d.varValue > 0.5 for d in slot.delta.values())]
    served: dict[str, float] = {}
    for slot, _, rate in found:
        served[slot.workload] = served.get(slot.workload, 0.0) + rate
    designs = []
    for slot, design, rate in found:
        if rate > _NO_SHARE * served[slot.workload] or served[slot.workload] == 0:
            asked = (built.rates or {}).get(slot.workload, served[slot.workload])
            designs.append((design, asked * (rate / served[slot.workload] if served[slot.workload] else 1.0)))
    return designs


def _with_needed_models(scenario: Scenario, designs: list[tuple[Design, float]]) -> list[tuple[Design, float]]:
    """Leave out of every shared pool the models that no phase in it runs.

    Pools that become the same are one. Nothing grows by it: fewer weights leave more room for KV, and the least count
    of several needs together is at most the sum of the least counts of each. Only how full batches are can fall.
    """
    if scenario.servers.min_batch_fill > 0:
        return designs
    run: dict[Option, set[str]] = {}
    for design, _ in designs:
        for phase, option in design.options.items():
            if option is not None:
                own = models_of(scenario, phase, design.speculation)
                run.setdefault(replace(option, batch_size=1), set()).update(own)

    def needed(option: Option | None) -> Option | None:
        if option is None or not option.models:
            return option
        return replace(option, models=tuple(sorted(run[replace(option, batch_size=1)])))

    return [
        (replace(design, options={phase: needed(option) for phase, option in design.options.items()}), rate)
        for design, rate in designs
    ]


def _design(slot: Slot) -> tuple[Design, float]:
    s = next(s for s, delta in slot.delta.items() if delta.varValue > 0.5)
    options: dict[Phase, Option | None] = dict.fromkeys(PHASES)
    for choice in slot.all_choices():
        if choice.x.varValue > 0.5 and s in choice.group:
            options[choice.phase] = choice.option
    return Design(slot.workload, slot.table.speculations[s], options), slot.rate[s].varValue * slot.rate_unit_rps


def _racks(built: Assembled) -> dict[tuple[str, str], float]:
    return {key: float(units.varValue) for key, units in built.racked.items() if units.varValue > 0}

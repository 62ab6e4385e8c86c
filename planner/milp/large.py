"""Large coupled questions: a bound by columns, plans at its prices, then the exact program on what is left."""

from __future__ import annotations

import time
from dataclasses import replace

from planner.assemble import deploy, objective_value
from planner.bounds import largest_rates, runnable, usable
from planner.measure import Kind
from planner.milp.program import optimise as solve_program
from planner.milp.program import rate_unit_rps
from planner.milp.relaxation import Relaxation, Relaxed, relaxed, solve_relaxation, tables_of_columns, tables_within
from planner.options import CostTable
from planner.question import CLOSED_GAP, Aim, Question, Solution, is_maximized, relative_gap
from planner.rates import knows_power
from planner.schema.scenario import Scenario
from planner.structure.optimise import budgets_of
from planner.structure.packing import Packing, largest_packed
from planner.words import PHASES, Status

Tables = dict[str, CostTable]

# Choices beyond which the plain program is slower than bounding first.
MANY_CHOICES = 1500
# Choices beyond which building the exact program alone takes longer than people wait.
_TOO_MANY_CHOICES = 40_000
_RELAXATION_SHARE = 0.35
_PACKING_SHARE = 0.15
_ROUNDED = 1e-7
_ATTEMPTS = 8
_NO_LIMIT_S = 1e9


def choices(scenario: Scenario, tables: Tables) -> int:
    """Count the pairs of option and speculation that a program would choose from."""
    per_slot = sum(int((t.phases[p].available & t.runs(p)).sum()) for t in tables.values() for p in PHASES)
    return per_slot * scenario.max_shares


def is_bounded_by_columns(question: Question) -> bool:
    """Whether the relaxation knows the question's aim."""
    return question.aim in ("throughput", "power", "cost", "energy")


def optimise(
    scenario: Scenario, tables: Tables, question: Question, time_limit_s: float | None, polish: bool
) -> Solution:
    """Solve a large coupled question, to a proof or to the best plan and bound within the time limit.

    First the bound by columns; then a plan of one workload after the other at the bound's prices; then the program on
    the options of the columns that are mixed, for another plan; then, unless that closes the gap, the program on
    everything that the bound and the best plan do not rule out, for the proof.

    Raises
    ------
    InputError
        If nothing bounds the throughput.
    """
    start = time.perf_counter()
    total = _NO_LIMIT_S if time_limit_s is None else time_limit_s

    def left() -> float | None:
        return None if time_limit_s is None else max(0.5, total - (time.perf_counter() - start))

    problem = relaxed(scenario, tables, question)
    found = solve_relaxation(problem, _RELAXATION_SHARE * total)
    if not found.mixed or found.prices is None:
        return solve_program(scenario, tables, question, left(), polish)
    packed = _packed(problem, found, _PACKING_SHARE * total, start)
    if packed is not None and packed.status == "optimal":
        return packed
    share = None if time_limit_s is None else 0.5 * (left() or 0.0)
    first = solve_program(scenario, tables_of_columns(problem, found.mixed), question, share, polish)
    best = _best(problem, _bounded(problem, first, found, start), packed)
    if best.value is None:
        return solve_program(scenario, tables, question, left(), polish)
    if best.status == "optimal" or (time_limit_s is not None and time.perf_counter() - start > 0.9 * total):
        return best
    # With several shares a dear option costs little where it serves little: nothing can be ruled out.
    shared = scenario.max_shares > 1
    rest = tables if shared else tables_within(problem, found.prices, _minimized(problem, best.value))
    if time_limit_s is not None and choices(scenario, rest) > _TOO_MANY_CHOICES:
        return best
    if all(len(table.speculations) for table in rest.values()):
        second = solve_program(scenario, rest, question, left(), polish)
        best = _better(problem, best, second, found, start)
    elif best.value is not None:
        best = replace(best, status="optimal", best_bound=best.value, gap=0.0)
    return best


def _packed(problem: Relaxed, found: Relaxation, seconds: float, start: float) -> Solution | None:
    """Give a plan of one workload after the other; null where none is found, or where pools or racks are shared."""
    scenario, question, begin = problem.scenario, problem.question, time.perf_counter()
    if scenario.shared_pools or scenario.servers.racks:
        return None
    packing = _packing(problem, found)
    if question.rates is not None:
        rates, designs = question.rates, packing.at(question.rates, _ATTEMPTS)
    else:
        asked = max((w.limits.demand_rps or 0.0) / problem.weights[name] for name, w in scenario.workloads.items())
        bound = _bound(problem, found) / _tokens(problem)
        scale, designs = largest_packed(
            packing, problem.weights, asked, bound, _ATTEMPTS, lambda: time.perf_counter() - begin < seconds
        )
        rates = {name: scale * weight for name, weight in problem.weights.items()}
        if max(rates.values()) <= _ROUNDED * rate_unit_rps(scenario, problem.tables, {}):
            return None  # all that is left is what limits are rounded by: such a plan serves nothing
    if designs is None:
        return None
    frugal = _frugal(problem).at(rates, _ATTEMPTS) if question.rates is None else None
    chosen = designs if frugal is None else frugal
    named = tuple((one.design(problem.tables[name]), rates[name]) for name, one in chosen.items())
    value = objective_value(deploy(scenario, named, problem.tables))
    return _bounded(problem, Solution("feasible", named, value, None, None, 0.0, "program"), found, start)


def _packing(problem: Relaxed, found: Relaxation) -> Packing:
    """Price workloads by the bound's prices, in units of the objective."""
    scenario, question, prices = problem.scenario, problem.question, found.prices
    assert prices is not None
    own: dict[Aim, Kind] = {"power": "power", "cost": "cost", "energy": "energy"}
    scales = dict.fromkeys(problem.tables, 1.0)
    if question.aim == "energy":
        mix = sum(workload.mix for workload in scenario.workloads.values())
        for name, workload in scenario.workloads.items():
            scales[name] = workload.mix / mix / (problem.weights[name] * workload.osl_tokens)
    worth = {"power": prices.power, "cost": prices.cost}
    budgets = {kind: (most, worth[kind]) for kind, most in budgets_of(scenario)}
    return Packing.of(scenario, problem.tables, own.get(question.aim), prices.stock, budgets, scales)


def _frugal(problem: Relaxed) -> Packing:
    """Price workloads by their power, to break ties."""
    scenario, tables = problem.scenario, problem.tables
    budgets = {kind: (most, 0.0) for kind, most in budgets_of(scenario)}
    kind: Kind = "power" if knows_power(scenario, tables) else "energy"
    return Packing.of(scenario, tables, kind, {}, budgets, dict.fromkeys(tables, 1.0))


def _best(problem: Relaxed, first: Solution, packed: Solution | None) -> Solution:
    """Give the better one of two plans under the same bound."""
    if packed is None or packed.value is None or first.value is None:
        return first if packed is None else packed
    better = packed.value > first.value if problem.maximizes else packed.value < first.value
    return packed if better and first.status != "optimal" else first


def _minimized(problem: Relaxed, value: float) -> float:
    """Turn a value of the objective into that of the relaxation: minus the scale for throughput."""
    return -value / _tokens(problem) if problem.maximizes else value


def _tokens(problem: Relaxed) -> float:
    """Output tokens/s of the whole mix at scale 1."""
    workloads = problem.scenario.workloads
    return sum(share * workloads[name].osl_tokens for name, share in problem.weights.items())


def _bound(problem: Relaxed, found: Relaxation) -> float:
    if not problem.maximizes:
        return found.bound
    return min(-found.bound, _largest_scale(problem)) * _tokens(problem)


def _largest_scale(problem: Relaxed) -> float:
    """Bound the scale by the workload that limits it most: no design of it carries more, were the fleet its own.

    Only where a workload has one design: several may add up their devices.
    """
    scenario = problem.scenario
    if scenario.max_shares > 1:
        return float("inf")
    scales = []
    for name, table in problem.tables.items():
        mask = usable(scenario, table)
        rates = largest_rates(scenario, table, mask)[1][runnable(table, mask)]
        scales.append(float(rates.max(initial=0.0)) / problem.weights[name])
    return min(scales)


def _bounded(problem: Relaxed, solution: Solution, found: Relaxation, start: float) -> Solution:
    """Give a plan of a part of the options the bound of all of them."""
    runtime = time.perf_counter() - start
    if solution.value is None:
        return replace(solution, best_bound=None, gap=None, runtime_s=runtime)
    bound = _bound(problem, found)
    up = is_maximized(problem.question.aim)
    if (bound < solution.value) if up else (bound > solution.value):
        bound = solution.value
    gap = relative_gap(solution.value, bound)
    status: Status = "optimal" if gap <= CLOSED_GAP else "feasible"
    return replace(solution, status=status, best_bound=bound, gap=gap, runtime_s=runtime)


def _better(problem: Relaxed, first: Solution, second: Solution, found: Relaxation, start: float) -> Solution:
    """Put together a plan, and what the program says of everything that could be better.

    What was ruled out is no better than the first plan, so the bound of the rest, or the first plan, bounds everything.
    """
    assert first.value is not None
    up = is_maximized(problem.question.aim)
    runtime = time.perf_counter() - start
    if second.status == "infeasible":
        return replace(first, status="optimal", best_bound=first.value, gap=0.0, runtime_s=runtime)
    values = [solution for solution in (first, second) if solution.value is not None]
    best = (max if up else min)(values, key=lambda solution: solution.value or 0.0)
    assert best.value is not None
    bound = _bound(problem, found)
    if second.best_bound is not None:
        loosest = max(second.best_bound, best.value) if up else min(second.best_bound, best.value)
        bound = min(bound, loosest) if up else max(bound, loosest)
    gap = relative_gap(best.value, bound)
    status: Status = "optimal" if gap <= CLOSED_GAP else "feasible"
    return replace(best, status=status, best_bound=bound, gap=gap, runtime_s=runtime)

"""Questions around a plan, each answered by solving again: what a limit costs, what baselines give, why none fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from planner.assemble import deploy, fill_budgets, limit_row, objective_value, throughput_tps
from planner.errors import InputError
from planner.fleet import devices_per_unit, least_count
from planner.limits import Limit, limits_of, with_bound, without
from planner.optimise import optimise
from planner.options import CostTable, Speculation, cost_table, speculations_of
from planner.question import ROUNDING, Aim, Question, Solution, question_of
from planner.rates import fixed_rates, is_bounded, require_answerable
from planner.schema import documents as doc
from planner.schema.scenario import Scenario
from planner.words import PHASES, LimitName, Phase

Tables = dict[str, CostTable]
Rates = dict[str, float]
Tick = Callable[[str], None]
Left = Callable[[], float | None]

# Rates at which only the smallest deployment matters: every phase has at most one replica at work.
_ALMOST_NO_RATE_RPS = 1e-6
_STEP_W = 1e3


def unlimited() -> None:
    """Give the seconds that are left: any number."""


# ------------------------------------------------------------------------------------------------- limits


def step_of(scenario: Scenario, limit: Limit, share: float = 0.01) -> float:
    """Give the step by which a limit is relaxed.

    +1 kW, +1 USD/h, +1 device (+1 node where devices are bought so); a share less of a floor or a demand, more of the
    TTFT.
    """
    if limit.name == "power_budget":
        return _STEP_W
    if limit.name == "inventory" and limit.device is not None:
        return devices_per_unit(scenario, limit.device)
    if limit.name == "cost_budget":
        return 1.0
    return (-share if limit.is_floor else share) * limit.bound


def limit_rows(
    scenario: Scenario,
    tables: Tables,
    values: Sequence[tuple[Limit, float | None]],
    reached: float,
    tick: Tick,
    left: Left = unlimited,
) -> tuple[doc.LimitRow, ...]:
    """Write every limit with what moving it buys.

    A limit binds if nothing of it is left, if moving it by its step moves the optimum, or if dropping it does.

    Parameters
    ----------
    scenario, tables
        What was solved.
    values
        Each limit with what the plan has.
    reached
        The optimum.
    tick
        Is told of the progress.
    left
        Gives the seconds that are left; what is not proven in time stays null.
    """
    limits = [limit for limit, _ in values]

    def relaxed(asked: Scenario, limit: Limit) -> Scenario:
        return with_bound(asked, limit, limit.bound + step_of(scenario, limit))

    def dropped(asked: Scenario, limit: Limit) -> Scenario:
        return with_bound(asked, limit, None)

    tick("what more of each limit would buy")
    marginal = _effects(scenario, tables, limits, relaxed, reached, left)
    loose = [limit for limit, value in values if not marginal[limit] and not limit.is_met_exactly(value)]
    tick("which limits bind")
    freed = _effects(scenario, tables, loose, dropped, reached, left)
    binding = {limit: bool(freed.get(limit, 1.0)) for limit in limits}
    return tuple(
        limit_row(limit, value, binding[limit], marginal[limit], step_of(scenario, limit)) for limit, value in values
    )


Move = Callable[[Scenario, Limit], Scenario]


def _effects(
    scenario: Scenario, tables: Tables, limits: Sequence[Limit], move: Move, reached: float, left: Left
) -> dict[Limit, float | None]:
    """Give the change of the optimum when each limit alone is moved to the looser side.

    Moving several can only do more than moving one of them. So where moving a whole group changes nothing, none of it
    does; else the group is halved. Null where a change is not proven.
    """
    if not limits:
        return {}
    moved = scenario
    for limit in limits:
        moved = move(moved, limit)
    unbounded = scenario.objective == "throughput" and is_bounded(scenario) and not is_bounded(moved)
    change = math.inf if unbounded else _change(moved, tables, reached, left)
    if change == 0.0 or len(limits) == 1:
        return dict.fromkeys(limits, change)
    half = len(limits) // 2
    return {
        **_effects(scenario, tables, limits[:half], move, reached, left),
        **_effects(scenario, tables, limits[half:], move, reached, left),
    }


def _change(scenario: Scenario, tables: Tables, reached: float, left: Left) -> float | None:
    """Re-solve and give the change of the objective.

    0 where it is only rounding, infinite where nothing bounds the throughput any more, null where it is not proven.
    """
    seconds = left()
    if seconds is not None and seconds <= 0:
        return None
    try:
        require_answerable(scenario)
        question = question_of(scenario)
        if question.aim == "throughput":  # what was reached holds where a limit is looser
            question = replace(question, reached=reached)
        solution = optimise(scenario, tables, question, time_limit_s=seconds, polish=False)
    except InputError:
        return math.inf
    if solution.status != "optimal" or solution.value is None:
        return None
    change = solution.value - reached
    return 0.0 if abs(change) <= ROUNDING * max(abs(reached), 1e-12) else change


# ----------------------------------------------------------------------------------------------- baselines


@dataclass(frozen=True)
class Pinned:
    """A usual way to deploy: the scenario with its places, and whether something must be proposed."""

    name: doc.BaselineName
    scenario: Scenario
    speculates: bool


def baselines(scenario: Scenario, tables: Tables, tick: Tick, left: Left = unlimited) -> tuple[doc.Baseline, ...]:
    """Solve the usual ways to deploy under the same limits.

    One that the catalog has no device for is left out, and so are those that the time does not reach.
    """
    rows = []
    for pinned in usual_ways(scenario, tables):
        seconds = left()
        if seconds is None or seconds > 0:
            tick(f"baseline {pinned.name}")
            rows.append(_baseline(pinned, seconds))
    return tuple(rows)


def usual_ways(scenario: Scenario, tables: Tables) -> Iterator[Pinned]:
    """Give the usual ways to deploy that the catalog has devices for."""
    yield Pinned("no_speculation", scenario.replace(proposers=()), speculates=False)
    if _offers_aggregation(scenario):
        yield Pinned("aggregated", scenario.replace(layouts=("aggregated",)), speculates=False)
    if not all(any(s.proposer is not None for s in table.speculations) for table in tables.values()):
        return
    alone, fastest = device_for_every_phase(scenario, tables), fastest_drafter(tables)
    if alone is not None:
        yield Pinned("single_device", _placed(scenario, dict.fromkeys(PHASES, alone)), speculates=True)
    if fastest is None:
        return
    both: dict[Phase, str] = {"draft_prefill": fastest, "draft_decode": fastest}
    yield Pinned("draft_on_fastest", _placed(scenario, both), speculates=True)
    if alone is not None:
        split: dict[Phase, str] = {"draft_prefill": alone, "draft_decode": fastest}
        yield Pinned("split_draft", _placed(scenario, split), speculates=True)


def _offers_aggregation(scenario: Scenario) -> bool:
    """Whether aggregated serving is a way to deploy: the scenario looks at it, or a real engine could."""
    known = scenario.catalog.models[scenario.target].shape is not None and scenario.first_token == "after_prefill"
    return known or any(layout.startswith("aggregated") for layout in scenario.layouts)


def _placed(scenario: Scenario, places: dict[Phase, str]) -> Scenario:
    return scenario.replace(places=places)


def device_for_every_phase(scenario: Scenario, tables: Tables) -> str | None:
    """Give the first device type in the catalog that can run every phase of every workload."""

    def able(name: str) -> bool:
        return all(
            any(
                option.device == name and table.phases[phase].available[o, table.runs(phase)].any()
                for o, option in enumerate(table.phases[phase].options)
            )
            for table in tables.values()
            for phase in PHASES
            if table.runs(phase).any()
        )

    return next((name for name in scenario.catalog.devices if able(name)), None)


def fastest_drafter(tables: Tables) -> str | None:
    """Give the device type with the least draft decode time per token that can also prefill the drafter."""
    best: tuple[float, str] | None = None
    for table in tables.values():
        prefill = table.phases["draft_prefill"]
        able = {option.device for o, option in enumerate(prefill.options) if prefill.available[o].any()}
        decode, drafts = table.phases["draft_decode"], table.runs("draft_decode")
        lengths = np.array([s.draft_length for s in table.speculations], dtype=float)[drafts]
        for o, option in enumerate(decode.options):
            usable = decode.available[o, drafts]
            if option.device in able and usable.any():
                least = float((decode.latency_s[o, drafts][usable] / lengths[usable]).min())
                best = min(best or (np.inf, ""), (least, option.device))
    return None if best is None else best[1]


def tables_of(pinned: Pinned) -> Tables:
    """Cost the options of a way to deploy."""
    scenario = pinned.scenario
    return {
        name: cost_table(scenario, name, [s for s in speculations_of(scenario, name) if _is_meant(pinned, s)])
        for name in scenario.workloads
    }


def _is_meant(pinned: Pinned, speculation: Speculation) -> bool:
    return speculation.proposer is not None or not pinned.speculates


def _baseline(pinned: Pinned, time_limit_s: float | None) -> doc.Baseline:
    scenario, tables = pinned.scenario, tables_of(pinned)
    solution = optimise(scenario, tables, time_limit_s=time_limit_s, polish=False)
    if not solution.designs:
        return _broken_baseline(pinned, tables)
    deployed = fill_budgets(deploy(scenario, solution.designs, tables, solution.racks), tables)
    worst = min(deployed.servings, key=lambda serving: serving.metrics.interactivity_tps)
    forward = sum(serving.rate_rps * serving.metrics.energy_j for serving in deployed.servings)
    return doc.Baseline(
        name=pinned.name,
        objective_value=objective_value(deployed),
        throughput_tps=throughput_tps(deployed),
        interactivity_tps=worst.metrics.interactivity_tps,
        ttft_s=max(serving.metrics.ttft_s for serving in deployed.servings),
        tps_per_kw=1e3 * throughput_tps(deployed) / forward,
        violates=(),
    )


def _broken_baseline(pinned: Pinned, tables: Tables) -> doc.Baseline:
    free = without(pinned.scenario, limits_of(pinned.scenario))
    best = optimise(free, tables, Question("interactivity", _almost_no_rates(free)), polish=False)
    conflict = smallest_conflict(pinned.scenario, tables)
    names: dict[LimitName, None] = dict.fromkeys([limit.name for limit in conflict] or ["memory"])
    return doc.Baseline(
        name=pinned.name,
        objective_value=None,
        throughput_tps=None,
        interactivity_tps=best.value,
        ttft_s=None,
        tps_per_kw=None,
        violates=tuple(names),
    )


# ------------------------------------------------------------------------------------------- infeasibility


def _almost_no_rates(scenario: Scenario) -> Rates:
    return dict.fromkeys(scenario.workloads, _ALMOST_NO_RATE_RPS)


def _rates_under(scenario: Scenario, unasked: Rates) -> Rates:
    """Serve what demand is left in the scenario, else the rates that the question has without one."""
    return {name: workload.limits.demand_rps or unasked[name] for name, workload in scenario.workloads.items()}


def unasked_rates(scenario: Scenario) -> Rates:
    """Give the rates that a question has where no demand is set: one request/s in total for energy and interactivity.

    Almost nothing where throughput is maximized, and for a workload whose demand may be dropped.
    """
    fixed = fixed_rates(scenario)
    return {
        name: _ALMOST_NO_RATE_RPS if fixed is None or workload.limits.demand_rps is not None else fixed[name]
        for name, workload in scenario.workloads.items()
    }


def _holding(scenario: Scenario, keep: Sequence[Limit]) -> Scenario:
    return without(scenario, [limit for limit in limits_of(scenario) if limit not in keep])


def is_feasible(scenario: Scenario, tables: Tables, unasked: Rates) -> bool:
    """Whether some plan meets every limit of the scenario; ``unasked``: the rates of workloads without a demand."""
    question = Question("any", _rates_under(scenario, unasked))
    return optimise(scenario, tables, question, polish=False).status != "infeasible"


def smallest_conflict(scenario: Scenario, tables: Tables) -> tuple[Limit, ...]:
    """Find a smallest set of limits that no plan meets together; empty if even no limit at all is too much."""
    limits, unasked = limits_of(scenario), unasked_rates(scenario)
    met: list[frozenset[Limit]] = []

    def clash(some: Iterable[Limit]) -> bool:
        asked = frozenset(some)
        if any(asked <= known for known in met):  # a plan meets more than this
            return False
        if is_feasible(_holding(scenario, tuple(asked)), tables, unasked):
            met.append(asked)
            return False
        return True

    conflict = _without_needless(limits, clash)
    if len(conflict) > 2:
        _enlarge(met, limits, clash)
    for size in range(len(conflict)):
        for some in combinations(limits, size):
            if clash(some):
                return some
    return conflict


def _without_needless(limits: tuple[Limit, ...], clash: Callable[[Iterable[Limit]], bool]) -> tuple[Limit, ...]:
    """Drop one limit after the other that the conflict does not need; what is left is minimal, if not yet smallest."""
    kept = limits if clash(limits) else ()
    for limit in reversed(kept):
        fewer = tuple(other for other in kept if other != limit)
        if clash(fewer):
            kept = fewer
    return kept


def _enlarge(met: list[frozenset[Limit]], limits: tuple[Limit, ...], clash: Callable[[Iterable[Limit]], bool]) -> None:
    """Add to every set that a plan meets all that it meets besides: then few sets are left to look at."""
    for known in tuple(met):
        for limit in limits:
            if limit not in known and not clash(known | {limit}):
                known = known | {limit}


def conflicts(scenario: Scenario, tables: Tables) -> tuple[doc.Conflict, ...]:
    """Explain why no plan exists: the smallest set of limits in conflict, and for each its nearest achievable value.

    The nearest value holds every other limit where that is possible, so that moving this one limit there gives a plan;
    else it holds the others of the conflict. A service limit that takes part with others gets a second row that holds
    nothing: what no design exceeds.
    """
    clash = smallest_conflict(scenario, tables)
    if not clash:
        return tuple(_memory_conflicts(scenario, tables))
    rows = [_nearest(scenario, tables, limit, clash) for limit in clash]
    service = [limit for limit in clash if limit.name in ("interactivity_floor", "ttft_ceiling")]
    if len(clash) > 1:
        rows += [_conflict(scenario, tables, limit, []) for limit in service]
    return tuple(rows)


def _nearest(scenario: Scenario, tables: Tables, limit: Limit, clash: Sequence[Limit]) -> doc.Conflict:
    others = [other for other in limits_of(scenario) if other != limit]
    row = _conflict(scenario, tables, limit, others)
    if row.achievable is not None:
        return row
    return _conflict(scenario, tables, limit, [other for other in clash if other != limit])


def _conflict(scenario: Scenario, tables: Tables, limit: Limit, others: Sequence[Limit]) -> doc.Conflict:
    held = _holding(scenario, others)
    return doc.Conflict(
        limit=limit.name,
        workload=limit.workload,
        device=limit.device,
        rack=limit.rack,
        unit=limit.unit,
        asked=limit.bound,
        achievable=_nearest_achievable(held, tables, limit, unasked_rates(scenario)),
        holding={other.label(limits_of(scenario)): other.bound for other in others},
        suffices=len(others) == len(limits_of(scenario)) - 1,
    )


def _nearest_achievable(held: Scenario, tables: Tables, limit: Limit, unasked: Rates) -> float | None:
    aims: dict[LimitName, Aim] = {
        "power_budget": "power",
        "cost_budget": "cost",
        "inventory": "devices",
        "interactivity_floor": "interactivity",
        "ttft_ceiling": "ttft",
    }
    rates = _rates_under(held, unasked)
    if limit.name == "demand" and limit.workload is not None:
        others = {name: rate for name, rate in rates.items() if name != limit.workload}
        question = Question("rate", others, limit.workload, out_of_reach={limit.workload: limit.bound})
        return _optimum(held, tables, question).value
    value = _optimum(held, tables, Question(aims[limit.name], rates, limit.workload, limit.device)).value
    return least_count(value, integer=True) if value is not None and limit.name == "inventory" else value


def _optimum(scenario: Scenario, tables: Tables, question: Question) -> Solution:
    return optimise(scenario, tables, question, polish=False)


def _memory_conflicts(scenario: Scenario, tables: Tables) -> Iterator[doc.Conflict]:
    """Without any limit nothing runs: for some phase no batch fits into memory. Say how many sequences fit at most."""
    for name, table in tables.items():
        for phase in PHASES:
            costs, runs = table.phases[phase], table.runs(phase)
            known = np.isfinite(costs.latency_s)[:, runs]
            if not runs.any() or not known.any() or costs.available[:, runs].any():
                continue
            held = float(np.where(known, costs.sequences[:, runs], 0.0).max())
            device = costs.options[int(np.argmax(costs.sequences[:, runs].max(axis=1)))].device
            yield doc.Conflict(
                limit="memory",
                workload=name,
                device=device,
                rack=None,
                unit="sequence",
                asked=float(costs.batch_sizes.min()),
                achievable=held,
                holding={},
                suffices=False,
            )

"""The recipe: cost the options, solve, check, explain."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from planner import __version__, whatif
from planner.alternatives import ONE_SHARE, next_best
from planner.assemble import (
    NO_TOTALS,
    deploy,
    deployment_document,
    fill_budgets,
    fleet_documents,
    limit_row,
    limit_values,
    memory_rows,
    objective_document,
    objective_value,
    pool_documents,
    totals_document,
)
from planner.assumptions import assumptions_of, warnings_of
from planner.cases import case_documents
from planner.check import check
from planner.errors import CheckError, InputError
from planner.fleet import Deployed
from planner.optimise import optimise
from planner.options import CostTable, cost_table
from planner.payoff import payoffs
from planner.question import Solution, loss, share_of
from planner.rates import require_answerable, require_figures
from planner.robust import require_one_worst_case, robustness_of
from planner.schema import documents as doc
from planner.schema.scenario import Scenario
from planner.words import MAXIMIZED, PHASES, Phase

NOT_SAID = doc.Provenance(version=__version__, solver=None, runtime_s=0.0, catalogs={}, command=None)


def _no_tick(_: str) -> None:
    return None


@dataclass(frozen=True)
class Settings:
    """How to solve: a limit on the solver's time, what made the scenario, and who is told of the progress.

    ``plain``: the plan comes from the whole program, with nothing reduced beforehand. ``explain``: off, a plan comes
    without what moving its limits buys and without baselines. ``alternatives``: how many plans with other placements
    are wanted.
    """

    time_limit_s: float | None = None
    digests: dict[str, str] = field(default_factory=dict)
    command: str | None = None
    tick: Callable[[str], None] = _no_tick
    plain: bool = False
    explain: bool = True
    alternatives: int = 0

    def left(self, start: float) -> Callable[[], float | None]:
        """Give a clock of the seconds that are left of the time limit."""

        def seconds() -> float | None:
            return None if self.time_limit_s is None else self.time_limit_s - (time.perf_counter() - start)

        return seconds


def solve(scenario: Scenario, settings: Settings | None = None) -> doc.Plan:
    """Find the best plan, check it without the solver, and say what limits it.

    Raises
    ------
    InputError
        If the question lacks a bound or a figure, or if no option can run a phase of the target.
    CheckError
        If the plan contradicts the scenario: a fault of the planner.
    """
    settings = settings or Settings()
    start = time.perf_counter()
    require_answerable(scenario)
    settings.tick("options and their costs")
    tables = {name: cost_table(scenario, name) for name in scenario.workloads}
    require_figures(scenario, tables)
    require_options(scenario, tables)
    require_one_worst_case(scenario, tables)
    if settings.alternatives and scenario.max_shares > 1:
        raise InputError(ONE_SHARE)
    settings.tick("best plan")
    solution = optimise(scenario, tables, time_limit_s=settings.time_limit_s, reduce=not settings.plain)
    if solution.designs:
        return _plan(scenario, tables, solution, settings, start)
    return _no_plan(scenario, tables, solution, settings, start)


def require_options(scenario: Scenario, tables: dict[str, CostTable]) -> None:
    """Refuse a scenario in which nothing can run a phase of the target, or a pinned phase, whatever the limits.

    Raises
    ------
    InputError
        Naming the phase, and where a pin leaves nothing the options that it could name.
    """
    problems = []
    for name, table in tables.items():
        for phase in PHASES:
            pinned = phase in scenario.places and table.runs(phase).any()
            needed = phase in PHASES[:2] and table.runs(phase).any()
            if (needed or pinned) and not _known(table, phase):
                problems.append(_why_no_option(scenario, name, phase))
        if not problems and not _has_a_design(table):
            problems.append(
                f"no draft length of '{name}' has a known cost in every phase: the latency tables do not meet"
            )
    if problems:
        raise InputError(*dict.fromkeys(problems))


def _has_a_design(table: CostTable) -> bool:
    """Whether some speculation has a known cost in every phase that it runs, memory and limits left out."""
    able = np.ones(len(table.speculations), dtype=bool)
    for phase in PHASES:
        able &= ~table.runs(phase) | np.isfinite(table.phases[phase].latency_s).any(axis=0)
    return bool(able.any())


def _known(table: CostTable, phase: Phase) -> list[str]:
    """List the options whose cost is known for some speculation that runs the phase."""
    known = np.isfinite(table.phases[phase].latency_s) & table.runs(phase)
    return [str(option) for o, option in enumerate(table.phases[phase].options) if known[o].any()]


def _why_no_option(scenario: Scenario, workload: str, phase: Phase) -> str:
    if phase not in scenario.places:
        return (
            f"{phase} of '{workload}' has no option: no device among the candidates has a profile of"
            f" '{scenario.target}' for it"
        )
    able = _known(cost_table(scenario.replace(places={}), workload), phase)
    there_are = f"these are: {', '.join(able[:12])}" if able else "nothing is"
    more = f" and {len(able) - 12} more" if len(able) > 12 else ""
    return f"places.{phase}: '{scenario.places[phase]}' is no option for '{workload}' ({there_are}{more})"


def _plan(
    scenario: Scenario, tables: dict[str, CostTable], solution: Solution, settings: Settings, start: float
) -> doc.Plan:
    deployed = fill_budgets(deploy(scenario, solution.designs, tables, solution.racks), tables)
    value = objective_value(deployed)
    assert value is not None  # figures that the objective needs were required
    explained, left = solution.status == "optimal" and settings.explain, settings.left(start)
    limits = _limits(scenario, tables, deployed, value, explained, settings.tick, left)
    plan = _document(scenario, tables, deployed, solution, limits).replace(
        baselines=whatif.baselines(scenario, tables, settings.tick, left) if explained else (),
        alternatives=_alternatives(scenario, tables, solution, value, settings, left),
        robustness=_robustness(scenario, deployed, value, settings, left) if settings.explain else None,
        assumptions=assumptions_of(scenario, {pool.device for pool in deployed.pools}),
        warnings=warnings_of(scenario),
        provenance=provenance(settings, start, solver_of(solution, settings.plain)),
    )
    return _checked(plan, scenario, tables)


def _document(
    scenario: Scenario,
    tables: dict[str, CostTable],
    deployed: Deployed,
    solution: Solution,
    limits: tuple[doc.LimitRow, ...],
) -> doc.Plan:
    """Write a plan, without what only solving again can say."""
    value = objective_value(deployed)
    assert value is not None  # figures that the objective needs were required
    return doc.Plan(
        status=solution.status,
        scenario=scenario.name,
        objective=objective_document(scenario, value, *_closed(scenario, value, solution)),
        deployments=tuple(deployment_document(deployed, index) for index in range(len(deployed.servings))),
        pools=pool_documents(deployed),
        fleet=fleet_documents(deployed),
        totals=totals_document(deployed),
        limits=limits,
        baselines=(),
        payoffs=payoffs(deployed, tables),
        infeasibility=(),
        assumptions=(),
        warnings=(),
        provenance=NOT_SAID,
    )


def _checked(plan: doc.Plan, scenario: Scenario, tables: dict[str, CostTable]) -> doc.Plan:
    problems = check(plan, scenario, tables)
    if problems:
        raise CheckError("the plan does not pass its own check: " + "; ".join(problems))
    return plan


def plan_within(scenario: Scenario, tables: dict[str, CostTable], solution: Solution) -> doc.Plan:
    """Write and check the plan of a solution, without what only solving again can say.

    Raises
    ------
    CheckError
        If it contradicts the scenario: a fault of the planner.
    """
    deployed = fill_budgets(deploy(scenario, solution.designs, tables, solution.racks), tables)
    rows = (limit_row(limit, value, limit.is_met_exactly(value) or None) for limit, value in limit_values(deployed))
    plan = _document(scenario, tables, deployed, solution, (*rows, *memory_rows(deployed)))
    return _checked(plan, scenario, tables)


def _alternatives(
    scenario: Scenario,
    tables: dict[str, CostTable],
    solution: Solution,
    value: float,
    settings: Settings,
    left: Callable[[], float | None],
) -> doc.Alternatives | None:
    if not settings.alternatives:
        return None
    if solution.status != "optimal":
        return doc.Alternatives(asked=settings.alternatives, proven=False, plans=())
    ranked = next_best(scenario, tables, solution, settings.alternatives, settings.tick, left)
    plans = (plan_within(scenario, tables, other) for other in ranked.solutions)
    return doc.Alternatives(
        asked=settings.alternatives,
        proven=ranked.proven,
        plans=tuple(_alternative(plan, value) for plan in plans),
    )


def _alternative(plan: doc.Plan, best: float) -> doc.Alternative:
    value = plan.objective.value
    assert value is not None  # it was checked
    lost = loss(plan.objective.name, best, value)
    return doc.Alternative(
        objective_value=value,
        loss=lost,
        loss_share=share_of(lost, best),
        deployments=plan.deployments,
        pools=plan.pools,
        fleet=plan.fleet,
        totals=plan.totals,
    )


def _robustness(
    scenario: Scenario,
    deployed: Deployed | None,
    value: float | None,
    settings: Settings,
    left: Callable[[], float | None],
) -> doc.Robustness | None:
    if not scenario.acceptance_range:
        return None
    settings.tick("the range of acceptance")
    cases = () if deployed is None else case_documents(deployed)
    return robustness_of(scenario, value, cases, left())


def _closed(scenario: Scenario, value: float, solution: Solution) -> tuple[float | None, float | None]:
    """Give the bound and gap for the recomputed value; rounding never puts a value beyond its bound."""
    bound = solution.best_bound
    if bound is None:
        return None, None
    beyond = value > bound if scenario.objective in MAXIMIZED else value < bound
    if beyond and abs(value - bound) <= 1e-6 * abs(value):
        bound = value
    return bound, abs(value - bound) / max(abs(value), 1e-12)


def _limits(
    scenario: Scenario,
    tables: dict[str, CostTable],
    deployed: Deployed,
    reached: float,
    explained: bool,
    tick: Callable[[str], None],
    left: Callable[[], float | None],
) -> tuple[doc.LimitRow, ...]:
    values = limit_values(deployed)
    if explained:
        rows = whatif.limit_rows(scenario, tables, values, reached, tick, left)
        return (*rows, *memory_rows(deployed))
    unproven = (limit_row(limit, value, limit.is_met_exactly(value) or None) for limit, value in values)
    return (*unproven, *memory_rows(deployed))


def _no_plan(
    scenario: Scenario, tables: dict[str, CostTable], solution: Solution, settings: Settings, start: float
) -> doc.Plan:
    settings.tick("why no plan exists")
    return doc.Plan(
        status=solution.status,
        scenario=scenario.name,
        objective=objective_document(scenario, None, None, None),
        deployments=(),
        pools=(),
        fleet=(),
        totals=NO_TOTALS,
        limits=(),
        baselines=(),
        payoffs=(),
        infeasibility=whatif.conflicts(scenario, tables) if solution.status == "infeasible" else (),
        assumptions=assumptions_of(scenario),
        robustness=_robustness(scenario, None, None, settings, settings.left(start)),
        warnings=warnings_of(scenario),
        provenance=provenance(settings, start, solver_of(solution, settings.plain)),
    )


def solver_of(solution: Solution, plain: bool = False) -> str:
    """Name what found a solution."""
    if solution.method == "structure":
        return "exact structure"
    from planner.milp.solver import solver_name

    return f"{solver_name()}, nothing reduced" if plain else solver_name()


def provenance(settings: Settings, start: float, solver: str | None) -> doc.Provenance:
    """Say what made a document."""
    return doc.Provenance(
        version=__version__,
        solver=solver,
        runtime_s=time.perf_counter() - start,
        catalogs=settings.digests,
        command=settings.command,
    )

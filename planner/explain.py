"""Why a plan is as it is. Every claim is made by solving again: with one limit moved, with one choice forbidden."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner import whatif
from planner.alternatives import best_within, tables_within
from planner.assemble import design_of, design_summary
from planner.errors import InputError
from planner.limits import Limit, limits_of, with_bound
from planner.optimise import optimise
from planner.options import CostTable, Option, cost_table
from planner.placement import Allowed, with_speculations
from planner.question import Solution, loss, share_of
from planner.rates import is_bounded, require_answerable
from planner.schema import documents as doc
from planner.schema.explanation import (
    Choice,
    ChoiceName,
    ExplainedLimit,
    Explanation,
    Move,
    Nearest,
    PhaseFigures,
)
from planner.schema.scenario import Scenario
from planner.solve import Settings, plan_within, provenance, solve
from planner.words import PHASES, LimitName, Phase

Tables = dict[str, CostTable]

# What a floor, a ceiling or a demand is moved by.
STEP_SHARE = 0.1
# How far beyond a nearest value a limit is moved, so that rounding does not break it.
_LEEWAY = 1e-9
_ONE_SHARE = "an explanation needs max_shares 1: with several designs for a workload no phase has one place"
_NOT_PROVEN = "the plan is not proven, so nothing that it is compared with would be: give it more time"


def explain(scenario: Scenario, plan: doc.Plan | None = None, settings: Settings | None = None) -> Explanation:
    """Explain the best plan of a scenario, or why there is none.

    Parameters
    ----------
    scenario, settings
        What is asked, and how.
    plan
        The answer where it is known already; else it is found.

    Raises
    ------
    InputError
        If the question lacks a bound, a figure or an option, or a workload may be served by several designs.
    """
    settings = settings or Settings()
    start = time.perf_counter()
    if scenario.max_shares > 1:
        raise InputError(
            "an explanation needs max_shares 1: with several designs for a workload no phase has one place"
        )
    plan = plan or solve(scenario, settings)
    tables = {name: cost_table(scenario, name) for name in scenario.workloads}
    asked = _Asked(scenario, tables, plan, settings, settings.left(start))
    proven = plan.status == "optimal"
    return Explanation(
        scenario=scenario.name,
        status=plan.status,
        objective=plan.objective,
        power_w=_power_w(scenario, plan),
        designs=design_summaries(plan),
        limits=asked.limits() if proven else (),
        choices=asked.choices() if proven else (),
        infeasibility=asked.nearest() if plan.status == "infeasible" else (),
        warnings=(*plan.warnings, *((_NOT_PROVEN,) if plan.status == "feasible" else ())),
        provenance=provenance(settings, start, plan.provenance.solver),
    )


def design_summaries(plan: doc.Plan) -> tuple[doc.DesignSummary, ...]:
    """Say of every deployment who proposes, how far ahead, and where its phases are."""
    return tuple(design_summary(deployment) for deployment in plan.deployments)


def _power_w(scenario: Scenario, plan: doc.Plan) -> float | None:
    watts: dict[str, float | None] = plan.totals.power_w.model_dump()
    return watts[scenario.power_basis]


@dataclass(frozen=True)
class _Asked:
    """A scenario with its plan, and the clock."""

    scenario: Scenario
    tables: Tables
    plan: doc.Plan
    settings: Settings
    left: Callable[[], float | None]

    @property
    def best(self) -> float:
        value = self.plan.objective.value
        assert value is not None  # only a plan that is proven is explained
        return value

    # --------------------------------------------------------------------------------------------- limits

    def limits(self) -> tuple[ExplainedLimit, ...]:
        rows = [row for row in self.plan.limits if row.name != "memory"]
        return tuple(self._limit(limit, row) for limit, row in zip(limits_of(self.scenario), rows, strict=True))

    def _limit(self, limit: Limit, row: doc.LimitRow) -> ExplainedLimit:
        self.settings.tick(f"what more {limit.label(limits_of(self.scenario))} would buy")
        bound = limit.bound + whatif.step_of(self.scenario, limit, STEP_SHARE)
        asks_another_question = limit.name == "demand" and self.scenario.objective != "throughput"
        return ExplainedLimit(
            name=limit.name,
            workload=limit.workload,
            device=limit.device,
            rack=limit.rack,
            basis=limit.basis,
            unit=limit.unit,
            bound=limit.bound,
            value=row.value,
            binding=row.binding,
            step=self._move(limit, bound),
            dropped=None if asks_another_question else self._move(limit, None),
        )

    def _move(self, limit: Limit, bound: float | None) -> Move:
        moved = with_bound(self.scenario, limit, bound)
        nowhere = Move(
            moved_to=bound, objective_value=None, change=None, change_share=None, unbounded=False, designs=()
        )
        seconds = self.left()
        if seconds is not None and seconds <= 0:
            return nowhere
        if self.scenario.objective == "throughput" and is_bounded(self.scenario) and not is_bounded(moved):
            return nowhere.replace(unbounded=True)
        try:
            require_answerable(moved)
            solution = optimise(moved, self.tables, time_limit_s=seconds)
        except InputError:  # nothing that is left bounds the throughput
            return nowhere.replace(unbounded=True)
        if solution.status != "optimal":
            return nowhere
        plan = plan_within(moved, self.tables, solution)
        assert plan.objective.value is not None  # it was checked
        change = plan.objective.value - self.best
        change = 0.0 if loss(self.scenario.objective, self.best, plan.objective.value) == 0 else change
        return Move(
            moved_to=bound,
            objective_value=plan.objective.value,
            change=change,
            change_share=share_of(change, self.best),
            unbounded=False,
            designs=design_summaries(plan),
        )

    # -------------------------------------------------------------------------------------------- choices

    def choices(self) -> tuple[Choice, ...]:
        return tuple(choice for index in range(len(self.plan.deployments)) for choice in self._of(index))

    def _of(self, index: int) -> list[Choice]:
        deployment = self.plan.deployments[index]
        name = deployment.workload
        found = []
        for phase in PHASES:
            place = deployment.placements[phase]
            if place is not None:
                elsewhere = Allowed().but(phase, place.device).but(phase, None)
                found.append(self._choice(index, phase, place.device, self.tables, {name: elsewhere}))
        speculations = self.tables[name].speculations
        others = np.array([s.proposer != deployment.proposer for s in speculations], dtype=bool)
        tables = {**self.tables, name: with_speculations(self.tables[name], others)}
        found.append(self._choice(index, "proposer", deployment.proposer, tables, {}))
        if deployment.proposer is not None:
            here = [
                s.proposer == deployment.proposer and s.draft_length != deployment.draft_length for s in speculations
            ]
            tables = {**self.tables, name: with_speculations(self.tables[name], np.array(here, dtype=bool))}
            found.append(self._choice(index, "draft_length", deployment.draft_length, tables, {}))
        return found

    def _choice(
        self,
        index: int,
        choice: ChoiceName,
        chosen: str | int | None,
        tables: Tables,
        allowed: dict[str, Allowed],
    ) -> Choice:
        name = self.plan.deployments[index].workload
        self.settings.tick(f"runner-up of {choice}" + (f" for {name}" if len(self.tables) > 1 else ""))
        seconds = self.left()
        pinned = choice in self.scenario.places
        late = seconds is not None and seconds <= 0
        solution = None if late or pinned else best_within(self.scenario, tables, allowed, seconds)
        lost = Choice(
            workload=name,
            choice=choice,
            chosen=chosen,
            runner_up=None,
            objective_value=None,
            loss=None,
            loss_share=None,
            interactivity_tps=None,
            ttft_s=None,
            power_w=None,
            figures=(),
            designs=(),
            proven=solution is not None and solution.status in ("optimal", "infeasible"),
            pinned=pinned,
            blocked_by=(),
        )
        if solution is None or solution.status not in ("optimal", "infeasible"):
            return lost
        if solution.status == "infeasible":
            return lost.replace(blocked_by=self._blocked_by(tables, allowed))
        return self._runner_up(index, lost, solution)

    def _blocked_by(self, tables: Tables, allowed: dict[str, Allowed]) -> tuple[LimitName, ...]:
        """Name limits that no plan with the other choice meets; nothing where it is not on offer at all."""
        left = tables_within(self.scenario, tables, allowed)
        if not all(table.speculations for table in left.values()):
            return ()
        return tuple(dict.fromkeys(limit.name for limit in whatif.smallest_conflict(self.scenario, left)))

    def _runner_up(self, index: int, lost: Choice, solution: Solution) -> Choice:
        plan = plan_within(self.scenario, self.tables, solution)
        value, deployment = plan.objective.value, plan.deployments[index]
        assert value is not None  # it was checked
        gap = loss(self.scenario.objective, self.best, value)
        phase = lost.choice if lost.choice in PHASES else None
        other = {"proposer": deployment.proposer, "draft_length": deployment.draft_length}
        there = None if phase is None else deployment.placements[phase]
        return lost.replace(
            runner_up=other.get(lost.choice) if phase is None else there and there.device,
            objective_value=value,
            loss=gap,
            loss_share=share_of(gap, self.best),
            interactivity_tps=deployment.metrics.interactivity_tps,
            ttft_s=deployment.metrics.ttft_s,
            power_w=_power_w(self.scenario, plan),
            figures=() if phase is None else tuple(self._figures(one, index, phase) for one in (self.plan, plan)),
            designs=design_summaries(plan),
        )

    def _figures(self, plan: doc.Plan, index: int, phase: Phase) -> PhaseFigures:
        deployment = plan.deployments[index]
        place, table = deployment.placements[phase], self.tables[deployment.workload]
        assert place is not None  # both plans run the phase
        s = table.speculations.index(design_of(self.scenario, deployment).speculation)
        option = Option(place.device, place.tensor_parallel, place.batch_size)
        own = table.runs(phase)[s]
        costs = table.phases[phase]
        energy = deployment.metrics.energy_j_per_token * (deployment.metrics.energy_share[phase] or 0.0)
        return PhaseFigures(
            option=str(option),
            operation_s=float(costs.latency_s[costs.options.index(option), s]) if own else None,
            energy_j_per_token=energy,
            devices=place.devices,
        )

    # ---------------------------------------------------------------------------------------- infeasible

    def nearest(self) -> tuple[Nearest, ...]:
        return tuple(self._nearest(conflict) for conflict in self.plan.infeasibility)

    def _nearest(self, conflict: doc.Conflict) -> Nearest:
        nothing = Nearest(conflict=conflict, objective_value=None, designs=())
        limit = _limit_of(self.scenario, conflict)
        if limit is None or conflict.achievable is None or not conflict.suffices:
            return nothing
        self.settings.tick(f"the plan with another {limit.label(limits_of(self.scenario))}")
        margin = _LEEWAY * abs(conflict.achievable) * (-1.0 if limit.is_floor else 1.0)
        moved = with_bound(self.scenario, limit, conflict.achievable + margin)
        solution = optimise(moved, self.tables, time_limit_s=self.left())
        if not solution.designs:
            return nothing
        plan = plan_within(moved, self.tables, solution)
        return nothing.replace(objective_value=plan.objective.value, designs=design_summaries(plan))


def _limit_of(scenario: Scenario, conflict: doc.Conflict) -> Limit | None:
    """Find the limit that a conflict is about; null for memory, which nobody sets."""
    key = (conflict.limit, conflict.workload, conflict.device, conflict.rack)
    mine = (limit for limit in limits_of(scenario) if (limit.name, limit.workload, limit.device, limit.rack) == key)
    return next(mine, None)

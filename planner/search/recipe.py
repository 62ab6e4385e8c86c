"""The recipe of a search: what is known beforehand, the trials, and the front that they found."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Event

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from planner.assumptions import assumptions_of, warnings_of
from planner.errors import CheckError
from planner.front.asked import Asked, asked_of
from planner.front.geometry import front_of, hypervolume_of, knee_of
from planner.front.recipe import conflicts_of, devices_of, exact_front, point_of, reference_of, spanned
from planner.schema.front import Front, FrontPoint, FrontReference, Search
from planner.schema.front import Trial as TrialDocument
from planner.schema.scenario import Scalar, Scenario
from planner.search.inner import Inner
from planner.search.space import FLOOR, LENIENCE, Space
from planner.search.storage import GIVEN_UP, usable
from planner.search.study import (
    DRAWN,
    REFUSED,
    WARM,
    How,
    Told,
    begin_with,
    finished,
    importance_of,
    is_feasible,
    study_of,
    work,
    work_together,
)
from planner.solve import Settings, provenance, require_options

# The exact front is known beforehand where it takes no longer, without a search.
EXACT_LIMIT_S = 10.0
# Rounding of a design that is evaluated a second time, in another process and from another solve.
_SAME = 1e-5
_SAMPLERS = {"tpe": "TPE", "nsga2": "NSGA-II", "random": "random"}


@dataclass
class Searching:
    """A search under way: it can be run, stopped from another thread, and asked for its front at any time."""

    scenario: Scenario
    how: How
    settings: Settings
    asked: Asked
    inner: Inner
    exact: Front | None
    study: Study | None
    start: float
    notes: list[str] = field(default_factory=list)
    ended: Event = field(default_factory=Event)
    stopping: Event = field(default_factory=Event)

    @classmethod
    def of(cls, scenario: Scenario, how: How, settings: Settings | None = None) -> Searching:
        """Prepare a search: costs, what there is to vary, the exact front where that is quick, the study.

        Raises
        ------
        InputError
            If the question lacks a figure or an option, a knob does not fit, or the study cannot be opened.
        """
        settings, start = settings or Settings(), time.perf_counter()
        asked = asked_of(scenario)
        require_options(scenario, asked.tables)
        space = Space.of(scenario, asked.tables)
        if how.sampler == "auto":
            how = replace(how, sampler="tpe" if space.is_exact else "nsga2")
        settings.tick("exact front")
        limit = EXACT_LIMIT_S if how.time_limit_s is None else min(EXACT_LIMIT_S, how.time_limit_s)
        exact = exact_front(scenario, replace(settings, time_limit_s=limit), asked.tables)
        search = cls(
            scenario, how, settings, asked, Inner(space, asked.tables), exact if exact.exact else None, None, start
        )
        if not (space.is_exact and exact.exact and not exact.points):
            search.study = study_of(scenario, how)
            begin_with(search.study, search._starts() if how.warm_start else [])
        return search

    def run(self, told: Told = lambda _: None) -> None:
        """Run the trials that the study lacks; ``told`` hears how many are finished."""
        try:
            if self.study is None:
                return
            how = self.how
            if how.time_limit_s is not None:
                how = replace(how, time_limit_s=max(0.0, how.time_limit_s - (time.perf_counter() - self.start)))
            with usable(how.storage):
                if how.workers > 1:
                    self.notes += work_together(self.study, self.scenario, how, self.stopping, told)
                else:
                    work(self.study, self.inner, how, self.stopping.is_set, told)
        finally:
            self.ended.set()

    def stop(self, patience_s: float) -> None:
        """Ask the trials to end, and give those under way some time."""
        self.stopping.set()
        if not self.ended.wait(patience_s):
            GIVEN_UP.set()

    def front(self) -> Front:
        """Give the front of what was found so far, every point recomputed from its scenario.

        Raises
        ------
        CheckError
            If a trial's figures and those of its design differ: a fault of the planner.
        """
        with usable(self.how.storage):
            trials = [] if self.study is None else finished(self.study)
        able = [trial for trial in trials if is_feasible(trial)]
        figures = np.array([trial.values for trial in able]).reshape(-1, 2)
        points = tuple(self._point(able[row]) for row in front_of(figures[:, 0], figures[:, 1]))
        tps = np.array([point.interactivity_tps for point in points])
        energy = np.array([point.energy_j_per_token for point in points])
        known = None if self.exact is None else self.exact.reference_point
        reference = known or reference_of(self.scenario, energy)
        hypervolume = spanned(tps, energy, reference)
        infeasible = self.study is None
        return Front(
            scenario=self.scenario.name,
            method="optuna",
            exact=infeasible,
            power_basis=self.scenario.power_basis,
            counts=self.asked.scenario.counts,
            rates_rps=self.asked.rates,
            points=points,
            knee=knee_of(tps, energy),
            hypervolume=hypervolume,
            reference_point=reference,
            search=None if self.study is None else self._document(self.study, trials, reference, hypervolume),
            infeasibility=conflicts_of(self.asked) if infeasible else (),
            assumptions=(
                self.asked.sentence,
                *self._varied(),
                *assumptions_of(self.asked.scenario, devices_of(points) or None),
            ),
            warnings=(*warnings_of(self.scenario), *self.notes, *self._falls_short(trials)),
            provenance=provenance(self.settings, self.start, "Optuna"),
        )

    def _varied(self) -> list[str]:
        """Say which fields differ from point to point."""
        space = self.inner.space
        lenient = [LENIENCE] if any(parameter.name == LENIENCE for parameter in space.parameters) else []
        names = ", ".join([*space.fields, *space.trees, *lenient])
        if not names:
            return []
        return [f"varied from point to point: {names}; what is said of them here is of the scenario's own values"]

    def _falls_short(self, trials: Sequence[FrozenTrial]) -> list[str]:
        """Say where a study ended early though nobody asked for that, or was drawn in another way than asked now."""
        found = []
        asked_to_end = self.stopping.is_set() or self.how.time_limit_s is not None
        if self.study is not None and len(trials) < self.how.trials and not asked_to_end:
            found.append(f"the study has {len(trials)} of {self.how.trials} trials: its workers ended early")
        if self.study is not None and self._drawn(self.study) != (self.how.sampler, self.how.seed):
            found.append("the study was begun by another sampler or seed; what it lacked was drawn as asked now")
        return found

    def _drawn(self, study: Study) -> tuple[str, int]:
        """Give the sampler and the seed that the study was begun with."""
        sampler, seed = study.user_attrs.get(DRAWN, (self.how.sampler, self.how.seed))
        return sampler, seed

    def _starts(self) -> list[dict[str, Scalar | None]]:
        """Give the values that lead to designs of the exact front: of many half as many as trials, spread."""
        points = () if self.exact is None else self.exact.points
        most = max(2, self.how.trials // 2)
        if len(points) > most:
            points = tuple(points[round(k * (len(points) - 1) / (most - 1))] for k in range(most))
        found = []
        for point in points:
            if self.how.time_limit_s is not None and time.perf_counter() - self.start > self.how.time_limit_s:
                break
            found.append(self._values_of(point))
        return found

    def _values_of(self, point: FrontPoint) -> dict[str, Scalar | None]:
        deployments = (point.deployment, *point.others)
        places = [place for one in deployments for place in one.placements.values() if place is not None]
        space = self.inner.space
        values = space.own({one.workload: one.proposer for one in deployments}, max(p.batch_size for p in places))
        needed = [p.name for p in space.parameters if p.given is None or values.get(p.given[0]) == p.given[1]]
        if all(name in values for name in needed if name != FLOOR):
            values[FLOOR] = self.inner.share_of(values, point.interactivity_tps)
        return values

    def _point(self, trial: FrozenTrial) -> FrontPoint:
        answer = self.inner.answer(trial.params)
        figures = (np.nan, np.nan) if answer is None else (answer.interactivity_tps, answer.energy_j_per_token)
        if answer is None or not np.allclose(figures, trial.values, rtol=_SAME, atol=0.0):
            raise CheckError(f"trial {trial.number} found {trial.values}, its design has {list(figures)}")
        return point_of(answer.deployed, TrialDocument(number=trial.number, parameters=dict(trial.params)))

    def _document(
        self, study: Study, trials: Sequence[FrozenTrial], reference: FrontReference | None, hypervolume: float | None
    ) -> Search:
        sampler, seed = self._drawn(study)
        refused = sum(REFUSED in trial.user_attrs for trial in trials)
        exact = self.exact.hypervolume if self.exact is not None and self.inner.space.is_exact else None
        return Search(
            study=study.study_name,
            sampler=_SAMPLERS[sampler],
            seed=seed,
            trials=len(trials),
            infeasible=sum(trial.state == TrialState.COMPLETE and not is_feasible(trial) for trial in trials),
            without_design=sum(trial.state == TrialState.PRUNED for trial in trials) - refused,
            refused=refused,
            nearest=_nearest(trials),
            warm_started=sum(bool(trial.user_attrs.get(WARM)) for trial in trials),
            exact_hypervolume=exact,
            share_of_exact=None if exact is None or not exact else (hypervolume or 0.0) / exact,
            importance=importance_of(study),
            history=_history(trials, reference),
        )


def _nearest(trials: Sequence[FrozenTrial]) -> dict[str, float]:
    """Give by limit how far the trial that breaks them least is beyond them; nothing where one breaks none."""
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE and trial.constraints]
    if not complete or any(map(is_feasible, trials)):
        return {}
    best = min(complete, key=lambda trial: max(trial.constraints.values()))
    return {name: excess for name, excess in best.constraints.items() if excess > 0.0}


def _history(trials: Sequence[FrozenTrial], reference: FrontReference | None) -> tuple[float, ...]:
    """Give the hypervolume after each trial."""
    if reference is None:
        return tuple(0.0 for _ in trials)
    at = (reference.interactivity_tps, reference.energy_j_per_token)
    kept, volumes, volume = np.empty((0, 2)), [], 0.0
    for trial in trials:
        if is_feasible(trial):
            every = np.vstack([kept, trial.values])
            kept = every[front_of(every[:, 0], every[:, 1])]
            volume = hypervolume_of(kept[:, 0], kept[:, 1], at)
        volumes.append(volume)
    return tuple(volumes)


def searched_front(
    scenario: Scenario, how: How | None = None, settings: Settings | None = None, told: Told = lambda _: None
) -> Front:
    """Search the front of interactivity (up) and energy per output token (down) over everything that may be varied.

    Raises
    ------
    InputError
        See ``Searching.of``.
    CheckError
        See ``Searching.front``.
    """
    search = Searching.of(scenario, how or How(), settings)
    search.run(told)
    return search.front()

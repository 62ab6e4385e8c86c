"""A study: opened or joined, begun with designs that are known, worked on by one process or by many."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event as ProcessEvent
from threading import Event

import optuna
from optuna.importance import get_param_importances
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from planner.errors import InputError
from planner.front.asked import asked_of
from planner.schema.scenario import Scalar, Scenario
from planner.search.inner import Inner
from planner.search.sampler import Seeded, suggest
from planner.search.space import FLOOR, Space
from planner.search.storage import opened, quiet, usable
from planner.words import DEFAULT_TRIALS, SamplerName

FINGERPRINT, WARM, DRAWN, REFUSED = "question", "warm_start", "drawn", "refused"
_POLL_S = 0.3
# Workers that are asked to end have this long for the trial under way.
_PATIENCE_S = 8.0
_ENOUGH_FOR_IMPORTANCE = 40

Told = Callable[[int], None]


@dataclass(frozen=True)
class How:
    """How to search.

    ``trials``: finished ones in the study, those of earlier runs and other workers included. ``storage`` null: the
    study lives and ends with the process. ``study`` null: named after the scenario and its content. ``sampler`` auto:
    TPE where trials only restrict the exact method, NSGA-II where they change the scenario (docs/search.md).
    """

    trials: int = DEFAULT_TRIALS
    seed: int = 0
    storage: str | None = None
    workers: int = 1
    study: str | None = None
    warm_start: bool = True
    sampler: SamplerName = "auto"
    time_limit_s: float | None = None
    heartbeat_s: int = 10


def fingerprint_of(scenario: Scenario) -> str:
    """Give what tells one question from another."""
    return sha256(scenario.model_dump_json().encode()).hexdigest()


def study_of(scenario: Scenario, how: How) -> Study:
    """Open the study of a question, or join it where it exists.

    Raises
    ------
    InputError
        If the storage cannot be opened, or if the study is of another question.
    """
    question = fingerprint_of(scenario)
    name = how.study or f"{scenario.name}-{question[:12]}"
    with quiet(), usable(how.storage):
        study = optuna.create_study(
            storage=opened(how.storage, how.heartbeat_s),
            sampler=Seeded(how.sampler, how.seed),
            study_name=name,
            directions=["maximize", "minimize"],
            load_if_exists=True,
        )
        known = study.user_attrs.get(FINGERPRINT)
        if known is None and not study.get_trials(deepcopy=False):
            study.set_metric_names(["interactivity_tps", "energy_j_per_token"])
            study.set_user_attr(FINGERPRINT, question)
            study.set_user_attr(DRAWN, [how.sampler, how.seed])
        elif known != question:
            raise InputError(f"--study {name}: it is of another question; give this one a name of its own")
    return study


def begin_with(study: Study, starts: Sequence[Mapping[str, Scalar | None]]) -> None:
    """Queue values to be tried first, once for all who work on the study."""
    if WARM not in study.user_attrs:
        study.set_user_attr(WARM, len(starts))
        for values in starts:
            study.enqueue_trial(dict(values), user_attrs={WARM: FLOOR in values}, skip_if_exists=True)


def finished(study: Study) -> list[FrozenTrial]:
    """List the trials that are finished, in the order in which they ended."""
    done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
    return sorted(done, key=lambda trial: (trial.datetime_complete, trial.number))


def work(study: Study, inner: Inner, how: How, stopped: Callable[[], bool], told: Told) -> None:
    """Run trials until the study has enough, it is stopped, or the time is over."""

    def objective(trial: Trial) -> tuple[float, float]:
        values = suggest(trial, inner.space.parameters)
        try:
            answer = inner.answer(values)
        except InputError as error:  # values that each fit may not fit together
            trial.set_user_attr(REFUSED, str(error))
            raise optuna.TrialPruned(str(error)) from error
        if answer is None:
            raise optuna.TrialPruned("no design is left")
        for name, excess in answer.excess.items():
            trial.set_constraint(name, excess)
        return answer.interactivity_tps, answer.energy_j_per_token

    def after(study: Study, _: FrozenTrial) -> None:
        done = len(finished(study))
        told(done)
        if done >= how.trials or stopped():
            study.stop()

    if len(finished(study)) < how.trials and not stopped():
        study.optimize(objective, timeout=how.time_limit_s, callbacks=[after])


def work_together(study: Study, scenario: Scenario, how: How, stop: Event, told: Told) -> list[str]:
    """Start processes that share the study, and wait for them.

    Returns
    -------
    list of str
        What a person should know: workers that ended before their time.
    """
    context = multiprocessing.get_context("spawn")
    ending = context.Event()
    arguments = (scenario, how, study.study_name, ending)
    workers = [context.Process(target=_worker, args=arguments, daemon=True) for _ in range(how.workers)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        told(len(finished(study)))
        if stop.wait(_POLL_S):
            ending.set()
            _end(workers)
            return []
    told(len(finished(study)))
    codes = [worker.exitcode or 0 for worker in workers]
    return [f"worker {n} ended before its time ({_why(code)})" for n, code in enumerate(codes, start=1) if code]


def _end(workers: Sequence[BaseProcess]) -> None:
    """Give workers time to end their trials, then end them."""
    until = time.monotonic() + _PATIENCE_S
    for worker in workers:
        worker.join(max(0.0, until - time.monotonic()))
        if worker.is_alive():
            worker.kill()
            worker.join()


def _why(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _worker(scenario: Scenario, how: How, name: str, ending: ProcessEvent) -> None:
    """Work on a study in a process of its own, until the one that started it ends; Ctrl-C is that one's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    study = optuna.load_study(
        study_name=name, storage=opened(how.storage, how.heartbeat_s), sampler=Seeded(how.sampler, how.seed)
    )
    asked = asked_of(scenario)
    inner = Inner(Space.of(scenario, asked.tables), asked.tables)
    parent = multiprocessing.parent_process()
    work(study, inner, how, lambda: ending.is_set() or not (parent and parent.is_alive()), lambda _: None)


def is_feasible(trial: FrozenTrial) -> bool:
    """Whether a trial found a design that breaks no limit."""
    return trial.state == TrialState.COMPLETE and all(excess <= 0.0 for excess in trial.constraints.values())


def importance_of(study: Study) -> dict[str, float]:
    """Give each parameter's share in what sets trials near the front apart; nothing where there are few trials."""
    complete = [trial for trial in finished(study) if trial.state == TrialState.COMPLETE]
    if len(complete) < _ENOUGH_FOR_IMPORTANCE or not complete[0].params:
        return {}
    return dict(get_param_importances(study))

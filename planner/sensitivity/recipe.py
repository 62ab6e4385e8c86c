"""The recipe: answer the question, move every number, look for crossings, by one process or by several."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from threading import Event

from planner.assemble import objective_document
from planner.assumptions import assumptions_of, warnings_of
from planner.schema import sensitivity as doc
from planner.schema.scenario import Scenario
from planner.sensitivity.answers import Asker
from planner.sensitivity.crossings import crossings_of
from planner.sensitivity.moves import Moving, elasticity, move_of, not_moved
from planner.sensitivity.numbers import Found, numbers_of
from planner.solve import Settings, provenance, solver_of
from planner.whatif import conflicts

Told = Callable[[int], None]

_POLL_S = 0.2


@dataclass(frozen=True)
class How:
    """How to look: by how many per cent numbers are moved, how far crossings are looked for, by how many processes.

    ``shortcuts`` off: every answer is found from scratch.
    """

    percent: float = 10.0
    span: float = 2.0
    workers: int = 1
    shortcuts: bool = True


@dataclass(frozen=True)
class Looking:
    """A question that has an answer, and the numbers to move."""

    scenario: Scenario
    asker: Asker
    how: How
    settings: Settings
    numbers: tuple[Found, ...]
    start: float

    @classmethod
    def of(cls, scenario: Scenario, how: How, settings: Settings) -> Looking:
        """Answer the question as it stands.

        Raises
        ------
        InputError
            If it cannot be answered.
        """
        start = time.perf_counter()
        asker = Asker(scenario, settings.time_limit_s, how.shortcuts)
        return cls(scenario, asker, how, settings, numbers_of(scenario), start)

    @property
    def has_an_answer(self) -> bool:
        """Whether there is a proven plan to compare with."""
        return self.asker.base.status == "optimal"

    def run(self, told: Told, stop: Event | None = None) -> doc.Sensitivity:
        """Move every number, and give the document; what is not done when it is stopped is left out."""
        found: list[doc.Number | None] = [None] * len(self.numbers)
        stop = stop or Event()
        for done, (index, number) in enumerate(self._each(stop), start=1):
            found[index] = number
            told(done)
        return self._document([number for number in found if number is not None])

    def _each(self, stop: Event) -> Iterator[tuple[int, doc.Number]]:
        if not self.has_an_answer:
            return
        if self.how.workers > 1 and len(self.numbers) > 1:
            yield from _by_several(self.scenario, self.settings, self.how, self.numbers, stop)
            return
        for index, number in enumerate(self.numbers):
            if stop.is_set():
                return
            yield index, looked_at(self.asker, number, self.how)

    def _document(self, numbers: Sequence[doc.Number]) -> doc.Sensitivity:
        asker, solution = self.asker, self.asker.solution
        scenario = self.scenario
        infeasible = solution.status == "infeasible"
        devices = {device for choice in asker.base.choices for device in choice.devices.values() if device is not None}
        return doc.Sensitivity(
            scenario=scenario.name,
            status=solution.status,
            objective=objective_document(scenario, solution.value, solution.best_bound, solution.gap),
            choices=asker.base.choices,
            percent=self.how.percent,
            span=self.how.span,
            numbers=tuple(sorted(numbers, key=_effect, reverse=True)),
            infeasibility=conflicts(scenario, asker.tables) if infeasible else (),
            assumptions=assumptions_of(scenario, devices or None),
            warnings=warnings_of(scenario),
            base_command=self.settings.command,
            provenance=provenance(self.settings, self.start, solver_of(solution)),
        )


def _effect(number: doc.Number) -> tuple[bool, float]:
    """Order numbers by their largest effect: a plan that is not possible any more is the largest."""
    moves = (number.low, number.high)
    return (
        any(move.status == "infeasible" for move in moves),
        max(abs(move.relative_change or 0.0) for move in moves),
    )


def looked_at(asker: Asker, number: Found, how: How) -> doc.Number:
    """Move one number to both sides and look for its crossings."""
    scanned: tuple[float, float] | None = None
    crossings: tuple[doc.Crossing, ...] = ()
    low = high = not_moved(number)
    if number.refused is None:
        moving, step = Moving(asker, number), how.percent / 100.0
        scanned, crossings = crossings_of(moving, how.span, step)
        low, high = (move_of(moving, number.moved(1.0 + sign * step)) for sign in (-1.0, 1.0))
    return doc.Number(
        key=number.key,
        unit=number.unit,
        value=float(number.value),
        whole=number.whole,
        low=low,
        high=high,
        elasticity=elasticity(asker.base.value, number, low, high),
        scanned=scanned,
        crossings=crossings,
    )


# ----------------------------------------------------------------------------------------------- several processes


def _work(tasks: Connection, scenario: Scenario, how: How, time_limit_s: float | None) -> None:
    """Look at numbers as they come, in a process of its own, until nobody sends any more.

    Ctrl-C is the business of the process that started it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asker = Asker(scenario, time_limit_s, how.shortcuts)
    try:
        while True:
            index, number = tasks.recv()
            tasks.send((index, looked_at(asker, number, how)))
    except (EOFError, OSError):
        return


def _by_several(
    scenario: Scenario, settings: Settings, how: How, numbers: Sequence[Found], stop: Event
) -> Iterator[tuple[int, doc.Number]]:
    """Share the numbers among processes; each answers on its own, so that their number changes nothing."""
    context = multiprocessing.get_context("spawn")
    ends, workers = [], []
    for _ in range(min(how.workers, len(numbers))):
        mine, its = context.Pipe()
        arguments = (its, scenario, how, settings.time_limit_s)
        workers.append(context.Process(target=_work, args=arguments, daemon=True))
        workers[-1].start()
        its.close()
        ends.append(mine)
    try:
        yield from _shared(ends, numbers, stop)
    finally:
        for end in ends:
            end.close()
        for worker in workers:
            worker.kill()
            worker.join()


def _shared(ends: Sequence[Connection], numbers: Sequence[Found], stop: Event) -> Iterator[tuple[int, doc.Number]]:
    """Send every process a number, and another one when it is done with it."""
    waiting = iter(enumerate(numbers))
    for end in ends:
        end.send(next(waiting))
    left = len(numbers)
    while left and not stop.is_set():
        ready = wait(ends, _POLL_S)
        for end in ends:
            if end not in ready:
                continue
            try:
                found = end.recv()
            except EOFError:
                raise ChildProcessError("a process that looks at numbers has ended before its time") from None
            task = next(waiting, None)
            if task is not None:
                end.send(task)
            left -= 1
            yield found


def cores() -> int:
    """Give the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1

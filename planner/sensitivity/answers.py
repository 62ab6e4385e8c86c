"""The answer of a question, and of the same question with one number at another value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from planner.errors import InputError
from planner.evaluate import Design
from planner.fields import changed
from planner.optimise import optimise
from planner.question import Solution, is_maximized, question_of
from planner.rates import require_answerable, require_figures
from planner.schema.scenario import Scenario
from planner.schema.sensitivity import MoveStatus
from planner.sensitivity.costs import Reads, Tables, comparable, costed, reads_of, recosted, trimmed
from planner.sensitivity.numbers import Path
from planner.sensitivity.placements import Choices, choices_of, kept, placement
from planner.solve import require_options

# Values of the same objective that differ by no more, relatively, are equal: what bisection and the solver leave open.
_EQUAL = {"structure": 1e-8, "program": 2e-6}
_STATUS: dict[str, MoveStatus] = {"optimal": "optimal", "infeasible": "infeasible"}


@dataclass(frozen=True)
class Answer:
    """What is best: the objective and the designs, or why there are none. ``method``: what found it."""

    status: MoveStatus
    value: float | None = None
    designs: tuple[Design, ...] = ()
    choices: Choices = ()
    reason: str | None = None
    method: str = "structure"


@dataclass
class Asked:
    """A moved question with its costs and its answer."""

    scenario: Scenario
    tables: Tables
    answer: Answer


@dataclass
class Ceilings:
    """Costs of moved questions that have today's answer, design by design.

    What is no better than one of them has it too: nothing can beat it there, and among equals nothing takes less power.
    """

    known: list[Reads] = field(default_factory=list)

    def cover(self, reads: Reads) -> bool:
        """Whether a question is known to have today's answer."""
        return any(reads.is_no_better(ceiling) for ceiling in self.known)


class Asker:
    """Answers a question with one number moved.

    Parameters
    ----------
    scenario
        The question as it stands.
    time_limit_s
        For each answer, where the program finds it.
    shortcuts
        Off: every answer is found from scratch, for tests and for doubters.

    Raises
    ------
    InputError
        If the question cannot be answered as it stands.
    """

    def __init__(self, scenario: Scenario, time_limit_s: float | None = None, shortcuts: bool = True) -> None:
        scenario = trimmed(scenario) if shortcuts else scenario
        self.scenario, self.time_limit_s, self.shortcuts = scenario, time_limit_s, shortcuts
        self.tables = costed(scenario)
        _require(scenario, self.tables)
        self.solution = self._solution(scenario, self.tables)
        self.base = self._answer_of(scenario, self.solution)
        self.reads = reads_of(scenario, self.tables, self.base.designs)
        self.maximized = is_maximized(scenario.objective)

    def ceilings(self) -> Ceilings:
        """Give what is known before anything was asked: the question as it stands."""
        return Ceilings([self.reads])

    def ask(self, path: Path, value: float, ceilings: Ceilings, likely: Sequence[Answer] = ()) -> Asked:
        """Answer with the number at a path set to a value; ``likely``: answers whose designs are likely good."""
        try:
            moved = changed(self.scenario, path, value)
            require_answerable(moved)
            tables = recosted(moved, path, self.scenario, self.tables) if self.shortcuts else costed(moved)
            _require(moved, tables)
        except InputError as error:
            return Asked(self.scenario, self.tables, Answer("not_moved", reason="; ".join(error.problems)))
        return Asked(moved, tables, self._answer(moved, tables, path, ceilings, likely))

    def takes(self, path: Path, value: float) -> bool:
        """Whether the scenario is valid with a value, whatever its answer."""
        try:
            changed(self.scenario, path, value)
        except InputError:
            return False
        return True

    def _answer(
        self, moved: Scenario, tables: Tables, path: Path, ceilings: Ceilings, likely: Sequence[Answer]
    ) -> Answer:
        if not self.shortcuts or self.base.status != "optimal":
            return self._answer_of(moved, self._solution(moved, tables))
        reads = reads_of(moved, tables, self.base.designs) if comparable(moved, path) else None
        if reads is not None and ceilings.cover(reads):
            return self.base
        answer = self._answer_of(moved, self._solution(moved, tables, likely=(self.base, *likely)))
        if reads is not None and answer.designs == self.base.designs and reads.keeps_what_is_used(self.reads):
            ceilings.known.append(reads)
        return answer

    def _solution(
        self, scenario: Scenario, tables: Tables, reached: float = 0.0, likely: Sequence[Answer] = ()
    ) -> Solution:
        sets = _distinct([answer.designs for answer in likely])
        question = replace(question_of(scenario), reached=reached, likely=sets)
        return optimise(scenario, tables, question, time_limit_s=self.time_limit_s)

    def _answer_of(self, scenario: Scenario, solution: Solution) -> Answer:
        designs = tuple(design for design, _ in solution.designs)
        status = _STATUS.get(solution.status, "unproven")
        proven = status == "optimal"
        reason = None if status != "unproven" else "not proven within the time limit"
        value = solution.value if proven else None
        shown = designs if proven else ()
        return Answer(status, value, shown, choices_of(scenario, shown), reason, solution.method)

    # -------------------------------------------------------------------------------------- today's placement

    def with_todays_placement(self, asked: Asked) -> Answer:
        """Give the best plan of a moved question that keeps to today's placement."""
        tables = kept(asked.scenario, asked.tables, self.base.choices)
        if tables is None:
            return Answer("infeasible")
        likely = (self.base,) if self.shortcuts else ()
        return self._answer_of(asked.scenario, self._solution(asked.scenario, tables, likely=likely))

    def is_reached_with_todays_placement(self, asked: Asked) -> bool | None:
        """Whether today's placement is as good as the answer of a moved question; null where that is not proven.

        A throughput is not looked for anew: nothing below the answer's is of interest.
        """
        answer, tables = asked.answer, kept(asked.scenario, asked.tables, self.base.choices)
        if tables is None:
            return False
        reached = 0.0
        if self.shortcuts and answer.value is not None and answer.method == "structure" and self.maximized:
            reached = answer.value * (1.0 - _EQUAL["structure"])
        mine = self._answer_of(asked.scenario, self._solution(asked.scenario, tables, reached))
        if mine.status == "unproven":
            return None
        return mine.status == "optimal" and not self.is_better(answer, mine)

    def keeps_placement(self, answer: Answer) -> bool:
        """Whether an answer has today's placement."""
        return placement(answer.choices) == placement(self.base.choices)

    def is_better(self, one: Answer, other: Answer) -> bool:
        """Whether an answer is better than another by more than what is left open; any is better than none."""
        if one.value is None or other.value is None:
            return one.value is not None
        return self.gain(one, other) > max(_EQUAL[one.method], _EQUAL[other.method])

    def differ(self, one: Answer, other: Answer) -> bool:
        """Whether either of two answers is better than the other."""
        return self.is_better(one, other) or self.is_better(other, one)

    def gain(self, one: Answer, other: Answer) -> float:
        """Give how much better an answer is than another, relative to the other; negative where it is worse."""
        assert one.value is not None  # the caller asks of answers with a plan
        assert other.value is not None
        difference = one.value - other.value if self.maximized else other.value - one.value
        return difference / max(abs(other.value), 1e-12)


def _require(scenario: Scenario, tables: Tables) -> None:
    require_answerable(scenario)
    require_figures(scenario, tables)
    require_options(scenario, tables)


def _distinct(sets: Sequence[tuple[Design, ...]]) -> tuple[tuple[Design, ...], ...]:
    """Leave out what stands there twice."""
    found: list[tuple[Design, ...]] = []
    for designs in sets:
        if designs and designs not in found:
            found.append(designs)
    return tuple(found)

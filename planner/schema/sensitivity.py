"""The sensitivity document: what moving each number of a question does to its answer.

A value, an objective and a crossing are in the unit that stands beside them. What is not proven, or cannot be told, is
null.
"""

from __future__ import annotations

from typing import Literal

from planner.schema.base import Document
from planner.schema.documents import Conflict, DesignSummary, ObjectiveResult, Provenance
from planner.words import Phase, Status

MoveStatus = Literal["optimal", "infeasible", "unproven", "not_moved"]
Side = Literal["below", "above"]


class Move(Document):
    """The answer with one number at another value.

    ``value`` is what ``--set`` takes. ``change``: of the objective, ``relative_change`` as a share of today's. The
    three booleans say what of the plan switches; ``choices`` to what. A placement switches only where today's would be
    worse. ``reason``: why there is no such answer, where the number was not moved.
    """

    value: float | None
    status: MoveStatus
    reason: str | None
    objective: float | None
    change: float | None
    relative_change: float | None
    placement_switches: bool | None
    draft_length_switches: bool | None
    proposer_switches: bool | None
    choices: tuple[DesignSummary, ...]


class PhaseMove(Document):
    """A phase that another device type runs; null: nothing runs it."""

    workload: str
    phase: Phase
    before: str | None
    after: str | None


class Crossing(Document):
    """The value nearest to today's, on one side, from which on another placement is best, or no plan is left.

    At ``holds_at`` today's placement is still optimal, at ``switches_at`` it is not: ``gain`` is how much better the
    new plan is there than the best with today's placement, relative (null where that has no plan). ``value`` is the
    number of fewest digits between the two; of whole numbers, the first at which it switches.
    """

    side: Side
    value: float
    holds_at: float
    switches_at: float
    infeasible: bool
    gain: float | None
    moves: tuple[PhaseMove, ...]
    choices: tuple[DesignSummary, ...]


class Number(Document):
    """One number of the question: what it does at a step to either side, and where the placement switches.

    ``key`` is what ``--set`` takes. ``elasticity``: relative change of the objective per relative change of the number.
    ``scanned``: the least and the largest value at which a switch was looked for; null where it was not.
    """

    key: str
    unit: str
    value: float
    whole: bool
    low: Move
    high: Move
    elasticity: float | None
    scanned: tuple[float, float] | None
    crossings: tuple[Crossing, ...]


class Sensitivity(Document):
    """The answer of ``plan sensitivity``: numbers by the size of their largest effect, infeasible ones first.

    ``status`` and ``objective``: of the question as it stands. ``base_command``: with ``--set KEY=VALUE`` behind it, it
    reproduces any move.
    """

    schema_version: Literal[1] = 1
    scenario: str
    status: Status
    objective: ObjectiveResult
    choices: tuple[DesignSummary, ...]
    percent: float
    span: float
    numbers: tuple[Number, ...]
    infeasibility: tuple[Conflict, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    base_command: str | None
    provenance: Provenance

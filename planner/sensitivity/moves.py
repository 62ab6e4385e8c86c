"""One number moved by a step to either side: what becomes of the answer."""

from __future__ import annotations

from planner.schema.sensitivity import Move
from planner.sensitivity.answers import Answer, Asked, Asker
from planner.sensitivity.numbers import Found

_ROUNDING = 1e-9


class Moving:
    """One number at several values; each value is asked once."""

    def __init__(self, asker: Asker, number: Found) -> None:
        self.asker, self.number = asker, number
        self.ceilings = asker.ceilings()
        self.known: dict[float, Asked] = {}

    def at(self, value: float) -> Asked:
        """Give the answer at a value."""
        if value not in self.known:
            self.known[value] = self.asker.ask(self.number.path, value, self.ceilings, self._nearest(value))
        return self.known[value]

    def _nearest(self, value: float) -> list[Answer]:
        """Give the answers at the nearest value asked on either side: often one of them is the best here too."""
        known = {v: asked.answer for v, asked in self.known.items() if asked.answer.designs}
        below, above = [v for v in known if v < value], [v for v in known if v > value]
        return [known[v] for v in (max(below, default=None), min(above, default=None)) if v is not None]


def not_moved(number: Found) -> Move:
    """Say why a number is not moved at all."""
    return _move(None, Answer("not_moved", reason=number.refused), None)


def move_of(moving: Moving, value: float) -> Move:
    """Say what becomes of the answer at a value; an equal plan elsewhere makes no switch."""
    asker, asked = moving.asker, moving.at(value)
    answer, switches = asked.answer, False
    if answer.status == "optimal" and asker.base.status == "optimal" and not asker.keeps_placement(answer):
        switches = asker.is_reached_with_todays_placement(asked) is False
    return _move(value, answer, asker, switches)


def _move(value: float | None, answer: Answer, asker: Asker | None, switches: bool = False) -> Move:
    base = None if asker is None else asker.base
    compared = asker is not None and base is not None and answer.status == "optimal" and base.status == "optimal"
    change = relative = None
    if base is not None and answer.value is not None and base.value is not None:
        change = answer.value - base.value if asker is not None and asker.differ(answer, base) else 0.0
        relative = change / base.value if base.value else None
    return Move(
        value=value,
        status=answer.status,
        reason=answer.reason,
        objective=answer.value,
        change=change,
        relative_change=relative,
        placement_switches=switches if compared else None,
        draft_length_switches=_differ(answer, base, "draft_length") if base is not None and compared else None,
        proposer_switches=_differ(answer, base, "proposer") if base is not None and compared else None,
        choices=answer.choices,
    )


def _differ(one: Answer, other: Answer, field: str) -> bool:
    """Whether answers differ in a field of their designs, whatever the order of shares."""
    mine, its = ({(c.workload, getattr(c, field)) for c in answer.choices} for answer in (one, other))
    return mine != its


def elasticity(base: float | None, number: Found, low: Move, high: Move) -> float | None:
    """Relative change of the objective per relative change of the number, between the two moves or from one of them.

    Null where neither has an answer, or where today's objective or the number is zero.
    """
    points = [(move.value, move.objective) for move in (low, high)]
    ends = [(v, o) for v, o in points if v is not None and o is not None]
    if base and number.value and len(ends) < 2:
        ends.append((float(number.value), base))
    if not base or not number.value or len(ends) < 2 or ends[0][0] == ends[1][0]:
        return None
    (v, o), (w, p) = ends
    share = (p - o) / base
    return 0.0 if abs(share) < _ROUNDING else share / ((w - v) / number.value)

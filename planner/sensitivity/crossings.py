"""Where the placement of the best plan switches as one number moves, found by scanning and bisection.

Equal plans make no crossing: at a value where another placement is shown, the question is solved once more with
today's, and the placement counts as switched only where that is worse (or has no plan). So today's placement is optimal
at ``holds_at``, and beaten at ``switches_at``.

The ends of the span are looked at, and the step of the moves. Where the answer at an end is another one than today's,
the way there is looked at in equal steps on a logarithmic scale, of ``_FACTOR`` at most; where it is today's still,
nothing is looked for between. A switch and a switch back between two of these values are not seen; a switch that is
seen is closed in on, to the nearest value before it at which today's placement no longer holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from planner.schema.sensitivity import Crossing, Side
from planner.sensitivity.moves import Moving
from planner.sensitivity.numbers import Found, tidy
from planner.sensitivity.placements import phase_moves

_FACTOR = 2.0**0.5
_CLOSED, _CLOSED_BEYOND = 1e-3, 1e-2
_VALID = 1e-6

State = Literal["same", "switched", "infeasible", "unknown"]


@dataclass(frozen=True)
class Seen:
    """What was seen at a value."""

    value: float
    state: State


def state_at(moving: Moving, value: float) -> Seen:
    """Say whether today's placement is still optimal at a value."""
    asker, asked = moving.asker, moving.at(value)
    answer = asked.answer
    if answer.status != "optimal":
        return Seen(value, "infeasible" if answer.status == "infeasible" else "unknown")
    if asker.keeps_placement(answer):
        return Seen(value, "same")
    holds = asker.is_reached_with_todays_placement(asked)
    return Seen(value, "unknown" if holds is None else "same" if holds else "switched")


def crossings_of(moving: Moving, span: float, step: float) -> tuple[tuple[float, float], tuple[Crossing, ...]]:
    """Find the crossing nearest to today's value on each side.

    Parameters
    ----------
    moving
        The number.
    span
        How far it is looked for: from the value divided by it to the value times it, as far as values are valid.
    step
        The share by which numbers are moved, which is looked at too.

    Returns
    -------
    tuple
        The least and largest value looked at, and the crossings, below first.
    """
    ends, found = [], []
    for factor, near in ((1.0 / span, 1.0 - step), (span, 1.0 + step)):
        end = _end(moving, factor)
        ends.append(float(end))
        crossing = _on_side(moving, end, moving.number.moved(near))
        found += [crossing] if crossing is not None else []
    return (min(ends), max(ends)), tuple(sorted(found, key=lambda crossing: crossing.value))


def _end(moving: Moving, factor: float) -> float:
    """Give the valid value that is furthest on a side, up to a factor."""
    asker, number = moving.asker, moving.number
    end = number.moved(factor)
    if asker.takes(number.path, end):
        return end
    valid, invalid = number.value, end
    while abs(invalid - valid) > (1 if number.whole else _VALID * abs(number.value)):
        middle = (valid + invalid) // 2 if number.whole else tidy(0.5 * (valid + invalid))
        if middle in (valid, invalid):
            break
        if asker.takes(number.path, middle):
            valid = middle
        else:
            invalid = middle
    return valid


def _values(number: Found, end: float, near: float) -> list[float]:
    """List the values to look at, the nearest to today's first."""
    factor = max(end / number.value, _VALID)
    steps = math.ceil(abs(math.log(factor)) / math.log(_FACTOR) - _VALID)
    values = [number.value * factor ** (k / steps) for k in range(1, steps)]
    values = [float(round(v)) if number.whole else tidy(v) for v in values]
    inside = [v for v in (*values, near) if min(number.value, end) < v < max(number.value, end)]
    ordered = sorted({*inside, end} - {number.value}, key=lambda v: abs(v - number.value))
    return [int(v) for v in ordered] if number.whole else ordered


def _on_side(moving: Moving, end: float, near: float) -> Crossing | None:
    if end == moving.number.value:
        return None
    state_at(moving, end)
    answer, base = moving.at(end).answer, moving.asker.base
    unchanged = answer.designs == base.designs and answer.value == base.value
    values = _values(moving.number, end, near)
    holds = Seen(moving.number.value, "same")
    for value in [value for value in values if value in (near, end)] if unchanged else values:
        seen = state_at(moving, value)
        if seen.state == "unknown":
            return None
        if seen.state != "same":
            return _closed_in(moving, holds, seen, near)
        holds = seen
    return None


def _closed_in(moving: Moving, holds: Seen, beyond: Seen, near: float) -> Crossing | None:
    """Halve what lies between a value at which today's placement holds and one at which it does not.

    To one part in a thousand up to the step of the moves, to one in a hundred beyond it.
    """
    number = moving.number
    closed = _CLOSED if abs(beyond.value - number.value) <= abs(near - number.value) else _CLOSED_BEYOND
    while abs(beyond.value - holds.value) > (1 if number.whole else closed * abs(beyond.value)):
        middle = (holds.value + beyond.value) // 2 if number.whole else tidy(0.5 * (holds.value + beyond.value))
        if middle in (holds.value, beyond.value):
            break
        seen = state_at(moving, middle)
        if seen.state == "unknown":
            return None
        if seen.state == "same":
            holds = seen
        else:
            beyond = seen
    asked = moving.at(beyond.value)
    answer, infeasible = asked.answer, beyond.state == "infeasible"
    mine = moving.asker.with_todays_placement(asked)
    side: Side = "below" if beyond.value < holds.value else "above"
    return Crossing(
        side=side,
        value=float(beyond.value) if number.whole else roundest(holds.value, beyond.value),
        holds_at=float(holds.value),
        switches_at=float(beyond.value),
        infeasible=infeasible,
        gain=moving.asker.gain(answer, mine) if answer.value is not None and mine.value is not None else None,
        moves=() if infeasible else phase_moves(moving.asker.base.choices, answer.choices),
        choices=answer.choices,
    )


def roundest(one: float, other: float) -> float:
    """Give the number of fewest digits between two.

    >>> roundest(19984.0, 20004.0), roundest(63.20, 63.26), roundest(0.4629, 0.4631)
    (20000.0, 63.2, 0.463)
    """
    low, high = min(one, other), max(one, other)
    for digits in range(1, 16):
        value = float(f"{0.5 * (low + high):.{digits}g}")
        if low <= value <= high:
            return value
    return 0.5 * (low + high)

"""What is optimized, and what an optimization gives back; the same for the exact structure and the program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from planner.evaluate import Design
from planner.rates import fixed_rates
from planner.schema.scenario import Scenario
from planner.words import MAXIMIZED, Objective, Status

CLOSED_GAP = 1e-6
# Relative difference of two values that is no difference.
ROUNDING = 1e-7

Aim = Objective | Literal["rate", "ttft", "devices", "any"]


@dataclass(frozen=True)
class Question:
    """What is optimized: an aim at exact rates by workload. A workload without a rate is free; null: all, in their mix.

    The five objectives, and four aims that only explanations ask for: the largest rate of one workload, the least TTFT,
    the fewest devices of a type, and any plan at all. ``workload`` narrows a rate, interactivity or TTFT to one
    workload (null: the worst of all), ``device`` names the type whose count is asked. ``out_of_reach``: rates by
    workload that are known to be too much, where the limits alone may not bound them. ``reached``: a throughput that
    some plan is known to have; ``likely``: sets of designs, one for every workload, that are likely good. Both
    save time and change no answer.
    """

    aim: Aim
    rates: dict[str, float] | None
    workload: str | None = None
    device: str | None = None
    out_of_reach: dict[str, float] = field(default_factory=dict)
    reached: float = 0.0
    likely: tuple[tuple[Design, ...], ...] = ()

    def concerns(self, workload: str) -> bool:
        """Whether the aim is about a workload's service or rate."""
        return self.workload in (None, workload)


def question_of(scenario: Scenario) -> Question:
    """Give the scenario's own question."""
    return Question(scenario.objective, fixed_rates(scenario))


@dataclass(frozen=True)
class Solution:
    """Designs with rates, and what is proven. ``designs`` is empty where there is no plan.

    ``method`` says which part of the planner found it; ``racks`` holds units by (rack, device type).
    """

    status: Status
    designs: tuple[tuple[Design, float], ...]
    value: float | None
    best_bound: float | None
    gap: float | None
    runtime_s: float
    method: Literal["structure", "program"]
    racks: dict[tuple[str, str], float] = field(default_factory=dict)


def relative_gap(value: float, bound: float) -> float:
    """Gap between a value and a bound, relative to the value.

    >>> relative_gap(100.0, 101.0)
    0.01
    """
    return abs(value - bound) / max(abs(value), 1e-12)


def is_maximized(aim: Aim) -> bool:
    """Whether more of the aim's figure is better."""
    return aim in MAXIMIZED or aim == "rate"


def loss(objective: Objective, best: float, value: float) -> float:
    """How much worse a value is than the best one; 0 where the difference is only rounding.

    >>> loss("throughput", 100.0, 90.0), loss("power", 100.0, 90.0), loss("power", 100.0, 100.0 + 1e-9)
    (10.0, -10.0, 0.0)
    """
    lost = best - value if objective in MAXIMIZED else value - best
    return 0.0 if abs(lost) <= ROUNDING * abs(best) else lost


def share_of(change: float, value: float | None) -> float | None:
    """Relate a change to the size of a value; null where that is zero or not known.

    >>> share_of(-1.0, 4.0), share_of(1.0, 0.0), share_of(1.0, None)
    (-0.25, None, None)
    """
    return change / abs(value) if value else None

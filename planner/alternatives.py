"""The best plans that differ in placement, in order: which device type runs which phase of which workload.

What is left after a plan is split by where its phases are: elsewhere in the first one; as it is there, and elsewhere in
the second one; and so on. The parts do not overlap, and together they hold every other placement, so the best of the
parts' best plans is the next one; its part is split in turn (Lawler 1972, Management Science 18, 401).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from planner.assemble import deploy
from planner.errors import InputError
from planner.fleet import forward_power_w, power_w
from planner.optimise import optimise
from planner.options import CostTable
from planner.placement import Allowed, placement_of, restricted
from planner.question import Question, Solution, is_maximized, question_of
from planner.schema.scenario import Scenario
from planner.words import Phase

Tables = dict[str, CostTable]
Left = Callable[[], float | None]

ONE_SHARE = (
    "alternatives need max_shares 1: with several designs for a workload a placement is not one device type per phase"
)


@dataclass(frozen=True)
class Part:
    """Placements that are left, by workload, and the best plan among them."""

    allowed: dict[str, Allowed]
    solution: Solution


@dataclass(frozen=True)
class Ranked:
    """Plans after the best one, best first; ``proven``: no other placement comes before the last of them."""

    solutions: tuple[Solution, ...]
    proven: bool


def tables_within(scenario: Scenario, tables: Tables, allowed: dict[str, Allowed]) -> Tables:
    """Give the tables without what a placement that is not allowed needs; workloads that are not named are free."""
    return {
        name: restricted(scenario, table, allowed[name]) if name in allowed else table for name, table in tables.items()
    }


def best_within(
    scenario: Scenario,
    tables: Tables,
    allowed: dict[str, Allowed],
    seconds: float | None = None,
    question: Question | None = None,
) -> Solution:
    """Find the best plan among the placements that are allowed; workloads that are not named are free."""
    left = tables_within(scenario, tables, allowed)
    if not all(table.speculations for table in left.values()):
        return Solution("infeasible", (), None, None, None, 0.0, "structure")
    return optimise(scenario, left, question, time_limit_s=seconds)


def next_best(
    scenario: Scenario,
    tables: Tables,
    best: Solution,
    number: int,
    tick: Callable[[str], None],
    left: Left,
) -> Ranked:
    """Find the plans that follow the best one, each with another placement than those before it.

    Parameters
    ----------
    scenario, tables
        What was solved.
    best
        Its optimum.
    number
        How many more plans are wanted; fewer are found where there are fewer placements.
    tick
        Is told of the progress.
    left
        Gives the seconds that are left; what is not proven in time ends the list.

    Raises
    ------
    InputError
        Where a workload may be served by several designs.
    """
    if scenario.max_shares > 1:
        raise InputError(ONE_SHARE)
    sign = -1.0 if is_maximized(question_of(scenario).aim) else 1.0
    heap: list[tuple[float, float, int, Part]] = []
    part, made = Part({}, best), 0
    found: list[Solution] = []
    while len(found) < number:
        tick(f"alternative {len(found) + 1}")
        for allowed in _split(scenario, part):
            seconds = left()
            if seconds is not None and seconds <= 0:
                return Ranked(tuple(found), proven=False)
            solution = best_within(scenario, tables, allowed, seconds)
            if solution.status not in ("optimal", "infeasible"):
                return Ranked(tuple(found), proven=False)
            if solution.value is not None:
                made += 1
                rank = (float(f"{sign * solution.value:.9e}"), _power_w(scenario, tables, solution), made)
                heapq.heappush(heap, (*rank, Part(allowed, solution)))
        if not heap:
            break
        part = heapq.heappop(heap)[-1]
        found.append(part.solution)
    return Ranked(tuple(found), proven=True)


def _power_w(scenario: Scenario, tables: Tables, solution: Solution) -> float:
    """Power on the scenario's basis, forward where that is not known: of equally good plans the lesser comes first."""
    deployed = deploy(scenario, solution.designs, tables)
    power = power_w(scenario, deployed.servings, deployed.pools, scenario.power_basis)
    return forward_power_w(deployed.servings) if power is None else power


def _split(scenario: Scenario, part: Part) -> list[dict[str, Allowed]]:
    """Split what is left of a part after its best plan."""
    places: list[tuple[str, Phase, str | None]] = [
        (design.workload, phase, device)
        for design, _ in part.solution.designs
        for phase, device in placement_of(scenario, design).items()
    ]
    kept, parts = dict(part.allowed), []
    for name, phase, device in places:
        allowed = kept.get(name, Allowed())
        if phase not in allowed.only:
            parts.append({**kept, name: allowed.but(phase, device)})
            kept[name] = allowed.with_only(phase, device)
    return parts

"""The inner problem of a trial: the least power at the rates, above a floor, within what the trial's values leave.

It is always solved exactly. Where workloads and phases share nothing the whole front of the restricted problem comes by
structure at once; else the least power, the largest interactivity and the least power above the floor are optimized one
by one, of equal powers the largest interactivity, and an answer is kept for every floor that it answers. Nothing is
solved twice: costs are kept by what changes the scenario, answers by everything but the floor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.assemble import deploy, limit_values, throughput_tps
from planner.fleet import Deployed, Racked, power_w
from planner.front.asked import Asked, asked_of
from planner.front.geometry import ROUNDING
from planner.front.structure import Designs, front_by_structure, separates
from planner.front.sweep import STEP, cheapest_and_fastest
from planner.limits import limits_of, without
from planner.optimise import optimise
from planner.options import CostTable
from planner.question import Question, Solution
from planner.schema.scenario import Scalar, Scenario
from planner.search.space import FLOOR, LOWEST_FLOOR, Space, Values

Key = tuple[tuple[str, Scalar | None], ...]
# Costs of as many scenarios are kept; each is at most some megabytes.
_MOST_KEPT = 64


@dataclass(frozen=True)
class Answer:
    """What a trial found: a deployment, its figures, and by limit how far it is on the wrong side, relative."""

    deployed: Deployed
    interactivity_tps: float
    energy_j_per_token: float
    excess: dict[str, float]

    @property
    def is_feasible(self) -> bool:
        """Whether no limit is broken."""
        return all(excess <= 0.0 for excess in self.excess.values())


@dataclass(frozen=True)
class _Found:
    """Designs of least power among those of at least ``floor_tps``, and the interactivity that they have."""

    floor_tps: float
    interactivity_tps: float
    designs: Designs
    racks: Racked


@dataclass
class _Restricted:
    """The problem that a trial's values leave, and what is known of it by rising interactivity, both ends included.

    ``whole``: nothing is to be found beyond what is known. ``without_limits``: the design of least power that there
    would be without limits, where they leave nothing.
    """

    asked: Asked
    known: list[_Found] = field(default_factory=list)
    whole: bool = False
    without_limits: _Found | None = None

    def learn(self, found: _Found) -> None:
        """Keep an answer in its place."""
        self.known.append(found)
        self.known.sort(key=lambda one: (one.interactivity_tps, one.floor_tps))


@dataclass
class Inner:
    """Solves the inner problems of a space and remembers them."""

    space: Space
    tables: Mapping[str, CostTable]
    _costs: dict[Key, tuple[Scenario, dict[str, CostTable]]] = field(default_factory=dict)
    _restricted: dict[Key, _Restricted] = field(default_factory=dict)

    def answer(self, values: Values) -> Answer | None:
        """Give the best design within the values: of least power above the floor.

        Where the limits leave nothing, the design of least power that there would be without them, with what it breaks;
        null where not even that exists.
        """
        problem = self._problem(values)
        share = values[FLOOR]
        assert isinstance(share, (int, float))  # the floor is a range
        if problem.known:
            return _answer(problem.asked, self._above(problem, _floor_tps(problem, share)))
        return None if problem.without_limits is None else _answer(problem.asked, problem.without_limits)

    def share_of(self, values: Values, interactivity_tps: float) -> float:
        """Give the floor, as a share, above which a design of this interactivity is found within the values."""
        known = self._problem(values).known
        if not known:
            return LOWEST_FLOOR
        slow, fast = known[0].interactivity_tps, known[-1].interactivity_tps
        if fast <= slow:
            return LOWEST_FLOOR
        share = math.log(interactivity_tps / slow) / math.log(fast / slow)
        return min(max(share - ROUNDING, LOWEST_FLOOR), 1.0)

    def _problem(self, values: Values) -> _Restricted:
        key = tuple((name, value) for name, value in values.items() if name != FLOOR)
        if key not in self._restricted:
            _make_room(self._restricted)
            self._restricted[key] = self._explored(values)
        return self._restricted[key]

    def _explored(self, values: Values) -> _Restricted:
        """Restrict the scenario and find the ends of its front, or all of it where that is quick."""
        scenario, tables = self._costed(values)
        tables = {name: self.space.restricted(table, values) for name, table in tables.items()}
        problem = _Restricted(asked_of(scenario, tables))
        if not all(table.speculations for table in tables.values()):
            return problem
        if separates(problem.asked):
            claims = front_by_structure(problem.asked)
            floors = [0.0, *(claim.interactivity_tps for claim in claims)]
            pairs = zip(claims, floors, strict=False)
            problem.known = [_Found(floor, one.interactivity_tps, one.designs, {}) for one, floor in pairs]
            problem.whole = True
        else:
            problem.known = _ends(problem.asked)
        if not problem.known:
            asked = problem.asked
            limits = [limit for limit in limits_of(asked.scenario) if limit.name != "demand"]
            freed = Asked(without(asked.scenario, limits), asked.tables, asked.rates, asked.large)
            problem.without_limits = _cheapest(freed, 0.0)
        return problem

    def _costed(self, values: Values) -> tuple[Scenario, dict[str, CostTable]]:
        key = self.space.changes(values)
        if not key:
            return self.space.scenario, dict(self.tables)
        if key not in self._costs:
            _make_room(self._costs)
            scenario = self.space.scenario_of(values)
            self._costs[key] = scenario, dict(asked_of(scenario).tables)
        return self._costs[key]

    def _above(self, problem: _Restricted, floor_tps: float) -> _Found:
        """Give the design of least power at or above a floor; what is known answers every floor up to its own speed."""
        above = [one for one in problem.known if one.interactivity_tps >= floor_tps * (1.0 - ROUNDING)]
        best = above[0] if above else problem.known[-1]
        if problem.whole or best.floor_tps <= floor_tps or not above:
            return best
        found = _cheapest(problem.asked, floor_tps)
        if found is None:
            return best
        problem.learn(found)
        if found.interactivity_tps >= best.interactivity_tps * (1.0 - STEP):  # nothing new: see how far down it is best
            below = max(one.interactivity_tps for one in problem.known if one.interactivity_tps < floor_tps)
            lowest = _cheapest(problem.asked, below * (1.0 + STEP))
            if lowest is not None:
                problem.learn(lowest)
        return found


def _ends(asked: Asked) -> list[_Found]:
    """Give the design of least power and the fastest one; nothing where there is none."""
    slowest = _cheapest(asked, 0.0)
    if slowest is None:
        return []
    quickest = _found(asked, optimise(asked.scenario, asked.tables, Question("interactivity", asked.rates)), 0.0)
    if quickest is None or quickest.interactivity_tps <= slowest.interactivity_tps * (1.0 + STEP):
        return [slowest]
    return [slowest, _cheapest(asked, quickest.interactivity_tps * (1.0 - STEP)) or quickest]


def _cheapest(asked: Asked, floor_tps: float) -> _Found | None:
    return _found(asked, cheapest_and_fastest(asked, floor_tps, None), floor_tps)


def _found(asked: Asked, solution: Solution, floor_tps: float) -> _Found | None:
    if not solution.designs:
        return None
    deployed = deploy(asked.scenario, solution.designs, asked.tables, solution.racks)
    return _Found(floor_tps, _worst_tps(deployed), solution.designs, solution.racks)


def _floor_tps(problem: _Restricted, share: float) -> float:
    slow, fast = problem.known[0].interactivity_tps, problem.known[-1].interactivity_tps
    return float(slow * (fast / slow) ** share)


def _answer(asked: Asked, found: _Found) -> Answer:
    deployed = deploy(asked.scenario, found.designs, asked.tables, found.racks)
    watts = power_w(asked.scenario, deployed.servings, deployed.pools, asked.scenario.power_basis)
    assert watts is not None  # the figures that the basis needs were required
    values = limit_values(deployed)
    limits = [limit for limit, _ in values]
    excess = {}
    for limit, value in values:
        broken = value is None or limit.is_violated(value)
        slack = -1.0 if value is None else limit.slack(value) / max(abs(limit.bound), 1e-12)
        excess[limit.label(limits)] = max(-slack, 1e-12) if broken else min(-slack, 0.0)
    return Answer(deployed, _worst_tps(deployed), watts / throughput_tps(deployed), excess)


def _worst_tps(deployed: Deployed) -> float:
    return min(serving.metrics.interactivity_tps for serving in deployed.servings)


def _make_room(kept: dict[Key, Any]) -> None:
    """Forget the oldest where many are kept."""
    while len(kept) >= _MOST_KEPT:
        kept.pop(next(iter(kept)))

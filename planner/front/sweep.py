"""The front where choices are coupled: least power at fixed rates under a rising floor on interactivity.

Each point takes two optimizations: the least power above the floor, then the largest interactivity at that power. The
next floor lies just above the interactivity reached, so that no point is skipped and none is found twice; where nothing
is left above the floor, the front is complete. No sampling: every solve is a proof, and the number of solves is twice
the number of points. Haimes, Lasdon and Wismer (1971), the epsilon-constraint method.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from planner.assemble import deploy
from planner.errors import CheckError
from planner.fleet import Deployed, Racked, power_w
from planner.front.asked import Asked
from planner.front.geometry import ROUNDING
from planner.front.structure import Designs
from planner.optimise import optimise
from planner.question import Question, Solution
from planner.schema.scenario import Scenario

# Points nearer than this, relative in interactivity, are one. Wider than the tolerances of solver and limits.
STEP = 1e-6


@dataclass(frozen=True)
class Swept:
    """Designs with rates and racks of every point, by rising interactivity, and whether each step was proven."""

    points: list[tuple[Designs, Racked]]
    proven: bool


def front_by_sweep(asked: Asked, time_limit_s: float | None, tick: Callable[[str], None]) -> Swept:
    """Give every point of the front; within a time limit those that were reached.

    Raises
    ------
    CheckError
        If a solution breaks the floor that it was given.
    """
    start, floor, proven = time.perf_counter(), 0.0, True
    points: list[tuple[Designs, Racked]] = []
    while True:
        tick(f"front, point {len(points) + 1}" + (f": above {floor:.4g} tok/s" if floor else ""))
        left = None if time_limit_s is None else time_limit_s - (time.perf_counter() - start)
        if left is not None and left <= 0:
            return Swept(points, proven=False)
        found = cheapest_and_fastest(asked, floor, left)
        proven = proven and found.status in ("optimal", "infeasible")
        if not found.designs:
            return Swept(points, proven)
        reached = _worst_tps(_deployed(asked, found))
        if reached < floor * (1.0 - ROUNDING):
            raise CheckError(f"the solver reached {reached} tok/s under a floor of {floor} tok/s")
        points.append((found.designs, found.racks))
        floor = reached * (1.0 + STEP)


def cheapest_and_fastest(asked: Asked, floor: float, time_limit_s: float | None) -> Solution:
    """Least power above a floor, and among plans of that power the largest interactivity."""
    scenario = _with_floor(asked.scenario, floor)
    cheapest = optimise(scenario, asked.tables, Question("power", asked.rates), time_limit_s)
    if not cheapest.designs:
        return cheapest
    deployed = _deployed(asked, cheapest)
    watts = power_w(scenario, deployed.servings, deployed.pools, scenario.power_basis)
    assert watts is not None  # the figures that the basis needs were required
    own = scenario.limits.power_budget_kw
    budget_kw = watts * (1.0 + ROUNDING) / 1e3
    limits = scenario.limits.replace(power_budget_kw=budget_kw if own is None else min(own, budget_kw))
    fastest = optimise(
        scenario.replace(limits=limits), asked.tables, Question("interactivity", asked.rates), time_limit_s
    )
    if not fastest.designs:  # the power of the first lies within the solver's own rounding: take it as it is
        return cheapest
    return fastest if cheapest.status == "optimal" else cheapest


def _with_floor(scenario: Scenario, floor: float) -> Scenario:
    """Raise the floor of every workload."""
    if floor <= 0:
        return scenario
    workloads = {}
    for name, workload in scenario.workloads.items():
        most = max(floor, workload.limits.interactivity_floor_tps or 0.0)
        workloads[name] = workload.replace(limits=workload.limits.replace(interactivity_floor_tps=most))
    return scenario.replace(workloads=workloads)


def _deployed(asked: Asked, solution: Solution) -> Deployed:
    return deploy(asked.scenario, solution.designs, asked.tables, solution.racks)


def _worst_tps(deployed: Deployed) -> float:
    return min(serving.metrics.interactivity_tps for serving in deployed.servings)

"""The recipe of a review: plan, front, ways, curves, roofs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from planner.assemble import design_of
from planner.errors import InputError, nearest
from planner.front.asked import asked_of
from planner.front.recipe import exact_front
from planner.front.structure import separates
from planner.options import cost_table
from planner.rates import has_demand, is_bounded
from planner.review.curves import Commands
from planner.review.roofs import roofs_of
from planner.review.ways import drawn_ways, speed_documents, way_document, without_floors
from planner.schema import documents as doc
from planner.schema.front import Front
from planner.schema.review import Review
from planner.schema.scenario import Scenario
from planner.solve import Settings, provenance, solve
from planner.whatif import usual_ways

if TYPE_CHECKING:
    from planner.search.study import How


def review(
    scenario: Scenario,
    commands: Commands,
    settings: Settings | None = None,
    workload: str | None = None,
    plan: doc.Plan | None = None,
    how: How | None = None,
) -> Review:
    """Compute everything that a report shows.

    Parameters
    ----------
    scenario, settings
        What is asked, and how.
    commands
        How a person makes the scenario, so that every point comes with the command that evaluates it.
    workload
        Which one the curves are of; by default the one of the largest mix.
    plan
        The answer where it is known already; else it is found. Where nothing bounds the question there is none.
    how
        How to search the front besides; null: only where the scenario has knobs.

    Raises
    ------
    InputError
        If the question lacks a figure, an option or a workload of that name.
    """
    settings = settings or Settings()
    start = time.perf_counter()
    name = _workload(scenario, workload)
    if plan is None and is_answerable(scenario):
        plan = solve(scenario, settings)
    tables = {key: cost_table(scenario, key) for key in scenario.workloads}
    whole = without_floors(scenario)
    front = exact_front(whole, settings, tables)
    settings.tick("usual ways to deploy")
    by_structure = separates(asked_of(whole, tables))
    ways = drawn_ways(scenario, name, list(usual_ways(scenario, tables)), plan, by_structure)
    settings.tick("curves over the draft length")
    documents = tuple(way_document(scenario, way, commands) for way in ways)
    speeds = next((found for way in ways if (found := speed_documents(scenario, way, commands))), ())
    designs = [(way.name, way.design) for way in ways if way.design is not None]
    if not designs and front.points:
        designs = [("this_plan", design_of(scenario, front.points[-1].deployment))]
    axes, roofs = roofs_of(scenario, designs)
    searched = _searched(scenario, how, settings)
    return Review(
        scenario=scenario.name,
        workload=name,
        plan=plan,
        front=front,
        front_commands=tuple(
            commands.evaluate(scenario, design_of(scenario, point.deployment)) for point in front.points
        ),
        searched=searched,
        ways=documents,
        speeds=speeds,
        roof_axes=axes,
        roofs=roofs,
        provenance=provenance(settings, start, None if plan is None else plan.provenance.solver),
    )


def _searched(scenario: Scenario, how: How | None, settings: Settings) -> Front | None:
    if how is None and not scenario.knobs:
        return None
    from planner.search.recipe import searched_front  # Optuna is imported where it is needed only

    settings.tick("front by search")
    return searched_front(scenario, how, settings)


def is_answerable(scenario: Scenario) -> bool:
    """Whether something bounds the throughput, so that there is one best plan."""
    return scenario.objective != "throughput" or is_bounded(scenario) or has_demand(scenario)


def _workload(scenario: Scenario, name: str | None) -> str:
    if name is None:
        return max(scenario.workloads, key=lambda key: scenario.workloads[key].mix)
    if name not in scenario.workloads:
        raise InputError(f"--workload {name}: there is no such workload ({nearest(name, scenario.workloads)})")
    return name

"""``plan pareto``: the front of interactivity against energy per output token."""

from __future__ import annotations

from typing import Any

import click

from planner.cli import EXIT_INFEASIBLE, EXIT_NO_INCUMBENT
from planner.cli.options import limit_options, scenario_options
from planner.words import FRONT_METHODS


@click.command("pareto")
@scenario_options
@click.option(
    "--method",
    type=click.Choice(FRONT_METHODS),
    default=FRONT_METHODS[0],
    show_default=True,
    help="exact: every non-dominated point, with proof.",
)
@limit_options
def command(
    scenario: str,
    sets: tuple[str, ...],
    as_json: bool,
    output: str | None,
    method: str,
    places: tuple[str, ...],
    time_limit_s: float | None,
    **flags: Any,  # noqa: ANN401
) -> int:
    """Find the front: what interactivity costs in energy per output token, and the design of every point.

    With a demand it is served exactly, within every limit. Without one the front is of a large fleet: counts are
    fractional, and limits on its size do not apply.
    """
    from planner.cli.bare import load_asked
    from planner.cli.common import command_line, deliver, interruptible, progress, require_output, tell_warnings
    from planner.front.recipe import exact_front
    from planner.report.front import front_view
    from planner.solve import Settings

    require_output(output)
    with progress() as tick:
        loaded = load_asked(scenario, sets, places, flags)
        settings = Settings(time_limit_s, loaded.digests, command_line(), tick)
        front = interruptible(lambda: exact_front(loaded.scenario, settings))
    tell_warnings(front.warnings)
    deliver(front, front_view(front), "front", as_json, output)
    if front.points:
        return 0
    return EXIT_INFEASIBLE if front.exact else EXIT_NO_INCUMBENT

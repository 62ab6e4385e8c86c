"""``plan pareto``: the front of interactivity against energy per output token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from planner.cli import EXIT_INFEASIBLE, EXIT_INTERRUPTED, EXIT_NO_INCUMBENT
from planner.cli.options import limit_options, scenario_options, search_options
from planner.words import FRONT_METHODS

if TYPE_CHECKING:
    from planner.schema.front import Front
    from planner.schema.scenario import Scenario
    from planner.solve import Settings

# After Ctrl-C a trial under way has this long to end; what it was about is lost then, what is finished is kept.
_PATIENCE_S = 10.0


@click.command("pareto")
@scenario_options
@click.option(
    "--method",
    type=click.Choice(FRONT_METHODS),
    default=FRONT_METHODS[0],
    show_default=True,
    help="optuna: search, over knobs too. exact: every non-dominated point, with proof.",
)
@search_options
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
    fractional, and limits on its size do not apply. A search can be interrupted: what was found is shown.
    """
    from planner.cli.bare import load_asked
    from planner.cli.common import command_line, deliver, interruptible, progress, require_output, tell_warnings
    from planner.cli.searching import how_of, knobs_located, require_free_knobs
    from planner.front.recipe import exact_front
    from planner.report.front import front_view
    from planner.solve import Settings

    require_output(output)
    how = how_of(click.get_current_context(), method == "optuna", time_limit_s)
    with progress() as tick:
        loaded = load_asked(scenario, sets, places, flags)
        settings = Settings(time_limit_s, loaded.digests, command_line(), tick)
        if how is None:
            front, interrupted = interruptible(lambda: exact_front(loaded.scenario, settings)), False
    if how is not None:
        require_free_knobs(loaded, sets, places, flags)
        with knobs_located(loaded.knobs):
            front, interrupted = _searched(loaded.scenario, how, settings)
    tell_warnings(front.warnings)
    deliver(front, front_view(front), "front", as_json, output)
    if interrupted:
        return EXIT_INTERRUPTED
    if front.points:
        return 0
    return EXIT_INFEASIBLE if front.exact else EXIT_NO_INCUMBENT


def _searched(scenario: Scenario, how: Any, settings: Settings) -> tuple[Front, bool]:  # noqa: ANN401
    """Search until there are enough trials, the time is over, or Ctrl-C; say whether it was that."""
    from planner.cli.common import bar, interruptible
    from planner.search.recipe import Searching

    search = interruptible(lambda: Searching.of(scenario, how, settings))
    try:
        with bar("trials", how.trials) as told:
            interruptible(lambda: search.run(told))
    except KeyboardInterrupt:
        click.echo("interrupted: ending the trials under way", err=True)
        search.stop(_PATIENCE_S)
        return search.front(), True
    return search.front(), False

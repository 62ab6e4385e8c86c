"""``plan report``: everything that a capacity-planning review looks at, as files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from planner.cli import EXITS
from planner.cli.options import question_options, scenario_options, search_options
from planner.cli.searching import SEARCH_FLAGS
from planner.cli.types import FOLDER

if TYPE_CHECKING:
    from planner.cli.earlier import Asked
    from planner.schema.review import Review

DEFAULT_FOLDER = "report"
_BESIDE_FROM = {"earlier", "output", "as_json", "workload", "image", "time_limit_s", *SEARCH_FLAGS}


@click.command("report")
@scenario_options
@click.option("--from", "earlier", type=FOLDER, metavar="DIR", help="Report on the plan.json in a folder, unsolved.")
@click.option("--workload", metavar="NAME", help="Draw the curves of this one; by default that of the largest mix.")
@click.option("--image", type=click.Choice(["svg", "png"]), default="svg", show_default=True, help="Figures as files.")
@search_options
@question_options
def command(
    scenario: str,
    sets: tuple[str, ...],
    as_json: bool,
    output: str | None,
    earlier: str | None,
    workload: str | None,
    image: str,
    places: tuple[str, ...],
    time_limit_s: float | None,
    **flags: Any,  # noqa: ANN401
) -> int:
    """Write a report: report.html (one file that needs no network), report.md, points.csv and the figures.

    It holds the answer, the exact front with the plan on it, what binds, curves over the draft length, rooflines,
    assumptions, sources, and the command to reproduce it. With knobs in the scenario, or a flag of a search (--trials
    and those after it), the front by search stands beside the exact one. Without --output it goes to the folder of
    --from, else to ./report.
    """
    from planner.cli.common import command_line, interruptible, progress, require_output, tell_warnings
    from planner.cli.earlier import asked_before, asked_now, refuse_another_question
    from planner.cli.searching import how_where_asked, knobs_located
    from planner.review.recipe import review
    from planner.solve import Settings

    folder = output or earlier or DEFAULT_FOLDER
    require_output(folder)
    context = click.get_current_context()
    if earlier is not None:
        refuse_another_question(context, _BESIDE_FROM, "--from")
    how = how_where_asked(context, time_limit_s)
    with progress() as tick:
        asked: Asked = (
            asked_now(scenario, sets, places, flags, searched=True)
            if earlier is None
            else asked_before(earlier, context, searched=True)
        )
        settings = Settings(time_limit_s, asked.digests, asked.command or command_line(), tick)
        with knobs_located(asked.knobs):
            found = interruptible(lambda: review(asked.scenario, asked.commands, settings, workload, asked.plan, how))
        tick("figures")
        files = _files(asked, found, image)
    tell_warnings(found.plan.warnings if found.plan is not None else found.front.warnings)
    _deliver(found, files, folder, as_json)
    status = "optimal" if found.plan is None else found.plan.status
    return EXITS.get(status, 0)


def _files(asked: Asked, found: Review, image: str) -> dict[str, str | bytes]:
    from planner.report.draw import png
    from planner.report.page import drawings_of, html, markdown
    from planner.report.points import points_csv
    from planner.report.sections import report_of

    report = report_of(asked.scenario, found)
    drawings = drawings_of(report)
    pictures = {name: png(one.wide) if image == "png" else one.wide for name, one in drawings.items()}
    return {
        "report.html": html(report, drawings),
        "report.md": markdown(report, f".{image}"),
        "points.csv": points_csv(found),
        **{f"figures/{name}.{image}": picture for name, picture in pictures.items()},
    }


def _deliver(found: Review, files: dict[str, str | bytes], folder: str, as_json: bool) -> None:
    from pathlib import Path

    from planner.cli.common import show
    from planner.report.files import write_all
    from planner.report.front import front_view
    from planner.report.views import View, plan_view

    written = write_all(Path(folder), files)
    if as_json:
        click.echo(found.model_dump_json(indent=2))
        return
    answer = plan_view(found.plan) if found.plan is not None else front_view(found.front)
    told = [f"Written to {folder}: report.html, report.md, points.csv and {len(written) - 3} figures."]
    show(View(f"Report for {found.scenario}", [*answer.sentences, *told]))

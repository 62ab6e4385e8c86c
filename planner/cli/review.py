"""``plan review``: two plans side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planner.cli.options import output_options
from planner.cli.types import QUANTITY

if TYPE_CHECKING:
    from planner.comparison.recipe import Planned
    from planner.schema.comparison import Comparison


@click.command("review")
@click.argument("a", metavar="A.json", type=click.Path(allow_dash=True))
@click.argument("b", metavar="B.json", type=click.Path(allow_dash=True))
@click.option(
    "--time-limit-s", type=QUANTITY, metavar="S", help="Stop planning anew after this many seconds each time."
)
@output_options
def command(a: str, b: str, time_limit_s: float | None, as_json: bool, output: str | None) -> None:
    """Set two plans side by side: what changed, headroom, one server lost, demand grown.

    A.json and B.json are plan documents: what 'plan --json' wrote, or a folder of 'plan --output'. They hold their
    questions, which may be of different scenarios. --output writes review.json, review.md and review.html, one
    page that needs no network.
    """
    from dataclasses import replace

    from planner.cli.common import command_line, interruptible, progress, require_output, show, tell_warnings
    from planner.comparison.recipe import compare
    from planner.report.compared import comparison_view
    from planner.solve import Settings

    require_output(output)
    context = click.get_current_context()
    with progress() as tick:
        read = [_planned(path, context) for path in (a, b)]
        digests = {**read[0][1], **read[1][1]}
        settings = Settings(time_limit_s, digests, command_line(), tick)
        found = interruptible(lambda: compare(read[0][0], read[1][0], settings))
        if output is not None:
            _write(found, output)
    view = comparison_view(found)
    tell_warnings(view.warnings)
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        show(replace(view, warnings=()))


def _planned(path: str, context: click.Context) -> tuple[Planned, dict[str, str]]:
    """Read a plan with the scenario of its command, and the digests of the files of that."""
    from planner.cli.earlier import asked_of
    from planner.comparison.recipe import Planned

    asked = asked_of(path, context)
    assert asked.plan is not None  # what is read from a file has one
    return Planned(path, asked.plan, asked.scenario), asked.digests


def _write(found: Comparison, folder: str) -> None:
    """Write the files; without the extra for pages all but the page, and say so."""
    from pathlib import Path

    from planner.errors import InputError
    from planner.report.compared import comparison_report, without_charts
    from planner.report.files import write_all
    from planner.report.page import drawings_of, html, markdown

    report = comparison_report(found)
    files = {
        "review.json": found.model_dump_json(indent=2) + "\n",
        "review.md": markdown(without_charts(report), ".svg"),
    }
    try:
        files["review.html"] = html(report, drawings_of(report))
    except InputError as error:
        click.echo(f"warning: review.html is not written: {error}", err=True)
    write_all(Path(folder), files)

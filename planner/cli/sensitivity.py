"""``plan sensitivity``: which numbers move the answer most, and where the placement switches."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from planner.cli import EXIT_INTERRUPTED, EXITS
from planner.cli.options import DEFAULT_SCENARIO, question_options, scenario_options
from planner.cli.types import PERCENT, SPAN, TOP, WORKERS

if TYPE_CHECKING:
    from planner.schema.scenario import Scenario
    from planner.schema.sensitivity import Sensitivity
    from planner.sensitivity.recipe import How
    from planner.solve import Settings

# After Ctrl-C, processes have this long to end.
_PATIENCE_S = 3.0
_WORDS = {"objective": "--objective", "counts": "--counts", "power_basis": "--power-basis"}


@click.command("sensitivity")
@scenario_options
@click.option(
    "--percent", type=PERCENT, metavar="P", default=10.0, show_default=True, help="Move every number by this much."
)
@click.option(
    "--span",
    type=SPAN,
    metavar="F",
    default=2.0,
    show_default=True,
    help="Look for switches from a number divided by F to F times it.",
)
@click.option("--top", type=TOP, metavar="N", default=15, show_default=True, help="Rows in the table and the figure.")
@click.option("--workers", type=WORKERS, metavar="N", help="Processes; by default as many as there are cores.")
@question_options
def command(
    scenario: str,
    sets: tuple[str, ...],
    as_json: bool,
    output: str | None,
    percent: float,
    span: float,
    top: int,
    workers: int | None,
    places: tuple[str, ...],
    time_limit_s: float | None,
    **flags: Any,  # noqa: ANN401
) -> int:
    """Move every number that enters the answer, one at a time, and find where the placement switches.

    Each number of the scenario, and of the catalog entries that it reaches, is moved down and up, and the question
    solved again: what becomes of the objective, and which of placement, draft length and proposer switch. Then the
    nearest values are found at which another device type should run a phase. Keys are those that --set takes.
    """
    from planner.cli.bare import load_asked
    from planner.cli.common import require_output, tell_warnings
    from planner.sensitivity.recipe import How, cores
    from planner.solve import Settings

    require_output(output)
    loaded = load_asked(scenario, sets, places, flags)
    base = _base_command(scenario, sets, places, flags, loaded.scenario)
    how = How(percent, span, workers or cores())
    found = _looked(loaded.scenario, how, Settings(time_limit_s, loaded.digests, base))
    if found is None:
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    tell_warnings(found.warnings)
    _deliver(found, top, as_json, output)
    return EXITS.get(found.status, 0)


def _looked(scenario: Scenario, how: How, settings: Settings) -> Sensitivity | None:
    """Look at every number; null after Ctrl-C."""
    from threading import Event

    from planner.cli.common import bar, interruptible
    from planner.sensitivity.recipe import Looking

    stop, ended = Event(), Event()

    def run() -> Sensitivity:
        try:
            return looking.run(told, stop)
        finally:
            ended.set()

    looking = interruptible(lambda: Looking.of(scenario, how, settings))
    try:
        with bar("numbers", len(looking.numbers)) as told:
            return interruptible(run)
    except KeyboardInterrupt:
        stop.set()
        ended.wait(_PATIENCE_S)
        return None


def _base_command(
    scenario: str, sets: tuple[str, ...], places: tuple[str, ...], flags: dict[str, Any], read: Scenario
) -> str:
    """Write the question so that a further ``--set`` reaches every number: limits as fields, since a flag would win."""
    words = ["plan", *(["--scenario", scenario] if scenario != DEFAULT_SCENARIO else [])]
    fields = [*sets]
    if flags["budget_kw"] is not None:
        fields.append(f"limits.power_budget_kw={flags['budget_kw']!r}")
    if flags["budget_usd_per_hour"] is not None:
        fields.append(f"limits.cost_budget_usd_per_hour={flags['budget_usd_per_hour']!r}")
    if flags["max_draft_length"] is not None:
        fields.append(f"max_draft_length={flags['max_draft_length']}")
    service = {
        "min_tps": "interactivity_floor_tps",
        "max_ttft_ms": "ttft_ceiling_ms",
        "demand_rps": "demand_rps",
    }
    for flag, field in service.items():
        if flags[flag] is not None:
            limits = {name: getattr(workload.limits, field) for name, workload in read.workloads.items()}
            fields += [f"workloads.{name}.limits.{field}={value!r}" for name, value in limits.items()]
    words += [word for text in fields for word in ("--set", text)]
    words += [word for place in places for word in ("--place", place)]
    words += [word for name, flag in _WORDS.items() if flags[name] is not None for word in (flag, flags[name])]
    return shlex.join(words)


def _deliver(found: Sensitivity, top: int, as_json: bool, output: str | None) -> None:
    """Print the document as JSON or as text, and write the files."""
    from pathlib import Path

    from planner.cli.common import show
    from planner.report.files import write_all
    from planner.report.sensitivity import sensitivity_view

    json_text = found.model_dump_json(indent=2) + "\n"
    if output is not None:
        write_all(Path(output), {"sensitivity.json": json_text, **_pages(found, top)})
    if as_json:
        click.echo(json_text, nl=False)
    else:
        show(sensitivity_view(found, top))


def _pages(found: Sensitivity, top: int) -> dict[str, str | bytes]:
    """Give the page, its figure and the Markdown; without what draws them, the Markdown alone, and say so."""
    from planner.errors import InputError
    from planner.report.page import drawings_of, html, markdown
    from planner.report.sensitivity import sensitivity_report

    report = sensitivity_report(found, top)
    try:
        drawings = drawings_of(report)
        page = html(report, drawings)
    except InputError as error:
        click.echo(f"warning: the page and its figure are left out: {error}", err=True)
        return {"sensitivity.md": markdown(sensitivity_report(found, top, drawn=False), ".svg")}
    figures: dict[str, str | bytes] = {f"figures/{name}.svg": one.wide for name, one in drawings.items()}
    return {"sensitivity.html": page, "sensitivity.md": markdown(report, ".svg"), **figures}

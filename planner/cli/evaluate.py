"""``plan evaluate``: the metrics of one given design."""

from __future__ import annotations

import click

from planner.cli.options import place_option, scenario_options
from planner.cli.types import DRAFT_LENGTH
from planner.words import LAYOUTS, Layout


@click.command("evaluate")
@scenario_options
@place_option
@click.option("--draft-length", type=DRAFT_LENGTH, required=True, metavar="D", help="Tokens per step.")
@click.option("--workload", metavar="NAME", help="Which workload, where there are several.")
@click.option("--proposer", metavar="NAME", help="Who proposes, where several are on offer.")
@click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    default="disaggregated",
    show_default=True,
    help="Which phases share the replicas that verify; those need no --place.",
)
def command(
    scenario: str,
    sets: tuple[str, ...],
    as_json: bool,
    output: str | None,
    places: tuple[str, ...],
    draft_length: int,
    workload: str | None,
    proposer: str | None,
    layout: Layout,
) -> None:
    """Evaluate one given design: metrics, energy by phase, power. No limit is applied; counts are fractional.

    Every phase that runs needs a --place; degree and batch size may be left out where there is one candidate.
    """
    from planner.cli.common import command_line, deliver, load, place_overrides, require_output, tell_warnings
    from planner.given import Given, evaluate_given
    from planner.report.views import evaluation_view
    from planner.solve import Settings

    require_output(output)
    loaded = load(scenario, sets, place_overrides(places))
    settings = Settings(digests=loaded.digests, command=command_line())
    evaluation = evaluate_given(loaded.scenario, Given(draft_length, workload, proposer, layout), settings)
    tell_warnings(evaluation.warnings)
    deliver(evaluation, evaluation_view(evaluation), "evaluation", as_json, output)

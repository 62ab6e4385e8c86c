"""``plan scenario``: what is asked."""

from __future__ import annotations

import click

from planner.cli.mistakes import Group
from planner.cli.options import output_options, scenario_options
from planner.cli.types import LibraryName


@click.group("scenario", cls=Group)
def command() -> None:
    """List and show what is asked."""


@command.command("list")
@output_options
def list_scenarios(as_json: bool, output: str | None) -> None:
    """List the bundled scenarios."""
    from planner.cli.common import deliver_data
    from planner.read import library
    from planner.read.load import read_scenario
    from planner.report.cards import scenarios_view

    scenarios = {name: read_scenario(name).scenario for name in library.names("scenario")}
    data = {name: {"description": scenario.description} for name, scenario in scenarios.items()}
    deliver_data({"schema_version": 1, "scenarios": data}, scenarios_view(scenarios), "scenarios", as_json, output)


@command.command("show")
@click.argument("name", type=LibraryName("scenario"), required=False)
@scenario_options
def show(name: str | None, scenario: str, sets: tuple[str, ...], as_json: bool, output: str | None) -> None:
    """Show a scenario with everything that it inherits and every default, and --set applied."""
    from planner.cli.common import deliver_data, load
    from planner.report.cards import scenario_view

    shown = load(name or scenario, sets).scenario
    deliver_data(shown.model_dump(mode="json"), scenario_view(shown), "scenario", as_json, output)

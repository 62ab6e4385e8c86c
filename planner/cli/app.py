"""The group ``plan``: bare, it is the solver; its subcommands are loaded when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click
from click.core import ParameterSource

from planner import __version__
from planner.cli.mistakes import Group
from planner.cli.options import question_options, scenario_options
from planner.cli.types import ALTERNATIVES

_SUBCOMMANDS = {
    "evaluate": ("planner.cli.evaluate", "Metrics of one given design, with no limit applied."),
    "pareto": ("planner.cli.pareto", "The front of interactivity against energy per output token."),
    "report": ("planner.cli.report", "A report for a review: one web page, Markdown, numbers, figures."),
    "explain": ("planner.cli.explain", "Why a plan is as it is: limits, runners-up, conflicts."),
    "review": ("planner.cli.review", "Two plans side by side: what changed, headroom, one server lost, demand grown."),
    "sensitivity": (
        "planner.cli.sensitivity",
        "Which numbers move the answer most, and where the placement switches.",
    ),
    "profile": ("planner.cli.profile", "What one phase costs on one option, by the roofline."),
    "validate": ("planner.cli.validate", "Compare your own measurements with the model."),
    "catalog": ("planner.cli.catalog", "List and show what exists: devices, models, proposers."),
    "scenario": ("planner.cli.scenario", "List and show what is asked."),
    "schema": ("planner.cli.schema", "Print the JSON Schema of a document."),
    "completion": ("planner.cli.completion", "Print the shell's completion script."),
}


class LazyGroup(Group):
    """A group that imports a subcommand only when it runs or shows its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the subcommands in the order of use."""
        return list(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a subcommand."""
        if cmd_name not in _SUBCOMMANDS:
            return None
        command: click.Command = import_module(_SUBCOMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _SUBCOMMANDS.items()])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 a plan; 2 bad input; 3 infeasible; 4 stopped without a plan; 130 interrupted.",
)
@scenario_options
@question_options
@click.option("--plain", is_flag=True, help="Find the plan by the whole program, with nothing reduced.")
@click.option(
    "--alternatives",
    type=ALTERNATIVES,
    metavar="K",
    default=0,
    help="Also show the K best plans with other placements.",
)
@click.version_option(__version__, prog_name="phaseplan")
@click.pass_context
def plan(ctx: click.Context, /, **values: Any) -> int | None:  # noqa: ANN401
    """Plan which hardware runs which phase of speculative decoding.

    Which phase on which device type, how many of each, how far ahead to draft and at what batch sizes, so that every
    user gets the service target inside the power budget:

        plan --budget-kw 50 --min-tps 100
    """
    if ctx.invoked_subcommand is None:
        from planner.cli.bare import answer

        return answer(**values)
    early = [
        parameter.opts[0]
        for parameter in ctx.command.params
        if parameter.name and ctx.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if early:
        raise click.UsageError(
            f"options come after the command: write 'plan {ctx.invoked_subcommand} {' … '.join(early)} …'", ctx
        )
    return None

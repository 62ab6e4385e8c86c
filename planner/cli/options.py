"""Options that commands share, and how flags become overrides of scenario fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from planner.cli.types import ACCEPTANCE_RANGE, DRAFT_LENGTH, FOLDER, QUANTITY, SEED, TRIALS, WORKERS, LibraryName
from planner.words import COUNTS, DEFAULT_TRIALS, OBJECTIVES, PHASES, POWER_BASES, SAMPLERS

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_SCENARIO = "llama-70b-chat"


def _stack(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def output_options(command: Command) -> Command:
    """Add --json and --output."""
    return _stack(
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."),
        click.option("--output", type=FOLDER, metavar="DIR", help="Write the answer as files into a folder too."),
    )(command)


def scenario_options(command: Command) -> Command:
    """Add --scenario, --set, --json and --output."""
    return _stack(
        click.option(
            "--scenario",
            type=LibraryName("scenario"),
            metavar="NAME_OR_PATH",
            default=DEFAULT_SCENARIO,
            show_default=True,
            help="A bundled scenario by name, or a YAML file.",
        ),
        click.option(
            "--set",
            "sets",
            multiple=True,
            metavar="KEY=VALUE",
            help="Set any scenario or catalog field by its dotted key, e.g. catalog.devices.gpu.idle_power_w=80.",
        ),
        output_options,
    )(command)


place_option = click.option(
    "--place",
    "places",
    multiple=True,
    metavar="PHASE=DEVICE[:tpN][:bN]",
    help=f"Pin a phase ({', '.join(PHASES)}) to a device type, degree and batch size.",
)


_OBJECTIVE = click.option("--objective", type=click.Choice(OBJECTIVES), help="What is best.")


def _limits(*more: Callable[[Any], Any]) -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option("--budget-kw", type=QUANTITY, metavar="KW", help="Power budget on the scenario's power basis."),
        click.option("--budget-usd-per-hour", type=QUANTITY, metavar="USD", help="Cost budget."),
        click.option("--min-tps", type=QUANTITY, metavar="TPS", help="Least output tokens/s that every user sees."),
        click.option("--max-ttft-ms", type=QUANTITY, metavar="MS", help="Longest time to first token, unloaded."),
        click.option("--demand-rps", type=QUANTITY, metavar="RPS", help="Requests/s in total, split by mix."),
        *more,
        click.option("--counts", type=click.Choice(COUNTS), help="Whole devices, or shares of them."),
        click.option("--power-basis", type=click.Choice(POWER_BASES), help="Which power the budget means."),
        click.option("--max-draft-length", type=DRAFT_LENGTH, metavar="N", help="Longest draft looked at."),
        click.option(
            "--acceptance-range",
            type=ACCEPTANCE_RANGE,
            metavar="CASES",
            help="Hold the limits over cases of acceptance: factors or tasks, e.g. 0.9,1.0,1.1.",
        ),
        place_option,
        click.option("--time-limit-s", type=QUANTITY, metavar="S", help="Stop the solver after this many seconds."),
    )


def search_options(command: Command) -> Command:
    """Add how to search a front."""
    return _stack(
        click.option(
            "--trials", type=TRIALS, metavar="N", default=DEFAULT_TRIALS, show_default=True, help="Trials in the study."
        ),
        click.option(
            "--seed", type=SEED, metavar="N", default=0, show_default=True, help="The same seed, the same answer."
        ),
        click.option(
            "--storage", metavar="URL", help="Keep the study: sqlite:///FILE, journal:FILE, postgresql://…, mysql://…"
        ),
        click.option(
            "--workers",
            type=WORKERS,
            metavar="N",
            default=1,
            show_default=True,
            help="Processes that share the storage.",
        ),
        click.option("--study", metavar="NAME", help="The study's name; by default after the scenario's content."),
        click.option(
            "--warm-start/--no-warm-start",
            default=True,
            show_default=True,
            help="Begin with the exact front's designs.",
        ),
        click.option(
            "--sampler",
            type=click.Choice(SAMPLERS),
            default=SAMPLERS[0],
            show_default=True,
            help="How trials are drawn.",
        ),
    )(command)


def question_options(command: Command) -> Command:
    """Add what bare ``plan`` asks."""
    decorate: Callable[[Command], Command] = _stack(*_limits(_OBJECTIVE))
    return decorate(command)


def limit_options(command: Command) -> Command:
    """Add what a front is asked under: everything but an objective."""
    decorate: Callable[[Command], Command] = _stack(*_limits())
    return decorate(command)

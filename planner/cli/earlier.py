"""What a report is about: a question asked now, or the plan that an earlier run left in a folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from pydantic import ValidationError

from planner.check import check
from planner.cli.bare import load_asked
from planner.cli.searching import require_free_knobs
from planner.errors import InputError
from planner.read.yaml_tree import Mark
from planner.review.curves import Commands
from planner.schema.documents import Plan
from planner.schema.scenario import Scenario

PLAN_FILE = "plan.json"
STDIN = "-"


@dataclass(frozen=True)
class Asked:
    """A question, how a person makes its scenario, and the plan and its command where an earlier run found them."""

    scenario: Scenario
    digests: dict[str, str]
    commands: Commands
    knobs: dict[str, Mark] = field(default_factory=dict)
    plan: Plan | None = None
    command: str | None = None


def asked_now(
    scenario: str, sets: tuple[str, ...], places: tuple[str, ...], flags: dict[str, Any], searched: bool = False
) -> Asked:
    """Read the question of this command line; ``searched``: its knobs are varied, so no flag may fix them."""
    loaded = load_asked(scenario, sets, places, flags)
    if searched:
        require_free_knobs(loaded, sets, places, flags)
    return Asked(loaded.scenario, loaded.digests, Commands(scenario, sets), loaded.knobs)


def asked_before(folder: str, context: click.Context, searched: bool = False) -> Asked:
    """Read the plan in a folder and the question of the command that it names.

    Raises
    ------
    InputError
        If there is no plan in it, or ``asked_in`` refuses it.
    """
    path = Path(folder) / PLAN_FILE
    if not path.exists():
        raise InputError(f"--from {folder}: there is no {PLAN_FILE} in it; write one with: plan --output")
    return asked_in(path, context, searched)


def asked_in(path: Path, context: click.Context, searched: bool = False) -> Asked:
    """Read a plan document and the question of the command that it names.

    Raises
    ------
    InputError
        If the plan cannot be read, names no command, or is not what its scenario says now: then the files have changed.
    """
    plan = _read(path)
    if plan.provenance.command is None:
        raise InputError(f"{path}: it names no command, so that its scenario is not known")
    given = _flags_of(path, plan.provenance.command, context)
    flags = {key: value for key, value in given.items() if key not in ("scenario", "sets", "places")}
    try:
        asked = asked_now(given["scenario"], given["sets"], given["places"], flags, searched)
    except InputError as error:
        raise InputError(*(f"{path}: its question cannot be asked here: {text}" for text in error.problems)) from None
    again = f"run '{plan.provenance.command}' again"
    if asked.digests != plan.provenance.catalogs:
        raise InputError(f"{path}: its scenario has changed since; {again}")
    wrong = check(plan, asked.scenario) if plan.deployments else []
    if wrong:
        raise InputError(f"{path}: it does not hold what its question gives (was it edited?): {wrong[0]}; {again}")
    return replace(asked, plan=plan, command=plan.provenance.command)


def _flags_of(path: Path, command: str, context: click.Context) -> dict[str, Any]:
    """Read the flags of a command that asked for a plan.

    Raises
    ------
    InputError
        If it is no such command.
    """
    try:
        words = shlex.split(command)[1:]
        if {"--help", "-h", "--version"} & set(words):
            raise InputError(f"{path}: its command asks for no plan: {command}")
        asked = context.find_root().command.make_context("plan", words, resilient_parsing=False)
    except ValueError as error:
        raise InputError(f"{path}: its command is not understood: {error}") from None
    except click.ClickException as error:
        raise InputError(f"{path}: its command is not understood: {error.format_message()}") from None
    more = [*asked._protected_args, *asked.args]  # what a group leaves for a subcommand
    if more:
        raise InputError(f"{path}: its command asks for no plan: {command}")
    return asked.params


def _read(path: Path) -> Plan:
    try:
        text = sys.stdin.read() if str(path) == STDIN else path.read_text(encoding="utf-8")
        return Plan.model_validate_json(text)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; write one with: plan --json > {path.name}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: it is no plan document: it is no text") from None
    except ValidationError as error:
        raise InputError(f"{path}: it is no plan document: {_why_no_plan(error)}") from None


def _why_no_plan(error: ValidationError) -> str:
    """Say the first thing that is wrong: no JSON, a field too many, one that is missing or of another kind."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return "it is empty" if not str(first["input"]).strip() else f"it is no JSON: {first['msg']}"
    key = ".".join(map(str, first["loc"]))
    return f"{key + ': ' if key else ''}{first['msg'][0].lower()}{first['msg'][1:]}"


def refuse_another_question(context: click.Context, beside: Collection[str], what: str) -> None:
    """Refuse flags that ask something beside an earlier plan, which has its own question.

    Raises
    ------
    click.UsageError
        Naming the flags; those ``beside`` are allowed.
    """
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in beside
        and parameter.name is not None
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{what} takes the question of the plan in it; leave out {', '.join(given)}", context)


def asked_of(name: str, context: click.Context) -> Asked:
    """Read a plan document by what a person types: a file, a folder with a plan.json in it, or - for standard input."""
    path = Path(name)
    return asked_in(path / PLAN_FILE if name != STDIN and path.is_dir() else path, context)

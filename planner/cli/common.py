"""What the commands share once the model is loaded: reading a scenario, printing a view, writing files."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

from planner.errors import InputError, nearest
from planner.read.load import Loaded, Override, read_scenario
from planner.read.overrides import parse_assignment
from planner.read.yaml_tree import Mark
from planner.report import markdown, terminal
from planner.report.files import write_all
from planner.report.views import View
from planner.words import PHASES


def load(scenario: str, sets: Sequence[str], more: Sequence[Override] = ()) -> Loaded:
    """Read a scenario with ``--set`` first and flags after, so that a flag wins."""
    return read_scenario(scenario, [*(parse_assignment(text) for text in sets), *more])


def place_overrides(places: Sequence[str]) -> list[Override]:
    """Turn ``--place phase=place`` into overrides.

    Raises
    ------
    InputError
        If there is no ``=``, the phase has another name, or stands twice.
    """
    found: list[Override] = []
    for text in places:
        phase, equals, place = text.partition("=")
        mark = Mark(f"--place {text}")
        if not equals or not place:
            raise InputError(f"{mark}: write phase=device, phase=device:tp2 or phase=device:tp2:b8")
        if phase not in PHASES:
            raise InputError(f"{mark}: there is no phase '{phase}' ({nearest(phase, PHASES)})")
        if any(key == f"places.{phase}" for key, _, _ in found):
            raise InputError(f"{mark}: the phase '{phase}' is placed twice")
        found.append((f"places.{phase}", place, mark))
    return found


def command_line() -> str:
    """Give the command that was typed, to reproduce the answer."""
    return shlex.join(["plan", *sys.argv[1:]])


def deliver(document: BaseModel, view: View, name: str, as_json: bool, output: str | None) -> None:
    """Print a document as JSON or as text, and write both into a folder where one is asked for."""
    json_text = document.model_dump_json(indent=2) + "\n"
    if output is not None:
        write_all(Path(output), {f"{name}.json": json_text, f"{name}.md": markdown.render(view)})
    if as_json:
        click.echo(json_text, nl=False)
    else:
        show(view)


def show(view: View) -> None:
    """Print a view on standard output."""
    from rich.console import Console

    Console(highlight=False, soft_wrap=False).print(terminal.render(view))


def tell_warnings(warnings: Sequence[str]) -> None:
    """Print warnings on standard error."""
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def deliver_data(data: Mapping[str, Any], view: View, name: str, as_json: bool, output: str | None) -> None:
    """Print plain data as JSON or as text, and write both into a folder where one is asked for."""
    import json

    json_text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    if output is not None:
        write_all(Path(output), {f"{name}.json": json_text, f"{name}.md": markdown.render(view)})
    if as_json:
        click.echo(json_text, nl=False)
    else:
        show(view)


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Say on standard error what is being done, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("reading") as status:
        yield lambda text: status.update(text)

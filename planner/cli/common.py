"""What the commands share once the model is loaded: reading a scenario, printing a view, writing files."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import click
from pydantic import BaseModel

from planner.errors import InputError, nearest, without_password
from planner.read.load import Loaded, read_scenario
from planner.read.overrides import Override, parse_assignments
from planner.read.yaml_tree import Mark
from planner.report import markdown, terminal
from planner.report.files import require_writable, write_all
from planner.report.views import View
from planner.words import PHASES

Result = TypeVar("Result")

_HEARD_S = 0.2


def load(scenario: str, sets: Sequence[str], more: Sequence[Override] = ()) -> Loaded:
    """Read a scenario with ``--set`` first and flags after, so that a flag wins."""
    return read_scenario(scenario, [*parse_assignments(sets), *more])


def place_overrides(places: Sequence[str]) -> list[Override]:
    """Turn ``--place phase=place`` into overrides.

    Raises
    ------
    InputError
        For every text without ``=``, and every phase that has another name or stands twice.
    """
    found: dict[str, Override] = {}
    problems: list[str] = []
    for text in places:
        phase, _, place = text.partition("=")
        mark = Mark(f"--place {text}")
        if not place:
            problems.append(f"{mark}: write phase=device, phase=device:tp2 or phase=device:tp2:b8")
        elif phase not in PHASES:
            problems.append(f"{mark}: there is no phase '{phase}' ({nearest(phase, PHASES)})")
        elif phase in found:
            problems.append(f"{mark}: the phase '{phase}' is placed twice")
        else:
            found[phase] = (f"places.{phase}", place, mark)
    if problems:
        raise InputError(*problems)
    return list(found.values())


def command_line() -> str:
    """Give the command that was run, to reproduce the answer; the password of a storage is left out."""
    words = click.get_current_context().find_root().obj
    return shlex.join(["plan", *map(without_password, words)])


def require_output(output: str | None) -> None:
    """Refuse a folder for files that cannot be written, before solving."""
    if output is not None:
        require_writable(Path(output))


def deliver(document: BaseModel, view: View, name: str, as_json: bool, output: str | None) -> None:
    """Print a document as JSON or as text, and write both into a folder where one is asked for."""
    json_text = document.model_dump_json(indent=2) + "\n"
    if output is not None:
        write_all(Path(output), {f"{name}.json": json_text, f"{name}.md": markdown.render(view)})
    if as_json:
        click.echo(json_text, nl=False)
    else:
        show(replace(view, warnings=()))  # warnings go to standard error


def show(view: View) -> None:
    """Print a view on standard output; lines end where their text does unless a terminal draws them."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    if console.is_terminal:
        console.print(terminal.render(view))
    else:
        click.echo(terminal.text_of(view, console.width), nl=False)


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


def interruptible(work: Callable[[], Result]) -> Result:
    """Do work in a thread of its own, so that Ctrl-C is heard at once and not when the solver comes back."""
    done: Future[Result] = Future()

    def do() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=do, daemon=True).start()
    while not done.done():  # a signal that another thread receives is heard when this one wakes up
        wait([done], timeout=_HEARD_S)
    return done.result()


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Draw on standard error how much is done, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as drawn:
        task = drawn.add_task(what, total=total)
        yield lambda done: drawn.update(task, completed=done)


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Say on standard error what is being done, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("reading") as status:
        yield lambda text: status.update(text)

"""How a search is asked for on the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from planner.read.load import Loaded
    from planner.read.yaml_tree import Mark
    from planner.search.study import How

SEARCH_FLAGS = ("trials", "seed", "storage", "workers", "study", "warm_start", "sampler")


def _given(context: click.Context) -> list[str]:
    return [name for name in SEARCH_FLAGS if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]


def how_where_asked(context: click.Context, time_limit_s: float | None) -> How | None:
    """Read the flags of a search where there are any; else null."""
    return how_of(context, wanted=True, time_limit_s=time_limit_s) if _given(context) else None


def how_of(context: click.Context, wanted: bool, time_limit_s: float | None) -> How | None:
    """Read the flags of a search; null where none is wanted.

    Raises
    ------
    click.UsageError
        If a flag of a search stands beside another method, or workers have no storage to share.
    """
    given = _given(context)
    if not wanted:
        if given:
            flags = ", ".join(parameter.opts[0] for parameter in context.command.params if parameter.name in given)
            raise click.UsageError(f"only a search takes {flags}: leave out --method exact", context)
        return None
    values = {name: context.params[name] for name in SEARCH_FLAGS}
    if values["storage"] is None and (values["workers"] > 1 or values["study"] is not None):
        raise click.UsageError("--workers and --study need a --storage to share", context)
    from planner.search.study import How

    return How(**values, time_limit_s=time_limit_s)


@contextmanager
def knobs_located(marks: Mapping[str, Mark]) -> Iterator[None]:
    """Say of what is wrong with a knob in which file and line it stands."""
    from planner.errors import InputError

    try:
        yield
    except InputError as error:
        raise InputError(*(f"{_mark(marks, text)}{text}" for text in error.problems)) from error


def _mark(marks: Mapping[str, Mark], problem: str) -> str:
    mine = [mark for name, mark in marks.items() if problem.startswith(f"knobs.{name}:")]
    return f"{mine[0]}: " if mine else ""


def require_free_knobs(loaded: Loaded, sets: Sequence[str], places: Sequence[str], flags: Mapping[str, Any]) -> None:
    """Refuse a flag that fixes what a knob varies: the search would not keep to it.

    Raises
    ------
    InputError
        Naming each flag and its knob.
    """
    from planner.cli.bare import keys_asked
    from planner.errors import InputError

    varied = {key: name for name, knob in loaded.scenario.knobs.items() for key in knob.sets or (name,)}
    problems = [
        f"{flag}: the knob '{name}' varies {key}; leave out one of them"
        for asked, flag in keys_asked(loaded.scenario, sets, places, flags)
        for key, name in varied.items()
        if key == asked or key.startswith(f"{asked}.")
    ]
    if problems:
        raise InputError(*dict.fromkeys(problems))

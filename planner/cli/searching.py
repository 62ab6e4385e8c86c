"""How a search is asked for on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

if TYPE_CHECKING:
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

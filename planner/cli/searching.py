"""How a search is asked for on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from planner.search.study import How

_FLAGS = ("trials", "seed", "storage", "workers", "study", "warm_start", "sampler")


def how_of(context: click.Context, wanted: bool, time_limit_s: float | None) -> How | None:
    """Read the flags of a search; null where none is wanted.

    Raises
    ------
    click.UsageError
        If a flag of a search stands beside another method, or workers have no storage to share.
    """
    given = [name for name in _FLAGS if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if not wanted:
        if given:
            flags = ", ".join(parameter.opts[0] for parameter in context.command.params if parameter.name in given)
            raise click.UsageError(f"only a search takes {flags}: leave out --method exact", context)
        return None
    values = {name: context.params[name] for name in _FLAGS}
    if values["storage"] is None and (values["workers"] > 1 or values["study"] is not None):
        raise click.UsageError("--workers and --study need a --storage to share", context)
    from planner.search.study import How

    return How(**values, time_limit_s=time_limit_s)

"""Types of the command line's values; they refuse what the documents would refuse, and know the flag."""

from __future__ import annotations

import math
from typing import Any

import click
from click.shell_completion import CompletionItem

from planner.read import library

_LARGEST = 1e18


class Quantity(click.ParamType[float]):
    """A finite number above 0; click's own FloatRange lets nan and inf through."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        """Read the number."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"'{value}' is not a number", param, ctx)
        if not math.isfinite(number) or not 0 < number <= _LARGEST:
            self.fail(f"'{value}' is not a finite number above 0", param, ctx)
        return number


class LibraryName(click.ParamType[str]):
    """A bundled catalog or scenario by name, or a path."""

    def __init__(self, kind: library.Kind) -> None:
        self.kind = kind
        self.name = "name_or_path"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the bundled names, and files where a path is begun."""
        if library.is_path(incomplete):
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(name) for name in library.names(self.kind) if name.startswith(incomplete)]


QUANTITY = Quantity()

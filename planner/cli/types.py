"""Types of the command line's values; they refuse what the documents would refuse, and know the flag."""

from __future__ import annotations

import re
from typing import Any

import click
from click.shell_completion import CompletionItem

from planner.read import library

_SMALLEST, _LARGEST = 1e-9, 1e18
_NUMBER = re.compile(r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$", re.ASCII)
_TASK = re.compile(r"^[A-Za-z][A-Za-z0-9._+-]{0,63}$", re.ASCII)
_LEAST_FACTOR, _LARGEST_FACTOR = 1e-3, 1e3
_DIGITS = re.compile(r"^\s*[-+]?\d{1,18}\s*$", re.ASCII)


# click before 8.4 has no type parameter.
class Quantity(click.ParamType):  # type: ignore[type-arg]
    """A finite number within bounds, written as YAML has it; click's own FloatRange lets nan, inf and 1_0 through."""

    name = "number"

    def __init__(self, least: float = _SMALLEST, most: float = _LARGEST) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        """Read the number."""
        if not _NUMBER.match(str(value)):
            self.fail(f"'{value}' is not a number", param, ctx)
        number = float(value)
        if not self.least <= number <= self.most:
            self.fail(f"'{value}' is not between {self.least:g} and {self.most:g}", param, ctx)
        return number


class Whole(click.ParamType):  # type: ignore[type-arg]
    """A whole number within bounds."""

    name = "whole number"

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401
        """Read the number."""
        if not _DIGITS.match(str(value)) or not self.least <= int(value) <= self.most:
            self.fail(f"'{value}' is not a whole number from {self.least} to {self.most}", param, ctx)
        return int(value)


def _is_task(word: str) -> bool:
    return bool(_TASK.match(word)) and word.lower() not in ("nan", "inf", "infinity")


class AcceptanceRange(click.ParamType):  # type: ignore[type-arg]
    """Cases of acceptance: factors above 0 and names of tasks, with commas between."""

    name = "cases"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float | str]:  # noqa: ANN401
        """Read the cases."""
        words = [word.strip() for word in str(value).split(",")]
        wrong = [word for word in words if not _NUMBER.match(word) and not _is_task(word)]
        if wrong:
            self.fail(f"'{wrong[0]}' is neither a number nor the name of a task (write 0.9,1.0,1.1)", param, ctx)
        far = [word for word in words if _NUMBER.match(word) and not _LEAST_FACTOR <= float(word) <= _LARGEST_FACTOR]
        if far:
            self.fail(f"'{far[0]}' is not between {_LEAST_FACTOR:g} and {_LARGEST_FACTOR:g}", param, ctx)
        return [float(word) if _NUMBER.match(word) else word for word in words]


class Folder(click.ParamType):  # type: ignore[type-arg]
    """The name of a folder, there or not."""

    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        """Refuse an empty name: it would mean the current folder."""
        if not str(value).strip():
            self.fail("the name of the folder is empty (write . for the current one)", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer folders."""
        return [CompletionItem(incomplete, type="dir")]


class LibraryName(click.ParamType):  # type: ignore[type-arg]
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
PERCENT = Quantity(0.01, 90)
SPAN = Quantity(1.01, 100)
TOP = Whole(1, 10_000)
DRAFT_LENGTH = Whole(0, 4096)
ALTERNATIVES = Whole(0, 1000)
TRIALS = Whole(1, 1_000_000)
SEED = Whole(0, 2**31 - 1)
WORKERS = Whole(1, 256)
FOLDER = Folder()
ACCEPTANCE_RANGE = AcceptanceRange()

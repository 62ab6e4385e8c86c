"""Draw a view on a terminal; it reads well at 80 columns."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from planner.report.tables import Table
from planner.report.views import View

_RIGHT_MARGIN = 1
_DOT = re.compile(r"(?<=\.)")


def render(view: View) -> Group:
    """Give a renderable of a whole view."""
    blocks: list[list[RenderableType]] = [[Text(view.title, style="bold")], [Text(text) for text in view.sentences]]
    blocks += [[_bullet(text) for text in view.items]] if view.items else []
    blocks += [[Text(f"Warning: {warning}", style="yellow")] for warning in view.warnings]
    for table in view.tables:
        blocks += [[_table(table)], [Text(table.note, style="dim")] if table.note else []]
    if view.assumptions:
        blocks.append([Text("Assumptions in force", style="bold"), *map(_bullet, view.assumptions)])
    if view.foot:
        blocks.append([Text(view.foot, style="dim")])
    return Group(*_spaced(block for block in blocks if block))


def _spaced(blocks: Iterable[list[RenderableType]]) -> Iterator[RenderableType]:
    """Put an empty line between blocks."""
    for number, block in enumerate(blocks):
        yield from [Text(), *block] if number else block


def _bullet(text: str) -> RenderableType:
    grid = RichTable.grid(padding=(0, 1))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    grid.add_row("·", Text(text))
    return Padding(grid, (0, _RIGHT_MARGIN, 0, 0))


def _table(table: Table) -> RichTable:
    drawn = RichTable(
        title=table.title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1),
    )
    for index, header in enumerate(table.headers):
        drawn.add_column(header, justify="left" if table.is_left(index) else "right", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Dotted(cell) if index < table.keys else Text(cell) for index, cell in enumerate(row)))
    return drawn


class Dotted:
    """A dotted key that is broken after dots where it is too long for its column."""

    def __init__(self, key: str) -> None:
        self.parts = _DOT.split(key)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Give the least and the largest width."""
        return Measurement(max(map(len, self.parts)) + 1, sum(map(len, self.parts)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Fill lines with as many parts as they hold; those after the first are set in."""
        lines = [""]
        for part in self.parts:
            if len(lines[-1]) + len(part) > options.max_width and lines[-1].strip():
                lines.append(" ")
            lines[-1] += part
        yield Text("\n".join(lines), overflow="fold")


def text_of(view: View, width: int) -> str:
    """Draw a view as plain text of a given width."""
    console = Console(width=width, record=True, file=io.StringIO(), color_system=None, force_terminal=False)
    console.print(render(view))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines()) + "\n"

"""Draw a view on a terminal; it reads well at 80 columns."""

from __future__ import annotations

import io

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from planner.report.tables import Table
from planner.report.views import View

_RIGHT_MARGIN = 1


def render(view: View) -> Group:
    """Give a renderable of a whole view."""
    parts: list[RenderableType] = [Text(view.title, style="bold"), Text()]
    parts += [Text(sentence) for sentence in view.sentences]
    for warning in view.warnings:
        parts += [Text(), Text(f"Warning: {warning}", style="yellow")]
    for table in view.tables:
        parts += [Text(), _table(table)]
        if table.note:
            parts.append(Text(table.note, style="dim"))
    if view.assumptions:
        parts += [Text(), Text("Assumptions in force", style="bold")]
        parts += [_bullet(assumption) for assumption in view.assumptions]
    if view.foot:
        parts += [Text(), Text(view.foot, style="dim")]
    return Group(*parts)


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
        padding=(0, 1),
    )
    for index, header in enumerate(table.headers):
        drawn.add_column(header, justify="left" if table.is_left(index) else "right", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn


def text_of(view: View, width: int) -> str:
    """Draw a view as plain text of a given width."""
    console = Console(width=width, record=True, file=io.StringIO(), color_system=None, force_terminal=False)
    console.print(render(view))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines()) + "\n"

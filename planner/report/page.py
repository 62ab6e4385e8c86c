"""A report as one web page that needs nothing else, and as Markdown with figures beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.errors import InputError
from planner.report import vega as palette
from planner.report.draw import EXTRA, svg
from planner.report.markdown import escape
from planner.report.markdown import table as markdown_table
from planner.report.sections import Report, Section

# The same drawing in the dark: each colour of the figures, and what it becomes.
DARK = {
    palette.PAPER: "#15191e",
    palette.INK: "#e6edf3",
    palette.MUTED: "#9aa7b4",
    palette.GRID: "#2d353e",
    palette.BAND: "#515c68",
    palette.BLUE: "#3b8ee0",
    palette.SKY: "#9bd3f5",
    palette.RED: "#f2813a",
    palette.GREEN: "#2fc596",
    palette.PINK: "#e29cc4",
    palette.GREY: "#8b98a5",
    "black": "#e6edf3",
    "white": "#15191e",
}


@dataclass(frozen=True)
class Drawing:
    """A figure for a page and for a telephone."""

    wide: str
    narrow: str


def drawings_of(report: Report) -> dict[str, Drawing]:
    """Draw every figure of a report, by name.

    Raises
    ------
    InputError
        If the extra ``report`` is not installed.
    """
    return {chart.name: Drawing(svg(chart), svg(chart, narrow=True)) for chart in report.charts}


def html(report: Report, drawings: Mapping[str, Drawing]) -> str:
    """Write the page. Everything but the drawings is escaped; these escape their texts themselves.

    Raises
    ------
    InputError
        If the extra ``report`` is not installed.
    """
    try:
        import jinja2
    except ImportError as error:
        raise InputError(EXTRA) from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("planner.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(report=report, drawings=drawings, dark=DARK)


def markdown(report: Report, suffix: str) -> str:
    """Write the report as Markdown; its figures are files ``figures/NAME`` with the suffix."""
    parts = [f"# {escape(report.title)}"]
    parts += [escape(report.lead)] if report.lead else []
    parts += [f"> **Warning:** {escape(warning)}" for warning in report.warnings]
    for section in report.sections:
        parts += _markdown_section(section, suffix)
    return "\n\n".join([*parts, f"*{escape(report.foot)}*"]) + "\n"


def _markdown_section(section: Section, suffix: str) -> list[str]:
    parts = [f"## {escape(section.title)}", *map(escape, section.sentences)]
    for chart in section.charts:
        parts += [f"### {escape(chart.title)}", f"![{escape(chart.title)}](figures/{chart.name}{suffix})"]
        parts.append(escape(chart.caption))
    for table in section.tables:
        parts += [*([f"### {escape(table.title)}"] if table.title else []), markdown_table(table)]
        parts += [escape(table.note)] if table.note else []
    if section.items:
        parts.append("\n".join(f"- {escape(text)}" for text in section.items))
    return [*parts, *("    " + " ".join(line.split()) for line in section.code)]

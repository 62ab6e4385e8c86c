"""Write a view as Markdown, to paste into a review."""

from __future__ import annotations

import re

from planner.report.tables import Table
from planner.report.views import View

_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#~&"})
_LIST_NUMBER = re.compile(r"^(\d+)([.)])(?=\s|$)")
_LIST_OR_RULE = re.compile(r"^([-+=])(?=[-=\s]|$)")


def escape(text: str) -> str:
    r"""Escape what Markdown would take for markup, and write it on one line.

    >>> print(escape("a_b|c"), escape("- 1"), escape("-1"))
    a\_b\|c \- 1 -1
    """
    line = " ".join(text.split()).translate(_SPECIAL)
    return _LIST_OR_RULE.sub(r"\\\1", _LIST_NUMBER.sub(r"\1\\\2", line))


def render(view: View) -> str:
    """Give the whole view as Markdown."""
    parts = [f"# {escape(view.title)}", *(escape(sentence) for sentence in view.sentences)]
    parts += ["\n".join(f"- {escape(text)}" for text in view.items)] if view.items else []
    parts += [f"> **Warning:** {escape(warning)}" for warning in view.warnings]
    for shown in view.tables:
        parts += [*([f"## {escape(shown.title)}"] if shown.title else []), table(shown)]
        if shown.note:
            parts.append(escape(shown.note))
    if view.assumptions:
        parts += ["## Assumptions in force", "\n".join(f"- {escape(text)}" for text in view.assumptions)]
    if view.foot:
        parts.append(f"*{escape(view.foot)}*")
    return "\n\n".join(parts) + "\n"


def table(shown: Table) -> str:
    """Give a table as Markdown."""
    rule = [":---" if shown.is_left(index) else "---:" for index in range(len(shown.headers))]
    rows = [shown.headers, tuple(rule)]
    lines = ["| " + " | ".join(escape(cell) if row is not rows[1] else cell for cell in row) + " |" for row in rows]
    lines += ["| " + " | ".join(escape(cell) for cell in row) + " |" for row in shown.rows]
    return "\n".join(lines)

"""What the figures of a report share: colours, and the parts of a Vega-Lite specification.

Every mark that stands for a number carries its description: the text of the tooltip, one line per fact, which a screen
reader says too. Colours are those of Okabe and Ito, which colour-blind people tell apart; line patterns and shapes
repeat them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Spec = dict[str, Any]

INK, MUTED, GRID, BAND, PAPER = "#1f2328", "#59636e", "#d9dee3", "#b6bec7", "#ffffff"
BLUE, RED, GREEN, PINK, AMBER, SKY, GREY = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#6e7781",
)
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
LINE_COLOURS = (BLUE, RED, GREEN, PINK, AMBER, SKY, GREY)
LINE_PATTERNS = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3], [10, 4])


@dataclass(frozen=True)
class Chart:
    """A figure: its file's name, title, what it shows in a sentence, and its drawing at a width in pixels.

    ``large``: it takes the whole width of a page.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[int], Spec]
    large: bool = False


def spec_of(width: int, height: int, layers: list[Spec], legend_columns: int = 1) -> Spec:
    """Wrap layers into a whole specification.

    Where a browser draws with a wider font than was measured with, words still have room: legends stand in few columns.
    """
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width,
        "height": height,
        "background": PAPER,
        "padding": 4,
        "layer": layers,
        "config": {
            "font": FONT,
            "axis": {
                "labelColor": MUTED,
                "titleColor": INK,
                "gridColor": GRID,
                "domainColor": MUTED,
                "tickColor": MUTED,
                "labelFontSize": 11,
                "titleFontSize": 12,
                "titleFontWeight": "normal",
                "titlePadding": 8,
            },
            "legend": {
                "labelColor": INK,
                "titleColor": INK,
                "labelFontSize": 11,
                "labelLimit": 0,
                "orient": "top",
                "columns": legend_columns,
                "columnPadding": 32,
                "symbolStrokeWidth": 2,
                "title": None,
            },
            "view": {"stroke": None},
        },
    }


def layer(mark: str, values: Iterable[Spec], encoding: Spec, **style: Any) -> Spec:  # noqa: ANN401
    """Write one layer; lines and rules are not described, their points are."""
    described = "description" in encoding
    return {"data": {"values": list(values)}, "mark": {"type": mark, "aria": described, **style}, "encoding": encoding}


def quantity(field: str, title: str, **more: Any) -> Spec:  # noqa: ANN401
    """Encode a number."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def length_axis(width: int) -> Spec:
    """Encode the draft length."""
    axis = {"tickMinStep": 1, "format": "d", "tickCount": 6 if width < 400 else 10, "grid": False}
    return quantity("D", "draft length D [draft tokens per step]", axis=axis)


def hover(*lines: str) -> str:
    """Join the lines of a tooltip."""
    return "\n".join(lines)

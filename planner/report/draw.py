"""Draw figures without a browser: Vega-Lite to SVG, and SVG to PNG."""

from __future__ import annotations

from planner.errors import InputError
from planner.report.vega import Chart

WIDE, HALF, NARROW = 840, 430, 250
EXTRA = "a report needs vl-convert-python and jinja2: pip install 'phaseplan[report]'"


def svg(chart: Chart, narrow: bool = False) -> str:
    """Draw a chart for a page or, narrow, for a telephone.

    Raises
    ------
    InputError
        If the extra ``report`` is not installed.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise InputError(EXTRA) from error
    drawing: str = vl_convert.vegalite_to_svg(chart.draw(NARROW if narrow else WIDE if chart.large else HALF))
    return drawing


def png(drawing: str) -> bytes:
    """Turn a drawing into a picture of twice its size."""
    import vl_convert

    picture: bytes = vl_convert.svg_to_png(drawing, scale=2)
    return picture

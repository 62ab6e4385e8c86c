"""A figure of predicted against measured values."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.report.numbers import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from planner.schema.validation import Validation

Points = Mapping[str, Sequence[tuple[str, float, float]]]

PANELS_PER_ROW = 3
TITLES = {
    "tpot_ms": "TPOT [ms]",
    "ttft_ms": "TTFT [ms]",
    "out_tok_s": "output tokens/s",
    "power_w": "board power [W]",
    "j_per_out_tok": "J per output token",
}


def figure(points: Points, validation: Validation) -> Figure:
    """Draw predicted against measured, one panel per metric, on logarithmic axes.

    Parameters
    ----------
    points
        (device, measured, predicted) by metric.
    validation
        The errors that the panels' titles quote.

    Raises
    ------
    InputError
        If matplotlib is not installed, or there is nothing to draw.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("a figure needs matplotlib: pip install 'phaseplan[figures]'") from error
    if not points:
        raise InputError("no row has both a measured and a predicted value: there is nothing to draw")
    columns = min(len(points), PANELS_PER_ROW)
    lines = -(-len(points) // columns)
    drawn_figure = Figure(figsize=(4.2 * columns, 4.2 * lines), layout="constrained")
    for place, (metric, some) in enumerate(points.items(), start=1):
        axes = drawn_figure.add_subplot(lines, columns, place)
        _draw(axes, some)
        errors = validation.metrics[metric].all
        title = f"{TITLES[metric]}: median error {percent(errors.median_abs_error)} of {errors.count} rows"
        axes.set_title(title, fontsize=9)
    return drawn_figure


def _draw(axes: Axes, points: Sequence[tuple[str, float, float]]) -> None:
    for device in sorted({name for name, _, _ in points}):
        mine = [(measured, predicted) for name, measured, predicted in points if name == device]
        axes.loglog(*zip(*mine, strict=True), ".", markersize=4, alpha=0.6, label=device)
    values = [value for _, *pair in points for value in pair]
    axes.plot([min(values), max(values)], [min(values), max(values)], "k-", linewidth=0.8)
    axes.tick_params(which="minor", labelbottom=False, labelleft=False)
    axes.set_xlabel("measured")
    axes.set_ylabel("predicted")
    axes.legend(fontsize=6)


def drawn(points: Points, validation: Validation, suffix: str) -> bytes:
    """Draw the figure as a file's content; ``suffix`` is .png or .svg.

    Raises
    ------
    InputError
        If the suffix is another, matplotlib is not installed, or there is nothing to draw.
    """
    if suffix not in (".png", ".svg"):
        raise InputError(f"a figure's name must end in .png or .svg, not '{suffix}'")
    content = io.BytesIO()
    figure(points, validation).savefig(content, format=suffix[1:], dpi=150)
    return content.getvalue()

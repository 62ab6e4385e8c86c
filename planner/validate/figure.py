"""A figure of predicted against measured values."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.validate.measurements import METRICS, Measurement
from planner.validate.summary import Validation, measured_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS_PER_ROW = 3
TITLES = {
    "tpot_ms": "TPOT [ms]",
    "ttft_ms": "TTFT [ms]",
    "out_tok_s": "output tokens/s",
    "power_w": "board power [W]",
    "j_per_out_tok": "J per output token",
}


def _draw(axes: Axes, metric: str, rows: Sequence[Measurement], validation: Validation) -> None:
    devices = sorted({row.device for row in rows})
    lowest, highest = float("inf"), 0.0
    for device in devices:
        points = [
            (measured, prediction.predicted[metric])
            for row, prediction in zip(rows, validation.rows, strict=True)
            if row.device == device and metric in prediction.predicted
            and (measured := measured_value(row, metric)) is not None
        ]  # fmt: skip
        if points:
            axes.loglog(*zip(*points, strict=True), ".", markersize=4, alpha=0.6, label=device)
            lowest = min(lowest, *(min(point) for point in points))
            highest = max(highest, *(max(point) for point in points))
    axes.plot([lowest, highest], [lowest, highest], "k-", linewidth=0.8)
    summary = validation.metrics[metric].all
    axes.set_title(f"{TITLES[metric]}: median error {summary.median_abs_error:.0%} of {summary.count} rows", fontsize=9)
    axes.tick_params(which="minor", labelbottom=False, labelleft=False)
    axes.set_xlabel("measured")
    axes.set_ylabel("predicted")
    axes.legend(fontsize=6)


def figure(rows: Sequence[Measurement], validation: Validation) -> Figure:
    """Draw predicted against measured, one panel per metric, on logarithmic axes.

    Raises
    ------
    InputError
        If matplotlib is not installed, or there is nothing to draw.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("a figure needs matplotlib: pip install 'phaseplan[figures]'") from error
    metrics = [metric for metric in METRICS if metric in validation.metrics]
    if not metrics:
        raise InputError("no row has both a measured and a predicted value: there is nothing to draw")
    columns = min(len(metrics), PANELS_PER_ROW)
    lines = -(-len(metrics) // columns)
    drawn = Figure(figsize=(4.2 * columns, 4.2 * lines), layout="constrained")
    for place, metric in enumerate(metrics, start=1):
        _draw(drawn.add_subplot(lines, columns, place), metric, rows, validation)
    return drawn


def drawn(rows: Sequence[Measurement], validation: Validation, suffix: str) -> bytes:
    """Draw the figure as a file's content; ``suffix`` is .png or .svg.

    Raises
    ------
    InputError
        If the suffix is another, matplotlib is not installed, or there is nothing to draw.
    """
    if suffix not in (".png", ".svg"):
        raise InputError(f"a figure's name must end in .png or .svg, not '{suffix}'")
    content = io.BytesIO()
    figure(rows, validation).savefig(content, format=suffix[1:], dpi=150)
    return content.getvalue()

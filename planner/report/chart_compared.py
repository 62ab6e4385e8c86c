"""Two plans side by side as figures: power by basis, what is left of every limit, what a lost server leaves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from planner.report.compared_words import headroom_name, per_cent
from planner.report.numbers import in_unit
from planner.report.vega import BLUE, INK, RED, Chart, Spec, hover, layer, quantity, spec_of
from planner.schema.comparison import Comparison, Side
from planner.words import POWER_BASES

_SIDES = ("A", "B")
_COLOURS = (BLUE, RED)
_BAR_PX = 17
# Beyond this a bar ends: what has several times its bound left is not what a review looks at.
_MOST_LEFT = 1.0


@dataclass(frozen=True)
class Bar:
    """One bar: what it is about, whose it is, how long it is, and what stands beside it."""

    label: str
    side: str
    value: float
    text: str


def comparison_charts(comparison: Comparison) -> list[Chart]:
    """Give the figures, those left out that have nothing to show."""
    found = [power_chart(comparison), headroom_chart(comparison), loss_chart(comparison)]
    return [chart for chart in found if chart is not None]


def power_chart(comparison: Comparison) -> Chart | None:
    """Power of both plans on every basis that is known."""
    bars = [
        Bar(basis, name, watts / 1e3, in_unit(watts, "W"))
        for basis in POWER_BASES
        for name, side in _sides(comparison)
        if (watts := getattr(side.plan.totals.power_w, basis)) is not None
    ]
    caption = "Forward: the work alone. Average: with idle power. Provisioned: what a breaker sees. PUE included."
    return _chart("power", "Power by basis", caption, "power [kW]", bars)


def headroom_chart(comparison: Comparison) -> Chart | None:
    """Show the share of every limit that is left in both plans."""
    several = len(comparison.service) > 1
    bars = [
        Bar(headroom_name(row, several), name, 100 * min(mine.left, _MOST_LEFT), per_cent(mine.left))
        for row in comparison.headroom
        for name, mine in (("A", row.a), ("B", row.b))
        if mine is not None and mine.left is not None
    ]
    caption = "Slack per bound, on the good side of floors and ceilings alike; a bar ends at 100 %."
    return _chart("headroom", "What is left of every limit", caption, "left [% of the bound]", bars, large=True)


def loss_chart(comparison: Comparison) -> Chart | None:
    """Show the rate that is left after the worst loss of one server, by device type."""
    bars = [
        Bar(lost.device, name, 100 * lost.rate_share, per_cent(lost.rate_share))
        for name, side in _sides(comparison)
        for lost in side.servers_lost
        if lost.rate_share is not None
    ]
    caption = "Rate left of the designs whose pool loses one server of the type, where that hurts most."
    return _chart("server-lost", "Rate left without one server", caption, "rate left [%]", bars, least=100.0)


def _sides(comparison: Comparison) -> Iterable[tuple[str, Side]]:
    return zip(_SIDES, (comparison.a, comparison.b), strict=True)


def _chart(
    name: str, title: str, caption: str, axis: str, bars: list[Bar], large: bool = False, least: float = 0.0
) -> Chart | None:
    if not bars:
        return None
    labels = list(dict.fromkeys(bar.label for bar in bars))
    rows = [
        {
            "label": bar.label,
            "plan": bar.side,
            "value": bar.value,
            "text": bar.text,
            "hover": hover(bar.label, f"{bar.side}: {bar.text}"),
        }
        for bar in bars
    ]
    longest = max(least, *(bar.value for bar in bars)) or 1.0

    def draw(width: int) -> Spec:
        y = {
            "field": "label",
            "type": "nominal",
            "title": None,
            "sort": labels,
            "axis": {"labelLimit": 150 if width < 400 else 260, "ticks": False, "domain": False},
            "scale": {"paddingInner": 0.3},
        }
        offset = {"field": "plan", "type": "nominal", "sort": list(_SIDES)}
        room = 1.35 if width < 400 else 1.18
        ticks = {"tickCount": 4 if width < 400 else 6}
        x = quantity("value", axis, axis=ticks, scale={"zero": True, "domainMax": longest * room})
        scale = {"domain": list(_SIDES), "range": list(_COLOURS)}
        color = {"field": "plan", "type": "nominal", "scale": scale, "legend": {"symbolType": "square"}}
        placed = {"x": x, "y": y, "yOffset": offset}
        drawn = layer("bar", rows, {**placed, "color": color, "description": {"field": "hover"}})
        text = layer("text", rows, {**placed, "text": {"field": "text"}}, align="left", dx=5, color=INK, fontSize=11)
        return spec_of(width, 2 * _BAR_PX * len(labels) + 18, [drawn, text], legend_columns=2)

    return Chart(name, title, caption, draw, large)

"""Figures over the draft length: curves by way, by speed of the drafter, by proposer, and energy by phase."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from planner.report.chart_ways import STYLES, way_words
from planner.report.numbers import LIMIT_WORDS, figure, percent
from planner.report.vega import (
    AMBER,
    BLUE,
    GREY,
    INK,
    LINE_COLOURS,
    LINE_PATTERNS,
    MUTED,
    RED,
    SKY,
    Chart,
    Spec,
    hover,
    layer,
    length_axis,
    quantity,
    spec_of,
)
from planner.schema import documents as doc
from planner.schema.review import Review, Way

HEIGHT = 240
# Peaks nearer than this share of the highest are named once.
NEAR = 0.09

PHASE_COLOURS: dict[str, str] = {
    "target_prefill": BLUE,
    "target_verify": SKY,
    "draft_prefill": AMBER,
    "draft_decode": RED,
    "transfers": GREY,
}

Value = Callable[[doc.Metrics], float]


@dataclass(frozen=True)
class Line:
    """One curve: its name, the designs along it, and its look."""

    name: str
    points: tuple[doc.Deployment, ...]
    colour: str
    pattern: list[int]
    shape: str = "circle"
    width: float = 2.0


@dataclass(frozen=True)
class Measured:
    """What a curve shows: the value of a design, the axis with its unit, the unit in words, and a bound to draw."""

    value: Value
    axis: str
    unit: str
    asked: tuple[str, float] | None = None
    peaks: bool = True


def way_lines(ways: list[Way]) -> list[Line]:
    """Give the curves of ways that propose."""
    return [Line(way_words(way), way.curve.points, *STYLES[way.name]) for way in ways if way.curve is not None]


def curve_chart(name: str, title: str, caption: str, lines: list[Line], measured: Measured) -> Chart:
    """Draw a figure over the draft length, the best point of each curve named."""

    def draw(width: int) -> Spec:
        x, y = length_axis(width), quantity("value", measured.axis, scale={"zero": True, "nice": True})
        nominal, names = {"field": "line", "type": "nominal"}, [line.name for line in lines]
        colours, patterns = [line.colour for line in lines], [line.pattern for line in lines]
        color = {**nominal, "scale": {"domain": names, "range": colours}, "legend": {"symbolType": "stroke"}}
        dash = {**nominal, "scale": {"domain": names, "range": patterns}}
        layers: list[Spec] = []
        tops: list[Spec] = []
        for line in lines:
            rows = [_row(line, one, measured) for one in line.points]
            faint = 0.5 if line.width > 3 else 1.0
            path = {"x": x, "y": y, "color": color, "strokeDash": dash}
            layers.append(layer("line", rows, path, strokeWidth=line.width, opacity=faint))
            points = {"x": x, "y": y, "color": color, "description": {"field": "hover"}}
            layers.append(layer("point", rows, points, filled=True, size=22, shape=line.shape, opacity=1))
            tops.append(max(rows, key=_value))
        layers += _peaks(tops, x, y) if measured.peaks else []
        layers += _asked_line(measured.asked, width, y) if measured.asked else []
        return spec_of(width, HEIGHT, layers)

    return Chart(name, title, caption, draw)


def _row(line: Line, one: doc.Deployment, measured: Measured) -> Spec:
    value = measured.value(one.metrics)
    lines = [line.name, f"D {one.draft_length}: {figure(value)} {measured.unit}"]
    tokens = f"{figure(one.metrics.tokens_per_step, 3)} tokens per step"
    return {"D": one.draft_length, "value": value, "line": line.name, "hover": hover(*lines, tokens)}


def _value(row: Spec) -> float:
    return float(row["value"])


def _peaks(tops: list[Spec], x: Spec, y: Spec) -> list[Spec]:
    """Name the best point of each curve, the highest where several lie close together."""
    rows: list[Spec] = []
    for row in sorted(tops, key=_value, reverse=True):
        close = (abs(row["value"] - other["value"]) < NEAR * rows[0]["value"] for other in rows)
        if not any(close):
            rows.append({**row, "text": f"{figure(row['value'])} at D {row['D']}"})
    text = {"x": x, "y": y, "text": {"field": "text"}}
    ring = {"x": x, "y": y}
    return [
        layer("point", rows, ring, size=110, color=INK, filled=False, strokeWidth=1.5, opacity=1),
        layer("text", rows, text, dy=-12, color=INK, fontSize=11, fontWeight="bold"),
    ]


def _asked_line(asked: tuple[str, float], width: int, y: Spec) -> list[Spec]:
    words, bound = asked
    values = [{"value": bound, "text": words}]
    text = {"x": {"value": width}, "y": y, "text": {"field": "text"}}
    return [
        layer("rule", values, {"y": y}, strokeDash=[3, 3], color=MUTED),
        layer("text", values, text, align="right", dy=-6, color=MUTED, fontSize=11),
    ]


def _limit(review: Review, name: str) -> float | None:
    rows = review.plan.limits if review.plan is not None else ()
    return next((row.bound for row in rows if row.name == name and row.workload == review.workload), None)


INTERACTIVITY = Measured(
    lambda m: m.interactivity_tps, "interactivity [output tokens/s per user]", "output tokens/s per user"
)
EFFICIENCY = Measured(
    lambda m: m.tps_per_kw, "throughput [output tokens/s per kW, forward]", "output tokens/s per kW of forward power"
)
TOKENS = Measured(lambda m: m.tokens_per_step, "E(D) [output tokens per step]", "output tokens per step", peaks=False)


def interactivity_chart(review: Review, ways: list[Way]) -> Chart:
    """Draw interactivity over the draft length, and the floor that was asked."""
    floor = _limit(review, "interactivity_floor")
    asked = None if floor is None else (f"{LIMIT_WORDS['interactivity_floor']} {figure(floor)}", floor)
    caption = "Longer drafts gain until their time costs more than the tokens that they bring."
    measured = replace(INTERACTIVITY, asked=asked)
    return curve_chart("interactivity", "Interactivity over draft length", caption, way_lines(ways), measured)


def efficiency_chart(ways: list[Way]) -> Chart:
    """Draw throughput per kW over the draft length."""
    caption = "Output tokens/s per kW of forward power, which is output tokens per kJ."
    title = "Throughput per kW over draft length"
    return curve_chart("throughput-per-kw", title, caption, way_lines(ways), EFFICIENCY)


def ttft_chart(review: Review, ways: list[Way]) -> Chart:
    """Draw the time to first token over the draft length, and the ceiling that was asked."""
    ceiling = _limit(review, "ttft_ceiling")
    asked = None if ceiling is None else (f"{LIMIT_WORDS['ttft_ceiling']} {figure(ceiling * 1e3)} ms", ceiling * 1e3)
    measured = Measured(lambda m: m.ttft_s * 1e3, "TTFT, unloaded [ms]", "ms", asked, peaks=False)
    caption = "Unloaded: no queue, no wait for a batch to form."
    return curve_chart("ttft", "Time to first token by placement", caption, way_lines(ways), measured)


def tokens_chart(ways: list[Way]) -> Chart:
    """Draw tokens per step over the draft length: they depend on the proposer only."""
    curves = {way.curve.points[-1].proposer: way.curve.points for way in reversed(ways) if way.curve is not None}
    looks = zip(LINE_COLOURS, LINE_PATTERNS, strict=True)
    lines = [Line(f"by {name}", points, *look) for (name, points), look in zip(curves.items(), looks, strict=False)]
    caption = "Mean tokens committed per step, the bonus token included: what acceptance leaves of a draft."
    return curve_chart("tokens-per-step", "Accepted tokens over draft length", caption, lines, TOKENS)


def speed_charts(review: Review) -> list[Chart]:
    """Draw interactivity over the draft length at other speeds of the drafter; nothing where the review has none."""
    if not review.speeds:
        return []
    looks = zip(LINE_COLOURS, LINE_PATTERNS, strict=True)
    lines = [
        Line(f"{figure(speed.draft_ms_per_token)} ms per draft token", speed.curve.points, *look)
        for speed, look in zip(review.speeds, looks, strict=False)
    ]
    caption = (
        f"The design of {review.speeds[0].way} if draft decode took another time per token: a faster drafter pays with"
        " longer drafts."
    )
    return [curve_chart("draft-speed", "Interactivity by speed of the drafter", caption, lines, INTERACTIVITY)]


def energy_chart(way: Way, ways: list[Way]) -> Chart:
    """Energy by phase over the draft length of one way, on the axis of all ways."""
    most = max(one.metrics.energy_j_per_token for other in ways if other.curve for one in other.curve.points)

    def draw(width: int) -> Spec:
        assert way.curve is not None  # the caller chose
        rows = [row for one in way.curve.points for row in _energy_rows(one)]
        lengths = [one.draft_length for one in way.curve.points]
        step = 10 if len(lengths) > 20 and width < 400 else 5 if len(lengths) > 12 else 1
        axis = {"values": [length for length in lengths if length % step == 0], "labelAngle": 0}
        x = {"field": "D", "type": "ordinal", "title": "draft length D [draft tokens per step]", "axis": axis}
        y = quantity("value", "energy, forward [J per output token]", stack=True, scale={"domain": [0, most * 1.03]})
        present = [part for part in PHASE_COLOURS if any(row["phase"] == _part_words(part) for row in rows)]
        scale = {"domain": [_part_words(part) for part in present], "range": [PHASE_COLOURS[part] for part in present]}
        encoding = {
            "x": x,
            "y": y,
            "color": {"field": "phase", "type": "nominal", "scale": scale},
            "order": {"field": "order", "type": "quantitative"},
            "description": {"field": "hover"},
        }
        return spec_of(width, HEIGHT, [layer("bar", rows, encoding)], legend_columns=2)

    caption = "Forward energy per output token, by phase; the axis is the same for all ways."
    return Chart(f"energy-{way.name.replace('_', '-')}", f"Energy by phase, {way_words(way)}", caption, draw)


def _part_words(part: str) -> str:
    return part.replace("_", " ")


def _energy_rows(one: doc.Deployment) -> list[Spec]:
    rows = []
    for order, part in enumerate(PHASE_COLOURS):
        share = one.metrics.energy_share[part]  # type: ignore[index]
        if share:
            joules = share * one.metrics.energy_j_per_token
            text = f"{_part_words(part)}: {figure(joules)} J per output token, {percent(share)}"
            row = {"D": one.draft_length, "value": joules, "phase": _part_words(part), "order": order}
            rows.append({**row, "hover": hover(f"D {one.draft_length}", text)})
    return rows

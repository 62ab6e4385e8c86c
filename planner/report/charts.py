"""The figures of a report as Vega-Lite specifications: data and encodings, nothing computed but what places a mark.

Every mark that stands for a number carries its description: the text of the tooltip, one line per fact, which a screen
reader says too. Colours are those of Okabe and Ito, which colour-blind people tell apart; line patterns and shapes
repeat them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from planner.report.front import option_words
from planner.report.numbers import LIMIT_WORDS, figure, in_unit, percent
from planner.report.sentences import phase_words
from planner.schema import documents as doc
from planner.schema.front import FrontPoint
from planner.schema.review import Review, RoofMark, Way
from planner.words import PHASES, POWER_BASES, Phase

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
SMALL_FRONT = 8.0
NEAR = 0.09

# By way: colour, line pattern, shape, line width. A wide line shows beside a narrow one that lies on it.
STYLES: dict[str, tuple[str, list[int], str, float]] = {
    "no_speculation": (GREY, [2, 2], "cross", 1.5),
    "single_device": (BLUE, [1, 0], "circle", 2.0),
    "draft_on_fastest": (RED, [1, 0], "square", 5.0),
    "split_draft": (GREEN, [6, 3], "triangle-up", 2.0),
    "this_plan": (PINK, [1, 0], "diamond", 2.0),
}
PHASE_COLOURS: dict[str, str] = {
    "target_prefill": BLUE,
    "target_verify": SKY,
    "draft_prefill": AMBER,
    "draft_decode": RED,
    "transfers": GREY,
}
PHASE_SHAPES: dict[Phase, str] = {
    "target_prefill": "square",
    "target_verify": "circle",
    "draft_prefill": "triangle-up",
    "draft_decode": "diamond",
}
ROOF_COLOURS = (BLUE, RED, GREEN, PINK, AMBER, SKY, GREY)


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


def charts_of(review: Review) -> list[Chart]:
    """Give the figures of a review, those left out that it has no data for."""
    curved = [way for way in review.ways if way.curve is not None]
    found = [front_chart(review)] if review.front.points else []
    if review.plan is not None and review.plan.deployments:
        found.append(power_chart(review.plan))
    if curved:
        found += [interactivity_chart(review, curved), *speed_charts(review), efficiency_chart(curved)]
        found += [energy_chart(way, curved) for way in curved]
        found += [ttft_chart(review, curved), tokens_chart(curved)]
    return found + ([roof_chart(review)] if review.roofs else [])


# --------------------------------------------------------------------------------------------------- shared parts


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


def way_words(way: Way) -> str:
    """Name a way with its devices: ``split_draft: draft decode on accelerator``; the plan's own is marked."""
    where: dict[str, list[Phase]] = {}
    for phase, device in way.devices.items():
        where.setdefault(device, []).append(phase)
    main = way.devices.get("target_verify")
    rest = [f"{_phases(phases)} on {device}" for device, phases in where.items() if device != main]
    words = "; ".join(rest) or (f"all on {main}" if main else "")
    return (
        way.name + (f": {words}" if words else "") + (" (the plan)" if way.is_plan and way.name != "this_plan" else "")
    )


def _phases(phases: list[Phase]) -> str:
    return "draft" if set(phases) == {"draft_prefill", "draft_decode"} else " and ".join(map(phase_words, phases))


def way_scales(ways: list[Way]) -> dict[str, Spec]:
    """Encode ways by colour, line pattern, shape and width, with one legend."""
    styles, names = [STYLES[way.name] for way in ways], [way_words(way) for way in ways]

    def scale(index: int, kind: str) -> Spec:
        return {
            "field": "way",
            "type": "nominal",
            "scale": {"domain": names, "range": [style[index] for style in styles]},
            "legend": {"symbolType": "stroke"} if kind == "strokeDash" else {},
        }

    return {
        "color": scale(0, "color"),
        "strokeDash": scale(1, "strokeDash"),
        "shape": scale(2, "shape"),
        "size": {**scale(3, "size"), "legend": None},
    }


def option_lines(deployment: doc.Deployment) -> list[str]:
    """Write where each phase runs, and on how many replicas."""
    lines = []
    for phase in PHASES:
        place = deployment.placements[phase]
        if place is not None:
            count = f"{figure(place.replicas, 3)} replicas"
            lines.append(f"{phase_words(phase)}: {option_words(place)}, {count}")
    return lines


def hover(*lines: str) -> str:
    """Join the lines of a tooltip."""
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------------- the front


def front_chart(review: Review) -> Chart:
    """Draw the front as a step function, with the plan, the usual ways, the floor asked and the knee on it."""
    front, basis = review.front, review.front.power_basis
    energies = [point.energy_j_per_token for point in front.points]
    energies += [point.energy_j_per_token for way in review.ways for point in way.front]
    tps = [point.interactivity_tps for point in front.points]
    tps += [point.interactivity_tps for way in review.ways for point in way.front]

    def draw(width: int) -> Spec:
        left = 0.95 * min(tps)
        axis = {"grid": True, "tickCount": 5 if width < 400 else 10}
        x_scale = {"zero": False, "nice": False, "domain": [left, max(tps) + 0.05 * (max(tps) - left)]}
        x = quantity("tps", "interactivity [output tokens/s per user]", scale=x_scale, axis=axis)
        y = quantity("energy", f"energy, {basis} [J per output token]", **_energy_axis(energies))
        place = {"x": x, "y": y}
        ways = [way for way in review.ways if way.front]
        names = ["front of all designs", *map(way_words, ways)]
        colours, dashes = [BAND, *(STYLES[w.name][0] for w in ways)], [[1, 0], *(STYLES[w.name][1] for w in ways)]
        legend = {"symbolType": "stroke"}
        nominal = {"field": "way", "type": "nominal"}
        color = {**nominal, "scale": {"domain": names, "range": colours}, "legend": legend}
        dash = {**nominal, "scale": {"domain": names, "range": dashes}}
        rows = [
            {**_front_row(p.interactivity_tps, p.energy_j_per_token, names[0]), "hover": _point_hover(p, basis)}
            for p in front.points
        ]
        lines = {**place, "color": color, "strokeDash": dash}
        steps = [{**rows[0], "tps": left}, *rows]
        layers = [layer("line", steps, lines, interpolate="step-before", strokeWidth=9)]
        for way, name in zip(ways, names[1:], strict=True):
            line = [_front_row(p.interactivity_tps, p.energy_j_per_token, name) for p in way.front]
            layers.append(layer("line", line, lines, interpolate="step-before", strokeWidth=2))
            alone = [{**row, "hover": _way_hover(way, p)} for row, p in zip(line, way.front, strict=True)]
            encoding = {**place, "color": color, "description": {"field": "hover"}}
            layers.append(layer("point", alone, encoding, filled=True, size=24, opacity=1))
        described = {**place, "description": {"field": "hover"}}
        layers.append(layer("point", rows, described, filled=True, size=40, opacity=1, color=INK))
        layers += _floors(review, left, x)
        layers += _knee(review, described, place)
        layers += _plan_mark(review, described, place, left + 0.35 * (max(tps) - left))
        return spec_of(width, 300 if width < 400 else 380, layers)

    caption = (
        "Each point on the band is a design that no other beats in both figures; what lies left of and above it is"
        " possible, what lies right of and below it is not. Thin lines: the fronts of the usual ways to deploy."
    )
    return Chart("front", "Interactivity against energy", caption, draw, large=True)


def _energy_axis(energies: list[float]) -> Spec:
    """Give a scale with room at both ends: logarithmic where the energies span much."""
    low, high = min(energies), max(energies)
    if high <= SMALL_FRONT * low:
        room = 0.06 * (high - low) or 0.1 * high
        domain = [low - room, high + room]
        return {"scale": {"zero": False, "nice": False, "domain": domain}, "axis": {"grid": True, "tickCount": 6}}
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    ticks = [float(f"{digit}e{power}") for power in decades for digit in (1, 2, 5)]
    axis = {"grid": True, "values": ticks, "format": "~r"}
    return {"scale": {"type": "log", "nice": False, "domain": [0.85 * low, 1.15 * high]}, "axis": axis}


def _front_row(tps: float, energy: float, way: str) -> Spec:
    return {"tps": tps, "energy": energy, "way": way}


def _way_hover(way: Way, point: Any) -> str:  # noqa: ANN401
    return hover(
        f"front of {way_words(way)}",
        f"{figure(point.interactivity_tps)} output tokens/s per user",
        f"{figure(point.energy_j_per_token)} J per output token",
        f"draft length {point.draft_length}",
    )


def _point_hover(point: FrontPoint, basis: str) -> str:
    one = point.deployment
    price = point.usd_per_million_tokens
    return hover(
        f"{figure(point.interactivity_tps)} output tokens/s per user",
        f"{figure(point.energy_j_per_token)} J per output token, {basis}",
        f"TTFT {in_unit(point.ttft_s, 's')}" + ("" if price is None else f", {figure(price)} USD per million tokens"),
        f"draft length {one.draft_length}" + (f" by {one.proposer}" if one.proposer else ": no speculation"),
        *option_lines(one),
    )


def _floors(review: Review, least: float, x: Spec) -> list[Spec]:
    """Draw the floor that the plan was asked to keep as a line, where it was asked."""
    rows = review.plan.limits if review.plan is not None else ()
    asked = [row.bound for row in rows if row.name == "interactivity_floor" and row.bound >= least]
    if not asked:
        return []
    values = [{"tps": floor, "text": f"asked: {figure(floor)}"} for floor in sorted(set(asked))]
    text = {"x": x, "y": {"value": 10}, "text": {"field": "text"}}
    return [
        layer("rule", values, {"x": x}, strokeDash=[3, 3], color=MUTED),
        layer("text", values, text, align="left", dx=4, color=MUTED, fontSize=11),
    ]


def _knee(review: Review, described: Spec, place: Spec) -> list[Spec]:
    knee = review.front.knee
    if knee is None:
        return []
    point = review.front.points[knee]
    row = {
        **_front_row(point.interactivity_tps, point.energy_j_per_token, ""),
        "hover": hover("knee of the front", *_point_hover(point, review.front.power_basis).split("\n")),
        "text": "knee",
    }
    return [
        layer("point", [row], described, size=190, strokeWidth=1.75, color=INK, filled=False, opacity=1),
        layer("text", [row], {**place, "text": {"field": "text"}}, dy=19, dx=6, align="left", color=INK, fontSize=11),
    ]


def plan_energy(review: Review) -> tuple[float, float] | None:
    """Interactivity and energy per output token of the plan, on the front's power basis; null where there is none."""
    plan = review.plan
    if plan is None or not plan.deployments:
        return None
    watts = plan.totals.power_w.model_dump()[review.front.power_basis]
    if watts is None or plan.totals.throughput_tps is None:
        return None
    return min(one.metrics.interactivity_tps for one in plan.deployments), watts / plan.totals.throughput_tps


def _plan_mark(review: Review, described: Spec, place: Spec, left: float) -> list[Spec]:
    """Mark the plan; its name stands beside it, on the side where there is room: right where it lies far ``left``."""
    at = plan_energy(review)
    if at is None or review.plan is None:
        return []
    totals = review.plan.totals
    lines = [
        "the plan",
        f"{figure(at[0])} output tokens/s per user",
        f"{figure(at[1])} J per output token, {review.front.power_basis}",
        f"{figure(totals.throughput_tps)} output tokens/s in all",
    ]
    row = {**_front_row(*at, ""), "hover": hover(*lines), "text": "the plan"}
    return [
        layer("point", [row], described, shape="diamond", size=230, color=RED, filled=True, opacity=1),
        layer(
            "text",
            [row],
            {**place, "text": {"field": "text"}},
            dy=-13,
            dx=6 if at[0] < left else -6,
            align="left" if at[0] < left else "right",
            color=INK,
            fontSize=12,
            fontWeight="bold",
        ),
    ]


# ------------------------------------------------------------------------------------------ curves over draft length


def _curve_chart(
    name: str,
    title: str,
    caption: str,
    axis: str,
    ways: list[Way],
    value: Callable[[doc.Deployment], float],
    unit: str,
    asked: tuple[str, float] | None = None,
    peaks: bool = True,
) -> Chart:
    """Draw a figure over the draft length, one line per way, the best point of each named."""

    def draw(width: int) -> Spec:
        x, y = length_axis(width), quantity("value", axis, scale={"zero": True, "nice": True})
        scales = way_scales(ways)
        layers: list[Spec] = []
        tops: list[Spec] = []
        for way in ways:
            assert way.curve is not None  # the caller chose
            rows: list[Spec] = [
                {
                    "D": one.draft_length,
                    "value": value(one),
                    "way": way_words(way),
                    "hover": hover(
                        way_words(way),
                        f"D {one.draft_length}: {figure(value(one))} {unit}",
                        f"{figure(one.metrics.tokens_per_step, 3)} tokens per step",
                    ),
                }
                for one in way.curve.points
            ]
            style = STYLES[way.name]
            encoding = {"x": x, "y": y, "color": scales["color"], "strokeDash": scales["strokeDash"]}
            layers.append(layer("line", rows, encoding, strokeWidth=style[3], opacity=0.5 if style[3] > 3 else 1))
            points = {"x": x, "y": y, "color": scales["color"], "description": {"field": "hover"}}
            layers.append(layer("point", rows, points, filled=True, size=22, shape=style[2], opacity=1))
            tops.append(max(rows, key=_value))
        if peaks:
            layers += _peaks(tops, x, y)
        if asked is not None:
            layers += _asked_line(asked, width, y)
        return spec_of(width, 240, layers)

    return Chart(name, title, caption, draw)


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


def interactivity_chart(review: Review, ways: list[Way]) -> Chart:
    """Interactivity over the draft length."""
    floor = _limit(review, "interactivity_floor")
    return _curve_chart(
        "interactivity",
        "Interactivity over draft length",
        "Longer drafts gain until their time costs more than the tokens that they bring.",
        "interactivity [output tokens/s per user]",
        ways,
        lambda one: one.metrics.interactivity_tps,
        "output tokens/s per user",
        None if floor is None else (f"{LIMIT_WORDS['interactivity_floor']} {figure(floor)}", floor),
    )


def efficiency_chart(ways: list[Way]) -> Chart:
    """Throughput per kW over the draft length."""
    return _curve_chart(
        "throughput-per-kw",
        "Throughput per kW over draft length",
        "Output tokens/s per kW of forward power, which is output tokens per kJ.",
        "throughput [output tokens/s per kW, forward]",
        ways,
        lambda one: one.metrics.tps_per_kw,
        "output tokens/s per kW",
    )


def ttft_chart(review: Review, ways: list[Way]) -> Chart:
    """Time to first token over the draft length."""
    ceiling = _limit(review, "ttft_ceiling")
    return _curve_chart(
        "ttft",
        "Time to first token by placement",
        "Unloaded: no queue, no wait for a batch to form.",
        "TTFT, unloaded [ms]",
        ways,
        lambda one: one.metrics.ttft_s * 1e3,
        "ms",
        None if ceiling is None else (f"{LIMIT_WORDS['ttft_ceiling']} {figure(ceiling * 1e3)} ms", ceiling * 1e3),
        peaks=False,
    )


def tokens_chart(ways: list[Way]) -> Chart:
    """Tokens per step over the draft length: it depends on the proposer only."""
    proposers: dict[str | None, Way] = {}
    for way in ways:
        assert way.curve is not None  # the caller chose
        proposers.setdefault(way.curve.points[-1].proposer, way)

    def draw(width: int) -> Spec:
        x = length_axis(width)
        y = quantity("value", "E(D) [output tokens per step]", scale={"zero": True})
        names, colours = [f"by {name}" for name in proposers], list(ROOF_COLOURS[: len(proposers)])
        scale = {"domain": names, "range": colours}
        color = {"field": "by", "type": "nominal", "scale": scale, "legend": {"symbolType": "stroke"}}
        layers = []
        for name, way in proposers.items():
            assert way.curve is not None
            rows: list[Spec] = [
                {
                    "D": one.draft_length,
                    "value": one.metrics.tokens_per_step,
                    "by": f"by {name}",
                    "hover": hover(
                        f"D {one.draft_length}: {figure(one.metrics.tokens_per_step)} output tokens per step",
                        f"by {name}, the bonus token included",
                    ),
                }
                for one in way.curve.points
            ]
            layers.append(layer("line", rows, {"x": x, "y": y, "color": color}, strokeWidth=2))
            points = {"x": x, "y": y, "color": color, "description": {"field": "hover"}}
            layers.append(layer("point", rows, points, filled=True, size=22, opacity=1))
        return spec_of(width, 240, layers)

    caption = "Mean tokens committed per step, the bonus token included: what acceptance leaves of a draft."
    return Chart("tokens-per-step", "Accepted tokens over draft length", caption, draw)


def speed_charts(review: Review) -> list[Chart]:
    """Interactivity over the draft length at other speeds of the drafter; none where the review has none."""
    if not review.speeds:
        return []

    def draw(width: int) -> Spec:
        x = length_axis(width)
        y = quantity("value", "interactivity [output tokens/s per user]", scale={"zero": True, "nice": True})
        names = [f"{figure(speed.draft_ms_per_token)} ms per draft token" for speed in review.speeds]
        dashes = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3]]
        nominal = {"field": "speed", "type": "nominal"}
        color = {
            **nominal,
            "scale": {"domain": names, "range": list(ROOF_COLOURS[: len(names)])},
            "legend": {"symbolType": "stroke"},
        }
        dash = {**nominal, "scale": {"domain": names, "range": dashes[: len(names)]}}
        layers: list[Spec] = []
        tops: list[Spec] = []
        for name, speed in zip(names, review.speeds, strict=True):
            rows: list[Spec] = [
                {
                    "D": one.draft_length,
                    "value": one.metrics.interactivity_tps,
                    "speed": name,
                    "hover": hover(
                        name,
                        f"D {one.draft_length}: {figure(one.metrics.interactivity_tps)} output tokens/s per user",
                    ),
                }
                for one in speed.curve.points
            ]
            layers.append(layer("line", rows, {"x": x, "y": y, "color": color, "strokeDash": dash}, strokeWidth=2))
            points = {"x": x, "y": y, "color": color, "description": {"field": "hover"}}
            layers.append(layer("point", rows, points, filled=True, size=22, opacity=1))
            tops.append(max(rows, key=_value))
        return spec_of(width, 240, [*layers, *_peaks(tops, x, y)])

    caption = f"The design of {review.speeds[0].way} if draft decode took another time per token: a faster drafter pays"
    return [Chart("draft-speed", "Interactivity by speed of the drafter", f"{caption} with longer drafts.", draw)]


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
        return spec_of(width, 240, [layer("bar", rows, encoding)], legend_columns=2)

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


# --------------------------------------------------------------------------------------------------- power, roofs


def power_chart(plan: doc.Plan) -> Chart:
    """Power of the plan on every basis that is known."""
    watts = plan.totals.power_w.model_dump()
    known = [basis for basis in POWER_BASES if watts[basis] is not None]
    rows = [
        {
            "basis": basis,
            "value": watts[basis] / 1e3,
            "text": in_unit(watts[basis], "W"),
            "hover": hover(f"power, {basis}", in_unit(watts[basis], "W")),
        }
        for basis in known
    ]

    def draw(width: int) -> Spec:
        y = {"field": "basis", "type": "nominal", "title": None, "sort": known}
        x = quantity("value", "power [kW]", scale={"zero": True, "domainMax": max(row["value"] for row in rows) * 1.18})
        bars = layer("bar", rows, {"x": x, "y": y, "description": {"field": "hover"}}, color=BLUE, height={"band": 0.6})
        text = layer(
            "text", rows, {"x": x, "y": y, "text": {"field": "text"}}, align="left", dx=5, color=INK, fontSize=11
        )
        return spec_of(width, 36 * len(known) + 14, [bars, text])

    unknown = [basis for basis in POWER_BASES if watts[basis] is None]
    caption = "Forward: the work alone. Average: with idle power. Provisioned: what a breaker sees. PUE included."
    caption += f" Not known for this catalog: {' and '.join(unknown)}." if unknown else ""
    return Chart("power", "Power of the plan by basis", caption, draw)


def roof_chart(review: Review) -> Chart:
    """Roofs of the device types, with the phases of the designs under them."""
    flop = review.roof_axes == "flop"
    names = [roof.device if roof.model is None else f"{roof.device}, {roof.model}" for roof in review.roofs]

    def draw(width: int) -> Spec:
        points = [(p.x, p.y) for roof in review.roofs for part in (roof.roof, roof.marks) for p in part]
        x_title, y_title = "tokens per pass", "rate of a replica [tokens/s]"
        if flop:
            x_title, y_title = "work of a pass [FLOP per byte]", "rate of a device [FLOP/s]"
        x = quantity("x", x_title, **_decades([x for x, _ in points]))
        y = quantity("y", y_title, **_decades([y for _, y in points]))
        nominal = {"field": "device", "type": "nominal"}
        colours = [ROOF_COLOURS[k % len(ROOF_COLOURS)] for k in range(len(names))]
        color = {**nominal, "scale": {"domain": names, "range": colours}, "legend": {"symbolType": "stroke"}}
        shape = {
            "field": "phase",
            "type": "nominal",
            "scale": {"domain": [phase_words(p) for p in PHASES], "range": [PHASE_SHAPES[p] for p in PHASES]},
        }
        lines, marks = [], []
        for name, roof in zip(names, review.roofs, strict=True):
            lines += [{"x": point.x, "y": point.y, "device": name} for point in roof.roof]
            marks += [
                {"x": m.x, "y": m.y, "device": name, "phase": phase_words(m.phase), "hover": _roof_hover(m, name, flop)}
                for m in roof.marks
            ]
        described = {"x": x, "y": y, "color": color, "shape": shape, "description": {"field": "hover"}}
        layers = [
            layer("line", lines, {"x": x, "y": y, "color": color}, strokeWidth=2),
            layer("point", marks, described, filled=True, size=80, opacity=1),
        ]
        return spec_of(width, 280, layers, legend_columns=1 if width < 400 else 2)

    caption = (
        "Lines: peak and bandwidth of the data sheets. A phase under the slope waits for memory, one under the flat"
        " part for arithmetic."
        if flop
        else "The catalog gives no data sheets. Lines: for each model, more tokens in the time of a short pass (memory)"
        " up to the rate of its fastest phase (compute)."
    )
    return Chart("roofline", "Roofline of the device types", caption, draw, large=True)


def _decades(values: list[float]) -> Spec:
    """Give a logarithmic scale and an axis with lines at powers of ten only."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values) * 1.2))
    ticks = [float(f"1e{power}") for power in range(low, high + 1)]
    axis = {"grid": True, "values": ticks, "format": "~s", "labelOverlap": True}
    scale = {"type": "log", "nice": False, "domain": [min(values), max(max(values) * 1.2, min(values) * 10)]}
    return {"scale": scale, "axis": axis}


def _roof_hover(mark: RoofMark, name: str, flop: bool) -> str:
    work = f"{figure(mark.x)} FLOP per byte" if flop else f"{figure(mark.x)} tokens per pass"
    rate = f"{mark.y / 1e12:.4g} TFLOP/s per device" if flop else f"{figure(mark.y)} tokens/s of a replica"
    return hover(
        f"{phase_words(mark.phase)} on {name}", f"{mark.option}, D {mark.draft_length}, {mark.way}", work, rate
    )

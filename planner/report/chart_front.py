"""The front of a review as a figure."""

from __future__ import annotations

import math

from planner.report.chart_ways import STYLES, option_lines, way_words
from planner.report.numbers import figure, in_unit
from planner.report.vega import BAND, INK, MUTED, RED, Chart, Spec, hover, layer, quantity, spec_of
from planner.schema.front import FrontPoint
from planner.schema.review import Review, WayPoint

# Energies that span more than this factor are drawn on a logarithmic axis.
SMALL_FRONT = 8.0


def front_chart(review: Review) -> Chart:
    """Draw the front as a step function, with the plan, the usual ways, the floor asked and the knee on it."""
    at = plan_energy(review)
    points = [(p.interactivity_tps, p.energy_j_per_token) for p in review.front.points]
    points += [(p.interactivity_tps, p.energy_j_per_token) for way in review.ways for p in way.front]
    points += [at] if at is not None else []
    tps = [x for x, _ in points] + asked_floors(review)
    left, right = 0.95 * min(tps), 1.05 * max(tps) - 0.05 * min(tps)

    def draw(width: int) -> Spec:
        axis = {"grid": True, "tickCount": 5 if width < 400 else 10}
        scale = {"zero": False, "nice": False, "domain": [left, right]}
        title = f"energy, {review.front.power_basis} [J per output token]"
        place = {
            "x": quantity("tps", "interactivity [output tokens/s per user]", scale=scale, axis=axis),
            "y": quantity("energy", title, **_energy_axis([energy for _, energy in points])),
        }
        layers = [
            *_steps(review, place, left),
            *_floors(review, place),
            *_knee(review, place),
            *_plan_mark(review, place, left + 0.35 * (right - left)),
        ]
        return spec_of(width, 300 if width < 400 else 380, layers)

    caption = (
        "Each point on the band is a design that no other beats in both figures; what lies left of and above it is"
        " possible, what lies right of and below it is not. Thin lines: the fronts of the usual ways to deploy."
    )
    return Chart("front", "Interactivity against energy", caption, draw, large=True)


def _described(place: Spec) -> Spec:
    return {**place, "description": {"field": "hover"}}


def _steps(review: Review, place: Spec, left: float) -> list[Spec]:
    """Draw the band of the front from the left edge on, the lines of the ways on it, and the points of both."""
    ways = [way for way in review.ways if way.front]
    names = ["front of all designs", *map(way_words, ways)]
    colours, patterns = [BAND, *(STYLES[w.name][0] for w in ways)], [[1, 0], *(STYLES[w.name][1] for w in ways)]
    nominal = {"field": "way", "type": "nominal"}
    color = {**nominal, "scale": {"domain": names, "range": colours}, "legend": {"symbolType": "stroke"}}
    lines = {**place, "color": color, "strokeDash": {**nominal, "scale": {"domain": names, "range": patterns}}}
    basis = review.front.power_basis
    rows = [
        _row(p.interactivity_tps, p.energy_j_per_token, names[0], _point_lines(p, basis)) for p in review.front.points
    ]
    band = [{**rows[0], "tps": left}, *rows]
    layers = [layer("line", band, lines, interpolate="step-before", strokeWidth=9)]
    for way, name in zip(ways, names[1:], strict=True):
        line = [_row(p.interactivity_tps, p.energy_j_per_token, name, _way_lines(name, p)) for p in way.front]
        layers.append(layer("line", line, lines, interpolate="step-before", strokeWidth=2))
        layers.append(layer("point", line, _described({**place, "color": color}), filled=True, size=24, opacity=1))
    return [*layers, layer("point", rows, _described(place), filled=True, size=40, opacity=1, color=INK)]


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


def _row(tps: float, energy: float, way: str, lines: list[str]) -> Spec:
    return {"tps": tps, "energy": energy, "way": way, "hover": hover(*lines)}


def _way_lines(name: str, point: WayPoint) -> list[str]:
    return [
        f"front of {name}",
        f"{figure(point.interactivity_tps)} output tokens/s per user",
        f"{figure(point.energy_j_per_token)} J per output token",
        f"draft length {point.draft_length}",
    ]


def _point_lines(point: FrontPoint, basis: str) -> list[str]:
    one, price = point.deployment, point.usd_per_million_tokens
    return [
        f"{figure(point.interactivity_tps)} output tokens/s per user",
        f"{figure(point.energy_j_per_token)} J per output token, {basis}",
        f"TTFT {in_unit(point.ttft_s, 's')}" + ("" if price is None else f", {figure(price)} USD per million tokens"),
        f"draft length {one.draft_length}" + (f" by {one.proposer}" if one.proposer else ": no speculation"),
        *option_lines(one),
    ]


def asked_floors(review: Review) -> list[float]:
    """Give the interactivity floors that the plan was asked to keep, kept or not."""
    if review.plan is None:
        return []
    kept = [row.bound for row in review.plan.limits if row.name == "interactivity_floor"]
    broken = [row.asked for row in review.plan.infeasibility if row.limit == "interactivity_floor"]
    return sorted({*kept, *broken})


def _floors(review: Review, place: Spec) -> list[Spec]:
    """Draw the floors that were asked as lines."""
    values = [{"tps": floor, "text": f"asked: {figure(floor)}"} for floor in asked_floors(review)]
    if not values:
        return []
    text = {"x": place["x"], "y": {"value": 10}, "text": {"field": "text"}}
    return [
        layer("rule", values, {"x": place["x"]}, strokeDash=[3, 3], color=MUTED),
        layer("text", values, text, align="left", dx=4, color=MUTED, fontSize=11),
    ]


def _knee(review: Review, place: Spec) -> list[Spec]:
    knee = review.front.knee
    if knee is None:
        return []
    point = review.front.points[knee]
    lines = ["knee of the front", *_point_lines(point, review.front.power_basis)]
    row = {**_row(point.interactivity_tps, point.energy_j_per_token, "", lines), "text": "knee"}
    text = {**place, "text": {"field": "text"}}
    return [
        layer("point", [row], _described(place), size=190, strokeWidth=1.75, color=INK, filled=False, opacity=1),
        layer("text", [row], text, dy=19, dx=6, align="left", color=INK, fontSize=11),
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


def _plan_mark(review: Review, place: Spec, left: float) -> list[Spec]:
    """Mark the plan; its name stands beside it, on the side where there is room: right where it lies far ``left``."""
    at = plan_energy(review)
    if at is None or review.plan is None:
        return []
    lines = [
        "the plan",
        f"{figure(at[0])} output tokens/s per user",
        f"{figure(at[1])} J per output token, {review.front.power_basis}",
        f"{figure(review.plan.totals.throughput_tps)} output tokens/s in all",
    ]
    row = {**_row(*at, "", lines), "text": "the plan"}
    align, dx = ("left", 6) if at[0] < left else ("right", -6)
    text = {**place, "text": {"field": "text"}}
    style = {"dy": -13, "dx": dx, "align": align, "color": INK, "fontSize": 12, "fontWeight": "bold"}
    return [
        layer("point", [row], _described(place), shape="diamond", size=230, color=RED, filled=True, opacity=1),
        layer("text", [row], text, **style),
    ]

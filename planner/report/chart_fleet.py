"""Power of a plan by basis, and roofs of the device types, as figures."""

from __future__ import annotations

import math

from planner.report.numbers import figure, in_unit
from planner.report.sentences import phase_words
from planner.report.vega import BLUE, INK, LINE_COLOURS, Chart, Spec, hover, layer, quantity, spec_of
from planner.schema import documents as doc
from planner.schema.review import Review, RoofMark
from planner.words import PHASES, POWER_BASES, Phase

PHASE_SHAPES: dict[Phase, str] = {
    "target_prefill": "square",
    "target_verify": "circle",
    "draft_prefill": "triangle-up",
    "draft_decode": "diamond",
}


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
        colours = [LINE_COLOURS[k % len(LINE_COLOURS)] for k in range(len(names))]
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

"""The tornado: what moving each number down and up does to the objective, the largest effect on top."""

from __future__ import annotations

from collections.abc import Sequence

from planner.report.numbers import figure, in_unit, percent
from planner.report.vega import BLUE, INK, MUTED, PAPER, RED, Chart, Spec, hover, layer, quantity, spec_of
from planner.schema.sensitivity import Move, Number, Sensitivity
from planner.words import PHASES

_ROW = 36
_PER_LETTER = 6.2


def short_key(key: str) -> str:
    """Write a key as a label: the entry's name before what is moved of it, without what stands between.

    >>> short_key("catalog.devices.gpu.profiles.drafter.draft_decode.b1.latency_ms.per_token")
    'gpu: draft_decode.b1.latency_ms.per_token'
    >>> short_key("limits.power_budget_kw"), short_key("catalog.models.llama-3.1-8b.shape.layers")
    ('limits.power_budget_kw', 'llama-3.1-8b: shape.layers')
    """
    for group in ("devices", "models", "proposers", "links"):
        start = f"catalog.{group}."
        if key.startswith(start):
            name, rest = _entry(key.removeprefix(start))
            return f"{name}: {rest}"
    return key


# What follows an entry's name, which may hold dots.
_FIELDS = (".data_sheet.", ".profiles.", ".shape.", ".heads.", ".acceptance.", ".tree.", ".price.")


def _entry(text: str) -> tuple[str, str]:
    for field in _FIELDS:
        name, found, rest = text.partition(field)
        if not found:
            continue
        if field == ".profiles.":
            steps = rest.split(".")
            begins = next((n for n, step in enumerate(steps) if step in PHASES), 0)
            return name, ".".join(steps[begins:])
        return name, rest if field == ".data_sheet." else field[1:] + rest
    name, _, rest = text.rpartition(".")
    return name, rest


def tornado_chart(found: Sensitivity, shown: Sequence[Number]) -> Chart:
    """Draw the relative change of the objective for each number, moved down and up."""
    step = figure(found.percent)

    def draw(width: int) -> Spec:
        most = int(width / _PER_LETTER)
        bars, labels, ends = [], [], []
        for number in shown:
            label = short_key(number.key)
            text = label if len(label) <= most else label[: most // 2 - 1] + "…" + label[-(most // 2 - 1) :]
            labels.append({"key": number.key, "text": text})
            for side, move in ((f"−{step} %", number.low), (f"+{step} %", number.high)):
                row = {"key": number.key, "moved": side, "hover": _hover(found, number, move, side)}
                if move.relative_change is not None:
                    bars.append({**row, "change": move.relative_change})
                if move.status == "infeasible":
                    ends.append({**row, "text": f"{side}: no plan"})
        y = {"field": "key", "type": "nominal", "sort": None, "axis": None}
        written = "datum.value === 0 ? '0' : format(datum.value, '+.3~%')"
        axis = {"labelExpr": written, "tickCount": 5 if width < 400 else 9}
        x = quantity("change", f"change of the {found.objective.name}", axis=axis)
        colour = {
            "field": "moved",
            "type": "nominal",
            "scale": {"domain": [f"−{step} %", f"+{step} %"], "range": [RED, BLUE]},
        }
        place = {"x": x, "y": y, "color": colour}
        words = {"y": y, "text": {"field": "text"}}
        named, beside = {"x": {"value": 0}, **words}, {"align": "left", "dy": -7, "fontSize": 11}
        layers = [
            layer("bar", bars, {**place, "description": {"field": "hover"}}, height=11, yOffset=8, opacity=0.9),
            layer("rule", [{"zero": 0}], {"x": {"field": "zero", "type": "quantitative"}}, color=MUTED),
            layer("text", labels, named, **beside, stroke=PAPER, strokeWidth=3),
            layer("text", labels, named, **beside, color=INK),
        ]
        if ends:
            said = {"x": {"value": width}, **words, "description": {"field": "hover"}}
            layers.append(layer("text", ends, said, align="right", dy=9, color=RED, fontSize=11, fontWeight="bold"))
        return spec_of(width, _ROW * len(shown), layers, legend_columns=2)

    caption = (
        f"One number at a time, {step} % less and {step} % more; each bar is the change of the proven optimum."
        " Numbers are in the order of their largest effect."
    )
    return Chart("tornado", f"Change of the {found.objective.name}", caption, draw, large=True)


def _hover(found: Sensitivity, number: Number, move: Move, side: str) -> str:
    unit = f" {number.unit}" if number.unit else ""
    facts = [number.key, f"{side}: {figure(move.value)}{unit}, now {figure(number.value)}{unit}"]
    if move.objective is not None:
        facts.append(f"{in_unit(move.objective, found.objective.unit)} ({percent(move.relative_change)})")
    else:
        facts.append("no plan" if move.status == "infeasible" else (move.reason or "not proven"))
    return hover(*facts)

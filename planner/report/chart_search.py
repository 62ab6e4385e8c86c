"""How a search went, as figures: its hypervolume over the trials, and what matters to the front."""

from __future__ import annotations

from planner.report.numbers import figure, percent
from planner.report.vega import BLUE, INK, MUTED, Chart, Spec, hover, layer, quantity, spec_of
from planner.schema.front import Search

_ROW = 26


def search_charts(search: Search | None) -> list[Chart]:
    """Give the figures of a search; nothing where there was none."""
    if search is None or not search.history:
        return []
    return [history_chart(search), *([importance_chart(search)] if search.importance else [])]


def history_chart(search: Search) -> Chart:
    """Draw the hypervolume after each trial, and that of the exact front where it is known."""

    def draw(width: int) -> Spec:
        x = quantity("trial", "finished trials", axis={"tickMinStep": 1, "format": "d", "tickCount": 6, "grid": False})
        y = quantity("value", "hypervolume [tok/s × J/token]", scale={"zero": False, "nice": True})
        rows = [_trial_row(number, value) for number, value in enumerate(search.history, start=1)]
        # A point is described where the front grew.
        before = [0.0, *search.history]
        grown = [row for row, last in zip(rows, before, strict=False) if row["value"] > last]
        place = {"x": x, "y": y}
        layers = [
            layer("line", rows, place, interpolate="step-after", strokeWidth=2, color=BLUE),
            layer("point", grown, {**place, "description": {"field": "hover"}}, filled=True, size=24, color=BLUE),
        ]
        if search.exact_hypervolume is not None:
            exact = [{"value": search.exact_hypervolume, "text": f"exact front: {figure(search.exact_hypervolume)}"}]
            text = {"x": {"value": width}, "y": y, "text": {"field": "text"}}
            layers.append(layer("rule", exact, {"y": y}, strokeDash=[3, 3], color=MUTED))
            layers.append(layer("text", exact, text, align="right", dy=12, color=MUTED, fontSize=11))
        return spec_of(width, 240, layers)

    caption = (
        "The area between the front found so far and the reference point: flat means that trials find nothing new."
    )
    return Chart("search-history", "Hypervolume over the trials", caption, draw)


def _trial_row(number: int, value: float) -> Spec:
    return {"trial": number, "value": value, "hover": hover(f"after {number} trials", f"hypervolume {figure(value)}")}


def importance_chart(search: Search) -> Chart:
    """Draw each parameter's share in what sets trials near the front apart."""
    ranked = sorted(search.importance.items(), key=lambda item: -item[1])

    def draw(width: int) -> Spec:
        rows = [
            {"name": name, "value": value, "text": percent(value), "hover": hover(name, percent(value))}
            for name, value in ranked
        ]
        y = {"field": "name", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": width // 2}}
        x = quantity("value", "share of importance", axis={"format": ".0%", "tickCount": 5}, scale={"domainMax": 1})
        place = {"x": x, "y": y}
        text = {**place, "text": {"field": "text"}}
        layers = [
            layer("bar", rows, {**place, "description": {"field": "hover"}}, color=BLUE, height=14),
            layer("text", rows, text, align="left", dx=4, color=INK, fontSize=11),
        ]
        return spec_of(width, _ROW * len(rows), layers)

    caption = (
        "By PED-ANOVA over the finished trials: how much a parameter sets those near the front apart from the others."
    )
    return Chart("search-importance", "What matters to the front", caption, draw)

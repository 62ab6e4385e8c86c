"""The figures of a report: data and encodings, nothing computed but what places a mark."""

from __future__ import annotations

from planner.report.chart_curves import (
    efficiency_chart,
    energy_chart,
    interactivity_chart,
    speed_charts,
    tokens_chart,
    ttft_chart,
)
from planner.report.chart_fleet import power_chart, roof_chart
from planner.report.chart_front import front_chart
from planner.report.chart_search import search_charts
from planner.report.vega import Chart
from planner.schema.review import Review


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
    found += search_charts(None if review.searched is None else review.searched.search)
    return found + ([roof_chart(review)] if review.roofs else [])

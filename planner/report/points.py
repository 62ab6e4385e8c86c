"""The points of a report's figures as a table of numbers, each with the command that evaluates it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from planner.report.front import option_words
from planner.schema import documents as doc
from planner.schema.review import Review
from planner.words import PHASES

PARTS = (*PHASES, "transfers")
COLUMNS = (
    "figure",
    "way",
    "draft_ms_per_token",
    "workload",
    "proposer",
    "draft_length",
    *PHASES,
    "tokens_per_step",
    "step_time_s",
    "interactivity_tps",
    "ttft_s",
    "energy_j_per_token",
    "tps_per_kw",
    *(f"{part}_j_per_token" for part in PARTS),
    "front_energy_j_per_token",
    "usd_per_million_tokens",
    "command",
)


def number(value: float | None) -> str:
    """Write a number in twelve digits: all that does not depend on the machine. Empty where there is none.

    >>> number(1 / 3), number(None)
    ('0.333333333333', '')
    """
    return "" if value is None else f"{value:.12g}"


def points_csv(review: Review) -> str:
    """Write every point of the front and of the curves; an empty cell where there is no value.

    ``energy_j_per_token`` and its parts are forward; ``front_energy_j_per_token`` is on the front's power basis.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(_rows(review))
    return out.getvalue()


def _rows(review: Review) -> Iterator[dict[str, Any]]:
    for point, command in zip(review.front.points, review.front_commands, strict=True):
        yield {
            "figure": "front",
            **_deployment(point.deployment),
            "front_energy_j_per_token": number(point.energy_j_per_token),
            "usd_per_million_tokens": ""
            if point.usd_per_million_tokens is None
            else repr(point.usd_per_million_tokens),
            "command": command,
        }
    for way in review.ways:
        if way.curve is not None:
            for one, command in zip(way.curve.points, way.curve.commands, strict=True):
                yield {"figure": "curve", "way": way.name, **_deployment(one), "command": command}
    for speed in review.speeds:
        for one, command in zip(speed.curve.points, speed.curve.commands, strict=True):
            cells = {"figure": "draft-speed", "way": speed.way, "draft_ms_per_token": number(speed.draft_ms_per_token)}
            yield {**cells, **_deployment(one), "command": command}


def _deployment(one: doc.Deployment) -> dict[str, Any]:
    m = one.metrics
    shares = {part: m.energy_share[part] for part in PARTS}  # type: ignore[index]
    figures = ("tokens_per_step", "step_time_s", "interactivity_tps", "ttft_s", "energy_j_per_token", "tps_per_kw")
    return {
        "workload": one.workload,
        "proposer": one.proposer or "",
        "draft_length": one.draft_length,
        **{phase: "" if place is None else option_words(place) for phase, place in one.placements.items()},
        **{name: number(getattr(m, name)) for name in figures},
        **{
            f"{part}_j_per_token": number(None if share is None else share * m.energy_j_per_token)
            for part, share in shares.items()
        },
    }

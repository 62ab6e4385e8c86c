"""How the usual ways to deploy look and are named in the figures."""

from __future__ import annotations

from planner.report.front import option_words
from planner.report.numbers import figure
from planner.report.sentences import phase_words
from planner.report.vega import AMBER, BLUE, GREEN, GREY, PINK, RED
from planner.schema import documents as doc
from planner.schema.review import Way
from planner.words import PHASES, Phase

# By way: colour, line pattern, shape, line width. A wide line shows beside a narrow one that lies on it.
STYLES: dict[str, tuple[str, list[int], str, float]] = {
    "no_speculation": (GREY, [2, 2], "cross", 1.5),
    "single_device": (BLUE, [1, 0], "circle", 2.0),
    "draft_on_fastest": (RED, [1, 0], "square", 5.0),
    "split_draft": (GREEN, [6, 3], "triangle-up", 2.0),
    "aggregated": (AMBER, [4, 2, 1, 2], "triangle-down", 2.0),
    "this_plan": (PINK, [1, 0], "diamond", 2.0),
}


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


def option_lines(deployment: doc.Deployment) -> list[str]:
    """Write where each phase runs, and on how many replicas."""
    lines = []
    for phase in PHASES:
        place = deployment.placements[phase]
        if place is not None:
            count = f"{figure(place.replicas, 3)} replicas"
            lines.append(f"{phase_words(phase)}: {option_words(place)}, {count}")
    return lines

"""The review document: everything that a report draws, each number once. Units in the names; SI in ``roofs``."""

from __future__ import annotations

from typing import Literal

from planner.schema.base import Document
from planner.schema.documents import BaselineName, Deployment, Plan, Provenance
from planner.schema.front import Front
from planner.words import Phase

WayName = BaselineName | Literal["this_plan"]
RoofAxes = Literal["flop", "tokens"]


class WayPoint(Document):
    """A non-dominated point of one way to deploy."""

    interactivity_tps: float
    energy_j_per_token: float
    draft_length: int


class Curve(Document):
    """One design over its draft length, options as they are; ``commands`` evaluate its points."""

    commands: tuple[str, ...]
    points: tuple[Deployment, ...]


class Way(Document):
    """A usual way to deploy, or the plan's own: which device runs which phase, its front and its curve.

    ``devices``: by phase. ``front`` is empty where the front of the scenario takes a sweep. ``curve`` is null where
    nothing is proposed.
    """

    name: WayName
    is_plan: bool
    devices: dict[Phase, str]
    front: tuple[WayPoint, ...]
    curve: Curve | None


class Speed(Document):
    """The curve of one way if its drafter took this long per token."""

    draft_ms_per_token: float
    way: WayName
    curve: Curve


class RoofPoint(Document):
    """Work of one pass against its rate: FLOP/byte against FLOP/s of a device, or tokens against tokens/s."""

    x: float
    y: float


class RoofMark(Document):
    """A phase of a design on the roof of its device."""

    phase: Phase
    way: WayName
    draft_length: int
    option: str
    x: float
    y: float


class Roof(Document):
    """The roof of one device type, for one model where it is in tokens, and the phases that run under it."""

    device: str
    model: str | None
    roof: tuple[RoofPoint, ...]
    marks: tuple[RoofMark, ...]


class Review(Document):
    """What ``plan report`` computed. ``plan`` is null where nothing bounds the question: then there is no one plan.

    ``workload`` is the one that the curves are of; ``front_commands`` evaluate the deployments of the front.
    ``searched``: the front by search, where one was asked for or the scenario has knobs; else null.
    """

    schema_version: Literal[1] = 1
    scenario: str
    workload: str
    plan: Plan | None
    front: Front
    front_commands: tuple[str, ...]
    searched: Front | None = None
    ways: tuple[Way, ...]
    speeds: tuple[Speed, ...]
    roof_axes: RoofAxes
    roofs: tuple[Roof, ...]
    provenance: Provenance

"""The front document: what ``plan pareto`` answers. Units in the names; a field without a value is null."""

from __future__ import annotations

from typing import Literal

from planner.schema.base import Document
from planner.schema.documents import Conflict, Deployment, PowerByBasis, Provenance
from planner.words import Counts, FrontMethod, PowerBasis


class FrontReference(Document):
    """Where the hypervolume is measured from: points below the one or above the other count nothing."""

    interactivity_tps: float
    energy_j_per_token: float


class FrontPoint(Document):
    """A non-dominated point: the worst interactivity of all workloads, and energy on the front's power basis.

    ``energy_j_per_token``: watts per output token/s, PUE included. ``tps_per_kw``, as everywhere, is per kW of forward
    power without PUE. ``deployment`` is the one that the interactivity is of; ``others`` serve the rest.
    """

    interactivity_tps: float
    energy_j_per_token: float
    tps_per_kw: float
    ttft_s: float
    usd_per_million_tokens: float | None
    power_w: PowerByBasis
    deployment: Deployment
    others: tuple[Deployment, ...]


class Front(Document):
    """The answer of ``plan pareto``: points by rising interactivity; ``knee`` is the position of one of them.

    ``exact``: proven to be the whole front. ``rates_rps``: what is served, by workload.
    """

    schema_version: Literal[1] = 1
    scenario: str
    method: FrontMethod
    exact: bool
    power_basis: PowerBasis
    counts: Counts
    rates_rps: dict[str, float]
    points: tuple[FrontPoint, ...]
    knee: int | None
    hypervolume: float | None
    reference_point: FrontReference | None
    infeasibility: tuple[Conflict, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    provenance: Provenance

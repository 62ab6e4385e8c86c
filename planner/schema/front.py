"""The front document: what ``plan pareto`` answers. Units in the names; a field without a value is null."""

from __future__ import annotations

from typing import Literal

from planner.schema.base import Document
from planner.schema.documents import Conflict, Deployment, PowerByBasis, Provenance
from planner.schema.scenario import Scalar
from planner.words import Counts, FrontMethod, PowerBasis


class FrontReference(Document):
    """Where the hypervolume is measured from: points below the one or above the other count nothing."""

    interactivity_tps: float
    energy_j_per_token: float


class Trial(Document):
    """Which trial of a search found a point, and what it had sampled.

    ``interactivity_floor`` is a share of the way, on a logarithmic scale, from the slowest to the fastest plan of the
    trial's own problem.
    """

    number: int
    parameters: dict[str, Scalar | None]


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
    trial: Trial | None = None


class Search(Document):
    """How a search went.

    Attributes
    ----------
    trials, infeasible, without_design, refused
        Trials that are finished; those that break a limit; those whose restrictions leave no design at all; those whose
        values do not fit together.
    warm_started
        Trials that began with a design of the exact front.
    exact_hypervolume, share_of_exact
        Of the exact front of the same space, from the same reference point; null where none is known.
    importance
        By parameter, its share in what sets trials near the front apart from the others; adds up to 1.
    history
        Hypervolume after each finished trial.
    nearest
        Where no trial meets the limits: by limit how far the nearest one is beyond it, as a share of its bound.
    """

    study: str
    sampler: str
    seed: int
    trials: int
    infeasible: int
    without_design: int
    refused: int = 0
    warm_started: int
    exact_hypervolume: float | None
    share_of_exact: float | None
    importance: dict[str, float]
    history: tuple[float, ...]
    nearest: dict[str, float] = {}


class Front(Document):
    """The answer of ``plan pareto``: points by rising interactivity; ``knee`` is the position of one of them.

    ``exact``: proven to be the whole front. ``search``: how it was found where it is not; else null. ``rates_rps``:
    what is served, by workload.
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
    search: Search | None = None
    infeasibility: tuple[Conflict, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    provenance: Provenance

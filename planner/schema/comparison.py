"""The comparison document: two plans side by side, and what each bears. Units in the names; SI in ``headroom``.

A field without a value is null. ``a`` and ``b`` are the plans in the order in which they were named.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from planner.schema.base import Document
from planner.schema.documents import Conflict, Placement, Plan, PoolMember, PowerByBasis, Provenance
from planner.words import Layout, LimitName, Objective, Phase, PowerBasis, Status

CountedBy = Literal["devices_per_host", "data_sheet.host.devices", "replica"]
BreakName = Literal["capacity", "memory", "power_budget"]


class Pair(Document):
    """A figure of both plans; ``relative`` is the difference (b − a) per a, null where a is zero or either is null."""

    a: float | None
    b: float | None
    difference: float | None
    relative: float | None


class FieldChange(Document):
    """A field of scenario or catalog that differs, by dotted key. Null where a side does not have it or leaves it out.

    An entry that only one side has stands as a whole.
    """

    key: str
    a: JsonValue
    b: JsonValue


class DeviceChange(Document):
    """Devices of one type in both fleets; figures are null where the catalog counts request slots."""

    device: str
    devices: Pair
    nodes: Pair
    provisioned_w: Pair
    usd_per_hour: Pair


class Drafting(Document):
    """Who proposes for a share of a workload, how far ahead, and which phases share the replicas that verify."""

    proposer: str | None
    draft_length: int
    layout: Layout
    share: float


class DraftingChange(Document):
    """The drafting of the ``number``-th design of a workload in both plans; null where a plan has no such design."""

    workload: str
    number: int
    a: Drafting | None
    b: Drafting | None
    same: bool


class Place(Placement):
    """Where a phase runs; ``pool_replicas`` and ``pool_devices`` are what its pool has, spares included."""

    pool_replicas: float
    pool_devices: float


class PlacementChange(Document):
    """Where a phase of the ``number``-th design of a workload runs in both plans; null where it does not run.

    ``same``: device type, tensor-parallel degree and batch size are.
    """

    workload: str
    number: int
    phase: Phase
    a: Place | None
    b: Place | None
    same: bool


class TotalsChange(Document):
    """The totals of both plans: power on all bases, PUE included, and cost."""

    throughput_tps: Pair
    request_rate_rps: Pair
    power_forward_w: Pair
    power_average_w: Pair
    power_provisioned_w: Pair
    tps_per_kw: Pair
    usd_per_hour: Pair
    usd_per_million_tokens: Pair


class ServiceChange(Document):
    """What a workload gets in both plans.

    Over its designs: the sum of rates and throughputs, the worst interactivity and TTFT, tokens per step and energy
    per output token over all its tokens.
    """

    workload: str
    request_rate_rps: Pair
    throughput_tps: Pair
    interactivity_tps: Pair
    ttft_s: Pair
    tokens_per_step: Pair
    energy_j_per_token: Pair


class Headroom(Document):
    """A limit in one plan; ``left``: slack per bound. Value, slack and left are null where nothing is deployed."""

    bound: float
    value: float | None
    slack: float | None
    left: float | None


class HeadroomChange(Document):
    """A limit under both plans; null where only the other one has it.

    ``number`` tells rows of the same limit apart, such as the memory of a phase in several designs. ``device`` is null
    also where memory is that of different device types.
    """

    name: LimitName
    workload: str | None
    device: str | None
    rack: str | None
    phase: Phase | None
    basis: PowerBasis | None
    number: int
    unit: str
    a: Headroom | None
    b: Headroom | None


class Breach(Document):
    """What does not hold: the capacity or memory of a pool, or the power budget.

    ``needed`` and ``available``: replicas of the pool that serve, spares left out, or watts on the budget's basis.
    ``at_growth``: the growth of all rates beyond which it breaks. Null for the loss of a server.
    """

    name: BreakName
    pool: str | None
    device: str | None
    phases: tuple[PoolMember, ...]
    needed: float
    available: float
    at_growth: float | None


class WorkloadLeft(Document):
    """What the worst loss of a server for this workload leaves to it: a share of the plan's rate, and the rate.

    Null where several designs of the workload share pools or shares of devices. ``meets_demand`` is null also where no
    demand is set.
    """

    workload: str
    rate_share: float | None
    rate_rps: float | None
    meets_demand: bool | None


class ServerLost(Document):
    """One server of a device type lost, out of the pool where that leaves the least.

    ``devices_lost`` make a server; ``counted_by`` says what knows that: the catalog, or a replica of the pool where it
    does not. Pools of whole replicas lose whole ones; spares stand in. ``rate_share``: what the pool's designs can
    still serve of their rates; ``workloads``: all that run on the device type. ``utilization_needed``: busy share of
    what is left at the full rate, null where nothing is left. Where servers are not counted, ``reason`` says why and
    the rest is null.
    """

    device: str
    devices_lost: float | None
    counted_by: CountedBy | None
    pool: str | None
    phases: tuple[PoolMember, ...]
    replicas_before: float | None
    replicas_left: float | None
    serves: bool | None
    breach: Breach | None
    rate_share: float | None
    workloads: tuple[WorkloadLeft, ...]
    utilization_needed: float | None
    reason: str | None


class GrownAsBought(Document):
    """All rates grown on the fleet as bought: what breaks, in the order in which it does, and the power then.

    ``power_w`` is what the rates would draw if nothing broke.
    """

    serves: bool
    breaches: tuple[Breach, ...]
    power_w: PowerByBasis


class PlannedAnew(Document):
    """The question at grown rates, planned anew under all other limits.

    ``objective`` is the question's own, but for throughput, which turns into the least power (or cost, or energy, where
    a device lacks the figure) at these rates. ``devices`` by type is null where the catalog counts request slots.
    ``infeasibility``: the smallest set of limits in conflict. ``reason`` says why nothing was planned.
    """

    status: Status | None
    objective: Objective | None
    devices: dict[str, float] | None
    power_w: PowerByBasis
    usd_per_hour: float | None
    infeasibility: tuple[Conflict, ...]
    reason: str | None


class GrowthStep(Document):
    """All rates grown by a fraction."""

    growth: float
    request_rate_rps: dict[str, float]
    as_bought: GrownAsBought | None
    anew: PlannedAnew


class Growth(Document):
    """What growth of all rates does to a plan.

    ``carried``: the largest growth that the fleet as bought serves, spares left out; ``breaches``: what breaks first
    beyond it. Null and empty where ``reason`` says why.
    """

    carried: float | None
    breaches: tuple[Breach, ...]
    steps: tuple[GrowthStep, ...]
    reason: str | None


class Side(Document):
    """One of the two plans, the file that it came from, and what it bears (nothing where it deploys nothing)."""

    file: str
    plan: Plan
    servers_lost: tuple[ServerLost, ...]
    growth: Growth | None


class Comparison(Document):
    """The answer of ``plan review``."""

    schema_version: Literal[1] = 1
    a: Side
    b: Side
    question: tuple[FieldChange, ...]
    fleet: tuple[DeviceChange, ...]
    drafting: tuple[DraftingChange, ...]
    placements: tuple[PlacementChange, ...]
    totals: TotalsChange
    service: tuple[ServiceChange, ...]
    headroom: tuple[HeadroomChange, ...]
    provenance: Annotated[Provenance, Field(description="What made the comparison; the plans hold their own.")]

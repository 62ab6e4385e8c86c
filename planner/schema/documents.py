"""What is answered: plan and evaluation documents. Numbers in the units of their names, SI in ``limits``.

A field without a value is null, never absent and never a made-up zero.
"""

from __future__ import annotations

from typing import Literal

from planner.schema.base import Document
from planner.schema.scenario import AcceptanceCase
from planner.words import Layout, LimitName, Objective, Phase, PowerBasis, ProposerKind, Status

BaselineName = Literal["no_speculation", "single_device", "draft_on_fastest", "split_draft", "aggregated"]


class ObjectiveResult(Document):
    """What was optimized, the value reached, the best bound proven and the relative gap between them."""

    name: Objective
    value: float | None
    best_bound: float | None
    gap: float | None
    unit: str


class Placement(Document):
    """Where one phase runs. ``replicas`` and ``devices`` are the phase's own use, fractional."""

    pool: str
    device: str
    tensor_parallel: int
    batch_size: int
    replicas: float
    devices: float
    utilization: float


class Metrics(Document):
    """Metrics of one deployment; ``energy_share`` sums to 1 over its non-null phases and transfers."""

    tokens_per_step: float
    step_time_s: float
    interactivity_tps: float
    tpot_s: float
    ttft_s: float
    request_rate_rps: float
    throughput_tps: float
    energy_j_per_request: float
    energy_j_per_token: float
    tps_per_kw: float
    energy_share: dict[Phase | Literal["transfers"], float | None]


class Deployment(Document):
    """One design serving a share of one workload; ``layout`` says which phases share the replicas that verify."""

    workload: str
    share: float
    proposer: str | None
    proposer_kind: ProposerKind | None
    draft_length: int
    verify_tokens: int
    layout: Layout
    placements: dict[Phase, Placement | None]
    metrics: Metrics


class PoolMember(Document):
    """A phase that a pool serves; ``deployment`` is its position in ``deployments``."""

    workload: str
    deployment: int
    phase: Phase


class Pool(Document):
    """Bought replicas of one (model set, device type, tensor-parallel degree); ``replicas`` counts the spares too."""

    name: str
    models: tuple[str, ...]
    device: str
    tensor_parallel: int
    replicas: float
    spare_replicas: int
    devices: float
    utilization: float
    phases: tuple[PoolMember, ...]


class FleetRow(Document):
    """Devices of one type. ``devices`` is null where the catalog counts request slots, which are never summed.

    ``devices`` counts whole nodes where devices are bought so; ``bought`` is what is not owned yet; ``racks`` holds the
    nodes (or devices) in each rack.
    """

    device: str
    devices: float | None
    available: int | None
    nodes: float | None
    owned: int | None
    bought: float | None
    racks: dict[str, float] | None
    provisioned_w: float | None
    usd_per_hour: float | None


class PowerByBasis(Document):
    """Power on the three bases, PUE included; null where a device lacks what the basis needs."""

    forward: float | None
    average: float | None
    provisioned: float | None


class Totals(Document):
    """The whole deployment. ``tps_per_kw`` is per kW of forward power, PUE left out."""

    throughput_tps: float | None
    request_rate_rps: float | None
    power_w: PowerByBasis
    tps_per_kw: float | None
    usd_per_hour: float | None
    usd_per_million_tokens: float | None


class LimitRow(Document):
    """A limit, how far the plan is from it, and what moving it buys.

    ``marginal_value``: change of the objective per unit of the bound, by re-solving at bound + ``marginal_delta``.
    """

    name: LimitName
    workload: str | None
    device: str | None
    rack: str | None
    phase: Phase | None
    basis: PowerBasis | None
    unit: str
    bound: float
    value: float | None
    slack: float | None
    binding: bool | None
    marginal_value: float | None
    marginal_delta: float | None


class PayoffBatch(Document):
    """A draft beside plain decode on the same replicas at one batch.

    ``speedup``: of the interactivity. ``cost_ratio``: of the power per output token, on the scenario's power basis
    (of forward energy where power is not known); below 1 drafting saves.
    """

    batch_size: int
    proposer: str
    draft_length: int
    speedup: float
    cost_ratio: float


class Payoff(Document):
    """Whether speculation pays for a deployment.

    ``chosen``: its own draft (null in plain decode). ``batches``: the draft that costs least at every batch of the
    replicas that verify. ``stops_at_batch``: from here on none saves anything; null where one still does at the
    largest batch on offer.
    """

    deployment: int
    workload: str
    device: str
    tensor_parallel: int
    batch_size: int
    chosen: PayoffBatch | None
    batches: tuple[PayoffBatch, ...]
    stops_at_batch: int | None


class Baseline(Document):
    """A usual way to deploy, solved under the same limits; where it cannot meet them, its best interactivity."""

    name: BaselineName
    objective_value: float | None
    throughput_tps: float | None
    interactivity_tps: float | None
    ttft_s: float | None
    tps_per_kw: float | None
    violates: tuple[LimitName, ...]


class Alternative(Document):
    """A plan with another placement than the best one and than those before it.

    ``loss``: how much worse its objective is than the plan's, in the objective's unit; ``loss_share``: of the plan's.
    """

    objective_value: float
    loss: float
    loss_share: float | None
    deployments: tuple[Deployment, ...]
    pools: tuple[Pool, ...]
    fleet: tuple[FleetRow, ...]
    totals: Totals


class Alternatives(Document):
    """The best plans that differ in placement (the device type of every phase), best first.

    ``proven``: no other placement comes before the last of them; where it is false the time ended the list. Fewer than
    ``asked`` with proof means that there are no more.
    """

    asked: int
    proven: bool
    plans: tuple[Alternative, ...]


class CaseService(Document):
    """What users of one deployment see in one case of acceptance."""

    workload: str
    tokens_per_step: float
    interactivity_tps: float
    ttft_s: float
    energy_j_per_token: float


class AcceptanceCaseResult(Document):
    """What one case of acceptance makes of a plan: same designs, rates and replicas.

    ``case``: a factor on the rate of accepted drafts, or a task. ``carried_share``: share of the plan's request rate
    that its replicas carry, below 1 where they are too few. Figures are null where the draft length lies beyond what
    the task's curve covers.
    """

    case: AcceptanceCase
    services: tuple[CaseService, ...]
    power_w: PowerByBasis | None
    carried_share: float | None
    violates: tuple[LimitName, ...] | None


class DesignSummary(Document):
    """Who proposes for a workload, how far ahead, and the device type of every phase."""

    workload: str
    proposer: str | None
    draft_length: int
    devices: dict[Phase, str | None]


class NominalPlan(Document):
    """The best plan for the catalog's own acceptance, and what every case of the range makes of it."""

    objective_value: float | None
    designs: tuple[DesignSummary, ...]
    cases: tuple[AcceptanceCaseResult, ...]


class Robustness(Document):
    """What a range of acceptance does to the plan, and what holding its limits over the range costs.

    ``price``: how much worse the objective is than that of the best plan for the catalog's own acceptance, in the
    objective's unit; ``price_share``: of that plan's. Null where one of both is not known.
    """

    cases: tuple[AcceptanceCaseResult, ...]
    nominal: NominalPlan | None
    price: float | None
    price_share: float | None


class Conflict(Document):
    """One limit of the smallest set in conflict, and the nearest value that is achievable holding the others.

    A row with nothing in ``holding`` says what no design exceeds, whatever the other limits. ``suffices``: moving this
    limit alone to the achievable value gives a plan; where it is false, further limits stand in the way.
    """

    limit: LimitName
    workload: str | None
    device: str | None
    rack: str | None
    unit: str
    asked: float
    achievable: float | None
    holding: dict[str, float]
    suffices: bool


class Provenance(Document):
    """What made the document, so that it can be made again."""

    version: str
    solver: str | None
    runtime_s: float
    catalogs: dict[str, str]
    command: str | None


class Plan(Document):
    """The answer of ``plan``.

    ``alternatives`` is null where none are asked for, ``robustness`` where the scenario has no range of acceptance.
    """

    schema_version: Literal[1] = 1
    status: Status
    scenario: str
    objective: ObjectiveResult
    deployments: tuple[Deployment, ...]
    pools: tuple[Pool, ...]
    fleet: tuple[FleetRow, ...]
    totals: Totals
    limits: tuple[LimitRow, ...]
    baselines: tuple[Baseline, ...]
    payoffs: tuple[Payoff, ...]
    infeasibility: tuple[Conflict, ...]
    alternatives: Alternatives | None = None
    robustness: Robustness | None = None
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    provenance: Provenance


class Evaluation(Deployment):
    """The answer of ``plan evaluate``: one deployment, no limit applied."""

    schema_version: Literal[1] = 1
    scenario: str
    power_w: PowerByBasis
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    provenance: Provenance

"""Why a plan is as it is: what moving each limit buys, and what each choice's runner-up would lose."""

from __future__ import annotations

from typing import Literal

from planner.schema.base import Document
from planner.schema.documents import Conflict, DesignSummary, ObjectiveResult, Provenance
from planner.words import LimitName, Phase, PowerBasis, Status

ChoiceName = Phase | Literal["proposer", "draft_length"]


class Move(Document):
    """One limit moved to the looser side, and the best plan there.

    ``moved_to`` is null where the limit is dropped. ``objective_value`` and ``change`` are null where nothing bounds
    the objective then (``unbounded``) or where the time did not suffice.
    """

    moved_to: float | None
    objective_value: float | None
    change: float | None
    change_share: float | None
    unbounded: bool
    designs: tuple[DesignSummary, ...]


class ExplainedLimit(Document):
    """A limit of the plan, in SI units, and what more of it would buy.

    ``step``: moved by +1 kW, +1 USD/h, +1 device (or node), or by 10 % of a floor, a ceiling or a demand. ``dropped``
    is null where the question makes no sense without the limit: a demand, where something else than throughput is best.
    """

    name: LimitName
    workload: str | None
    device: str | None
    rack: str | None
    basis: PowerBasis | None
    unit: str
    bound: float
    value: float | None
    binding: bool | None
    step: Move
    dropped: Move | None


class PhaseFigures(Document):
    """What one phase takes in one plan. ``operation_s``: a prefill, a verify or a whole draft of the batch.

    Null for a phase that another one hosts.
    """

    option: str
    operation_s: float | None
    energy_j_per_token: float
    devices: float


class Choice(Document):
    """One choice of the plan, and the best plan that makes it differently.

    ``chosen`` and ``runner_up``: device types of a phase, proposers (null: none, plain decode) or draft lengths.
    ``objective_value``, ``loss`` and ``designs`` are of the best plan with the runner-up; null and empty where there is
    none: ``blocked_by`` then names a smallest set of limits that no such plan meets (empty: nothing else is on offer).
    ``pinned``: the scenario leaves no choice, so that none is looked for.
    ``power_w``: of that plan, on the scenario's basis. ``figures``: of the phase in the plan and in that with the
    runner-up.
    """

    workload: str
    choice: ChoiceName
    chosen: str | int | None
    runner_up: str | int | None
    objective_value: float | None
    loss: float | None
    loss_share: float | None
    interactivity_tps: float | None
    ttft_s: float | None
    power_w: float | None
    figures: tuple[PhaseFigures, ...]
    designs: tuple[DesignSummary, ...]
    proven: bool
    pinned: bool
    blocked_by: tuple[LimitName, ...]


class Nearest(Document):
    """A limit in conflict, and the best plan where it alone is moved to its nearest achievable value.

    ``objective_value`` is null where moving it alone does not suffice.
    """

    conflict: Conflict
    objective_value: float | None
    designs: tuple[DesignSummary, ...]


class Explanation(Document):
    """The answer of ``plan explain``.

    ``power_w``: of the plan, on the scenario's basis. ``limits`` and ``choices`` are empty unless the plan is proven.
    """

    schema_version: Literal[1] = 1
    scenario: str
    status: Status
    objective: ObjectiveResult
    power_w: float | None
    designs: tuple[DesignSummary, ...]
    limits: tuple[ExplainedLimit, ...]
    choices: tuple[Choice, ...]
    infeasibility: tuple[Nearest, ...]
    warnings: tuple[str, ...]
    provenance: Provenance

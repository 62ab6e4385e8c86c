"""The words of the field as this project uses them: phases, limits, objectives, bases.

This module imports nothing, so that the command line can offer the choices without loading the model.
"""

from __future__ import annotations

from typing import Literal, get_args

Phase = Literal["target_prefill", "target_verify", "draft_prefill", "draft_decode"]
Objective = Literal["throughput", "power", "cost", "energy", "interactivity"]
Counts = Literal["integer", "fractional"]
PowerBasis = Literal["provisioned", "average", "forward"]
FirstToken = Literal["after_prefill", "after_verify"]
LimitName = Literal[
    "power_budget", "cost_budget", "inventory", "interactivity_floor", "ttft_ceiling", "demand", "memory"
]
ProposerKind = Literal["draft_model", "eagle3", "medusa", "mtp", "ngram", "tree", "dspark"]
Layout = Literal["disaggregated", "colocated_drafter", "aggregated_target", "aggregated"]
Status = Literal["optimal", "feasible", "infeasible", "no_incumbent"]
Confidence = Literal["read", "derived", "recalled", "assumed"]
READS_HIDDEN_STATES: frozenset[ProposerKind] = frozenset({"eagle3", "dspark", "medusa", "mtp"})
CountUnit = Literal["devices", "request_slots"]
FrontMethod = Literal["optuna", "exact"]
SamplerName = Literal["auto", "tpe", "nsga2", "random"]

PHASES: tuple[Phase, ...] = get_args(Phase)
DRAFT_PHASES: tuple[Phase, ...] = ("draft_prefill", "draft_decode")
STEP_PHASES: tuple[Phase, ...] = ("target_verify", "draft_decode")
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
COUNTS: tuple[Counts, ...] = get_args(Counts)
POWER_BASES: tuple[PowerBasis, ...] = get_args(PowerBasis)
SAMPLERS: tuple[SamplerName, ...] = get_args(SamplerName)
FRONT_METHODS: tuple[FrontMethod, ...] = get_args(FrontMethod)

DEFAULT_TRIALS = 300

OBJECTIVE_UNITS: dict[Objective, str] = {
    "throughput": "tok/s",
    "power": "W",
    "cost": "USD/h",
    "energy": "J/token",
    "interactivity": "tok/s",
}
MAXIMIZED: frozenset[Objective] = frozenset({"throughput", "interactivity"})

LIMIT_UNITS: dict[LimitName, str] = {
    "power_budget": "W",
    "cost_budget": "USD/h",
    "inventory": "device",
    "interactivity_floor": "tok/s",
    "ttft_ceiling": "s",
    "demand": "request/s",
    "memory": "sequence",
}

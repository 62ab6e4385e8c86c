"""One request of one design: step time, interactivity, TTFT, energy, busy time. Pure formulas, no solver."""

from __future__ import annotations

from dataclasses import dataclass

from planner.options import CostTable, Option, Speculation, cost_table
from planner.schema.scenario import Scenario
from planner.transfers import FREE, Transfer, kv_transfer, step_exchange
from planner.words import PHASES, Phase


@dataclass(frozen=True)
class Design:
    """For a share of one workload: who proposes, how far ahead, and an option per phase (null if it does not run)."""

    workload: str
    speculation: Speculation
    options: dict[Phase, Option | None]


@dataclass(frozen=True)
class PhaseUse:
    """What a request asks of a phase: busy replica-seconds, joules, and sequences that a replica holds."""

    busy_s: float
    energy_j: float
    sequences: float


@dataclass(frozen=True)
class RequestMetrics:
    """Metrics of one request. ``residency_s`` is how long a sequence is held while it is decoded, N × step time."""

    tokens_per_step: float
    steps: float
    step_time_s: float
    interactivity_tps: float
    tpot_s: float
    ttft_s: float
    energy_j: float
    transfer_energy_j: float
    residency_s: float
    phases: dict[Phase, PhaseUse | None]


def step_time_s(draft_s: float, verify_s: float, link_s: float = 0.0) -> float:
    """Step time = t_draft(D) + t_verify(D) + t_link."""
    return draft_s + verify_s + link_s


def interactivity_tps(tokens_per_step: float, step_s: float) -> float:
    """Output tokens/s that one request sees after its first token: E/step time."""
    return tokens_per_step / step_s


def ttft_after_prefill_s(prefill_s: float, kv_s: float = 0.0) -> float:
    """TTFT where the prefill gives the first token: t_target_prefill + exposed KV transfer."""
    return prefill_s + kv_s


def ttft_after_verify_s(
    target_s: float, draft_s: float, verify_s: float, target_kv_s: float = 0.0, hidden_states: bool = False
) -> float:
    """TTFT where the first verify gives the first token.

    max(t_target_prefill, t_draft_prefill + t_draft(D)) + t_verify; the terms add where the proposer needs the target's
    hidden states. ``draft_s`` is draft prefill, its exposed KV transfer, the first draft and its exchange.

    >>> round(ttft_after_verify_s(0.150, 0.1725, 0.040), 4), round(ttft_after_verify_s(0.150, 0.0425, 0.040), 4)
    (0.2125, 0.19)
    """
    if hidden_states:
        return target_s + max(target_kv_s, draft_s) + verify_s
    return max(target_s + target_kv_s, draft_s) + verify_s


@dataclass(frozen=True)
class DesignTransfers:
    """Transfers of one design; free within one device type."""

    target_kv: Transfer
    draft_kv: Transfer
    step: Transfer


def transfers_of(scenario: Scenario, design: Design) -> DesignTransfers:
    """Give the transfers that a design's pairs of device types need."""

    def apart(a: Phase, b: Phase) -> bool:
        one, other = design.options[a], design.options[b]
        return one is not None and other is not None and one.device != other.device

    proposer, length = design.speculation.proposer, design.speculation.draft_length
    workload = design.workload
    target_kv = kv_transfer(scenario, workload, scenario.target) if apart("target_prefill", "target_verify") else FREE
    draft_kv = step = FREE
    if proposer is not None and apart("draft_prefill", "draft_decode"):
        draft_kv = kv_transfer(scenario, workload, scenario.catalog.proposers[proposer].model)
    if apart("target_verify", "draft_decode"):
        step = step_exchange(scenario, proposer, length)
    return DesignTransfers(target_kv, draft_kv, step)


def request_metrics(scenario: Scenario, design: Design, table: CostTable | None = None) -> RequestMetrics:
    """Compute a design's metrics from the cost table.

    Parameters
    ----------
    scenario, design
        What to evaluate. No limit is applied.
    table
        The table to read, by default one made for this design's speculation.

    Raises
    ------
    KeyError
        If an option is not one that the scenario offers for its phase.
    """
    table = table or cost_table(scenario, design.workload, [design.speculation])
    s = table.speculations.index(design.speculation)
    latency: dict[Phase, float] = dict.fromkeys(PHASES, 0.0)
    uses: dict[Phase, PhaseUse | None] = dict.fromkeys(PHASES)
    for phase in PHASES:
        option, costs = design.options[phase], table.phases[phase]
        if not table.runs(phase)[s]:
            continue
        if option is None or option.bare not in costs.options:
            raise KeyError(f"{phase} cannot run on {option}")
        o = costs.options.index(option.bare)
        latency[phase] = float(costs.latency_s[o, s])
        uses[phase] = PhaseUse(
            float(table.busy_s(phase)[o, s]),
            float(table.energy_per_request_j(phase)[o, s]),
            float(costs.sequences[o, s]),
        )
    return _combine(scenario, design, table, s, latency, uses)


def _combine(
    scenario: Scenario,
    design: Design,
    table: CostTable,
    s: int,
    latency: dict[Phase, float],
    uses: dict[Phase, PhaseUse | None],
) -> RequestMetrics:
    moved = transfers_of(scenario, design)
    E, steps = float(table.tokens_per_step[s]), float(table.steps[s])
    step_s = step_time_s(latency["draft_decode"], latency["target_verify"], moved.step.exposed_s)
    tps = interactivity_tps(E, step_s)
    if table.first_from_prefill[s]:
        ttft_s = ttft_after_prefill_s(latency["target_prefill"], moved.target_kv.exposed_s)
    else:
        draft_s = latency["draft_prefill"] + moved.draft_kv.exposed_s + latency["draft_decode"] + moved.step.exposed_s
        ttft_s = ttft_after_verify_s(
            latency["target_prefill"],
            draft_s,
            latency["target_verify"],
            moved.target_kv.exposed_s,
            bool(table.hidden_states[s]),
        )
    transfer_j = moved.target_kv.energy_j + moved.draft_kv.energy_j + steps * moved.step.energy_j
    return RequestMetrics(
        tokens_per_step=E,
        steps=steps,
        step_time_s=step_s,
        interactivity_tps=tps,
        tpot_s=1.0 / tps,
        ttft_s=ttft_s,
        energy_j=sum(use.energy_j for use in uses.values() if use is not None) + transfer_j,
        transfer_energy_j=transfer_j,
        residency_s=steps * step_s,
        phases=uses,
    )

"""One request of one design: step time, interactivity, TTFT, energy, busy time. Pure formulas, no solver."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.options import CostTable, Option, Speculation, cost_table, hosted_by_verify
from planner.schema.catalog import Link
from planner.schema.scenario import Scenario
from planner.transfers import FREE, Transfer, hidden_transfer, kv_transfer, link_between, step_exchange
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
    hidden: Transfer
    step: Transfer


def transfers_of(scenario: Scenario, design: Design, tokens_per_step: float) -> DesignTransfers:
    """Give the transfers that a design's pairs of device types need; a hosted phase is where verification is."""
    hosted, verify = hosted_by_verify(scenario, design.speculation), design.options["target_verify"]

    def place(phase: Phase) -> str | None:
        option = verify if phase in hosted else design.options[phase]
        return None if option is None else option.device

    def link(one: Phase, other: Phase) -> tuple[str, Link | None]:
        start, end = place(one), place(other)
        return start or "", None if start is None or end is None else link_between(scenario, start, end)

    speculation, workload = design.speculation, design.workload
    proposer = speculation.proposer
    target_kv = kv_transfer(scenario, workload, *link("target_prefill", "target_verify"), scenario.target)
    model = None if proposer is None else scenario.catalog.proposers[proposer].model
    draft_kv = hidden = FREE
    if proposer is not None and model is not None:
        draft_kv = kv_transfer(scenario, workload, *link("draft_prefill", "draft_decode"), model)
        hidden = hidden_transfer(scenario, workload, link("target_prefill", "draft_prefill")[1], proposer)
    between = link("target_verify", "draft_decode")[1]
    step = step_exchange(scenario, between, proposer, speculation.nodes, tokens_per_step)
    return DesignTransfers(target_kv, draft_kv, hidden, step)


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
    row = {phase: _row(table, design, phase) for phase in PHASES if table.runs(phase)[s]}
    latency = {phase: float(table.phases[phase].latency_s[o, s]) for phase, o in row.items()}
    uses: dict[Phase, PhaseUse | None] = dict.fromkeys(PHASES)
    for phase, o in row.items():
        uses[phase] = PhaseUse(
            float(table.busy_s(phase)[o, s]),
            float(table.energy_per_request_j(phase)[o, s]),
            float(table.phases[phase].sequences[o, s]),
        )
    for phase in hosted_by_verify(scenario, design.speculation):
        uses[phase], uses["target_verify"] = _split(table, uses["target_verify"], phase, row["target_verify"], s)
    return _combine(scenario, design, table, s, row["target_verify"], latency, uses)


def _row(table: CostTable, design: Design, phase: Phase) -> int:
    option, options = design.options[phase], table.phases[phase].options
    if option is None or option.bare not in options:
        raise KeyError(f"{phase} cannot run on {option}")
    return options.index(option.bare)


def _split(table: CostTable, verify: PhaseUse | None, phase: Phase, o: int, s: int) -> tuple[PhaseUse, PhaseUse]:
    """Take a hosted phase's part out of what the replicas that verify spend."""
    assert verify is not None  # verification always runs
    part = table.hosted[phase]
    mine = PhaseUse(float(part.busy_s[o, s]), float(part.energy_j[o, s]), np.inf)
    return mine, replace(verify, busy_s=verify.busy_s - mine.busy_s, energy_j=verify.energy_j - mine.energy_j)


def _combine(
    scenario: Scenario,
    design: Design,
    table: CostTable,
    s: int,
    verify: int,
    latency: dict[Phase, float],
    uses: dict[Phase, PhaseUse | None],
) -> RequestMetrics:
    E, steps = float(table.tokens_per_step[s]), float(table.steps[s])
    moved = transfers_of(scenario, design, E)
    step_s = step_time_s(latency.get("draft_decode", 0.0), latency["target_verify"], moved.step.exposed_s)
    tps = interactivity_tps(E, step_s)
    transfer_j = moved.target_kv.energy_j + moved.draft_kv.energy_j + moved.hidden.energy_j
    transfer_j += steps * moved.step.energy_j
    return RequestMetrics(
        tokens_per_step=E,
        steps=steps,
        step_time_s=step_s,
        interactivity_tps=tps,
        tpot_s=1.0 / tps,
        ttft_s=_ttft_s(table, s, verify, latency, moved),
        energy_j=sum(use.energy_j for use in uses.values() if use is not None) + transfer_j,
        transfer_energy_j=transfer_j,
        residency_s=steps * step_s,
        phases=uses,
    )


def _ttft_s(table: CostTable, s: int, verify: int, latency: dict[Phase, float], moved: DesignTransfers) -> float:
    """Time of the first token: the longer of its ways, through the target's prefill and through the first draft.

    What the replicas that verify add to each way is in the table: the first verify, and what they host of it.
    """
    prefill_s = latency.get("target_prefill", 0.0)
    after_prefill_s = moved.target_kv.exposed_s + float(table.through_target_s[verify, s])
    if table.first_from_prefill[s]:
        return ttft_after_prefill_s(prefill_s, after_prefill_s)
    draft_s = latency.get("draft_prefill", 0.0) + moved.draft_kv.exposed_s + moved.hidden.exposed_s
    draft_s += latency.get("draft_decode", 0.0) + moved.step.exposed_s + float(table.through_draft_s[verify, s])
    return ttft_after_verify_s(prefill_s, draft_s, 0.0, after_prefill_s, bool(table.hidden_states[s]))

"""The answer in words."""

from __future__ import annotations

from collections.abc import Sequence

from planner.report.numbers import LIMIT_WORDS, figure, in_unit, percent, signed
from planner.schema import documents as doc
from planner.words import MAXIMIZED, PHASES, Phase


def phase_words(phase: Phase) -> str:
    """Write a phase as a person says it.

    >>> phase_words("draft_decode")
    'draft decode'
    """
    return phase.replace("_", " ")


def placement_sentence(deployment: doc.Deployment) -> str:
    """Say which phase runs on which device type."""
    where: dict[str, list[str]] = {}
    for phase in PHASES:
        place = deployment.placements[phase]
        if place is not None:
            where.setdefault(place.device, []).append(phase_words(phase))
    return "; ".join(f"{joined(phases)} on {device}" for device, phases in where.items())


def joined(words: list[str]) -> str:
    """Join words as a person lists them.

    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def drafting_sentence(deployment: doc.Deployment) -> str:
    """Say who proposes and how far ahead."""
    layout = "" if deployment.layout == "disaggregated" else f" (layout {deployment.layout})"
    if deployment.proposer is None:
        return f"no speculation: one token per step{layout}"
    tokens = figure(deployment.metrics.tokens_per_step, 3)
    return f"draft length {deployment.draft_length} by {deployment.proposer}{layout}, {tokens} tokens per step"


def service_sentence(deployment: doc.Deployment) -> str:
    """Say what a user sees."""
    m = deployment.metrics
    return f"{figure(m.interactivity_tps)} tok/s per user, first token after {in_unit(m.ttft_s, 's')} unloaded"


def objective_sentence(plan: doc.Plan) -> str:
    """Say what was optimized and what was proven."""
    goal = plan.objective
    best = {"throughput": "most throughput", "interactivity": "highest interactivity"}.get(
        goal.name, f"least {goal.name}"
    )
    value = f"{best}: {in_unit(goal.value, goal.unit)}"
    if plan.status == "optimal":
        return f"{value}; proven, no plan under this model is better"
    if goal.gap is not None and goal.gap <= 1e-6:
        return f"{value}; found at the time limit, its proof not confirmed by a second run"
    side = "at most" if goal.name in MAXIMIZED else "at least"
    bound = f"{side} {in_unit(goal.best_bound, goal.unit)} is possible (gap {percent(goal.gap)})"
    return f"{value}; best found at the time limit, {bound}"


def totals_sentence(plan: doc.Plan) -> str:
    """Say what the deployment delivers and draws."""
    totals = plan.totals
    watts = totals.power_w.model_dump()
    power = ", ".join(f"{in_unit(value, 'W')} {basis}" for basis, value in watts.items() if value is not None)
    parts = [
        f"{figure(totals.throughput_tps)} output tok/s from {figure(totals.request_rate_rps)} requests/s",
        f"power {power}",
        f"{figure(totals.tps_per_kw)} tok/s per kW of forward power",
    ]
    if totals.usd_per_hour is not None:
        parts.append(
            f"{figure(totals.usd_per_hour)} USD/h, {figure(totals.usd_per_million_tokens)} USD per million tokens"
        )
    return "; ".join(parts)


def payoff_sentence(payoff: doc.Payoff, several: bool) -> str:
    """Say whether speculation pays at the load chosen, and from which batch on it would not."""
    who = f"for {payoff.workload}, " if several else ""
    where = payoff.device + (f" (tp {payoff.tensor_parallel})" if payoff.tensor_parallel > 1 else "")
    at = f"at batch {payoff.batch_size} on {where}"
    if payoff.chosen is not None:
        verb = "pays" if payoff.chosen.cost_ratio < 1 else "buys speed with power"
        text = (
            f"{who}speculation {verb}: {at} a user sees {figure(payoff.chosen.speedup, 3)} × the tokens/s of plain"
            f" decode, at {figure(payoff.chosen.cost_ratio, 3)} × the power per output token"
        )
    else:
        text = f"{who}no speculation"
        best = [point.cost_ratio for point in payoff.batches if point.batch_size == payoff.batch_size]
        if best:
            text += f": {at} the best draft takes {figure(best[0], 3)} × the power per output token of plain decode"
    return text + _stops(payoff)


def _stops(payoff: doc.Payoff) -> str:
    if len(payoff.batches) < 2:
        return ""
    if payoff.stops_at_batch is None:
        return f"; drafting saves power up to batch {payoff.batches[-1].batch_size}, the largest on offer"
    if payoff.stops_at_batch == payoff.batches[0].batch_size:
        return "; drafting saves power at no batch on offer"
    return f"; from batch {payoff.stops_at_batch} on no draft saves power"


def answer(plan: doc.Plan) -> list[str]:
    """Give the answer in a few sentences."""
    found = [objective_sentence(plan)]
    for deployment in plan.deployments:
        service = f"{drafting_sentence(deployment)}; {service_sentence(deployment)}"
        if len(plan.deployments) > 1:
            found.append(f"for {deployment.workload}, {service}")
        else:
            found += [placement_sentence(deployment), service]
    found.append(totals_sentence(plan))
    found += [payoff_sentence(payoff, len(plan.deployments) > 1) for payoff in plan.payoffs]
    return [text[0].upper() + text[1:] + "." for text in found]


def marginal_words(row: doc.LimitRow, unit: str) -> str:
    """Say what moving a limit by its step buys."""
    if row.marginal_value is None or row.marginal_delta is None:
        return "–"
    step = signed(row.marginal_delta, row.unit)
    change = row.marginal_value * row.marginal_delta
    if change == 0:
        return "no change"
    return f"{step}: {signed(change, unit)}"


def limit_name(row: doc.LimitRow, several: bool) -> str:
    """Name a limit: with its phase, device or power basis, and with its workload where there are several."""
    phase = phase_words(row.phase) if row.phase else None
    where = [part for part in (row.workload if several else None, phase or row.device, row.rack, row.basis) if part]
    return ", ".join([LIMIT_WORDS[row.name], *where])


def conflict_sentence(conflict: doc.Conflict, several: bool = False) -> str:
    """Say what is nearest to what was asked; ``several``: there are several workloads, so name them."""
    where = conflict.device or conflict.rack or (conflict.workload if several else None)
    name = LIMIT_WORDS[conflict.limit] + (f" ({where})" if where else "")
    asked = in_unit(conflict.asked, conflict.unit)
    reached = in_unit(conflict.achievable, conflict.unit)
    held = ", ".join(_held(key, bound) for key, bound in conflict.holding.items())
    if conflict.limit == "memory":
        return f"memory: a replica holds {reached} at most, the smallest batch needs {asked}"
    if conflict.achievable is None:
        return f"{name}: {asked} asked, and nothing is achievable" + (f" with {held}" if held else "")
    extreme = {
        "interactivity_floor": "no design exceeds",
        "ttft_ceiling": "no design is faster than",
        "demand": "at most",
    }.get(conflict.limit, "at least")
    kept = f"with {held}: " if held else ""
    more = "" if conflict.suffices or not held else ", and further limits then stand in the way"
    return f"{name}: {asked} asked; {kept}{extreme} {reached}{more}"


_HELD_UNITS: dict[str, str] = {
    "power_budget": "W",
    "cost_budget": "USD/h",
    "inventory": "device",
    "interactivity_floor": "tok/s",
    "ttft_ceiling": "s",
    "demand": "request/s",
}


def _held(key: str, bound: float) -> str:
    name, _, where = key.partition("[")
    words = LIMIT_WORDS[name] + (f" ({where.rstrip(']')})" if where else "")  # type: ignore[index]
    return f"{words} {in_unit(bound, _HELD_UNITS[name])}"


def why_none(plan: doc.Plan) -> list[str]:
    """Explain an infeasible question."""
    return reasons(plan.infeasibility)


def reasons(conflicts: Sequence[doc.Conflict]) -> list[str]:
    """Say which limits are in conflict, and what is nearest to each."""
    if not conflicts:
        return [
            "No plan exists, whatever the budgets: stocks, racks, batch fill or shared memory rule every design out."
        ]
    names = dict.fromkeys(LIMIT_WORDS[row.limit] for row in conflicts)
    first = f"No plan meets the {joined(list(names))}" + (" together." if len(names) > 1 else ".")
    named = {row.workload for row in conflicts if row.workload}
    several = len(named) > 1 or any("[" in key for row in conflicts for key in row.holding)
    sentences = [conflict_sentence(row, several) for row in conflicts]
    return [first, *(sentence[0].upper() + sentence[1:] + "." for sentence in sentences)]

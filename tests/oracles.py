"""Plain nested loops over every design of one workload with private pools, from the raw fields of catalog and scenario.

Written from the model page's formulas. Nothing of planner's arithmetic is called: the documents are only read. Slow,
and meant to be: it looks at every proposer, draft length and option per phase, one at a time.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PREFILL, VERIFY, DRAFT_PREFILL, DRAFT = "target_prefill", "target_verify", "draft_prefill", "draft_decode"
PHASES = (PREFILL, VERIFY, DRAFT_PREFILL, DRAFT)
ALMOST_NO_RATE_RPS = 1e-6
# A design that meets a limit exactly meets it, whatever the last bits say.
ROUNDING = 1e-9

Place = tuple[str, int, int]


@dataclass(frozen=True)
class Cost:
    """One operation of one phase on one option, and how many sequences a replica holds."""

    latency_s: float
    energy_j: float
    sequences: float


@dataclass(frozen=True)
class Point:
    """One design with the metrics of one request. ``need``: replicas per request/s, by phase."""

    proposer: str | None
    draft_length: int
    places: dict[str, Place]
    tokens_per_step: float
    steps: float
    step_s: float
    interactivity_tps: float
    ttft_s: float
    energy_j: float
    transfer_j: float
    phase_energy_j: dict[str, float]
    busy_s: dict[str, float]
    capacity: dict[str, float]
    memory: dict[str, float]
    fits: bool

    def need(self, phase: str) -> float:
        return max(self.capacity[phase], self.memory[phase])


@dataclass(frozen=True)
class Best:
    """The optimum: its value, a design that has it, and its rate. ``value`` is null if no design meets the limits."""

    value: float | None
    point: Point | None = None
    rate_rps: float | None = None

    @property
    def feasible(self) -> bool:
        return self.value is not None


# ---------------------------------------------------------------------------------------------- acceptance


def expected_tokens(curve: Any, length: int) -> float:
    if length == 0:
        return 1.0
    if curve.kind == "saturating_exponential":
        return min(max(curve.offset + curve.A * (1.0 - math.exp(-length / curve.tau)), 1.0), length + 1.0)
    if curve.kind == "geometric":
        return sum(curve.alpha**k for k in range(length + 1))
    if curve.kind == "positions":
        total, chance = 1.0, 1.0
        for k in range(length):
            chance *= curve.probabilities[k]
            total += chance
        return total
    return interpolated({0: 1.0, **curve.tokens_per_step}, length)


def interpolated(points: dict[int, float], at: float) -> float:
    for point, value in points.items():
        if point == at:
            return value
    below = max(point for point in points if point < at)
    above = min(point for point in points if point > at)
    return points[below] + (points[above] - points[below]) * (at - below) / (above - below)


def longest_draft(scenario: Any, workload: Any, proposer: Any) -> int:
    curve = proposer.acceptance[scenario.target][workload.task]
    longest = min(scenario.max_draft_length, workload.osl_tokens - 1)
    if proposer.max_draft_length is not None:
        longest = min(longest, proposer.max_draft_length)
    if curve.kind == "positions":
        longest = min(longest, len(curve.probabilities))
    if curve.kind == "table":
        measured = curve.tokens_per_step
        peak = sorted(measured, key=lambda length: (-measured[length], length))[0]
        longest = min(longest, peak)
    return longest


# ------------------------------------------------------------------------------------------------ profiles


def latency_s(form: Any, tokens: int) -> float | None:
    if form.table is not None:
        if not min(form.table) <= tokens <= max(form.table):
            return None
        return interpolated(dict(form.table), tokens) / 1000.0
    if form.constant is not None:
        return form.constant / 1000.0
    if form.floor is not None:
        return max(form.floor, form.per_token * tokens) / 1000.0
    return ((form.base or 0.0) + form.per_token * tokens) / 1000.0


def energy_j(form: Any, tokens: int) -> float:
    if form.constant is not None:
        return form.constant / 1000.0
    return ((form.base or 0.0) + form.per_token * tokens) / 1000.0


def sequences_held(device: Any, model: Any, workload: Any, degree: int) -> float:
    if device.memory_gb is None or model.weights_gb is None or model.kv_bytes_per_token is None:
        return math.inf
    free = ((device.memory_gb - device.reserve_gb) * degree - model.weights_gb) * 1e9
    each = model.kv_bytes_per_token * (workload.isl_tokens + workload.osl_tokens)
    if free < 0:
        return 0.0
    return math.inf if each == 0 else float(int(free / each))


def phase_options(scenario: Any, workload: Any, phase: str, model: str, tokens: int) -> dict[Place, Cost]:
    """Every option of a phase that has a cost at these tokens, whether or not its batch fits."""
    found: dict[Place, Cost] = {}
    for name, device in scenario.catalog.devices.items():
        for key, profile in device.profiles.get(model, {}).get(phase, {}).items():
            degree, batch = re.fullmatch(r"(?:tp(\d+):)?b(\d+)", key).groups()
            place = (name, int(degree or 1), int(batch))
            latency = latency_s(profile.latency_ms, tokens)
            if latency is not None and _is_candidate(scenario, phase, place):
                held = sequences_held(device, scenario.catalog.models[model], workload, place[1])
                found[place] = Cost(latency, energy_j(profile.energy_mj, tokens), held)
    return found


def _is_candidate(scenario: Any, phase: str, place: Place) -> bool:
    allowed = (scenario.candidates.devices, scenario.candidates.tensor_parallel, scenario.candidates.batch_sizes)
    if any(some is not None and value not in some for some, value in zip(allowed, place, strict=True)):
        return False
    if phase not in scenario.places:
        return True
    device, *rest = scenario.places[phase].split(":")
    asked = {part.rstrip("0123456789"): int(part.lstrip("tpb")) for part in rest}
    return device == place[0] and asked.get("tp", place[1]) == place[1] and asked.get("b", place[2]) == place[2]


# ----------------------------------------------------------------------------------------------- one design


def points(scenario: Any) -> Iterator[Point]:
    """Every design of the scenario's only workload, limits not applied."""
    ((name, workload),) = scenario.workloads.items()
    yield from _points_of(scenario, workload, None, 0)
    for name in scenario.proposers:
        for length in range(1, longest_draft(scenario, workload, scenario.catalog.proposers[name]) + 1):
            yield from _points_of(scenario, workload, name, length)


def _points_of(scenario: Any, workload: Any, proposer: str | None, length: int) -> Iterator[Point]:
    prompt = workload.isl_tokens - workload.cached_prefix_tokens
    asked = [(PREFILL, scenario.target, prompt), (VERIFY, scenario.target, length + 1)]
    if proposer is not None:
        drafter = scenario.catalog.proposers[proposer].model
        asked += [(DRAFT_PREFILL, drafter, prompt), (DRAFT, drafter, length)]
    offers = [phase_options(scenario, workload, *each).items() for each in asked]
    for chosen in itertools.product(*offers):
        places = {phase: place for (phase, _, _), (place, _) in zip(asked, chosen, strict=True)}
        costs = {phase: cost for (phase, _, _), (_, cost) in zip(asked, chosen, strict=True)}
        yield point(scenario, workload, proposer, length, places, costs)


def point(
    scenario: Any, workload: Any, proposer: str | None, length: int, places: dict[str, Place], costs: dict[str, Cost]
) -> Point:
    """One design's metrics, from the formulas."""
    entry = None if proposer is None else scenario.catalog.proposers[proposer]
    E = 1.0 if entry is None else expected_tokens(entry.acceptance[scenario.target][workload.task], length)
    from_prefill = length == 0 or scenario.first_token == "after_prefill"
    osl = workload.osl_tokens
    steps = (osl - 1) / E if from_prefill else osl / E

    target_kv, draft_kv, exchange = _moves(scenario, workload, entry, length, places)
    prefill_s, verify_s = costs[PREFILL].latency_s, costs[VERIFY].latency_s
    draft_s = costs[DRAFT].latency_s if entry is not None else 0.0
    step_s = draft_s + verify_s + exchange[0]
    if from_prefill:
        ttft_s = prefill_s + target_kv[0]
    else:
        first_draft_s = costs[DRAFT_PREFILL].latency_s + draft_kv[0] + draft_s + exchange[0]
        if entry.kind == "eagle3":
            ttft_s = prefill_s + max(target_kv[0], first_draft_s) + verify_s
        else:
            ttft_s = max(prefill_s + target_kv[0], first_draft_s) + verify_s

    times = {PREFILL: 1.0, VERIFY: steps, DRAFT_PREFILL: 1.0, DRAFT: steps}
    busy = {phase: times[phase] * cost.latency_s / places[phase][2] for phase, cost in costs.items()}
    phase_j = {phase: times[phase] * cost.energy_j for phase, cost in costs.items()}
    transfer_j = target_kv[1] + draft_kv[1] + steps * exchange[1]
    U = scenario.max_utilization
    memory = {
        phase: steps * step_s / (U * cost.sequences) if phase in (VERIFY, DRAFT) and cost.sequences > 0 else 0.0
        for phase, cost in costs.items()
    }
    return Point(
        proposer=proposer,
        draft_length=length,
        places=places,
        tokens_per_step=E,
        steps=steps,
        step_s=step_s,
        interactivity_tps=E / step_s,
        ttft_s=ttft_s,
        energy_j=sum(phase_j.values()) + transfer_j,
        transfer_j=transfer_j,
        phase_energy_j=phase_j,
        busy_s=busy,
        capacity={phase: busy[phase] / U for phase in busy},
        memory=memory,
        fits=all(cost.sequences >= places[phase][2] for phase, cost in costs.items()),
    )


def _moves(
    scenario: Any, workload: Any, entry: Any, length: int, places: dict[str, Place]
) -> tuple[tuple[float, float], tuple[float, float], tuple[float, float]]:
    """(exposed seconds, joules) of the target's KV, the drafter's KV, and one step's exchange."""
    free = (0.0, 0.0)
    if scenario.transfers is None:
        return free, free, free
    link = scenario.catalog.links[scenario.transfers.link]

    def sent(payload: float, messages: int) -> tuple[float, float]:
        seconds = messages * link.latency_us / 1e6 + payload / (link.bandwidth_gb_per_s * 1e9)
        return seconds, payload * link.energy_pj_per_byte / 1e12

    def kv(model: str) -> tuple[float, float]:
        seconds, joules = sent(workload.isl_tokens * (scenario.catalog.models[model].kv_bytes_per_token or 0.0), 1)
        return scenario.transfers.kv_exposed_share * seconds, joules

    target_kv = kv(scenario.target) if places[PREFILL][0] != places[VERIFY][0] else free
    if entry is None:
        return target_kv, free, free
    draft_kv = kv(entry.model) if places[DRAFT_PREFILL][0] != places[DRAFT][0] else free
    apart = places[VERIFY][0] != places[DRAFT][0]
    exchange = sent(length * entry.step_payload_bytes_per_token, 2) if apart else free
    return target_kv, draft_kv, exchange


# ------------------------------------------------------------------------------------------------- the fleet


def counts(scenario: Any, one: Point, rate: float) -> dict[str, float]:
    """Replicas by phase: the least that carry the flow and hold the sequences; a whole pool has at least one."""
    needs = {phase: rate * one.need(phase) for phase in one.places}
    if scenario.counts == "fractional":
        return needs
    return {phase: float(max(1, math.ceil(need * (1.0 - ROUNDING)))) for phase, need in needs.items()}


def watts(scenario: Any, one: Point, rate: float, n: dict[str, float], basis: str | None = None) -> float:
    basis, devices = basis or scenario.power_basis, scenario.catalog.devices
    if basis == "forward":
        return scenario.pue * rate * one.energy_j
    total = 0.0
    for phase, (device, degree, _) in one.places.items():
        if basis == "provisioned":
            total += n[phase] * degree * devices[device].provisioned_power_w
        else:
            idle = devices[device].idle_power_w * degree
            total += idle * n[phase] + rate * (one.phase_energy_j[phase] - idle * one.busy_s[phase])
    if basis == "average":
        total = scenario.host_factor * (total + rate * one.transfer_j)
    return scenario.pue * total


def dollars(scenario: Any, one: Point, n: dict[str, float]) -> float:
    devices = scenario.catalog.devices
    return sum(n[phase] * place[1] * devices[place[0]].price.usd_per_hour for phase, place in one.places.items())


def devices_used(one: Point, n: dict[str, float], device: str) -> float:
    return sum(n[phase] * place[1] for phase, place in one.places.items() if place[0] == device)


def within(value: float, bound: float) -> bool:
    return value <= bound * (1.0 + ROUNDING)


def serves(scenario: Any, one: Point) -> bool:
    """Whether the design's batches fit and every user is served as promised."""
    limits = next(iter(scenario.workloads.values())).limits
    if not one.fits:
        return False
    if limits.interactivity_floor_tps is not None and not within(limits.interactivity_floor_tps, one.interactivity_tps):
        return False
    return limits.ttft_ceiling_ms is None or within(one.ttft_s * 1e3, limits.ttft_ceiling_ms)


def affordable(scenario: Any, one: Point, rate: float) -> bool:
    """Whether budgets and inventory carry the design at a rate."""
    return _affordable_with(scenario, one, rate, counts(scenario, one, rate))


def _affordable_with(scenario: Any, one: Point, rate: float, n: dict[str, float]) -> bool:
    limits = scenario.limits
    if limits.power_budget_kw is not None and not within(watts(scenario, one, rate, n), limits.power_budget_kw * 1e3):
        return False
    dollar_budget = limits.cost_budget_usd_per_hour
    if dollar_budget is not None and not within(dollars(scenario, one, n), dollar_budget):
        return False
    return all(within(devices_used(one, n, device), most.available) for device, most in limits.inventory.items())


# ------------------------------------------------------------------------------------- the largest rate


def largest_rate(scenario: Any, one: Point) -> float | None:
    """The largest rate that budgets and inventory carry; null if they carry none. The limits must bound it."""
    ceiling = _fractional_rate(scenario, one)
    if scenario.counts == "fractional":
        return ceiling if ceiling > 0 else None
    # Counts are constant between the rates at which one of them steps; within such an interval all is linear.
    steps = {ceiling}
    for phase in one.places:
        each = one.need(phase)
        steps |= {k / each for k in range(1, int(ceiling * each) + 1)}
    highs = sorted(steps, reverse=True)
    for high, low in zip(highs, [*highs[1:], 0.0], strict=True):
        rate = _rate_at_counts(scenario, one, counts(scenario, one, high), low, high)
        if rate is not None:
            return rate
    return None


def _fractional_rate(scenario: Any, one: Point) -> float:
    """Rate at which fractional counts use up the first limit: everything is proportional to the rate."""
    limits, n = scenario.limits, {phase: one.need(phase) for phase in one.places}
    ratios = []
    if limits.power_budget_kw is not None:
        ratios.append((limits.power_budget_kw * 1e3, watts(scenario, one, 1.0, n)))
    if limits.cost_budget_usd_per_hour is not None:
        ratios.append((limits.cost_budget_usd_per_hour, dollars(scenario, one, n)))
    ratios += [(most.available, devices_used(one, n, device)) for device, most in limits.inventory.items()]
    return min(bound / each for bound, each in ratios if each > 0)


def _rate_at_counts(scenario: Any, one: Point, n: dict[str, float], low: float, high: float) -> float | None:
    """The largest affordable rate in (low, high] with these counts: power is linear, cost and devices constant."""
    if _affordable_with(scenario, one, high, n):
        return high
    if scenario.limits.power_budget_kw is None:
        return None
    budget = scenario.limits.power_budget_kw * 1e3
    slope = watts(scenario, one, 1.0, n) - watts(scenario, one, 0.0, n)
    if slope <= 0:
        return None
    rate = (budget - watts(scenario, one, 0.0, n)) / slope
    return rate if low < rate < high and _affordable_with(scenario, one, rate, n) else None


# ------------------------------------------------------------------------------------------------- the best


def question_rate(scenario: Any) -> float | None:
    """The rate that must be served exactly; null where budgets or inventory decide the throughput."""
    limits = scenario.limits
    bounded = limits.power_budget_kw or limits.cost_budget_usd_per_hour or limits.inventory
    if scenario.objective == "throughput" and bounded:
        return None
    return next(iter(scenario.workloads.values())).limits.demand_rps or 1.0


def best(scenario: Any) -> Best:
    """The scenario's own question, answered by loops."""
    return best_for(scenario, scenario.objective, question_rate(scenario))


def best_for(scenario: Any, aim: str, rate: float | None, device: str | None = None) -> Best:
    """The optimum of an aim at an exact rate (null: free, at least the demand), under every limit of the scenario."""
    found = Best(None)
    for one in points(scenario):
        if not serves(scenario, one):
            continue
        served = _served(scenario, one, rate, found)
        if served is None:
            continue
        value = figure(scenario, one, served, aim, device)
        if found.value is None or (value > found.value if _maximized(aim) else value < found.value):
            found = Best(value, one, served)
    return found


def _maximized(aim: str) -> bool:
    return aim in ("throughput", "interactivity")


def _served(scenario: Any, one: Point, rate: float | None, found: Best) -> float | None:
    """The rate that the design would be used at; null if it cannot be or cannot beat what was found."""
    if rate is not None:
        return rate if affordable(scenario, one, rate) else None
    if found.rate_rps is not None and _fractional_rate(scenario, one) <= found.rate_rps:
        return None
    largest = largest_rate(scenario, one)
    asked = next(iter(scenario.workloads.values())).limits.demand_rps
    if largest is None or (asked is not None and not within(asked, largest)):
        return None
    return largest


def figure(scenario: Any, one: Point, rate: float, aim: str, device: str | None = None) -> float:
    """What a design has for an aim at a rate, in the aim's unit."""
    n = counts(scenario, one, rate)
    osl = next(iter(scenario.workloads.values())).osl_tokens
    if aim == "power":
        return watts(scenario, one, rate, n)
    if aim == "cost":
        return dollars(scenario, one, n)
    if aim == "devices":
        return devices_used(one, n, device)
    return {
        "throughput": rate * osl,
        "energy": one.energy_j / osl,
        "interactivity": one.interactivity_tps,
        "ttft": one.ttft_s,
        "any": 0.0,
    }[aim]


def feasible(scenario: Any, rate: float) -> bool:
    """Whether some design meets every limit at a rate."""
    return any(serves(scenario, one) and affordable(scenario, one, rate) for one in points(scenario))


def same_design(one: Point, design: Any) -> bool:
    """Whether a point is one of planner's designs."""
    placed = {
        phase: (option.device, option.tensor_parallel, option.batch_size)
        for phase, option in design.options.items()
        if option is not None
    }
    speculation = design.speculation
    return (one.proposer, one.draft_length, one.places) == (speculation.proposer, speculation.draft_length, placed)


def point_of(scenario: Any, design: Any) -> Point:
    """The loops' own figures for one of planner's designs."""
    return next(one for one in points(scenario) if same_design(one, design))

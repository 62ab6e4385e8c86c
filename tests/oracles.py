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

# By kind: when its own prefill starts, and where it drafts.
KINDS = {
    "draft_model": ("beside", "apart"),
    "tree": ("beside", "apart"),
    "eagle3": ("after", "apart"),
    "dspark": ("after", "apart"),
    "medusa": (None, "inside"),
    "mtp": (None, "inside"),
    "ngram": (None, None),
}
READS_HIDDEN_STATES = ("eagle3", "dspark", "medusa", "mtp")


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
    nodes: int = 0
    layout: str = "disaggregated"

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
    for name, length, nodes in _drafts(scenario, workload):
        seen = []
        for layout in scenario.layouts:
            inside = hosted(None if name is None else scenario.catalog.proposers[name].kind, layout)
            if inside not in seen:
                seen.append(inside)
                yield from _points_of(scenario, workload, Way(name, length, nodes, layout, inside))


def _drafts(scenario: Any, workload: Any) -> Iterator[tuple[str | None, int, int]]:
    """(proposer, draft length, tokens drafted)."""
    yield None, 0, 0
    for name in scenario.proposers:
        entry = scenario.catalog.proposers[name]
        for length in range(1, longest_draft(scenario, workload, entry) + 1):
            if entry.tree is None:
                yield name, length, length
            elif entry.tree.nodes is not None:
                if length in entry.tree.nodes:
                    yield name, length, entry.tree.nodes[length]
            elif length <= len(entry.tree.branching):
                yield name, length, sum(math.prod(entry.tree.branching[: k + 1]) for k in range(length))


def running(kind: str | None) -> list[str]:
    """The phases that devices run."""
    prefills, drafts = KINDS[kind] if kind is not None else (None, None)
    return [PREFILL, VERIFY, *([DRAFT_PREFILL] if prefills else []), *([DRAFT] if drafts else [])]


def hosted(kind: str | None, layout: str) -> set[str]:
    """The phases that run on the replicas that verify."""
    inside = set()
    if layout in ("aggregated", "aggregated_target"):
        inside.add(PREFILL)
    if layout in ("aggregated", "colocated_drafter"):
        inside |= {DRAFT_PREFILL, DRAFT}
    if kind in ("medusa", "mtp"):
        inside.add(DRAFT)
    return inside & set(running(kind))


@dataclass(frozen=True)
class Way:
    """How one design speculates."""

    proposer: str | None
    length: int
    nodes: int
    layout: str
    inside: set[str]


def _points_of(scenario: Any, workload: Any, way: Way) -> Iterator[Point]:
    entry = None if way.proposer is None else scenario.catalog.proposers[way.proposer]
    prompt = workload.isl_tokens - workload.cached_prefix_tokens
    tokens = {PREFILL: prompt, VERIFY: way.nodes + 1, DRAFT_PREFILL: prompt, DRAFT: way.length}
    offers = {
        phase: phase_options(
            scenario, workload, phase, scenario.target if phase in (PREFILL, VERIFY) else entry.model, tokens[phase]
        )
        for phase in running(None if entry is None else entry.kind)
    }
    own = [phase for phase in offers if phase not in way.inside]
    for chosen in itertools.product(*(offers[phase].items() for phase in own)):
        places = {phase: place for phase, (place, _) in zip(own, chosen, strict=True)}
        costs = {phase: cost for phase, (_, cost) in zip(own, chosen, strict=True)}
        inside = {phase: beside(offers[phase], places[VERIFY], phase) for phase in way.inside}
        if all(one is not None for one in inside.values()):
            yield point(scenario, workload, way, places, costs, inside)


def beside(offer: dict[Place, Cost], at: Place, phase: str) -> tuple[int, Cost] | None:
    """(batch, cost) of a phase on the replicas of a place: a draft of its batch, a prefill of the smallest there."""
    there = {place[2]: cost for place, cost in offer.items() if place[:2] == at[:2]}
    if phase == DRAFT:
        return (at[2], there[at[2]]) if at[2] in there else None
    return (min(there), there[min(there)]) if there else None


def point(
    scenario: Any,
    workload: Any,
    way: Way,
    places: dict[str, Place],
    costs: dict[str, Cost],
    inside: dict[str, tuple[int, Cost]],
) -> Point:
    """One design's metrics, from the formulas."""
    entry = None if way.proposer is None else scenario.catalog.proposers[way.proposer]
    E = 1.0 if entry is None else expected_tokens(entry.acceptance[scenario.target][workload.task], way.length)
    from_prefill = way.length == 0 or scenario.first_token == "after_prefill"
    osl = workload.osl_tokens
    steps = (osl - 1) / E if from_prefill else osl / E
    device, degree, batch = places[VERIFY]
    engine, host_s = scenario.engine, 0.0 if entry is None else entry.host_time_ms / 1e3

    target_kv, draft_kv, hidden, exchange = _moves(scenario, workload, entry, way, E, places)
    times = {phase: cost.latency_s for phase, cost in costs.items()}
    if PREFILL in inside:
        prompts, cost = inside[PREFILL]
        each = cost.latency_s / prompts
        times[PREFILL] = engine.first_token_ms / 1e3 + (engine.cohort + engine.waiting * batch) * each
    times |= {phase: inside[phase][1].latency_s for phase in inside if phase != PREFILL}
    draft_s = times.get(DRAFT, 0.0) + host_s
    slower_s = sum(
        engine.interference * batch * (cost.latency_s / prompts) / steps
        for phase, (prompts, cost) in inside.items()
        if phase != DRAFT
    )
    step_s = draft_s + times[VERIFY] + exchange[0] + slower_s
    if from_prefill:
        ttft_s = times[PREFILL] + target_kv[0]
    else:
        first_draft_s = times.get(DRAFT_PREFILL, 0.0) + draft_kv[0] + hidden[0] + draft_s + exchange[0]
        if entry.kind in READS_HIDDEN_STATES:
            first_draft_s += times[PREFILL]
        ttft_s = max(times[PREFILL] + target_kv[0], first_draft_s) + times[VERIFY]

    # What the replicas that verify spend: a step of it, with all that runs inside.
    one_step_s = times[VERIFY] + slower_s + host_s + (inside[DRAFT][1].latency_s if DRAFT in inside else 0.0)
    idle_w = (scenario.catalog.devices[device].idle_power_w or 0.0) * degree
    one_step_j = costs[VERIFY].energy_j + host_s * idle_w / batch
    one_step_j += sum(cost.energy_j / (1.0 if phase == DRAFT else steps) for phase, (_, cost) in inside.items())
    held = costs[VERIFY].sequences
    if DRAFT in inside or DRAFT_PREFILL in inside:
        held = min(held, held_together(scenario, workload, device, degree, (scenario.target, entry.model)))
    costs = {**costs, VERIFY: Cost(one_step_s, one_step_j, held)}

    often = {PREFILL: 1.0, VERIFY: steps, DRAFT_PREFILL: 1.0, DRAFT: steps}
    busy = {phase: often[phase] * cost.latency_s / places[phase][2] for phase, cost in costs.items()}
    phase_j = {phase: often[phase] * cost.energy_j for phase, cost in costs.items()}
    transfer_j = target_kv[1] + draft_kv[1] + hidden[1] + steps * exchange[1]
    U = scenario.max_utilization
    memory = {
        phase: steps * step_s / (U * cost.sequences) if phase in (VERIFY, DRAFT) and cost.sequences > 0 else 0.0
        for phase, cost in costs.items()
    }
    return Point(
        proposer=way.proposer,
        draft_length=way.length,
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
        nodes=way.nodes,
        layout=way.layout,
    )


def held_together(scenario: Any, workload: Any, device: str, degree: int, models: tuple[str, ...]) -> float:
    """Sequences of a replica that holds all these models, each with its cache."""
    one, entries = scenario.catalog.devices[device], [scenario.catalog.models[name] for name in models]
    if one.memory_gb is None or any(m.weights_gb is None or m.kv_bytes_per_token is None for m in entries):
        return math.inf
    free = ((one.memory_gb - one.reserve_gb) * degree - sum(m.weights_gb for m in entries)) * 1e9
    each = sum(m.kv_bytes_per_token for m in entries) * (workload.isl_tokens + workload.osl_tokens)
    if free <= 0:
        return 0.0
    return math.inf if each == 0 else float(int(free / each))


Move = tuple[float, float]


def _moves(
    scenario: Any, workload: Any, entry: Any, way: Way, E: float, places: dict[str, Place]
) -> tuple[Move, Move, Move, Move]:
    """(exposed seconds, joules) of the target's KV, the drafter's KV, a prompt's hidden states, one step's exchange."""
    free = (0.0, 0.0)
    if scenario.transfers is None:
        return free, free, free, free
    share = scenario.transfers.kv_exposed_share

    def where(phase: str) -> str | None:
        place = places[VERIFY] if phase in way.inside else places.get(phase)
        return None if place is None else place[0]

    def sent(start: str, end: str, payload: float, messages: int, shown: float) -> Move:
        a, b = where(start), where(end)
        if a is None or b is None or a == b:
            return free
        names = dict(scenario.transfers.pairs)
        name = names.get(f"{a}:{b}", names.get(f"{b}:{a}", scenario.transfers.link))
        if name is None:
            return free
        link = scenario.catalog.links[name]
        seconds = messages * link.latency_us / 1e6 + payload / (link.bandwidth_gb_per_s * 1e9)
        return shown * seconds, payload * link.energy_pj_per_byte / 1e12

    def kv(start: str, end: str, model: str) -> Move:
        each = scenario.catalog.models[model].kv_bytes_per_token or 0.0
        return sent(start, end, workload.isl_tokens * each, 1, share)

    target_kv = kv(PREFILL, VERIFY, scenario.target)
    if entry is None or entry.model is None:
        return target_kv, free, free, free
    states = (entry.hidden_bytes_per_token or 0.0) if entry.kind in READS_HIDDEN_STATES else 0.0
    prompt = (workload.isl_tokens - workload.cached_prefix_tokens) * states
    hidden = sent(PREFILL, DRAFT_PREFILL, prompt, 1, share) if prompt > 0 else free
    payload = way.nodes * entry.step_payload_bytes_per_token + E * states
    return target_kv, kv(DRAFT_PREFILL, DRAFT, entry.model), hidden, sent(VERIFY, DRAFT, payload, 2, 1.0)


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
    s = design.speculation
    same_way = (one.proposer, one.draft_length, one.nodes) == (s.proposer, s.draft_length, s.nodes)
    return same_way and (one.layout, one.places) == (s.layout, placed)


def point_of(scenario: Any, design: Any) -> Point:
    """The loops' own figures for one of planner's designs."""
    return next(one for one in points(scenario) if same_design(one, design))

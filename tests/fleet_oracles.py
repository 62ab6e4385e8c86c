"""Several workloads on one fleet by loops over sets of designs and counts, from the raw fields of catalog and scenario.

Plain arithmetic: nothing of planner is called, the documents are only read. For one set of designs what is left to
choose are rates and counts. Counts are the least that carry the flow, so they only step where a need passes a
whole number; between two such rates every limit is linear in the rates. One free rate (a common scale, or a share of a
fixed rate) is therefore a walk over intervals with both ends of the feasible part in closed form. Two free rates (two
designs share the throughput of one workload) have their best where one of them stands at such a step, or, with
fractional counts, at a vertex of the limits' rows. More free rates with fractional counts are a linear program, which
HiGHS solves for each set of designs.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import highspy

PREFILL, VERIFY, DRAFT_PREFILL, DRAFT = "target_prefill", "target_verify", "draft_prefill", "draft_decode"
STEP = (VERIFY, DRAFT)
MAXIMIZED = ("throughput", "interactivity")
# What meets a limit exactly meets it, whatever the last bits say.
ROUNDING = 1e-9


# ------------------------------------------------------------------------------------------------ raw figures


def expected_tokens(curve: Any, length: int) -> float:
    if length == 0:
        return 1.0
    if curve.kind == "saturating_exponential":
        return min(max(curve.offset + curve.A * (1.0 - math.exp(-length / curve.tau)), 1.0), length + 1.0)
    if curve.kind == "geometric":
        return sum(curve.alpha**k for k in range(length + 1))
    if curve.kind == "positions":
        return 1.0 + sum(math.prod(curve.probabilities[:k]) for k in range(1, length + 1))
    return on_line({0: 1.0, **curve.tokens_per_step}, length)


def on_line(points: dict[int, float], at: int) -> float:
    if at in points:
        return points[at]
    below, above = max(p for p in points if p < at), min(p for p in points if p > at)
    return points[below] + (points[above] - points[below]) * (at - below) / (above - below)


def seconds(form: Any, tokens: int) -> float | None:
    """Latency of one operation; null where a table does not reach."""
    if form.table is not None:
        return on_line(dict(form.table), tokens) / 1e3 if min(form.table) <= tokens <= max(form.table) else None
    if form.constant is not None:
        return form.constant / 1e3
    return max(form.floor or 0.0, (form.base or 0.0) + form.per_token * tokens) / 1e3


def joules(form: Any, tokens: int) -> float:
    return (form.constant if form.constant is not None else (form.base or 0.0) + form.per_token * tokens) / 1e3


def free_bytes(scenario: Any, device: str, degree: int, models: Sequence[str]) -> float:
    """Bytes left for KV beside all weights; infinite where anything is not described."""
    one, entries = scenario.catalog.devices[device], [scenario.catalog.models[name] for name in models]
    if one.memory_gb is None or any(m.weights_gb is None or m.kv_bytes_per_token is None for m in entries):
        return math.inf
    return max(0.0, ((one.memory_gb - one.reserve_gb) * degree - sum(m.weights_gb for m in entries)) * 1e9)


def kv_bytes(scenario: Any, model: str, workload: Any) -> float:
    return (workload.isl_tokens + workload.osl_tokens) * (scenario.catalog.models[model].kv_bytes_per_token or 0.0)


# ------------------------------------------------------------------------------------------------ one design


@dataclass(frozen=True)
class Work:
    """One phase of a design: its place, and per request/s the replicas at work, those that hold its KV, and watts."""

    phase: str
    device: str
    degree: int
    batch: int
    models: tuple[str, ...]
    busy: float
    held: float
    energy_j: float


@dataclass(frozen=True)
class Design:
    workload: str
    proposer: str | None
    length: int
    works: tuple[Work, ...]
    interactivity_tps: float
    ttft_s: float
    energy_j: float


Offer = tuple[str, int, int, tuple[str, ...], float, float, float]


def offers(
    scenario: Any, workload: Any, phase: str, model: str, tokens: int, module: str | None = None
) -> Iterator[Offer]:
    """(device, degree, batch, model set, seconds, joules, sequences held), where the batch fits into memory.

    Sequences are whole in a private pool; a shared one counts bytes.
    """
    for name, device in scenario.catalog.devices.items():
        for key, profile in device.profiles.get(model, {}).get(phase, {}).items():
            degree, batch = (int(n or 1) for n in re.fullmatch(r"(?:tp(\d+):)?b(\d+)", key).groups())
            took = seconds(profile.latency_ms, tokens)
            if took is None:
                continue
            for models in model_sets(scenario, model, module):
                free, each = free_bytes(scenario, name, degree, models), kv_bytes(scenario, model, workload)
                each += 0.0 if module is None else kv_bytes(scenario, module, workload)
                held = math.inf if each == 0 or math.isinf(free) else free / each
                if not scenario.shared_pools and math.isfinite(held):
                    held = float(math.floor(held))
                if free > 0 and held >= batch:
                    yield name, degree, batch, models, took, joules(profile.energy_mj, tokens), held


def model_sets(scenario: Any, model: str, module: str | None) -> list[tuple[str, ...]]:
    own = {model} | ({module} if module is not None else set())
    if not scenario.shared_pools:
        return [tuple(sorted(own))]
    every = {scenario.target, *(scenario.catalog.proposers[name].model for name in scenario.proposers)}
    others = sorted(every - own)
    return [
        tuple(sorted((*own, *some)))
        for size in range(len(others) + 1)
        for some in itertools.combinations(others, size)
    ]


def drafts(scenario: Any, workload: Any) -> Iterator[tuple[str | None, int]]:
    """Plain decode, and every proposer with every draft length that it, its curve and the answer allow."""
    yield None, 0
    for name in scenario.proposers:
        proposer = scenario.catalog.proposers[name]
        curve = proposer.acceptance[scenario.target][workload.task]
        longest = min(scenario.max_draft_length, workload.osl_tokens - 1, proposer.max_draft_length or 9**9)
        if curve.kind == "positions":
            longest = min(longest, len(curve.probabilities))
        if curve.kind == "table":
            peak = max(curve.tokens_per_step.values())
            longest = min(longest, *(n for n, value in curve.tokens_per_step.items() if value == peak))
        for length in range(1, longest + 1):
            yield name, length


def designs_of(scenario: Any, name: str) -> list[Design]:
    """Every design of a workload that fits into memory and keeps the promises to its users."""
    workload = scenario.workloads[name]
    found = []
    for proposer, length in drafts(scenario, workload):
        asked = work_of(scenario, workload, proposer, length)
        lists = [list(offers(scenario, workload, *each, beside(scenario, proposer, each[0]))) for each in asked]
        for chosen in itertools.product(*lists):
            places = dict(zip((phase for phase, _, _ in asked), chosen, strict=True))
            inside = drafts_inside(scenario, workload, proposer, length, places[VERIFY])
            if inside is not None:
                found.append(design(scenario, name, proposer, length, places, inside))
    return [one for one in found if keeps_promises(workload.limits, one)]


def work_of(scenario: Any, workload: Any, proposer: str | None, length: int) -> list[tuple[str, str, int]]:
    """(phase, model, tokens) of every phase that has replicas of its own; a module of the target has none."""
    prompt = workload.isl_tokens - workload.cached_prefix_tokens
    asked = [(PREFILL, scenario.target, prompt), (VERIFY, scenario.target, length + 1)]
    entry = None if proposer is None else scenario.catalog.proposers[proposer]
    if entry is not None and entry.kind != "mtp":
        asked += [(DRAFT_PREFILL, entry.model, prompt), (DRAFT, entry.model, length)]
    return asked


def beside(scenario: Any, proposer: str | None, phase: str) -> str | None:
    """The module that a replica holds and runs beside the phase's own model."""
    entry = None if proposer is None else scenario.catalog.proposers[proposer]
    return entry.model if entry is not None and entry.kind == "mtp" and phase == VERIFY else None


def drafts_inside(
    scenario: Any, workload: Any, proposer: str | None, length: int, at: Offer
) -> tuple[float, float] | None:
    """(seconds, joules) of a draft on the replicas that verify, zero where it is made elsewhere; null if unknown."""
    model = beside(scenario, proposer, VERIFY)
    if model is None:
        return 0.0, 0.0
    profiles = scenario.catalog.devices[at[0]].profiles.get(model, {}).get(DRAFT, {})
    for key, profile in profiles.items():
        degree, batch = (int(n or 1) for n in re.fullmatch(r"(?:tp(\d+):)?b(\d+)", key).groups())
        took = seconds(profile.latency_ms, length)
        if (degree, batch) == at[1:3] and took is not None:
            return took, joules(profile.energy_mj, length)
    return None


def keeps_promises(limits: Any, one: Design) -> bool:
    floor, ceiling = limits.interactivity_floor_tps, limits.ttft_ceiling_ms
    fast = floor is None or one.interactivity_tps >= floor * (1 - ROUNDING)
    return fast and (ceiling is None or one.ttft_s * 1e3 <= ceiling * (1 + ROUNDING))


def design(
    scenario: Any,
    name: str,
    proposer: str | None,
    length: int,
    places: dict[str, Offer],
    inside: tuple[float, float],
) -> Design:
    """``inside``: seconds and joules of a draft on the replicas that verify."""
    workload = scenario.workloads[name]
    entry = None if proposer is None else scenario.catalog.proposers[proposer]
    E = 1.0 if entry is None else expected_tokens(entry.acceptance[scenario.target][workload.task], length)
    early = entry is None or scenario.first_token == "after_prefill"
    steps = (workload.osl_tokens - (1 if early else 0)) / E
    took = {phase: place[4] for phase, place in places.items()}
    target_kv, draft_kv, hidden, exchange = moves(scenario, workload, entry, length, E, places)
    step_s = took[VERIFY] + took.get(DRAFT, 0.0) + exchange[0] + inside[0]
    if early:
        ttft_s = took[PREFILL] + target_kv[0]
    else:
        first = took.get(DRAFT_PREFILL, 0.0) + draft_kv[0] + hidden[0] + took.get(DRAFT, inside[0]) + exchange[0]
        if entry.kind in ("eagle3", "mtp"):
            ttft_s = took[PREFILL] + max(target_kv[0], first) + took[VERIFY]
        else:
            ttft_s = max(took[PREFILL] + target_kv[0], first) + took[VERIFY]
    works = []
    for phase, (device, degree, batch, models, latency, energy, held) in places.items():
        times = steps if phase in STEP else 1.0
        holds = steps * step_s / (scenario.max_utilization * held) if phase in STEP else 0.0
        if phase == VERIFY:
            latency, energy = latency + inside[0], energy + inside[1]
        works.append(Work(phase, device, degree, batch, models, times * latency / batch, holds, times * energy))
    moved = target_kv[1] + draft_kv[1] + hidden[1] + steps * exchange[1]
    energy_j = sum(work.energy_j for work in works) + moved
    return Design(name, proposer, length, tuple(works), E / step_s, ttft_s, energy_j)


def own(scenario: Any, named: Any) -> Design:
    """One of planner's designs with the loops' own figures; its options must be on offer and its batches fit."""
    workload, drafting = scenario.workloads[named.workload], named.speculation
    places = {}
    for phase, model, tokens in work_of(scenario, workload, drafting.proposer, drafting.draft_length):
        option, module = named.options[phase], beside(scenario, drafting.proposer, phase)
        private = tuple(sorted({model, *([module] if module else [])}))
        asked = option.device, option.tensor_parallel, option.batch_size, option.models or private
        (places[phase],) = (
            offer for offer in offers(scenario, workload, phase, model, tokens, module) if offer[:4] == asked
        )
    assert all(named.options[phase] is None for phase in named.options if phase not in places)
    assert (drafting.proposer, drafting.draft_length) in drafts(scenario, workload)
    inside = drafts_inside(scenario, workload, drafting.proposer, drafting.draft_length, places[VERIFY])
    assert inside is not None
    return design(scenario, named.workload, drafting.proposer, drafting.draft_length, places, inside)


Move = tuple[float, float]


def moves(
    scenario: Any, workload: Any, entry: Any, length: int, E: float, places: dict[str, Offer]
) -> tuple[Move, Move, Move, Move]:
    """(exposed seconds, joules) of the target's KV, of the drafter's, of a prompt's hidden states, of an exchange."""
    free = (0.0, 0.0)
    if scenario.transfers is None:
        return free, free, free, free
    link = scenario.catalog.links[scenario.transfers.link]

    def sent(payload: float, messages: int, exposed: float) -> tuple[float, float]:
        took = messages * link.latency_us / 1e6 + payload / (link.bandwidth_gb_per_s * 1e9)
        return exposed * took, payload * link.energy_pj_per_byte / 1e12

    def apart(a: str, b: str) -> bool:
        return a in places and b in places and places[a][0] != places[b][0]

    def cache(model: str) -> tuple[float, float]:
        each = scenario.catalog.models[model].kv_bytes_per_token or 0.0
        return sent(workload.isl_tokens * each, 1, scenario.transfers.kv_exposed_share)

    states = 0.0 if entry is None else entry.hidden_bytes_per_token or 0.0
    prompt = (workload.isl_tokens - workload.cached_prefix_tokens) * states
    hidden = apart(PREFILL, DRAFT_PREFILL) and prompt > 0
    return (
        cache(scenario.target) if apart(PREFILL, VERIFY) else free,
        cache(entry.model) if apart(DRAFT_PREFILL, DRAFT) else free,
        sent(prompt, 1, scenario.transfers.kv_exposed_share) if hidden else free,
        sent(length * entry.step_payload_bytes_per_token + E * states, 2, 1.0) if apart(VERIFY, DRAFT) else free,
    )


# -------------------------------------------------------------------------------------- a set of designs


@dataclass(frozen=True)
class Pool:
    """Replicas of one kind. ``busy``, ``held``: replicas at work and holding KV, per request/s of each design."""

    device: str
    degree: int
    decodes: bool
    busy: tuple[float, ...]
    held: tuple[float, ...]


@dataclass
class Crew:
    """Designs that serve together, and what they need at any rates."""

    scenario: Any
    designs: Sequence[Design]
    pools: list[Pool] = field(init=False)

    def __post_init__(self) -> None:
        members: dict[Any, list[tuple[int, Work]]] = {}
        for index, one in enumerate(self.designs):
            for work in one.works:
                key: Any = (
                    (work.models, work.device, work.degree) if self.scenario.shared_pools else (index, work.phase)
                )
                members.setdefault(key, []).append((index, work))
        order = range(len(self.designs))
        self.pools = [
            Pool(
                some[0][1].device,
                some[0][1].degree,
                any(work.phase in STEP for _, work in some),
                tuple(sum(work.busy for i, work in some if i == index) for index in order),
                tuple(sum(work.held for i, work in some if i == index) for index in order),
            )
            for some in members.values()
        ]
        catalog, self._pue = self.scenario.catalog, self.scenario.pue
        self._devices = {pool.device: catalog.devices[pool.device] for pool in self.pools}
        self._whole = self.scenario.counts == "integer"

    # Replicas.

    def busy(self, pool: Pool, rates: Sequence[float]) -> float:
        return sum(each * rate for each, rate in zip(pool.busy, rates, strict=True))

    def held(self, pool: Pool, rates: Sequence[float]) -> float:
        return sum(each * rate for each, rate in zip(pool.held, rates, strict=True))

    def serving(self, rates: Sequence[float]) -> list[float]:
        """Replicas that serve, by pool: the least that carry the flow and hold the KV."""
        needs = [
            max(self.busy(pool, rates) / self.scenario.max_utilization, self.held(pool, rates)) for pool in self.pools
        ]
        return [max(1.0, whole_above(need)) for need in needs] if self._whole else needs

    # Devices, power, cost.

    def had(self, n: Sequence[float]) -> dict[str, float]:
        """Devices by type, spares and the rest of the last node included; ``n``: replicas that serve."""
        spares, found = self.scenario.servers.spare_replicas, dict.fromkeys(self._devices, 0.0)
        for pool, count in zip(self.pools, n, strict=True):
            found[pool.device] += (count + spares) * pool.degree
        for name, count in found.items():
            if self._whole:
                per = self.unit(name)
                found[name] = per * whole_above(count / per)
        return found

    def unit(self, device: str) -> int:
        return (self._devices[device].devices_per_host or 1) if self.scenario.servers.by_node else 1

    def owned(self, device: str) -> float:
        stock = self.scenario.limits.inventory.get(device)
        return 0.0 if stock is None else float(stock.owned)

    def watts(self, rates: Sequence[float], n: Sequence[float], had: dict[str, float]) -> float:
        basis = self.scenario.power_basis
        if basis == "provisioned":
            return self._pue * sum(had[name] * one.provisioned_power_w for name, one in self._devices.items())
        forward = sum(rate * one.energy_j for rate, one in zip(rates, self.designs, strict=True))
        if basis == "forward":
            return self._pue * forward
        idle = sum(had[name] * one.idle_power_w for name, one in self._devices.items())
        for pool in self.pools:
            idle -= self.busy(pool, rates) * pool.degree * self._devices[pool.device].idle_power_w
        return self._pue * self.scenario.host_factor * (idle + forward)

    def dollars(self, had: dict[str, float]) -> float:
        return sum(
            max(0.0, had[name] - self.owned(name)) * one.price.usd_per_hour for name, one in self._devices.items()
        )

    # Limits.

    def margins(self, rates: Sequence[float], n: Sequence[float]) -> list[float]:
        """How far each limit is from breaking, as a share of it. Linear in the rates while the counts stand still."""
        scenario, limits, had = self.scenario, self.scenario.limits, self.had(n)
        found = []
        for name, stock in limits.inventory.items():
            if name in had and stock.purchasable is not None:
                most = stock.owned + stock.purchasable
                found.append((most - had[name]) / max(1.0, most))
        if limits.power_budget_kw is not None:
            found.append(1.0 - self.watts(rates, n, had) / (limits.power_budget_kw * 1e3))
        if limits.cost_budget_usd_per_hour is not None:
            # Σ max(0, had − owned)·price is the largest of the sums over every set of device types.
            dear = [(had[name] - self.owned(name)) * one.price.usd_per_hour for name, one in self._devices.items()]
            sums = (sum(some) for size in range(1, len(dear) + 1) for some in itertools.combinations(dear, size))
            found += [1.0 - dollars / limits.cost_budget_usd_per_hour for dollars in sums]
        fill = scenario.servers.min_batch_fill
        if fill > 0:
            for pool, count in zip(self.pools, n, strict=True):
                if pool.decodes:
                    found.append(self.busy(pool, rates) - fill * count)
        return found + (self._rack_margins(had) if scenario.servers.racks else [])

    def _rack_margins(self, had: dict[str, float]) -> list[float]:
        if self._whole:
            units = {name: round(count / self.unit(name)) for name, count in had.items()}
            return [1.0 if houses(self.scenario, units, self.unit) else -1.0]
        # Any part of a device may stand anywhere: every set of types must find room in the racks that take one of them.
        found = []
        for size in range(1, len(had) + 1):
            for some in itertools.combinations(had, size):
                racks = [r for r in self.scenario.servers.racks.values() if any(takes(r, name) for name in some)]
                room = sum(rack.power_limit_kw * 1e3 for rack in racks)
                need = self._pue * sum(had[name] * self._devices[name].provisioned_power_w for name in some)
                found.append(1.0 - need / room if racks else -1.0)
        return found

    def holds(self, rates: Sequence[float], n: Sequence[float]) -> bool:
        return all(margin >= -ROUNDING for margin in self.margins(rates, n))

    # What is asked.

    def figure(self, aim: str, rates: Sequence[float], n: Sequence[float]) -> float:
        workloads = self.scenario.workloads
        if aim == "throughput":
            return sum(rate * workloads[one.workload].osl_tokens for rate, one in zip(rates, self.designs, strict=True))
        if aim == "interactivity":
            return min(one.interactivity_tps for one in self.designs)
        if aim == "power":
            return self.watts(rates, n, self.had(n))
        if aim == "cost":
            return self.dollars(self.had(n))
        weights, total = sum(workload.mix for workload in workloads.values()), 0.0
        for name, workload in workloads.items():
            mine = [(rate, one) for rate, one in zip(rates, self.designs, strict=True) if one.workload == name]
            served = sum(rate for rate, _ in mine)
            total += workload.mix / weights * sum(r * one.energy_j for r, one in mine) / (served * workload.osl_tokens)
        return total


def whole_above(need: float) -> float:
    return float(math.ceil(need - ROUNDING * max(1.0, need)))


def takes(rack: Any, device: str) -> bool:
    return rack.devices is None or device in rack.devices


def houses(scenario: Any, units: dict[str, int], per_unit: Any) -> bool:
    """Whether whole nodes (or devices) find a place: every way to spread them over the racks, type after type."""
    racks = list(scenario.servers.racks.values())
    left = [rack.power_limit_kw * 1e3 * (1 + ROUNDING) for rack in racks]
    order = list(units.items())

    def place(index: int, left: list[float]) -> bool:
        if index == len(order):
            return True
        name, count = order[index]
        each = scenario.pue * per_unit(name) * scenario.catalog.devices[name].provisioned_power_w
        most = [
            (count if each == 0 else min(count, int(watts / each))) if takes(rack, name) else 0
            for rack, watts in zip(racks, left, strict=True)
        ]
        return any(
            place(index + 1, [watts - each * k for watts, k in zip(left, some, strict=True)])
            for some in itertools.product(*(range(m + 1) for m in most))
            if sum(some) == count
        )

    return place(0, left)


# ------------------------------------------------------------------------------------------ rates of one set


@dataclass(frozen=True)
class Best:
    value: float
    designs: tuple[Design, ...]
    rates: tuple[float, ...]


def better(aim: str, one: float, other: float | None) -> bool:
    return other is None or (one > other if aim in MAXIMIZED else one < other)


def at(crew: Crew, rates: Sequence[float], aim: str) -> Best | None:
    """The set at exact rates."""
    n = crew.serving(rates)
    return Best(crew.figure(aim, rates, n), tuple(crew.designs), tuple(rates)) if crew.holds(rates, n) else None


Rates = Sequence[float]


def along(crew: Crew, start: Rates, step: Rates, low: float, high: float, aim: str) -> Best | None:
    """The best of the rates start + t·step, low ≤ t ≤ high."""

    def rates(t: float) -> list[float]:
        return [a + t * b for a, b in zip(start, step, strict=True)]

    found: Best | None = None
    marks = sorted({low, high, *(t for t in steps_of(crew, start, step, low, high) if low < t < high)}, reverse=True)
    for left, right in zip(marks[1:], marks, strict=False):
        n = crew.serving(rates(0.5 * (left + right))) if crew.scenario.counts == "integer" else None
        part = feasible_part(crew, rates(left), rates(right), n)
        if part is None:
            continue
        for share in ends(crew, rates(left), rates(right), part, aim):
            some = rates(left + share * (right - left))
            value = crew.figure(aim, some, n or crew.serving(some))
            if min(some) > 0 and better(aim, value, found and found.value):
                found = Best(value, tuple(crew.designs), tuple(some))
        if aim == "throughput" and found is not None:
            return found  # intervals come in falling order
    return found


def steps_of(crew: Crew, start: Rates, step: Rates, low: float, high: float) -> Iterator[float]:
    """Where a count steps, or where a pool's flow and its KV need the same."""
    utilization = crew.scenario.max_utilization
    for pool in crew.pools:
        flow = crew.busy(pool, start) / utilization, crew.busy(pool, step) / utilization
        kv = crew.held(pool, start), crew.held(pool, step)
        if crew.scenario.counts == "integer":
            for base, slope in (flow, kv):
                if slope != 0:
                    ends_ = sorted((base + slope * low, base + slope * high))
                    yield from ((k - base) / slope for k in range(max(1, math.floor(ends_[0])), int(ends_[1]) + 1))
        elif flow[1] != kv[1]:
            yield (kv[0] - flow[0]) / (flow[1] - kv[1])


def feasible_part(crew: Crew, left: Rates, right: Rates, n: list[float] | None) -> tuple[float, float] | None:
    """The part of an interval in which every limit holds, as shares of it: each limit is a line between its ends."""
    low, high = 0.0, 1.0
    pairs = zip(crew.margins(left, n or crew.serving(left)), crew.margins(right, n or crew.serving(right)), strict=True)
    for a, b in pairs:
        if a < -ROUNDING and b < -ROUNDING:
            return None
        if a < -ROUNDING:
            low = max(low, a / (a - b))
        elif b < -ROUNDING:
            high = min(high, a / (a - b))
    return (low, high) if low <= high else None


def ends(crew: Crew, left: Rates, right: Rates, part: tuple[float, float], aim: str) -> Iterator[float]:
    """Shares of an interval where a linear or convex figure can be least or greatest."""
    yield from part
    if aim == "cost" and crew.scenario.counts == "fractional":
        one, other = crew.had(crew.serving(left)), crew.had(crew.serving(right))
        for name in one:
            if one[name] != other[name]:
                share = (crew.owned(name) - one[name]) / (other[name] - one[name])
                if part[0] < share < part[1]:
                    yield share


def two_free_rates(crew: Crew, highs: Rates) -> Best | None:
    """The largest throughput that two designs of one workload share in private pools."""
    assert not crew.scenario.shared_pools
    if crew.scenario.counts == "fractional":
        return _vertex(crew)
    found: Best | None = None
    for index in (0, 1):
        fixed, free = (1.0, 0.0) if index == 0 else (0.0, 1.0), (0.0, 1.0) if index == 0 else (1.0, 0.0)
        for rate in sorted(_ends_of_counts(crew, index, highs[index]), reverse=True):
            one = along(crew, [rate * each for each in fixed], free, 0.0, highs[1 - index], "throughput")
            if one is not None and better("throughput", one.value, found and found.value):
                found = one
    return found


def _ends_of_counts(crew: Crew, index: int, high: float) -> set[float]:
    """Rates of one design at which a count is used up, or a batch just full enough for it."""
    found, fill = set(), crew.scenario.servers.min_batch_fill
    for pool in crew.pools:
        needs = [pool.busy[index] / crew.scenario.max_utilization, pool.held[index]]
        if fill > 0 and pool.decodes:
            needs.append(pool.busy[index] / fill)
        for need in needs:
            if need > 0:
                found |= {k / need for k in range(1, int(need * high) + 2) if k / need <= high * (1 + ROUNDING)}
    return found


def _vertex(crew: Crew) -> Best | None:
    """Fractional counts: every limit is a row a·x + b·y ≤ c. Try every corner."""
    units = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]
    at_zero, at_x, at_y = (crew.margins(rates, crew.serving(rates)) for rates in units)
    rows = [(z - x, z - y, z) for z, x, y in zip(at_zero, at_x, at_y, strict=True)]
    rows += [(-1.0, 0.0, 0.0), (0.0, -1.0, 0.0)]
    found: Best | None = None
    for (a, b, c), (d, e, f) in itertools.combinations(rows, 2):
        determinant = a * e - b * d
        if determinant == 0:
            continue
        rates = ((c * e - b * f) / determinant, (a * f - c * d) / determinant)
        if min(rates) > 0 and crew.holds(rates, crew.serving(rates)):
            value = crew.figure("throughput", rates, crew.serving(rates))
            if better("throughput", value, found and found.value):
                found = Best(value, tuple(crew.designs), rates)
    return found


def mixed_rates(crew: Crew, asked: dict[str, float] | None) -> Best | None:
    """Any number of designs per workload, private pools, fractional counts: one linear program for all rates.

    Its variables are the rates, a scale of the mix, and the dollars spent.
    """
    scenario, aim, number = crew.scenario, crew.scenario.objective, len(crew.designs)
    assert scenario.counts == "fractional"
    assert not scenario.shared_pools
    none = [0.0] * number
    units = [[float(i == j) for i in range(number)] for j in range(number)]
    at_zero, *at_units = (crew.margins(rates, crew.serving(rates)) for rates in (none, *units))
    rows = [([z - one[k] for one in at_units] + [0.0, 0.0], z) for k, z in enumerate(at_zero)]
    equal = []
    for name, workload in scenario.workloads.items():
        mine = [float(one.workload == name) for one in crew.designs]
        equal.append(([*mine, 0.0, 0.0], asked[name]) if asked else ([*mine, -workload.mix, 0.0], 0.0))
        if asked is None and workload.limits.demand_rps is not None:
            rows.append(([-each for each in mine] + [0.0, 0.0], -workload.limits.demand_rps))
    base, *each = (spent(crew, rates) for rates in (none, *units))
    for some in subsets(range(len(base))):
        if aim == "cost":
            slopes = [sum(one[k] - base[k] for k in some) for one in each]
            rows.append(([*slopes, 0.0, -1.0], -sum(base[k] for k in some)))
    costs = {
        "throughput": [-float(scenario.workloads[one.workload].osl_tokens) for one in crew.designs],
        "power": [crew.watts(u, crew.serving(u), crew.had(crew.serving(u))) for u in units],
        "energy": [energy_per_rate(scenario, one, (asked or {}).get(one.workload, 1.0)) for one in crew.designs],
    }.get(aim, none)
    if aim == "power":
        idle = crew.watts(none, crew.serving(none), crew.had(crew.serving(none)))
        costs = [cost - idle for cost in costs]
    x = linear_program([*costs, 0.0, 1.0 if aim == "cost" else 0.0], rows, equal)
    if x is None or sum(x[:number]) <= 0:
        return None
    rates = [max(0.0, rate) for rate in x[:number]]
    return Best(crew.figure(aim, rates, crew.serving(rates)), tuple(crew.designs), tuple(rates))


def spent(crew: Crew, rates: Rates) -> list[float]:
    """Dollars by device type, less than nothing where some that are owned are not used."""
    had = crew.had(crew.serving(rates))
    return [(had[d] - crew.owned(d)) * crew.scenario.catalog.devices[d].price.usd_per_hour for d in had]


def energy_per_rate(scenario: Any, one: Design, rate: float) -> float:
    workload = scenario.workloads[one.workload]
    weights = sum(other.mix for other in scenario.workloads.values())
    return workload.mix / weights * one.energy_j / (rate * workload.osl_tokens)


def subsets(items: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [some for size in range(1, len(items) + 1) for some in itertools.combinations(items, size)]


def linear_program(
    costs: list[float], rows: list[tuple[list[float], float]], equal: list[tuple[list[float], float]]
) -> list[float] | None:
    """Least costs·x over x ≥ 0 with row·x ≤ bound and row·x = value; null where there is none."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)  # HiGHS keeps the first number of threads that a process asks for
    for cost in costs:
        solver.addVar(0.0, highspy.kHighsInf)
        solver.changeColCost(solver.getNumCol() - 1, cost)
    for lows, some in ((True, equal), (False, rows)):
        for row, bound in some:
            used = [i for i, value in enumerate(row) if value != 0.0]
            low = bound if lows else -highspy.kHighsInf
            solver.addRow(low, bound, len(used), used, [row[i] for i in used])
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return list(solver.getSolution().col_value)


# --------------------------------------------------------------------------------------------- all sets


def asked_rates(scenario: Any) -> dict[str, float] | None:
    """The rates that must be served exactly; null where limits decide the throughput."""
    limits, workloads = scenario.limits, scenario.workloads
    if scenario.objective == "throughput" and (
        limits.power_budget_kw or limits.cost_budget_usd_per_hour or limits.inventory
    ):
        return None
    total = sum(workload.mix for workload in workloads.values())
    return {name: workload.limits.demand_rps or workload.mix / total for name, workload in workloads.items()}


def best(scenario: Any) -> Best | None:
    """The scenario's own question: the best set of designs with its rates; null where no set meets the limits."""
    rates, aim = asked_rates(scenario), scenario.objective
    found: Best | None = None
    for bound, designs in _promising(scenario, rates):
        if found is not None and not better(aim, bound, found.value):
            break
        one = _best_of_set(scenario, designs, rates)
        if one is not None and better(aim, one.value, found and found.value):
            found = one
    return found


def sets_of(scenario: Any) -> Iterator[tuple[Design, ...]]:
    """Every set with one design per workload, or up to two where shares are allowed."""
    assert scenario.max_shares <= 2
    sizes = range(1, scenario.max_shares + 1)
    lists = [designs_of(scenario, name) for name in scenario.workloads]
    some = ([few for size in sizes for few in itertools.combinations(every, size)] for every in lists)
    for chosen in itertools.product(*some):
        yield tuple(itertools.chain.from_iterable(chosen))


def _best_of_set(scenario: Any, designs: tuple[Design, ...], rates: dict[str, float] | None) -> Best | None:
    crew, aim = Crew(scenario, designs), scenario.objective
    shared = len(designs) > len(scenario.workloads)
    if shared and len(scenario.workloads) > 1:
        return mixed_rates(crew, rates)
    if rates is not None and not shared:
        return at(crew, [rates[one.workload] for one in designs], aim)
    if rates is not None:
        (rate,) = rates.values()
        return along(crew, (0.0, rate), (1.0, -1.0), 0.0, rate, aim)
    highs = [_most(scenario, [one], [1.0]) for one in designs]
    if shared:
        found, (workload,) = two_free_rates(crew, highs), scenario.workloads.values()
        low = workload.limits.demand_rps or 0.0
        return None if found is None or sum(found.rates) < low * (1 - ROUNDING) else found
    mixes = {name: workload.mix for name, workload in scenario.workloads.items()}
    step = [mixes[one.workload] for one in designs]
    low = max((w.limits.demand_rps or 0.0) / w.mix for w in scenario.workloads.values())
    high = _most(scenario, designs, step)
    return along(crew, [0.0] * len(step), step, low, high, aim) if low <= high else None


# ------------------------------------------------------------ bounds, to look at the most promising sets first


def _promising(scenario: Any, rates: dict[str, float] | None) -> list[tuple[float, tuple[Design, ...]]]:
    """Sets by falling promise: the figure if devices came in any fraction and KV took no room."""
    bounded = [(_bound(scenario, some, rates), some) for some in sets_of(scenario)]
    bounded = [(bound, some) for bound, some in bounded if bound is not None]
    return sorted(bounded, key=lambda pair: pair[0], reverse=scenario.objective in MAXIMIZED)


def _bound(scenario: Any, designs: tuple[Design, ...], rates: dict[str, float] | None) -> float | None:
    aim, workloads = scenario.objective, scenario.workloads
    if aim == "interactivity":
        return min(one.interactivity_tps for one in designs)
    shared = len(designs) > len(workloads)
    if aim == "throughput" and rates is None:
        if shared and len(workloads) == 1:
            return _most_of_two(scenario, designs) * next(iter(workloads.values())).osl_tokens
        return _most_of_mix(scenario, designs) * sum(w.mix * w.osl_tokens for w in workloads.values())
    assert rates is not None
    if aim == "throughput":
        return sum(rate * workloads[name].osl_tokens for name, rate in rates.items())
    weights = sum(workload.mix for workload in workloads.values())
    parts = {}
    for one in designs:
        workload, use = workloads[one.workload], uses(scenario, one)
        figure = {
            "energy": workload.mix / weights * one.energy_j / workload.osl_tokens,
            "power": rates[one.workload] * use["power"],
            "cost": rates[one.workload] * use["cost"],
        }[aim]
        parts[one.workload] = min(figure, parts.get(one.workload, math.inf))
    return sum(parts.values()) - (_owned_dollars(scenario) if aim == "cost" else 0.0)


def _owned_dollars(scenario: Any) -> float:
    return sum(s.owned * scenario.catalog.devices[d].price.usd_per_hour for d, s in scenario.limits.inventory.items())


def uses(scenario: Any, one: Design) -> dict[str, float]:
    """What a design takes per request/s at the least, of power, dollars and each device type."""
    found = {"power": one.energy_j * scenario.pue, "cost": 0.0}
    if scenario.power_basis == "average":
        found["power"] *= scenario.host_factor
    if scenario.power_basis == "provisioned":
        found["power"] = 0.0
    for work in one.works:
        device, devices = scenario.catalog.devices[work.device], work.degree * work.busy / scenario.max_utilization
        found[work.device] = found.get(work.device, 0.0) + devices
        found["cost"] += devices * device.price.usd_per_hour
        if scenario.power_basis == "provisioned":
            found["power"] += scenario.pue * devices * device.provisioned_power_w
        if scenario.power_basis == "average":
            idle = device.idle_power_w * (devices - work.degree * work.busy)
            found["power"] += scenario.pue * scenario.host_factor * idle
    return found


def _has(scenario: Any) -> dict[str, float]:
    """What there is of power, dollars (owned devices at their price) and device types."""
    limits, found = scenario.limits, {}
    if limits.power_budget_kw is not None:
        found["power"] = limits.power_budget_kw * 1e3
    if limits.cost_budget_usd_per_hour is not None:
        found["cost"] = limits.cost_budget_usd_per_hour + _owned_dollars(scenario)
    for name, stock in limits.inventory.items():
        if stock.purchasable is not None:
            found[name] = float(stock.owned + stock.purchasable)
    return found


def _most(scenario: Any, designs: Sequence[Design], step: Rates) -> float:
    """A scale that no plan of these designs exceeds."""
    taken = [uses(scenario, one) for one in designs]
    each = {k: sum(use.get(k, 0.0) * rate for use, rate in zip(taken, step, strict=True)) for k in _has(scenario)}
    return min(bound / each[key] * (1 + ROUNDING) for key, bound in _has(scenario).items() if each[key] > 0)


def _most_of_two(scenario: Any, designs: Sequence[Design]) -> float:
    """A rate that no two designs of one workload share more of."""
    alone = sum(_most(scenario, [each], [1.0]) for each in designs)
    (workload,) = scenario.workloads.values()
    return min(alone, workload.mix * _most_of_mix(scenario, designs))


def _most_of_mix(scenario: Any, designs: Sequence[Design]) -> float:
    """A scale of the mix that no rates exceed: a request takes at least what its workload's most frugal one takes."""
    taken: dict[str, list[dict[str, float]]] = {}
    for one in designs:
        taken.setdefault(one.workload, []).append(uses(scenario, one))
    most = math.inf
    for key, bound in _has(scenario).items():
        each = sum(scenario.workloads[w].mix * min(u.get(key, 0.0) for u in some) for w, some in taken.items())
        most = min(most, bound / each if each > 0 else math.inf)
    return most * (1 + ROUNDING)

"""One function per constraint, named after what it enforces. Rows are scaled to bounds of about 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from planner.bounds import Floats
from planner.fleet import devices_per_unit
from planner.measure import device_figure
from planner.memory import sequence_bytes
from planner.milp.solver import Linear, Program, Sense
from planner.milp.variables import Choice, DeviceVariables, PoolCount, Slot, devices_used, is_finite
from planner.options import Speculation, hosted_by_verify
from planner.proposers import hidden_bytes_per_token, rule_of
from planner.schema.catalog import Link
from planner.schema.scenario import Scenario
from planner.transfers import Transfer, hidden_transfer, kv_transfer, link_between, step_exchange
from planner.words import PHASES, STEP_PHASES, Phase

# ---------------------------------------------------------------------------------------- one design per slot


def one_speculation(program: Program, slot: Slot) -> None:
    """Σ_s δ[s] = 1 for a workload's first slot, ≤ 1 for the others."""
    sense: Sense = "==" if slot.share == 0 else "<="
    program.row(f"one_speculation_{slot.prefix}", Linear((d, 1.0) for d in slot.delta.values()), sense, 1.0)


def one_option_per_phase(program: Program, slot: Slot) -> None:
    """Σ_option x[phase, option, group] = Σ_{s in group} δ[s]."""
    for phase in PHASES:
        for group in slot.groups[phase]:
            chosen = Linear((c.x, 1.0) for c in slot.choices[phase] if c.group == group)
            chosen.add((slot.delta[s], -1.0) for s in group)
            program.row(f"one_option_{phase}_{slot.prefix}_s{group[0]}", chosen, "==", 0.0)


def rate_follows_speculation(program: Program, slot: Slot) -> None:
    """λ[s] ≤ M[s]·δ[s]."""
    for s, delta in slot.delta.items():
        row = Linear([(slot.rate[s], 1.0), (delta, -float(slot.largest[s]))])
        program.row(f"rate_follows_speculation_{slot.prefix}_s{s}", row, "<=", 0.0)


def flow_is_carried(program: Program, slot: Slot) -> None:
    """Σ_option f[phase, option, group] = Σ_{s in group} λ[s]."""
    for phase in PHASES:
        for group in slot.groups[phase]:
            carried = Linear((c.f, 1.0) for c in slot.choices[phase] if c.group == group)
            carried.add((slot.rate[s], -1.0) for s in group)
            program.row(f"flow_is_carried_{phase}_{slot.prefix}_s{group[0]}", carried, "==", 0.0)


def flow_follows_option(program: Program, slot: Slot) -> None:
    """F ≤ M·x, M the largest rate of that option."""
    for choice in slot.all_choices():
        row = Linear([(choice.f, 1.0), (choice.x, -choice.largest)])
        program.row(f"flow_follows_option_{choice.x.name}", row, "<=", 0.0)


# --------------------------------------------------------------------------------------------------- transfers


@dataclass(frozen=True)
class Apart:
    """Indicator and flow (in rate units) of a transfer between two phases on different device types.

    ``steps``: times per request. ``s``: the speculation that it is for, where it is for one alone.
    """

    transfer: Transfer
    steps: float
    chosen: Linear
    flow: Linear
    s: int | None = None


@dataclass(frozen=True)
class Transfers:
    """Transfers of a slot: the target's KV, a drafter's KV, the hidden states of a prompt, each step's exchange."""

    target_kv: tuple[Apart, ...] = ()
    draft_kv: tuple[Apart, ...] = ()
    hidden: tuple[Apart, ...] = ()
    step: tuple[Apart, ...] = ()

    def energy_w(self, slot: Slot) -> Linear:
        """Power of all transfers in W."""
        total = Linear()
        for apart in (*self.target_kv, *self.draft_kv, *self.hidden, *self.step):
            total.add(apart.flow.pairs(), slot.rate_unit_rps * apart.steps * apart.transfer.energy_j)
        return total


def _sums(choices: Sequence[Choice], device: str) -> dict[str, list[tuple[Any, float]]]:
    """Σx and Σf of the choices on a device type."""
    mine = [c for c in choices if c.option.device == device]
    return {"x": [(c.x, 1.0) for c in mine], "f": [(c.f, 1.0) for c in mine]}


def _different_devices(
    program: Program, name: str, one: Sequence[Choice], other: Sequence[Choice]
) -> Iterator[tuple[str, Linear, Linear]]:
    """Σ_device max(0, X_one[device] − X_other[device]): 1 exactly if the two phases sit on different device types.

    Gives the term of every device type of the first phase, for a link that is the same wherever the other sits.
    """
    for number, device in enumerate(dict.fromkeys(choice.option.device for choice in one)):
        terms = []
        mine, theirs = _sums(one, device), _sums(other, device)
        for kind in ("x", "f"):
            apart = program.variable(f"apart_{kind}_{name}_{number}")
            terms.append(Linear([(apart, 1.0)]))
            row = Linear([(apart, -1.0), *mine[kind]]).add(theirs[kind], -1.0)
            program.row(f"different_devices_{kind}_{name}_{number}", row, "<=", 0.0)
        yield device, terms[0], terms[1]


def _pairs_of_devices(
    program: Program, name: str, one: Sequence[Choice], other: Sequence[Choice]
) -> Iterator[tuple[str, str, Linear, Linear]]:
    """Y[a, b] = X_one[a]·X_other[b], by its marginals: Σ_b Y[a, b] = X_one[a], Σ_a Y[a, b] ≤ X_other[b].

    Exact, since one device type of each phase carries all of it.
    """
    starts = list(dict.fromkeys(choice.option.device for choice in one))
    ends = list(dict.fromkeys(choice.option.device for choice in other))
    pairs = [(a, b) for a in starts for b in ends]
    y = {
        (kind, *pair): program.variable(f"pair_{kind}_{name}_{number}")
        for kind in ("x", "f")
        for number, pair in enumerate(pairs)
    }
    for kind in ("x", "f"):
        for number, a in enumerate(starts):
            row = Linear((y[kind, a, b], 1.0) for b in ends).add(_sums(one, a)[kind], -1.0)
            program.row(f"pair_start_{kind}_{name}_{number}", row, "==", 0.0)
        for number, b in enumerate(ends):
            row = Linear((y[kind, a, b], 1.0) for a in starts).add(_sums(other, b)[kind], -1.0)
            program.row(f"pair_end_{kind}_{name}_{number}", row, "<=", 0.0)
    for a, b in pairs:
        yield a, b, Linear([(y["x", a, b], 1.0)]), Linear([(y["f", a, b], 1.0)])


Moved = Callable[[str, Link | None], Transfer]


def _apart(
    program: Program,
    scenario: Scenario,
    name: str,
    ends: tuple[Sequence[Choice], Sequence[Choice]],
    moved: Moved,
    steps: float = 1.0,
    s: int | None = None,
) -> Iterator[Apart]:
    """Say what moves between two phases; ``moved`` gives the transfer from a device type over a link."""
    one, other = ends
    assert scenario.transfers is not None
    if not scenario.transfers.pairs:
        link = scenario.catalog.links[scenario.transfers.link]
        for device, x, f in _different_devices(program, name, one, other):
            yield Apart(moved(device, link), steps, x, f, s)
        return
    for a, b, x, f in _pairs_of_devices(program, name, one, other):
        link_of_pair = link_between(scenario, a, b)
        if link_of_pair is not None:
            yield Apart(moved(a, link_of_pair), steps, x, f, s)


def _where(scenario: Scenario, slot: Slot, phase: Phase, among: Iterable[int]) -> list[Choice]:
    """Give the choices that say where a phase of some speculations runs; a hosted one runs where verification does."""
    table, found = slot.table, []
    hosting = {s for s in among if phase in hosted_by_verify(scenario, table.speculations[s])}
    own = set(among) - hosting
    for at, kept in ((phase, own), ("target_verify", hosting)):
        found += [c for c in slot.choices[at] if kept & set(c.group)]
    return list({c.x.name: c for c in found}.values())


def transfers_between_devices(program: Program, scenario: Scenario, slot: Slot) -> Transfers:
    """Say which transfers a choice of device types needs; none where the scenario sets no link."""
    if scenario.transfers is None:
        return Transfers()
    table, able = slot.table, list(slot.delta)
    where = partial(_where, scenario, slot)

    def kv(model: str) -> Moved:
        return lambda device, link: kv_transfer(scenario, table.workload, device, link, model)

    separate = [s for group in slot.groups["target_prefill"] for s in group]
    ends = where("target_prefill", separate), where("target_verify", able)
    target = _apart(program, scenario, f"target_kv_{slot.prefix}", ends, kv(scenario.target))
    target_kv = tuple(target)
    drafts, hidden, steps = list[Apart](), list[Apart](), list[Apart]()
    for group in slot.groups["draft_prefill"]:
        proposer = table.speculations[group[0]].proposer
        assert proposer is not None
        model = scenario.catalog.proposers[proposer].model
        assert model is not None  # it has a prefill of its own
        name = f"{slot.prefix}_s{group[0]}"
        ends = where("draft_prefill", group), where("draft_decode", group)
        drafts += _apart(program, scenario, f"draft_kv_{name}", ends, kv(model))
    for proposer, some in _reading_hidden_states(scenario, slot).items():
        ends = where("draft_prefill", some), where("target_prefill", able)
        move = partial(_hidden, scenario, table.workload, proposer)
        hidden += _apart(program, scenario, f"hidden_{slot.prefix}_s{some[0]}", ends, move)
    for (s,) in slot.groups["draft_decode"]:
        speculation = table.speculations[s]
        ends = where("target_verify", [s]), where("draft_decode", [s])
        move = partial(_exchange, scenario, speculation, float(table.tokens_per_step[s]))
        steps += _apart(program, scenario, f"step_{slot.prefix}_s{s}", ends, move, float(table.steps[s]), s)
    return Transfers(target_kv, tuple(drafts), tuple(hidden), tuple(steps))


def _reading_hidden_states(scenario: Scenario, slot: Slot) -> dict[str, list[int]]:
    """Group the speculations whose drafter prefills from hidden states that the target sends, by proposer."""
    found: dict[str, list[int]] = {}
    for s in slot.delta:
        proposer = slot.table.speculations[s].proposer
        if proposer is not None and rule_of(scenario, proposer).prefill == "after_target":
            found.setdefault(proposer, []).append(s)
    return {name: group for name, group in found.items() if hidden_bytes_per_token(scenario, name) > 0}


def _hidden(scenario: Scenario, workload: str, proposer: str, _: str, link: Link | None) -> Transfer:
    return hidden_transfer(scenario, workload, link, proposer)


def _exchange(
    scenario: Scenario, speculation: Speculation, tokens_per_step: float, _: str, link: Link | None
) -> Transfer:
    return step_exchange(scenario, link, speculation.proposer, speculation.nodes, tokens_per_step)


# ------------------------------------------------------------------------------------------ service of one user


def _time(slot: Slot, phase: Phase, keep: Callable[[Choice], bool] = lambda _: True) -> Linear:
    latency = slot.table.phases[phase].latency_s
    return Linear((c.x, float(latency[c.o, c.s])) for c in slot.choices[phase] if keep(c))


def tpot_s(slot: Slot, transfers: Transfers) -> Linear:
    """Mean time per output token, Σ (t/E)·x + links, in s."""
    E = slot.table.tokens_per_step
    total = Linear()
    for phase in ("target_verify", "draft_decode"):
        latency = slot.table.phases[phase].latency_s
        total.add((c.x, float(latency[c.o, c.s] / E[c.s])) for c in slot.choices[phase])
    for apart in transfers.step:
        assert apart.s is not None  # an exchange is for one speculation
        total.add(apart.chosen.pairs(), apart.transfer.exposed_s / float(E[apart.s]))
    return total


def interactivity_floor(program: Program, scenario: Scenario, slot: Slot, transfers: Transfers) -> None:
    """TPOT ≤ 1/floor, as a share of it."""
    floor = scenario.workloads[slot.workload].limits.interactivity_floor_tps
    if floor is not None:
        program.row(f"interactivity_floor_{slot.prefix}", tpot_s(slot, transfers).scaled(floor), "<=", 1.0)


def ttft_arms_s(program: Program, slot: Slot, transfers: Transfers, name: str = "ceiling") -> list[Linear]:
    """Give the sums whose largest is the TTFT, in s: through the target's prefill, and through the first draft.

    ``name`` makes the rows that this adds unique.
    """
    table = slot.table
    verify = slot.choices["target_verify"]
    target = _time(slot, "target_prefill").add((c.x, float(table.through_target_s[c.o, c.s])) for c in verify)
    for apart in transfers.target_kv:
        target.add(apart.chosen.pairs(), apart.transfer.exposed_s)
    drafting = [s for s in slot.delta if not table.first_from_prefill[s]]
    if not drafting:
        return [target]

    def waits_for_verify(c: Choice) -> bool:
        return not bool(table.first_from_prefill[c.s])

    draft = Linear((c.x, float(table.through_draft_s[c.o, c.s])) for c in verify if waits_for_verify(c))
    draft.add(_time(slot, "draft_prefill", waits_for_verify).pairs())
    draft.add(_time(slot, "draft_decode", waits_for_verify).pairs())
    for apart in (*transfers.draft_kv, *transfers.hidden, *transfers.step):
        draft.add(apart.chosen.pairs(), apart.transfer.exposed_s)
    return [target, draft.add(_prefill_before_draft(program, slot, drafting, name).pairs())]


def _prefill_before_draft(program: Program, slot: Slot, drafting: list[int], name: str) -> Linear:
    """H ≥ Σ t_target_prefill·x − M·(1 − Σ_{s needs hidden states} δ[s]), h ≥ 0: the prefill that a draft waits for."""
    hidden = [s for s in drafting if slot.table.hidden_states[s]]
    if not hidden:
        return Linear()
    prefill = _time(slot, "target_prefill")
    largest = max((coefficient for _, coefficient in prefill.pairs()), default=0.0)
    if largest == 0:
        return Linear()
    waits = program.variable(f"prefill_before_draft_{name}_{slot.prefix}")
    row = Linear([*prefill.pairs(), (waits, -1.0), *((slot.delta[s], largest) for s in hidden)])
    program.row(f"prefill_before_draft_{name}_{slot.prefix}", row.scaled(1.0 / largest), "<=", 1.0)
    return Linear([(waits, 1.0)])


def ttft_ceiling(program: Program, scenario: Scenario, slot: Slot, transfers: Transfers) -> None:
    """Every arm of the TTFT ≤ ceiling, as a share of it."""
    ceiling = scenario.workloads[slot.workload].limits.ttft_ceiling_ms
    if ceiling is not None:
        for number, arm in enumerate(ttft_arms_s(program, slot, transfers)):
            program.row(f"ttft_ceiling_{slot.prefix}_{number}", arm.scaled(1e3 / ceiling), "<=", 1.0)


# --------------------------------------------------------------------------------------------------- the fleet


def pool_in_use(program: Program, pools: Sequence[PoolCount]) -> None:
    """Mark a pool as used: used ≥ Σ x for every phase of every slot that may use it."""
    for pool in pools:
        for slot, phase in pool.parts():
            row = Linear([*((c.x, 1.0) for c in pool.of(slot, phase)), (pool.used, -1.0)])
            program.row(f"pool_in_use_{pool.name}_{slot.prefix}_{phase}", row, "<=", 0.0)


def _busy(pool: PoolCount) -> Linear:
    """Replica-equivalents at work, Σ busy·f."""
    total = Linear()
    for slot, phase in pool.parts():
        busy = slot.table.busy_s(phase)
        total.add((c.f, slot.rate_unit_rps * float(busy[c.o, c.s])) for c in pool.of(slot, phase))
    return total


def pool_capacity(program: Program, scenario: Scenario, pools: Sequence[PoolCount]) -> None:
    """max_utilization·m ≥ Σ busy·f for every pool."""
    for pool in pools:
        row = _busy(pool)
        largest = max((coefficient for _, coefficient in row.pairs()), default=1.0)
        row.add([(pool.m, -scenario.max_utilization)])
        program.row(f"pool_capacity_{pool.name}", row.scaled(1.0 / largest), "<=", 0.0)


def pool_is_bought(program: Program, scenario: Scenario, pools: Sequence[PoolCount]) -> None:
    """M ≥ used for every pool, where counts are whole.

    Without it a budget too small for one replica of each phase would give a plan that serves nothing.
    """
    if scenario.counts == "integer":
        for pool in pools:
            row = Linear([(pool.used, 1.0), (pool.m, -1.0)])
            program.row(f"pool_is_bought_{pool.name}", row, "<=", 0.0)


def batch_fill(program: Program, scenario: Scenario, pools: Sequence[PoolCount]) -> None:
    """Σ busy·f ≥ min_batch_fill·m for every decode pool: its batches are filled to that share.

    A shared pool is one only if a step phase chooses it; else the row is loose by the most that prefills can need.
    """
    fill = scenario.servers.min_batch_fill
    if fill == 0:
        return
    for pool in pools:
        stepping = [(slot, phase) for slot, phase in pool.parts() if phase in STEP_PHASES]
        if not stepping:
            continue
        busy = _busy(pool)
        largest = max((coefficient for _, coefficient in busy.pairs()), default=1.0)
        row, loose = Linear([(pool.m, fill)]).add(busy.pairs(), -1.0), 0.0
        if len(stepping) < len(pool.parts()):
            decodes = program.variable(f"decodes_{pool.name}", high=1.0)
            for slot, phase in stepping:
                chosen = Linear([*((c.x, 1.0) for c in pool.of(slot, phase)), (decodes, -1.0)])
                program.row(f"decodes_{pool.name}_{slot.prefix}_{phase}", chosen, "<=", 0.0)
            loose = fill * _most_for_prefills(scenario, pool)
            row.add([(decodes, loose)])
        program.row(f"batch_fill_{pool.name}", row.scaled(1.0 / largest), "<=", loose / largest)


def _most_for_prefills(scenario: Scenario, pool: PoolCount) -> float:
    """Bound the replicas that a pool needs for prefills alone: the largest flow of every slot, and one to round up."""
    total = 1.0
    for slot, phase in pool.parts():
        if phase not in STEP_PHASES:
            busy = slot.table.busy_s(phase)
            flows = (c.largest * slot.rate_unit_rps * float(busy[c.o, c.s]) for c in pool.of(slot, phase))
            total += max(flows, default=0.0) / scenario.max_utilization
    return total


def _held_s(slot: Slot, phase: Phase) -> dict[tuple[int, int], float]:
    """Seconds that a request's sequence is held by one step phase, N·t, by (option, speculation)."""
    latency, steps = slot.table.phases[phase].latency_s, slot.table.steps
    return {(c.o, c.s): float(steps[c.s] * latency[c.o, c.s]) for c in slot.choices[phase]}


_STEP_PAIRS: tuple[tuple[Phase, Phase], ...] = (
    ("target_verify", "draft_decode"),
    ("draft_decode", "target_verify"),
)


def pool_memory(
    program: Program,
    scenario: Scenario,
    slots: Sequence[Slot],
    transfers: Sequence[Transfers],
    pools: Sequence[PoolCount],
) -> None:
    """max_utilization·capacity·m ≥ Σ λ·N·step time (Little's law) for the pools of the step phases.

    While one batch drafts elsewhere another is verified, and both hold KV. The time at the other phase is not a product
    of variables: it is one total, handed to the pools of this phase in shares bounded by their flow. A private pool
    holds sequences; a shared one has one row in bytes, with the KV of all its phases.
    """
    held: dict[str, Linear] = {}
    for slot, moved in zip(slots, transfers, strict=True):
        for phase, other in _STEP_PAIRS:
            mine = [pool for pool in pools if pool.of(slot, phase)]
            if any(is_finite(pool) for pool in mine):
                for pool, models, sequences in _held(program, slot, moved, mine, phase, other):
                    size = _kv_size(scenario, slot, pool, models)
                    held.setdefault(pool.name, Linear()).add(sequences.pairs(), size)
    for pool in pools:
        if pool.name in held and is_finite(pool):
            need = held[pool.name]
            scale = max((abs(coefficient) for _, coefficient in need.pairs()), default=1.0) or 1.0
            need.add([(pool.m, -scenario.max_utilization * pool.capacity)])
            program.row(f"pool_memory_{pool.name}", need.scaled(1.0 / scale), "<=", 0.0)


def _kv_size(scenario: Scenario, slot: Slot, pool: PoolCount, models: Sequence[str]) -> float:
    """Size of a sequence in the unit of a pool's capacity: itself, or its KV bytes of these models."""
    if not scenario.shared_pools:
        return 1.0
    return sequence_bytes(scenario, slot.workload, pool.device, models, pool.tensor_parallel) or 0.0


def _held(
    program: Program, slot: Slot, transfers: Transfers, pools: Sequence[PoolCount], phase: Phase, other: Phase
) -> Iterator[tuple[PoolCount, tuple[str, ...], Linear]]:
    """Give the sequences that each pool holds for a phase of a slot, at work in it and elsewhere, by their models."""
    drafts = {s for (s,) in slot.groups["draft_decode"]}
    elsewhere, own = _held_s(slot, other), _held_s(slot, phase)
    total = Linear((c.f, elsewhere[c.o, c.s]) for c in slot.choices[other] if c.s in drafts)
    link_s = [a.steps * a.transfer.exposed_s for a in transfers.step]
    for seconds, apart in zip(link_s, transfers.step, strict=True):
        total.add(apart.flow.pairs(), seconds)
    most = max((elsewhere[c.o, c.s] for c in slot.choices[other] if c.s in drafts), default=0.0)
    most += max(link_s, default=0.0)
    unit_s = max(most, *own.values(), 1e-12)
    for pool in pools:
        for number, models in enumerate(dict.fromkeys(choice.models for choice in pool.of(slot, phase))):
            mine = [choice for choice in pool.of(slot, phase) if choice.models == models]
            name = f"held_elsewhere_{pool.name}_{slot.prefix}_{phase}" + (f"_{number}" if number else "")
            share = program.variable(name)
            total.add([(share, -unit_s)])
            program.row(name, Linear([(share, 1.0), *((c.f, -most / unit_s) for c in mine)]), "<=", 0.0)
            sequences = Linear([(share, unit_s), *((c.f, own[c.o, c.s]) for c in mine)])
            yield pool, models, sequences.scaled(slot.rate_unit_rps)
    program.row(f"held_elsewhere_total_{slot.prefix}_{phase}", total.scaled(1.0 / unit_s), "==", 0.0)


def larger_share_first(program: Program, slots: Sequence[Slot]) -> None:
    """rate[k] ≥ rate[k+1] among the slots of a workload: designs that only change places are one plan."""
    for slot, following in pairwise(slots):
        if slot.workload == following.workload:
            row = Linear((variable, 1.0) for variable in following.rate.values())
            row.add((variable, -1.0) for variable in slot.rate.values())
            program.row(f"larger_share_first_{slot.prefix}", row, "<=", 0.0)


# ----------------------------------------------------------------------------------------------------- devices


def whole_nodes(
    program: Program, scenario: Scenario, pools: Sequence[PoolCount], devices: dict[str, DeviceVariables]
) -> None:
    """Σ tensor_parallel·(m + spares·used) ≤ devices per host · nodes, where devices are bought by the node."""
    if scenario.servers.by_node:
        for number, (name, variables) in enumerate(devices.items()):
            row = devices_used(scenario, pools, name).add(variables.had.pairs(), -1.0)
            program.row(f"whole_nodes_{number}", row, "<=", 0.0)


def purchases(program: Program, scenario: Scenario, devices: dict[str, DeviceVariables]) -> None:
    """Bought ≥ devices had − devices owned."""
    for number, (name, variables) in enumerate(devices.items()):
        stock = scenario.limits.inventory.get(name)
        if stock is not None and stock.owned > 0:
            row = Linear(variables.had.pairs()).add(variables.bought.pairs(), -1.0)
            program.row(f"purchases_{number}", row, "<=", float(stock.owned))


def device_inventory(program: Program, scenario: Scenario, devices: dict[str, DeviceVariables]) -> None:
    """Devices had ≤ devices available, per device type."""
    for number, (name, stock) in enumerate(scenario.limits.inventory.items()):
        if name in devices and np.isfinite(stock.available):
            program.row(f"device_inventory_{number}", devices[name].had, "<=", stock.available)


def rack_power(program: Program, scenario: Scenario, devices: dict[str, DeviceVariables]) -> dict[tuple[str, str], Any]:
    """Provisioned watts of every rack ≤ its limit, and every device stands in a rack that takes its type.

    Returns
    -------
    dict
        Units (nodes, or devices where bought singly) by (rack, device type).
    """
    placed: dict[tuple[str, str], Any] = {}
    racks = scenario.servers.racks
    if not racks:
        return placed
    for number, (name, variables) in enumerate(devices.items()):
        per_unit = devices_per_unit(scenario, name)
        housed = Linear(variables.had.pairs())
        for position, (key, rack) in enumerate(racks.items()):
            if rack.devices is None or name in rack.devices:
                units = program.variable(f"racked_{position}_{number}", integer=scenario.counts == "integer")
                placed[key, name] = units
                housed.add([(units, -per_unit)])
        program.row(f"in_racks_{number}", housed, "<=", 0.0)
    for position, (key, rack) in enumerate(racks.items()):
        watts = Linear((units, _unit_watts(scenario, name)) for (at, name), units in placed.items() if at == key)
        if watts.terms:
            program.row(f"rack_power_{position}", watts.scaled(1e-3 / rack.power_limit_kw), "<=", 1.0)
    return placed


def _unit_watts(scenario: Scenario, device: str) -> float:
    watts = scenario.catalog.devices[device].provisioned_power_w or 0.0
    return scenario.pue * watts * devices_per_unit(scenario, device)


def fleet_power_w(
    scenario: Scenario,
    slots: Sequence[Slot],
    transfers: Sequence[Transfers],
    devices: dict[str, DeviceVariables],
) -> Linear:
    """Power of the fleet on the scenario's basis in W, PUE included."""
    basis, total = scenario.power_basis, Linear()
    if basis != "forward":
        field = "provisioned_power_w" if basis == "provisioned" else "idle_power_w"
        for name, variables in devices.items():
            total.add(variables.had.pairs(), getattr(scenario.catalog.devices[name], field) or 0.0)
    if basis != "provisioned":
        for slot, moved in zip(slots, transfers, strict=True):
            energy = {phase: slot.table.energy_per_request_j(phase) for phase in PHASES}
            if basis == "average":
                energy = {phase: energy[phase] - _idle_energy_j(scenario, slot, phase) for phase in PHASES}
            total.add(slot.flow(energy).pairs()).add(moved.energy_w(slot).pairs())
    return total.scaled(scenario.pue * (scenario.host_factor if basis == "average" else 1.0))


def _idle_energy_j(scenario: Scenario, slot: Slot, phase: Phase) -> Floats:
    """(O, S) idle power × busy device-time of a request: already in the energy of a pass."""
    return np.asarray(device_figure(scenario, slot.table, phase, "idle_power_w") * slot.table.busy_s(phase))


def power_budget(program: Program, scenario: Scenario, power_w: Linear) -> None:
    """Fleet power ≤ budget, as a share of it."""
    budget = scenario.limits.power_budget_kw
    if budget is not None:
        program.row("power_budget", power_w.scaled(1e-3 / budget), "<=", 1.0)


def fleet_cost_usd_per_hour(scenario: Scenario, devices: dict[str, DeviceVariables]) -> Linear:
    """Cost of the devices bought in USD/h."""
    total = Linear()
    for name, variables in devices.items():
        price = scenario.catalog.devices[name].price
        total.add(variables.bought.pairs(), price.usd_per_hour if price else 0.0)
    return total


def cost_budget(program: Program, scenario: Scenario, devices: dict[str, DeviceVariables]) -> None:
    """Fleet cost ≤ budget, as a share of it."""
    budget = scenario.limits.cost_budget_usd_per_hour
    if budget is not None:
        program.row("cost_budget", fleet_cost_usd_per_hour(scenario, devices).scaled(1.0 / budget), "<=", 1.0)


def demand(program: Program, scenario: Scenario, slots: Sequence[Slot], rates: dict[str, float] | None) -> None:
    """Serve at least the demand (throughput), or exactly the given rates (every other objective), per workload."""
    for number, (name, workload) in enumerate(scenario.workloads.items()):
        asked = workload.limits.demand_rps if rates is None else rates.get(name)
        if asked is None:
            continue
        served = Linear()
        for slot in slots:
            if slot.workload == name:
                served.add(slot.request_rate().pairs())
        program.row(f"demand_{number}", served.scaled(1.0 / asked), ">=" if rates is None else "==", 1.0)


def mix(program: Program, scenario: Scenario, slots: Sequence[Slot], scale: Any) -> None:  # noqa: ANN401
    """λ_w = scale·mix_w for every workload; scale in units of the slots' rate."""
    total = sum(workload.mix for workload in scenario.workloads.values())
    for number, (name, workload) in enumerate(scenario.workloads.items()):
        served = Linear([(scale, -workload.mix / total)])
        for slot in slots:
            if slot.workload == name:
                served.add((variable, 1.0) for variable in slot.rate.values())
        program.row(f"mix_{number}", served, "==", 0.0)

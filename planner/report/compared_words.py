"""Two plans side by side in words: what changed, and what each bears. Every sentence follows from the document."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.report.numbers import LIMIT_WORDS, figure, in_unit
from planner.report.sentences import limit_name, listed, phase_words, reasons
from planner.schema import documents as doc
from planner.schema.comparison import (
    Breach,
    Comparison,
    Drafting,
    DraftingChange,
    FieldChange,
    Growth,
    GrowthStep,
    HeadroomChange,
    Pair,
    Place,
    PlacementChange,
    ServerLost,
    Side,
)

_NEAR = 1e-6
_MOST_NAMED = 3
_LONGEST_VALUE = 40
_SHOWN_GROWTH = 0.25
_EACH = "each"


def per_cent(share: float, digits: int = 3) -> str:
    """Write a fraction as per cent without needless zeros.

    >>> per_cent(0.25), per_cent(0.91667)
    ('25 %', '91.7 %')
    """
    return f"{figure(100 * share, digits)} %"


def differs(pair: Pair) -> bool:
    """Whether two figures differ by more than rounding, or only one is known."""
    if pair.a is None or pair.b is None:
        return pair.a is not pair.b
    return abs(pair.b - pair.a) > _NEAR * max(abs(pair.a), abs(pair.b))


def is_same_plan(comparison: Comparison) -> bool:
    """Whether both answer the same question with the same plan, whenever and however it was found."""
    one, other = (side.plan.model_dump(exclude={"provenance"}) for side in (comparison.a, comparison.b))
    return not comparison.question and one == other


def verdicts(comparison: Comparison) -> list[str]:
    """Say what changed and what each plan bears, in a few sentences."""
    same = ["nothing changed: A and B are the same plan", *_unplanned(comparison.a, _EACH)]
    found = same if is_same_plan(comparison) else _changes(comparison)
    found += _of_each(comparison, _loss)
    found += _of_each(comparison, _growth)
    found += _of_each(comparison, _anew, f"planned anew for {per_cent(_SHOWN_GROWTH)} more, ")
    return [f"{text[0].upper()}{text[1:]}." for text in found if text]


def _changes(comparison: Comparison) -> list[str]:
    if not (comparison.a.plan.deployments and comparison.b.plan.deployments):
        return [
            *_unplanned(comparison.a, "A"),
            *_unplanned(comparison.b, "B"),
            _question(comparison),
            *_headroom(comparison),
        ]
    parts = (_yield, _question, _fleet, _designs, _service)
    return [*(part(comparison) for part in parts), *_headroom(comparison)]


def _of_each(comparison: Comparison, clause: Callable[[Side, str], str | None], lead: str = "") -> list[str]:
    """Say one thing of both plans in one sentence; once, where it is the same."""
    a, b = comparison.a, comparison.b
    shared = clause(a, _EACH)
    if shared is not None and shared == clause(b, _EACH):
        return [lead + shared]
    found = [text for text in (clause(a, "A"), clause(b, "B")) if text is not None]
    return [lead + "; ".join(found)] if found else []


# ------------------------------------------------------------------------------------------------- what changed


def value_words(value: object) -> str:
    """Write the value of a field: a scalar as it is, anything larger by its size.

    >>> value_words(None), value_words(50.0), value_words({"a": 1, "b": 2}), value_words([1, 2])
    ('–', '50', '{2 keys}', '1, 2')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return f"{{{len(value)} keys}}" if len(value) != 1 else "{1 key}"
    if isinstance(value, list):
        if any(isinstance(one, (dict, list)) for one in value):
            return f"[{len(value)} entries]"
        return ", ".join(map(value_words, value)) or "none"
    return figure(value) if isinstance(value, float) else str(value) or "–"


def both_words(change: FieldChange, longest: int) -> tuple[str, str]:
    """Write both values of a field, no longer than that; in full digits where they would look the same.

    >>> both_words(FieldChange(key="pue", a=1.00001, b=1.0), 16)
    ('1.00001', '1.0')
    """
    words = [value_words(change.a), value_words(change.b)]
    if words[0] == words[1]:
        words = [str(change.a), str(change.b)]
    a, b = (text if len(text) <= longest else text[: longest - 1] + "…" for text in words)
    return a, b


def _question(comparison: Comparison) -> str:
    changes = comparison.question
    if not changes:
        return "both ask the same question"
    if len(changes) <= _MOST_NAMED:
        values = ((one.key, *both_words(one, _LONGEST_VALUE)) for one in changes)
        told = "; ".join(f"{key} is {a} in A and {b} in B" for key, a, b in values)
        return f"the questions differ in {'one field' if len(changes) == 1 else f'{len(changes)} fields'}: {told}"
    catalog = sum(one.key.startswith("catalog.") for one in changes)
    names = [side.plan.scenario for side in (comparison.a, comparison.b)]
    whose = "" if names[0] == names[1] else f"A is of {names[0]}, B of {names[1]}; "
    return f"{whose}the questions differ in {len(changes)} fields, {catalog or 'none'} of them in the catalog"


def _yield(comparison: Comparison) -> str:
    totals = comparison.totals
    served = totals.throughput_tps
    if differs(served) and served.relative is not None:
        amount = f"{per_cent(abs(served.relative))} {_more(served)}"
        text = f"B serves {amount} ({figure(served.b)} output tok/s, {figure(served.a)} in A)"
    else:
        text = f"B serves the same {figure(served.a)} output tok/s as A"
    basis = "provisioned" if _known(totals.power_provisioned_w) else "forward"
    power = totals.power_provisioned_w if basis == "provisioned" else totals.power_forward_w
    parts = [f"{_amount(power, 'W')} {basis}"] if _known(power) else []
    parts += [_amount(totals.usd_per_hour, "USD/h")] if _known(totals.usd_per_hour) else []
    return f"{text}, with {listed(parts)}" if parts else text


def _known(pair: Pair) -> bool:
    return pair.difference is not None


def _more(pair: Pair) -> str:
    return "more" if (pair.difference or 0.0) > 0 else "less"


def _amount(pair: Pair, unit: str) -> str:
    """Say how much more: ``3.1 kW more``, or that it is the same."""
    if not differs(pair):
        return f"the same {in_unit(pair.a, unit)}"
    return f"{in_unit(abs(pair.difference or 0.0), unit)} {_more(pair)}"


def _fleet(comparison: Comparison) -> str:
    rows = comparison.fleet
    if any(row.devices.difference is None for row in rows):
        return "the fleets are not compared: the catalog counts request slots, not devices"
    moved = [(row.device, row.devices.difference or 0.0) for row in rows if differs(row.devices)]
    a, b = (sum(getattr(row.devices, side) for row in rows) for side in ("a", "b"))
    if not moved:
        return f"the fleets are the same {in_unit(a, 'device')}"
    parts = [f"{figure(abs(n))} {'more' if n > 0 else 'fewer'} {device}" for device, n in moved]
    return f"B has {listed(parts)}: {in_unit(b, 'device')}, {figure(a)} in A"


def _designs(comparison: Comparison) -> str:
    several = len({one.workload for one in comparison.drafting}) > 1
    served = [list(dict.fromkeys(d.workload for d in side.plan.deployments)) for side in (comparison.a, comparison.b)]
    if not set(served[0]) & set(served[1]):
        return f"the plans serve different workloads, {listed(served[1])} in B and {listed(served[0])} in A"
    parts = []
    for one in comparison.drafting:
        if not one.same:
            parts.append(_named(one.workload, one.number, several, _redrafted(one)))
    moved = [one for one in comparison.placements if not one.same]
    if not parts and not moved:
        return "both run every phase on the same options with the same draft length"
    if len(moved) > _MOST_NAMED:
        parts.append(f"{len(moved)} of {len(comparison.placements)} placements differ")
    else:
        parts += [_moved(one, several) for one in moved]
    return "; ".join(parts)


def _named(workload: str, number: int, several: bool, text: str) -> str:
    return f"{workload}{f', design {number}' if number > 1 else ''}: {text}" if several or number > 1 else text


def _redrafted(change: DraftingChange) -> str:
    a, b = change.a, change.b
    if a is not None and b is not None and (a.proposer, a.layout) == (b.proposer, b.layout):
        return f"the draft length is {b.draft_length} in B, {a.draft_length} in A"
    return f"{_drafting(b)} in B, {_drafting(a)} in A"


def _drafting(drafting: Drafting | None) -> str:
    if drafting is None:
        return "no such design"
    layout = "" if drafting.layout == "disaggregated" else f", layout {drafting.layout}"
    if drafting.proposer is None:
        return f"no speculation{layout}"
    return f"draft length {drafting.draft_length} by {drafting.proposer}{layout}"


def place_words(place: Place | None) -> str:
    """Write an option: ``b200-sxm tp2 b64``."""
    return "–" if place is None else f"{place.device} tp{place.tensor_parallel} b{place.batch_size}"


def _moved(change: PlacementChange, several: bool) -> str:
    a, b = ("nothing" if place is None else place_words(place) for place in (change.a, change.b))
    return _named(change.workload, change.number, several, f"{phase_words(change.phase)} on {b} in B, {a} in A")


def _service(comparison: Comparison) -> str:
    rows = [one for one in comparison.service if _known(one.interactivity_tps)]
    several = len(comparison.service) > 1
    moved = [one for one in rows if differs(one.interactivity_tps) or differs(one.ttft_s)]
    if rows and not moved:
        return "users see the same tokens/s and wait as long for the first one"
    parts = []
    for one in moved[:_MOST_NAMED]:
        who = f"users of {one.workload}" if several else "users"
        seen, wait = one.interactivity_tps, one.ttft_s
        speed = f"see {figure(seen.b)} tok/s in B, {figure(seen.a)} in A"
        speed = speed if differs(seen) else f"see {figure(seen.a)} tok/s in both"
        first = f"the first token comes after {in_unit(wait.b, 's')}, {in_unit(wait.a, 's')} in A"
        parts.append(f"{who} {speed}; {first if differs(wait) else 'the first token comes as soon'}")
    return "; ".join(parts)


def headroom_name(row: HeadroomChange, several: bool) -> str:
    """Name a limit of both plans."""
    named = doc.LimitRow(
        name=row.name,
        workload=row.workload,
        device=row.device,
        rack=row.rack,
        phase=row.phase,
        basis=row.basis,
        unit=row.unit,
        bound=0.0,
        value=None,
        slack=None,
        binding=None,
        marginal_value=None,
        marginal_delta=None,
    )
    return limit_name(named, several) + (f" ({row.number})" if row.number > 1 else "")


def _headroom(comparison: Comparison) -> list[str]:
    """Name the limit that each plan is nearest to."""
    several = len(comparison.service) > 1
    tightest = {}
    for side in ("a", "b"):
        exact = getattr(comparison, side).plan.objective.name != "throughput"  # then a plan serves just the demand
        held = [(row, getattr(row, side)) for row in comparison.headroom if not (exact and row.name == "demand")]
        known = [(mine.left, headroom_name(row, several)) for row, mine in held if mine and mine.left is not None]
        if known:
            left, name = min(known, key=lambda one: one[0])
            tightest[side.upper()] = name, "nothing" if abs(left) <= _NEAR else per_cent(left)
    if len({name for name, _ in tightest.values()}) == 1 < len(tightest):
        (name, left), (_, other) = tightest.values()
        amounts = f"{left} left in both" if left == other else f"{left} left in A, {other} in B"
        return [f"the tightest limit of both is the {name}: {amounts}"]
    parts = [f"the tightest limit of {side} is the {name} ({left} left)" for side, (name, left) in tightest.items()]
    return ["; ".join(parts)] if parts else []


def _unplanned(side: Side, name: str) -> list[str]:
    """Say of a side that deploys nothing why: its conflict, and what is nearest to each limit in it."""
    if side.plan.status == "no_incumbent":
        return [f"{name} has no plan: the time limit was reached before any was found"]
    if side.plan.deployments:
        return []
    first, *rest = (text.rstrip(".") for text in reasons(side.plan.infeasibility))
    return [f"{name} has no plan: {first[0].lower()}{first[1:]}", *rest]


# ------------------------------------------------------------------------------------------ what each plan bears


def breach_words(breach: Breach, several: bool) -> str:
    """Name what breaks: ``target verify's capacity``, ``the power budget``.

    >>> from planner.schema.documents import PoolMember
    >>> member = PoolMember(workload="chat", deployment=0, phase="target_verify")
    >>> some = {"pool": "p", "device": "gpu", "needed": 2.0, "available": 1.0, "at_growth": None}
    >>> breach_words(Breach(name="memory", phases=(member,), **some), several=True)
    "chat's target verify's memory"
    """
    if breach.name == "power_budget":
        return "the power budget"
    return f"{pool_words(breach.pool, breach.phases, several)}'s {breach.name}"


def pool_words(name: str | None, phases: Sequence[doc.PoolMember], several: bool) -> str:
    """Name a pool by the one phase that it serves, else by its own name."""
    if len(phases) == 1:
        (member,) = phases
        return (f"{member.workload}'s " if several else "") + phase_words(member.phase)
    return f"pool {name}"


def _several(side: Side) -> bool:
    return len({one.workload for one in side.plan.deployments}) > 1


def first_words(breaches: Sequence[Breach], several: bool) -> str:
    """Name what breaks first, with how many more do so at once."""
    more = len(breaches) - 1
    return breach_words(breaches[0], several) + (f" and {more} more" if more else "")


def _loss(side: Side, name: str) -> str | None:
    """Say what the loss of one server of each device type leaves."""
    if not side.servers_lost:
        return None
    counted = [one for one in side.servers_lost if one.rate_share is not None]
    if not counted:
        return f"for {name} no server is lost: {side.servers_lost[0].reason}"
    hurt = [one for one in counted if not one.serves]
    if not hurt:
        return f"{name} keeps its whole rate whichever one server is lost"
    parts = _told_together([(one.device, _left(one, side)) for one in counted])
    told = [f"one {what} server leaves {'it' if k else name} {left}" for k, (what, left) in enumerate(parts)]
    return f"losing {', '.join(told)}"


def _told_together(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join the device types whose loss leaves the same."""
    same: dict[str, list[str]] = {}
    for device, left in parts:
        same.setdefault(left, []).append(device)
    return [(" or ".join(devices), left) for left, devices in same.items()]


def _left(lost: ServerLost, side: Side) -> str:
    """Say how much of which rate is left."""
    if lost.breach is None:
        return "its whole rate"
    share, whose = _share_left(lost, side)
    if share == 0:
        return f"nothing of {whose}"
    breaks = breach_words(lost.breach, _several(side))
    return f"{per_cent(share)} of {whose} ({breaks} breaks first{_demand_words(lost)})"


def _share_left(lost: ServerLost, side: Side) -> tuple[float, str]:
    """Give the share that is left, and whose: of workloads by what is left to them where that is known."""
    known = [(left.rate_share, left.workload) for left in lost.workloads if left.rate_share is not None]
    if len(known) < len(lost.workloads):
        return lost.rate_share or 0.0, "the rate of one of its designs"
    least = min(share for share, _ in known)
    if not _several(side):
        return least, "its rate"
    return least, f"the rate of {' or '.join(name for share, name in known if share <= least * (1 + _NEAR))}"


def _demand_words(lost: ServerLost) -> str:
    met = [one.meets_demand for one in lost.workloads if one.meets_demand is not None]
    if not met:
        return ""
    return "; the demand is still met" if all(met) else "; the demand is not met"


def _growth(side: Side, name: str) -> str | None:
    """Say how much growth the fleet as bought carries."""
    growth = side.growth
    if growth is None:
        return None
    if growth.carried is None:
        return f"for {name} no fleet is held fixed: {growth.reason}"
    what, many = first_words(growth.breaches, _several(side)), len(growth.breaches) > 1
    if growth.carried == 0:
        return f"{name} carries no growth as bought: {what} {'are' if many else 'is'} used up"
    verb = "break" if many else "breaks"
    return f"{name} carries {per_cent(growth.carried)} growth as bought, then {what} {verb}"


def _anew(side: Side, name: str) -> str | None:
    """Say what a quarter more takes, planned anew."""
    step = None if side.growth is None else _step(side.growth)
    if step is None:
        return None
    anew = step.anew
    if anew.reason is not None:
        return f"{name} is not known ({anew.reason})"
    if anew.status == "no_incumbent":
        return f"{name} was not found in time"
    if anew.status == "infeasible":
        return f"{name} has no plan ({nearest_words(anew.infeasibility)})"
    parts = [] if anew.devices is None else [_devices(sum(anew.devices.values()), side.plan)]
    basis = "provisioned" if anew.power_w.provisioned is not None else "forward"
    watts, before = (getattr(power, basis) for power in (anew.power_w, side.plan.totals.power_w))
    if watts is not None:
        parts.append(f"{in_unit(watts, 'W')} {basis} ({in_unit(before, 'W')} now)")
    return f"{name} takes {listed(parts)}"


def _step(growth: Growth) -> GrowthStep | None:
    return next((step for step in growth.steps if step.growth == _SHOWN_GROWTH), None)


def nearest_words(conflicts: Sequence[doc.Conflict]) -> str:
    """Say what is nearest to the first limit in conflict, and whether it suffices."""
    known = [one for one in conflicts if one.achievable is not None]
    near = next((one for one in known if one.suffices), known[0] if known else None)
    if near is None:
        return "whatever one limit is moved to" if conflicts else "whatever the budgets"
    where = near.device or near.rack or near.workload
    name = LIMIT_WORDS[near.limit] + (f" ({where})" if where else "")
    more = "" if near.suffices else ", and further limits stand in the way"
    return f"nearest: {name} {in_unit(near.achievable, near.unit)}, {in_unit(near.asked, near.unit)} asked{more}"


def _devices(count: float, plan: doc.Plan) -> str:
    now = sum(row.devices or 0.0 for row in plan.fleet)
    return f"{in_unit(count, 'device')} ({figure(now)} now)"

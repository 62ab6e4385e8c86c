"""The tables of two plans side by side."""

from __future__ import annotations

from planner.report.compared_words import (
    both_words,
    breach_words,
    headroom_name,
    nearest_words,
    per_cent,
    place_words,
    pool_words,
)
from planner.report.numbers import LIMIT_WORDS, figure, in_unit, percent, signed
from planner.report.sentences import phase_words
from planner.report.tables import Table
from planner.schema.comparison import (
    Comparison,
    Drafting,
    GrowthStep,
    Headroom,
    Pair,
    Place,
    PlannedAnew,
    ServerLost,
    Side,
)
from planner.schema.documents import Conflict

CONFLICTS = "Limits in conflict"
MOST_FIELDS = 12
MOST_BROKEN = 2
_LONGEST_VALUE = 16


def sides(comparison: Comparison) -> tuple[tuple[str, Side], ...]:
    """Give the plans with the letters that name them."""
    return ("A", comparison.a), ("B", comparison.b)


def plans(comparison: Comparison) -> Table:
    """Say which plan is which: file, scenario, status, command."""
    rows = tuple(
        (name, side.file, side.plan.scenario, side.plan.status.replace("_", " "), side.plan.objective.name)
        for name, side in sides(comparison)
    )
    return Table("", ("plan", "file", "scenario", "status", "objective"), rows, left=5)


def question(comparison: Comparison) -> Table | None:
    """List the fields that differ, as many as a person reads; the document has them all."""
    changes = comparison.question
    if not changes:
        return None
    rows = tuple((one.key, *both_words(one, _LONGEST_VALUE)) for one in changes[:MOST_FIELDS])
    more = len(changes) - len(rows)
    note = f"{len(changes)} fields differ; {more} more of them stand in the JSON document." if more else ""
    return Table("What is asked", ("field", "A", "B"), rows, left=3, note=note)


def _pair_row(name: str, pair: Pair, unit: str = "", scale: float = 1.0) -> tuple[str, ...]:
    cells = [figure(None if value is None else value * scale) for value in (pair.a, pair.b)]
    moved = "–" if pair.difference is None else signed(pair.difference * scale, "").strip()
    share = "–" if pair.relative is None else _change(pair.relative)
    return f"{name}, {unit}" if unit else name, *cells, "0" if pair.difference == 0 else moved, share


def _change(relative: float) -> str:
    return ("−" if relative < 0 else "+" if relative else "") + per_cent(abs(relative))


_PAIR_HEADERS = ("figure", "A", "B", "B − A", "change")


def totals(comparison: Comparison) -> Table:
    """Throughput, power on every basis, and cost."""
    t = comparison.totals
    rows = (
        _pair_row("throughput", t.throughput_tps, "tok/s"),
        _pair_row("rate", t.request_rate_rps, "requests/s"),
        _pair_row("power, forward", t.power_forward_w, "kW", 1e-3),
        _pair_row("power, average", t.power_average_w, "kW", 1e-3),
        _pair_row("power, provisioned", t.power_provisioned_w, "kW", 1e-3),
        _pair_row("throughput per kW forward", t.tps_per_kw, "tok/s"),
        _pair_row("cost", t.usd_per_hour, "USD/h"),
        _pair_row("cost per million tokens", t.usd_per_million_tokens, "USD"),
    )
    return Table("Throughput, power, cost", _PAIR_HEADERS, rows)


def service(comparison: Comparison) -> list[Table]:
    """Say what each workload gets; a table each."""
    found = []
    for one in comparison.service:
        rows = (
            _pair_row("rate", one.request_rate_rps, "requests/s"),
            _pair_row("throughput", one.throughput_tps, "tok/s"),
            _pair_row("interactivity", one.interactivity_tps, "tok/s"),
            _pair_row("TTFT, unloaded", one.ttft_s, "ms", 1e3),
            _pair_row("tokens per step", one.tokens_per_step),
            _pair_row("energy per token", one.energy_j_per_token, "J"),
        )
        title = f"Service: {one.workload}" if len(comparison.service) > 1 else "Service"
        found.append(Table(title, _PAIR_HEADERS, rows))
    return found


def fleet(comparison: Comparison) -> Table | None:
    """Devices by type; nothing where the catalog counts request slots, or where nothing is deployed."""
    rows = [row for row in comparison.fleet if row.devices.a is not None or row.devices.b is not None]
    if not rows:
        return None
    by_node = any(row.nodes.a is not None or row.nodes.b is not None for row in rows)
    cells = tuple(
        (
            row.device,
            *((figure(row.nodes.a), figure(row.nodes.b)) if by_node else ()),
            *_pair_row("", row.devices)[1:4],
            in_unit(row.provisioned_w.a, "W"),
            in_unit(row.provisioned_w.b, "W"),
        )
        for row in rows
    )
    nodes = ("nodes A", "nodes B") if by_node else ()
    return Table("Fleet", ("device", *nodes, "A", "B", "B − A", "provisioned A", "provisioned B"), cells, last=0)


def placements(comparison: Comparison) -> list[Table]:
    """Say what runs where: a table per workload."""
    found: list[Table] = []
    named = dict.fromkeys((one.workload, one.number) for one in comparison.drafting)
    for workload, number in named:
        rows: list[tuple[str, ...]] = [
            ("drafting", _drafting_cell(one.a), _drafting_cell(one.b), _changed(one.same))
            for one in comparison.drafting
            if (one.workload, one.number) == (workload, number)
        ]
        rows += [
            (phase_words(one.phase), _place_cell(one.a), _place_cell(one.b), _changed(one.same))
            for one in comparison.placements
            if (one.workload, one.number) == (workload, number)
        ]
        design = f"{workload}, design {number}" if any(key == (workload, 2) for key in named) else workload
        title = f"Placements: {design}" if len(named) > 1 else "Placements"
        note = "Device type, tensor-parallel degree, batch size × replicas of the pool." if not found else ""
        found.append(Table(title, ("phase", "A", "B", ""), tuple(rows), left=4, note=note))
    return found


def _changed(same: bool) -> str:
    return "" if same else "changed"


def _drafting_cell(drafting: Drafting | None) -> str:
    if drafting is None:
        return "–"
    layout = "" if drafting.layout == "disaggregated" else f", {drafting.layout}"
    return f"D {drafting.draft_length}, {drafting.proposer or 'no speculation'}{layout}"


def _place_cell(place: Place | None) -> str:
    return "–" if place is None else f"{place_words(place)} × {figure(place.pool_replicas)}"


def headroom(comparison: Comparison) -> Table | None:
    """Say how much of every limit is left in both plans; two rows each."""
    several = len(comparison.service) > 1
    rows: list[tuple[str, ...]] = []
    for row in comparison.headroom:
        name = headroom_name(row, several)
        rows += [(name, "A", *_headroom_cells(row.a, row.unit)), ("", "B", *_headroom_cells(row.b, row.unit))]
    note = "Slack and left (slack per bound) are on the good side, of floors and ceilings alike."
    note += " Memory is in sequences." if any(row.unit == "sequence" for row in comparison.headroom) else ""
    headers = ("limit", "plan", "bound", "plan has", "slack", "left")
    return Table("Headroom", headers, tuple(rows), left=2, note=note) if rows else None


def _headroom_cells(mine: Headroom | None, unit: str) -> tuple[str, ...]:
    if mine is None:
        return "not set", "–", "–", "–"
    shown = (mine.bound, mine.value, mine.slack)
    cells = (figure(value) if unit == "sequence" else in_unit(value, unit) for value in shown)
    return *cells, percent(mine.left)


# ------------------------------------------------------------------------------------------ what each plan bears


def servers_lost(comparison: Comparison) -> Table | None:
    """Say what the loss of one server of each device type leaves."""
    lost = [(name, side, one) for name, side in sides(comparison) for one in side.servers_lost if not one.reason]
    if not lost:
        return None
    asked = any(left.meets_demand is not None for _, _, one in lost for left in one.workloads)
    rows = tuple((*_loss_cells(name, side, one), *((_demand_cell(one),) if asked else ())) for name, side, one in lost)
    headers = ("plan", "server", "pool hit", "replicas", "rate left", "load", *(("demand",) if asked else ()))
    note = (
        "A server's devices are lost out of the pool where that leaves least. Load: busy share of what is left at the"
        " full rate; it may not exceed the scenario's max_utilization."
    )
    return Table("One server lost", headers, rows, left=3, note=note)


def _loss_cells(name: str, side: Side, lost: ServerLost) -> tuple[str, ...]:
    server = f"{figure(lost.devices_lost)} {lost.device}" + (", a replica" if lost.counted_by == "replica" else "")
    hit = pool_words(lost.pool, lost.phases, _several(side))
    replicas = f"{figure(lost.replicas_before)} → {figure(lost.replicas_left)}"
    return name, server, hit, replicas, percent(lost.rate_share), percent(lost.utilization_needed)


def _demand_cell(lost: ServerLost) -> str:
    met = [one.meets_demand for one in lost.workloads if one.meets_demand is not None]
    return "–" if not met else "met" if all(met) else "not met"


def _several(side: Side) -> bool:
    return len({one.workload for one in side.plan.deployments}) > 1


def _steps(comparison: Comparison) -> list[tuple[str, Side, GrowthStep]]:
    return [(n, side, step) for n, side in sides(comparison) if side.growth is not None for step in side.growth.steps]


def growth_as_bought(comparison: Comparison) -> Table | None:
    """Say what breaks on the fleet as bought when demand grows, and what power it would draw."""
    rows = tuple(
        (name, f"+{per_cent(step.growth)}", *_bought_cells(side, step))
        for name, side, step in _steps(comparison)
        if step.as_bought is not None
    )
    headers = ("plan", "demand", "breaks", "forward", "average", "provisioned")
    note = "Designs, pools and counts as they are; what breaks first stands first. Power: if nothing broke."
    return Table("Demand grown, fleet as bought", headers, rows, left=3, note=note, last=0) if rows else None


def _bought_cells(side: Side, step: GrowthStep) -> tuple[str, ...]:
    assert step.as_bought is not None  # rows are of those that hold the fleet
    power = step.as_bought.power_w
    broken = ", ".join(breach_words(one, _several(side)) for one in step.as_bought.breaches[:MOST_BROKEN])
    more = len(step.as_bought.breaches) - MOST_BROKEN
    words = (broken + (f", {more} more" if more > 0 else "")) or "nothing"
    return words, in_unit(power.forward, "W"), in_unit(power.average, "W"), in_unit(power.provisioned, "W")


def growth_anew(comparison: Comparison) -> Table | None:
    """Say what grown demand takes planned anew, or which limits stand against it."""
    rows = tuple(
        (name, f"+{per_cent(step.growth)}", *_anew_cells(side, step.anew)) for name, side, step in _steps(comparison)
    )
    headers = ("plan", "demand", "devices", "power", "USD/h", "no plan: nearest achievable")
    note = (
        "The planner's answer at these rates under all other limits, the least power where throughput was asked for;"
        " power on the basis of the budget."
    )
    return Table("Demand grown, planned anew", headers, rows, left=2, note=note) if rows else None


def _anew_cells(side: Side, anew: PlannedAnew) -> tuple[str, str, str, str]:
    if anew.reason is not None:
        return "–", "–", "–", anew.reason
    if anew.status == "infeasible":
        return "–", "–", "–", nearest_words(anew.infeasibility).removeprefix("nearest: ")
    if anew.status == "no_incumbent":
        return "–", "–", "–", "not found in time"
    count = figure(None if anew.devices is None else sum(anew.devices.values()))
    watts = getattr(anew.power_w, basis_of(side))
    return count, in_unit(watts, "W"), figure(anew.usd_per_hour), "not proven" if anew.status == "feasible" else ""


def conflicts(comparison: Comparison) -> Table | None:
    """List the limits in conflict at each growth without a plan, with what is nearest to each."""
    rows = tuple(
        (
            *(name, f"+{per_cent(step.growth)}", _conflict_name(side, one), in_unit(one.asked, one.unit)),
            *(in_unit(one.achievable, one.unit), "yes" if one.suffices else "no"),
        )
        for name, side, step in _steps(comparison)
        for one in step.anew.infeasibility
    )
    headers = ("plan", "demand", "limit", "asked", "nearest achievable", "suffices")
    note = (
        "The smallest set of limits that no plan meets together. Nearest: with the others as they are; it suffices"
        " where moving this one alone gives a plan. Alone: what no design exceeds with no other limit at all."
    )
    return Table(CONFLICTS, headers, rows, left=3, note=note) if rows else None


def _conflict_name(side: Side, conflict: Conflict) -> str:
    where = conflict.device or conflict.rack or (conflict.workload if _several(side) else None)
    alone = "" if conflict.holding or conflict.suffices or conflict.limit == "memory" else ", alone"
    return LIMIT_WORDS[conflict.limit] + (f", {where}" if where else "") + alone


def basis_of(side: Side) -> str:
    """Give the power basis of a plan's budget; without one provisioned power where it is known, else forward."""
    bases = [row.basis for row in side.plan.limits if row.name == "power_budget" and row.rack is None and row.basis]
    known = "provisioned" if side.plan.totals.power_w.provisioned is not None else "forward"
    return bases[0] if bases else known

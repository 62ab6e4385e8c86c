"""What differs between two plans: question, fleet, designs, totals, service, headroom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from planner.assemble import limit_row
from planner.limits import limits_of
from planner.schema import documents as doc
from planner.schema.comparison import (
    DeviceChange,
    Drafting,
    DraftingChange,
    FieldChange,
    Headroom,
    HeadroomChange,
    Pair,
    Place,
    PlacementChange,
    ServiceChange,
    TotalsChange,
)
from planner.schema.scenario import Scenario
from planner.words import PHASES, Phase


def pair(a: float | None, b: float | None) -> Pair:
    """Set two figures side by side.

    >>> pair(4.0, 5.0).relative, pair(0.0, 5.0).relative, pair(None, 5.0).difference
    (0.25, None, None)
    """
    difference = None if a is None or b is None else b - a
    relative = None if difference is None or not a else difference / abs(a)
    return Pair(a=a, b=b, difference=difference, relative=relative)


# ------------------------------------------------------------------------------------------------- the question


def question_changes(a: Scenario, b: Scenario) -> tuple[FieldChange, ...]:
    """List every field of scenario and catalog that differs: limits and objective first, the catalog last."""
    one, other = (scenario.model_dump(mode="json") for scenario in (a, b))
    found = (FieldChange(key=key, a=x, b=y) for key, x, y in _differences("", one, other))
    return tuple(sorted(found, key=lambda change: _rank(change.key)))


def _rank(key: str) -> int:
    """Give the place of a field among those that differ; fields of one place keep the order of a scenario."""
    if key.startswith("limits.") or key in ("limits", "objective"):
        return 0
    if key.startswith("workloads."):
        return 1 if ".limits." in key else 2
    return {"catalog": 5, "name": 4, "description": 4}.get(key.partition(".")[0], 3)


def _differences(key: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401
    if isinstance(a, dict) and isinstance(b, dict):
        for name in {**a, **b}:
            yield from _differences(f"{key}.{name}" if key else str(name), a.get(name), b.get(name))
    elif a != b:
        yield key, a, b


# ---------------------------------------------------------------------------------------------- fleet and totals


def fleet_changes(a: doc.Plan, b: doc.Plan) -> tuple[DeviceChange, ...]:
    """Set the fleets side by side, by device type; a type that a deployed plan does not have counts as none of it."""
    rows = [{row.device: row for row in plan.fleet} for plan in (a, b)]
    return tuple(_device_change(name, rows, (a, b)) for name in {**rows[0], **rows[1]})


def _device_change(name: str, rows: list[dict[str, doc.FleetRow]], plans: tuple[doc.Plan, doc.Plan]) -> DeviceChange:
    def figures(field: str) -> Pair:
        values = []
        for mine, plan in zip(rows, plans, strict=True):
            absent = 0.0 if plan.deployments and field != "nodes" else None
            values.append(getattr(mine[name], field) if name in mine else absent)
        return pair(*values)

    return DeviceChange(
        device=name,
        devices=figures("devices"),
        nodes=figures("nodes"),
        provisioned_w=figures("provisioned_w"),
        usd_per_hour=figures("usd_per_hour"),
    )


def totals_change(a: doc.Plan, b: doc.Plan) -> TotalsChange:
    """Set the totals side by side."""
    one, other = a.totals, b.totals
    return TotalsChange(
        throughput_tps=pair(one.throughput_tps, other.throughput_tps),
        request_rate_rps=pair(one.request_rate_rps, other.request_rate_rps),
        power_forward_w=pair(one.power_w.forward, other.power_w.forward),
        power_average_w=pair(one.power_w.average, other.power_w.average),
        power_provisioned_w=pair(one.power_w.provisioned, other.power_w.provisioned),
        tps_per_kw=pair(one.tps_per_kw, other.tps_per_kw),
        usd_per_hour=pair(one.usd_per_hour, other.usd_per_hour),
        usd_per_million_tokens=pair(one.usd_per_million_tokens, other.usd_per_million_tokens),
    )


# --------------------------------------------------------------------------------------------------- designs

Numbered = dict[tuple[str, int], int]


def _numbered(plan: doc.Plan) -> Numbered:
    """Give the position of every design by workload and by its number among the designs of that."""
    seen: Counter[str] = Counter()
    found: Numbered = {}
    for index, deployment in enumerate(plan.deployments):
        seen[deployment.workload] += 1
        found[deployment.workload, seen[deployment.workload]] = index
    return found


def drafting_changes(a: doc.Plan, b: doc.Plan) -> tuple[DraftingChange, ...]:
    """Set side by side who drafts for each workload, how far ahead, and in which layout."""
    one, other = _numbered(a), _numbered(b)
    found = []
    for workload, number in {**one, **other}:
        x, y = _drafting(a, one.get((workload, number))), _drafting(b, other.get((workload, number)))
        same = _chosen(x) == _chosen(y)
        found.append(DraftingChange(workload=workload, number=number, a=x, b=y, same=same))
    return tuple(found)


def _drafting(plan: doc.Plan, index: int | None) -> Drafting | None:
    if index is None:
        return None
    one = plan.deployments[index]
    return Drafting(proposer=one.proposer, draft_length=one.draft_length, layout=one.layout, share=one.share)


def _chosen(drafting: Drafting | None) -> tuple[Any, ...] | None:
    return None if drafting is None else (drafting.proposer, drafting.draft_length, drafting.layout)


def placement_changes(a: doc.Plan, b: doc.Plan) -> tuple[PlacementChange, ...]:
    """Set the placements side by side, by workload, design and phase."""
    one, other = _numbered(a), _numbered(b)
    found = []
    for workload, number in {**one, **other}:
        for phase in PHASES:
            x = _place(a, one.get((workload, number)), phase)
            y = _place(b, other.get((workload, number)), phase)
            if x is not None or y is not None:
                same = _option(x) == _option(y)
                found.append(PlacementChange(workload=workload, number=number, phase=phase, a=x, b=y, same=same))
    return tuple(found)


def _place(plan: doc.Plan, index: int | None, phase: Phase) -> Place | None:
    place = None if index is None else plan.deployments[index].placements[phase]
    if place is None:
        return None
    pool = next(p for p in plan.pools if any(m.deployment == index and m.phase == phase for m in p.phases))
    return Place(**place.model_dump(), pool_replicas=pool.replicas, pool_devices=pool.devices)


def _option(place: Place | None) -> tuple[Any, ...] | None:
    return None if place is None else (place.device, place.tensor_parallel, place.batch_size)


# --------------------------------------------------------------------------------------------------- service


def service_changes(a: doc.Plan, b: doc.Plan, names: Mapping[str, object]) -> tuple[ServiceChange, ...]:
    """Set side by side what each workload gets."""
    found = []
    for name in names:
        one, other = ([d.metrics for d in plan.deployments if d.workload == name] for plan in (a, b))

        def figures(of: Callable[[list[doc.Metrics]], float], one: Any = one, other: Any = other) -> Pair:  # noqa: ANN401
            return pair(of(one) if one else None, of(other) if other else None)

        found.append(
            ServiceChange(
                workload=name,
                request_rate_rps=figures(_rate),
                throughput_tps=figures(_throughput),
                interactivity_tps=figures(lambda some: min(m.interactivity_tps for m in some)),
                ttft_s=figures(lambda some: max(m.ttft_s for m in some)),
                tokens_per_step=figures(
                    lambda some: _rate(some) / sum(m.request_rate_rps / m.tokens_per_step for m in some)
                ),
                energy_j_per_token=figures(
                    lambda some: sum(m.throughput_tps * m.energy_j_per_token for m in some) / _throughput(some)
                ),
            )
        )
    return tuple(found)


def _rate(metrics: list[doc.Metrics]) -> float:
    return sum(m.request_rate_rps for m in metrics)


def _throughput(metrics: list[doc.Metrics]) -> float:
    return sum(m.throughput_tps for m in metrics)


# -------------------------------------------------------------------------------------------------- headroom

Key = tuple[Any, ...]


def headroom_changes(a: doc.Plan, b: doc.Plan, asked: tuple[Scenario, Scenario]) -> tuple[HeadroomChange, ...]:
    """Set side by side how far each plan is from every limit, memory included; a plan of nothing has bounds only."""
    one, other = _numbered_rows(a, asked[0]), _numbered_rows(b, asked[1])
    return tuple(_headroom_change(key, one.get(key), other.get(key)) for key in {**one, **other})


def _numbered_rows(plan: doc.Plan, scenario: Scenario) -> dict[Key, doc.LimitRow]:
    """Give the rows by what they limit; memory is that of a phase, whatever device type it runs on."""
    seen: Counter[Key] = Counter()
    found: dict[Key, doc.LimitRow] = {}
    unmet = (limit_row(limit, None, None) for limit in limits_of(scenario))
    for row in plan.limits if plan.deployments else unmet:
        device = None if row.name == "memory" else row.device
        key = (row.name, row.workload, device, row.rack, row.phase, row.basis)
        seen[key] += 1
        found[(*key, seen[key])] = row
    return found


def _headroom_change(key: Key, a: doc.LimitRow | None, b: doc.LimitRow | None) -> HeadroomChange:
    row = a or b
    assert row is not None  # the key is that of one of them
    return HeadroomChange(
        name=row.name,
        workload=row.workload,
        device=row.device if a is None or b is None or a.device == b.device else None,
        rack=row.rack,
        phase=row.phase,
        basis=row.basis,
        number=key[-1],
        unit=row.unit,
        a=_headroom(a),
        b=_headroom(b),
    )


def _headroom(row: doc.LimitRow | None) -> Headroom | None:
    if row is None:
        return None
    left = None if row.slack is None or not row.bound else row.slack / row.bound
    return Headroom(bound=row.bound, value=row.value, slack=row.slack, left=left)

"""From designs and rates to the plan document. No solver: every figure is computed from the scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf

from planner.evaluate import Design, RequestMetrics, request_metrics
from planner.fleet import (
    Deployed,
    DeviceCount,
    Member,
    PoolUse,
    Racked,
    Serving,
    device_counts,
    forward_power_w,
    house,
    pool_uses,
    power_w,
    serving_replicas,
    usd_per_hour,
)
from planner.limits import Limit, limits_of, value_of
from planner.options import CostTable, Option, Speculation, hosted_by_verify
from planner.schema import documents as doc
from planner.schema.scenario import Scenario
from planner.words import OBJECTIVE_UNITS, PHASES, POWER_BASES, Phase


def deploy(
    scenario: Scenario,
    designs: Sequence[tuple[Design, float]],
    tables: dict[str, CostTable] | None = None,
    racks: Racked | None = None,
) -> Deployed:
    """Compute metrics and pools of designs at their request rates; ``racks`` are units on offer by (rack, device)."""
    servings = tuple(
        Serving(design, request_metrics(scenario, design, (tables or {}).get(design.workload)), rate)
        for design, rate in designs
    )
    pools = pool_uses(scenario, servings)
    return Deployed(scenario, servings, pools, house(scenario, pools, racks or {}))


def fill_budgets(deployed: Deployed, tables: dict[str, CostTable] | None = None) -> Deployed:
    """Scale all rates until a budget or inventory is used up exactly, where throughput is maximized.

    With fractional counts and without spares power, cost and devices are proportional to the rates, so this only
    removes the rounding that a solver leaves.
    """
    scenario = deployed.scenario
    ratios = [limit.bound / value for limit, value in limit_values(deployed) if limit.workload is None and value]
    proportional = scenario.counts == "fractional" and not scenario.servers.spare_replicas
    owns = any(stock.owned for stock in scenario.limits.inventory.values())
    if scenario.objective != "throughput" or not proportional or owns or not ratios:
        return deployed
    factor = min(ratios)
    designs = [(serving.design, serving.rate_rps * factor) for serving in deployed.servings]
    racks = {key: units * max(1.0, factor) for key, units in deployed.racks.items()}
    return deploy(scenario, designs, tables, racks)


def objective_value(deployed: Deployed) -> float | None:
    """Compute the scenario's objective: tok/s, W, USD/h, J/token, or the worst workload's tok/s."""
    scenario, servings = deployed.scenario, deployed.servings
    if scenario.objective == "throughput":
        return throughput_tps(deployed)
    if scenario.objective == "power":
        return power_w(scenario, servings, deployed.pools, scenario.power_basis)
    if scenario.objective == "cost":
        return usd_per_hour(scenario, deployed.pools)
    if scenario.objective == "interactivity":
        return min(serving.metrics.interactivity_tps for serving in servings)
    return _energy_j_per_token(deployed)


def _energy_j_per_token(deployed: Deployed) -> float:
    """Mix-weighted forward energy per output token; a workload's is weighted by its designs' rates."""
    workloads = deployed.scenario.workloads
    total = sum(workload.mix for workload in workloads.values())
    figure = 0.0
    for name, workload in workloads.items():
        mine = [serving for serving in deployed.servings if serving.design.workload == name]
        rate = sum(serving.rate_rps for serving in mine)
        energy = sum(serving.rate_rps * serving.metrics.energy_j for serving in mine)
        figure += workload.mix / total * energy / (rate * workload.osl_tokens)
    return figure


def throughput_tps(deployed: Deployed) -> float:
    """Output tokens/s of the whole deployment, Σ λ·OSL."""
    workloads = deployed.scenario.workloads
    return sum(serving.rate_rps * workloads[serving.design.workload].osl_tokens for serving in deployed.servings)


# --------------------------------------------------------------------------------------------------- documents


def _placement(pool: PoolUse, member: Member, batch_size: int) -> doc.Placement:
    return doc.Placement(
        pool=pool.name,
        device=pool.device,
        tensor_parallel=pool.tensor_parallel,
        batch_size=batch_size,
        replicas=member.need,
        devices=member.need * pool.tensor_parallel,
        utilization=_share(member.busy, pool.replicas),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def metrics_document(scenario: Scenario, serving: Serving) -> doc.Metrics:
    """Write the metrics of one serving."""
    m = serving.metrics
    osl = scenario.workloads[serving.design.workload].osl_tokens
    share: dict[Phase | str, float | None] = {
        phase: None if use is None else _share(use.energy_j, m.energy_j) for phase, use in m.phases.items()
    }
    share["transfers"] = _share(m.transfer_energy_j, m.energy_j)
    return doc.Metrics(
        tokens_per_step=m.tokens_per_step,
        step_time_s=m.step_time_s,
        interactivity_tps=m.interactivity_tps,
        tpot_s=m.tpot_s,
        ttft_s=m.ttft_s,
        request_rate_rps=serving.rate_rps,
        throughput_tps=serving.rate_rps * osl,
        energy_j_per_request=m.energy_j,
        energy_j_per_token=m.energy_j / osl,
        tps_per_kw=tps_per_kw(m, osl),
        energy_share=share,  # type: ignore[arg-type]
    )


def tps_per_kw(metrics: RequestMetrics, osl_tokens: int) -> float:
    """Output tokens per kJ of forward energy, which is throughput per kW of forward power."""
    return 1e3 * osl_tokens / metrics.energy_j


def deployment_document(deployed: Deployed, index: int) -> doc.Deployment:
    """Write one deployment."""
    scenario, serving = deployed.scenario, deployed.servings[index]
    design, speculation = serving.design, serving.design.speculation
    placements: dict[Phase, doc.Placement | None] = dict.fromkeys(PHASES)
    for pool in deployed.pools:
        for member in pool.members:
            if member.serving == index:
                option = design.options[member.phase] or design.options["target_verify"]  # a hosted phase has none
                assert option is not None
                placements[member.phase] = _placement(pool, member, option.batch_size)
    rate = sum(other.rate_rps for other in deployed.servings if other.design.workload == design.workload)
    proposer = speculation.proposer
    return doc.Deployment(
        workload=design.workload,
        share=serving.rate_rps / rate,
        proposer=proposer,
        proposer_kind=None if proposer is None else scenario.catalog.proposers[proposer].kind,
        draft_length=speculation.draft_length,
        verify_tokens=speculation.verify_tokens,
        layout=speculation.layout,
        placements=placements,
        metrics=metrics_document(scenario, serving),
    )


def design_summary(deployment: doc.Deployment) -> doc.DesignSummary:
    """Say who proposes, how far ahead, and where the phases are."""
    return doc.DesignSummary(
        workload=deployment.workload,
        proposer=deployment.proposer,
        draft_length=deployment.draft_length,
        devices={phase: None if p is None else p.device for phase, p in deployment.placements.items()},
    )


def design_of(
    scenario: Scenario, deployment: doc.Deployment, models: Mapping[Phase, tuple[str, ...]] | None = None
) -> Design:
    """Read a design back from its document; ``models`` of shared pools by phase. A hosted phase has no option."""
    nodes = deployment.verify_tokens - 1
    speculation = Speculation.of(deployment.proposer, deployment.draft_length, nodes, deployment.layout)
    hosted, sets = hosted_by_verify(scenario, speculation), models or {}
    options = {
        phase: None
        if place is None or phase in hosted
        else Option(place.device, place.tensor_parallel, place.batch_size, sets.get(phase, ()))
        for phase, place in deployment.placements.items()
    }
    return Design(deployment.workload, speculation, {phase: options[phase] for phase in PHASES})


def pool_documents(deployed: Deployed) -> tuple[doc.Pool, ...]:
    """Write the pools."""
    return tuple(
        doc.Pool(
            name=pool.name,
            models=pool.models,
            device=pool.device,
            tensor_parallel=pool.tensor_parallel,
            replicas=pool.replicas,
            spare_replicas=deployed.scenario.servers.spare_replicas,
            devices=pool.devices,
            utilization=_share(pool.busy, pool.replicas),
            phases=tuple(
                doc.PoolMember(workload=member.workload, deployment=member.serving, phase=member.phase)
                for member in pool.members
            ),
        )
        for pool in deployed.pools
    )


def fleet_documents(deployed: Deployed) -> tuple[doc.FleetRow, ...]:
    """Write devices by type, in catalog order; null instead of a sum of request slots."""
    counts = device_counts(deployed.scenario, deployed.pools)
    return tuple(_fleet_row(deployed, count) for count in counts.values())


def _fleet_row(deployed: Deployed, count: DeviceCount) -> doc.FleetRow:
    scenario = deployed.scenario
    device, stock = scenario.catalog.devices[count.device], scenario.limits.inventory.get(count.device)
    slots, watts = device.count_unit == "request_slots", device.provisioned_power_w
    racks = {rack: units for (rack, name), units in deployed.racks.items() if name == count.device}
    return doc.FleetRow(
        device=count.device,
        devices=None if slots else count.had,
        available=None if stock is None or isinf(stock.available) else int(stock.available),
        nodes=count.nodes,
        owned=None if stock is None else stock.owned,
        bought=None if slots else count.bought,
        racks=racks if scenario.servers.racks else None,
        provisioned_w=None if watts is None else scenario.pue * count.had * watts,
        usd_per_hour=None if device.price is None else count.bought * device.price.usd_per_hour,
    )


def power_document(deployed: Deployed) -> doc.PowerByBasis:
    """Write power on every basis."""
    watts = {basis: power_w(deployed.scenario, deployed.servings, deployed.pools, basis) for basis in POWER_BASES}
    return doc.PowerByBasis(**watts)


def totals_document(deployed: Deployed) -> doc.Totals:
    """Write the totals."""
    tps = throughput_tps(deployed)
    dollars = usd_per_hour(deployed.scenario, deployed.pools)
    return doc.Totals(
        throughput_tps=tps,
        request_rate_rps=sum(serving.rate_rps for serving in deployed.servings),
        power_w=power_document(deployed),
        tps_per_kw=1e3 * tps / forward_power_w(deployed.servings),
        usd_per_hour=dollars,
        usd_per_million_tokens=None if dollars is None else dollars / (tps * 3600.0) * 1e6,
    )


def limit_values(deployed: Deployed) -> list[tuple[Limit, float | None]]:
    """Compute what the deployment has for every limit of its scenario."""
    return [(limit, value_of(limit, deployed)) for limit in limits_of(deployed.scenario)]


def limit_row(
    limit: Limit, value: float | None, binding: bool | None, change: float | None = None, step: float = 0.0
) -> doc.LimitRow:
    """Write one limit; ``change`` of the objective for ``step`` of the bound is null where it was not re-solved."""
    slack = None if value is None else limit.slack(value)
    return doc.LimitRow(
        name=limit.name,
        workload=limit.workload,
        device=limit.device,
        rack=limit.rack,
        phase=None,
        basis=limit.basis,
        unit=limit.unit,
        bound=limit.bound,
        value=value,
        slack=0.0 if slack is not None and abs(slack) <= 1e-9 * abs(limit.bound) else slack,
        binding=binding,
        marginal_value=None if change is None else change / step + 0.0,
        marginal_delta=None if change is None else step,
    )


def memory_rows(deployed: Deployed) -> tuple[doc.LimitRow, ...]:
    """Write how full the memory of each pool is, in sequences of its phases; binding where it sizes the pool."""
    rows = []
    for pool in deployed.pools:
        serving = serving_replicas(deployed, pool)
        for member in pool.members:
            if member.memory_need > 0:
                rows.append(_memory_row(deployed, pool, member, serving))
    return tuple(rows)


def _memory_row(deployed: Deployed, pool: PoolUse, member: Member, serving: float) -> doc.LimitRow:
    metrics = deployed.servings[member.serving].metrics
    rate = deployed.servings[member.serving].rate_rps
    value = rate * metrics.residency_s
    # What the pool holds if the other phases' share of its memory stays as it is.
    bound = value * (serving - (pool.memory_need - member.memory_need)) / member.memory_need
    return doc.LimitRow(
        name="memory",
        workload=member.workload,
        device=pool.device,
        rack=None,
        phase=member.phase,
        basis=None,
        unit="sequence",
        bound=bound,
        value=value,
        slack=bound - value,
        binding=pool.memory_need >= pool.capacity_need,
        marginal_value=None,
        marginal_delta=None,
    )


NO_TOTALS = doc.Totals(
    throughput_tps=None,
    request_rate_rps=None,
    power_w=doc.PowerByBasis(forward=None, average=None, provisioned=None),
    tps_per_kw=None,
    usd_per_hour=None,
    usd_per_million_tokens=None,
)


def objective_document(
    scenario: Scenario, value: float | None, bound: float | None, gap: float | None
) -> doc.ObjectiveResult:
    """Write the objective."""
    name = scenario.objective
    return doc.ObjectiveResult(name=name, value=value, best_bound=bound, gap=gap, unit=OBJECTIVE_UNITS[name])

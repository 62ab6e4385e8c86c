"""Recompute a plan from its scenario, without any solver, and name everything that does not hold."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from planner.assemble import (
    deploy,
    deployment_document,
    fleet_documents,
    limit_values,
    objective_value,
    totals_document,
)
from planner.evaluate import Design
from planner.fleet import COUNT_TOLERANCE, Deployed, PoolUse, Racked, device_counts, devices_per_unit
from planner.limits import TOLERANCE
from planner.options import Option, Speculation
from planner.schema import documents as doc
from planner.schema.scenario import Scenario
from planner.words import DRAFT_PHASES, PHASES, STEP_PHASES, Phase


def check(plan: doc.Plan, scenario: Scenario) -> list[str]:
    """List every violation of a plan: a broken limit, an impossible design, a figure that does not recompute.

    Returns
    -------
    list of str
        Empty if the plan holds.
    """
    if not plan.deployments:
        return [] if plan.status in ("infeasible", "no_incumbent") else ["the plan has no deployment"]
    try:
        pools = {(m.deployment, m.phase): pool.models for pool in plan.pools for m in pool.phases}
        designs = [
            _design(d, index, pools if scenario.shared_pools else {}) for index, d in enumerate(plan.deployments)
        ]
        deployed = deploy(scenario, designs, racks=_racks(plan))
    except (KeyError, ValueError, IndexError) as error:
        return [f"a deployment cannot run: {error}"]
    return [
        *_broken_limits(deployed),
        *_impossible_options(deployed),
        *_too_many_shares(deployed),
        *_badly_housed(deployed),
        *_unfilled_batches(deployed),
        *_pool_problems(plan, deployed),
        *_figure_problems(plan, deployed),
        *_objective_problems(plan, deployed),
    ]


def _racks(plan: doc.Plan) -> Racked:
    return {(rack, row.device): units for row in plan.fleet for rack, units in (row.racks or {}).items()}


def _design(
    deployment: doc.Deployment, index: int, pools: dict[tuple[int, Phase], tuple[str, ...]]
) -> tuple[Design, float]:
    options: dict[Phase, Option | None] = {
        phase: None
        if place is None
        else Option(place.device, place.tensor_parallel, place.batch_size, pools.get((index, phase), ()))
        for phase, place in deployment.placements.items()
    }
    speculation = Speculation(deployment.proposer, deployment.draft_length)
    if speculation.draft_length == 0 and any(options[phase] is not None for phase in DRAFT_PHASES):
        raise ValueError("a draft phase is placed at draft length 0")
    return Design(deployment.workload, speculation, options), deployment.metrics.request_rate_rps


def _broken_limits(deployed: Deployed) -> list[str]:
    found = []
    for limit, value in limit_values(deployed):
        if value is None:
            found.append(f"{limit.name}: the plan has no value for it")
        elif limit.is_violated(value):
            found.append(f"{limit.name}: {value:.9g} {limit.unit} breaks the bound {limit.bound:.9g}")
    return found


def _impossible_options(deployed: Deployed) -> list[str]:
    """Batches that do not fit into memory, and costs that are not known."""
    found = []
    for serving in deployed.servings:
        for phase in PHASES:
            use, option = serving.metrics.phases[phase], serving.design.options[phase]
            if use is None or option is None:
                continue
            if use.sequences < option.batch_size:
                found.append(f"memory: {phase} on {option} holds {use.sequences:g} sequences")
            if not math.isfinite(use.busy_s + use.energy_j):
                found.append(f"{phase} on {option} has no known cost")
    return found


def _too_many_shares(deployed: Deployed) -> list[str]:
    most = deployed.scenario.max_shares
    counts = Counter(serving.design.workload for serving in deployed.servings)
    found = [f"{name}: {count} designs, at most {most}" for name, count in counts.items() if count > most]
    return found + [f"{name}: no design serves it" for name in deployed.scenario.workloads if name not in counts]


def _badly_housed(deployed: Deployed) -> list[str]:
    """Devices that stand in no rack, or in one that does not take their type."""
    scenario = deployed.scenario
    racks = scenario.servers.racks
    found = []
    for name, count in device_counts(scenario, deployed.pools).items() if racks else ():
        housed = sum(units for (_, device), units in deployed.racks.items() if device == name)
        if housed * devices_per_unit(scenario, name) < count.had * (1 - TOLERANCE):
            found.append(f"racks: {name} has {count.had:g} devices, of which some stand in no rack")
    for rack, device in deployed.racks:
        if rack not in racks or device not in (racks[rack].devices or (device,)):
            found.append(f"racks: {rack} does not take {device}")
    return found


def _unfilled_batches(deployed: Deployed) -> list[str]:
    servers = deployed.scenario.servers
    return [
        f"min_batch_fill: {pool.name} is filled to {pool.busy / (pool.replicas - servers.spare_replicas):.3g}"
        for pool in deployed.pools
        if any(member.phase in STEP_PHASES for member in pool.members)
        and pool.busy < servers.min_batch_fill * (pool.replicas - servers.spare_replicas) * (1 - TOLERANCE)
    ]


def _pool_problems(plan: doc.Plan, deployed: Deployed) -> list[str]:
    if len(plan.pools) != len(deployed.pools):
        return [f"the plan has {len(plan.pools)} pools, its designs need {len(deployed.pools)}"]
    found = []
    for written, needed in zip(plan.pools, deployed.pools, strict=True):
        found += _pool_problem(written, needed, deployed.scenario.counts == "integer")
    return found


def _pool_problem(written: doc.Pool, needed: PoolUse, integer: bool) -> list[str]:
    found = []
    phases = [(member.workload, member.deployment, member.phase) for member in written.phases]
    if phases != [(member.workload, member.serving, member.phase) for member in needed.members]:
        found.append(f"pool {written.name}: its phases are not those that are placed there")
    if (written.device, written.tensor_parallel) != (needed.device, needed.tensor_parallel):
        found.append(f"pool {written.name}: its devices are not those of its phase")
    if written.replicas - written.spare_replicas < needed.need * (1 - TOLERANCE):
        found.append(f"pool {written.name}: {written.replicas:g} replicas, {needed.need:g} needed")
    if not _close(written.replicas, needed.replicas):
        found.append(f"pool {written.name}: {written.replicas:g} replicas are not the least, {needed.replicas:g}")
    if integer and abs(written.replicas - round(written.replicas)) > COUNT_TOLERANCE:
        found.append(f"pool {written.name}: {written.replicas:g} replicas are not whole")
    if not _close(written.devices, written.replicas * written.tensor_parallel):
        found.append(f"pool {written.name}: devices are not replicas × tensor_parallel")
    return found


def _figure_problems(plan: doc.Plan, deployed: Deployed) -> list[str]:
    found = []
    for index, written in enumerate(plan.deployments):
        computed = deployment_document(deployed, index).model_dump()
        found += _differences(f"deployments.{index}", written.model_dump(), computed)
    fleet = zip(plan.fleet, fleet_documents(deployed), strict=False)
    for index, (row, wanted) in enumerate(fleet):
        found += _differences(f"fleet.{index}", row.model_dump(), wanted.model_dump())
    if len(plan.fleet) != len(fleet_documents(deployed)):
        found.append("fleet: not the device types of the pools")
    return found + _differences("totals", plan.totals.model_dump(), totals_document(deployed).model_dump())


def _objective_problems(plan: doc.Plan, deployed: Deployed) -> list[str]:
    value = objective_value(deployed)
    written = plan.objective.value
    if value is None or written is None or not _close(written, value):
        return [f"objective.value: {written}, computed {value}"]
    return []


def _differences(key: str, written: Any, computed: Any) -> list[str]:  # noqa: ANN401
    """Compare two documents leaf by leaf."""
    if isinstance(written, dict) and isinstance(computed, dict):
        return [
            problem
            for name in {**written, **computed}
            for problem in _differences(f"{key}.{name}", written.get(name), computed.get(name))
        ]
    same = (
        _close(written, computed) if isinstance(written, float) and isinstance(computed, float) else written == computed
    )
    return [] if same else [f"{key}: {written}, computed {computed}"]


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-12)

"""The fleet that a plan buys, held fixed: its pools with their replicas, under other rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.assemble import deploy, design_of
from planner.fleet import Deployed, PoolUse
from planner.schema import documents as doc
from planner.schema.scenario import Scenario
from planner.words import PHASES

SLOTS = "the catalog counts request slots, not devices"


def deployed_of(plan: doc.Plan, scenario: Scenario) -> Deployed:
    """Deploy a plan again from its document and its scenario; racks are left out, their power follows no rate."""
    pools = {(member.deployment, member.phase): pool.models for pool in plan.pools for member in pool.phases}
    designs = []
    for index, deployment in enumerate(plan.deployments):
        sets = {phase: pools[index, phase] for phase in PHASES if (index, phase) in pools}
        design = design_of(scenario, deployment, sets if scenario.shared_pools else {})
        designs.append((design, deployment.metrics.request_rate_rps))
    return deploy(scenario, designs)


def counts_slots(deployed: Deployed, pools: Sequence[PoolUse]) -> bool:
    """Whether some of the pools count request slots, so that nothing is bought that could be lost or held fixed."""
    devices = deployed.scenario.catalog.devices
    return any(devices[pool.device].count_unit == "request_slots" for pool in pools)


def grown(deployed: Deployed, factor: float) -> Deployed:
    """Multiply all rates by a factor, and leave every pool its replicas."""
    servings = tuple(replace(serving, rate_rps=serving.rate_rps * factor) for serving in deployed.servings)
    return replace(deployed, servings=servings, pools=tuple(_busier(pool, factor) for pool in deployed.pools))


def _busier(pool: PoolUse, factor: float) -> PoolUse:
    members = tuple(
        replace(
            member,
            busy=member.busy * factor,
            capacity_need=member.capacity_need * factor,
            memory_need=member.memory_need * factor,
        )
        for member in pool.members
    )
    return replace(pool, members=members)


def members_of(pool: PoolUse) -> tuple[doc.PoolMember, ...]:
    """Write the phases that a pool serves."""
    return tuple(
        doc.PoolMember(workload=member.workload, deployment=member.serving, phase=member.phase)
        for member in pool.members
    )

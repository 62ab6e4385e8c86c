"""One server lost, device type by device type: what is left of a plan's rates with designs and pools as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.comparison.bought import SLOTS, counts_slots, deployed_of, members_of
from planner.fleet import COUNT_TOLERANCE, Deployed, PoolUse, device_counts
from planner.limits import TOLERANCE
from planner.schema import documents as doc
from planner.schema.comparison import Breach, CountedBy, ServerLost, WorkloadLeft
from planner.schema.scenario import Scenario


@dataclass(frozen=True)
class Server:
    """Devices that a server holds, and what knows it."""

    devices: float
    counted_by: CountedBy


def server_of(scenario: Scenario, pool: PoolUse) -> Server:
    """Say how many devices go with one server: as the catalog knows, else those of one replica."""
    device = scenario.catalog.devices[pool.device]
    if device.devices_per_host is not None:
        return Server(float(device.devices_per_host), "devices_per_host")
    if device.data_sheet is not None and device.data_sheet.host is not None:
        return Server(float(device.data_sheet.host.devices), "data_sheet.host.devices")
    return Server(float(pool.tensor_parallel), "replica")


def replicas_left(pool: PoolUse, devices_lost: float, whole: bool) -> float:
    """Count the replicas of a pool that are left without some devices; a replica that lacks one serves nothing.

    ``whole``: counts are whole. Spares count: they are what stands in.
    """
    left = max(0.0, pool.replicas - devices_lost / pool.tensor_parallel)
    return float(math.floor(left + COUNT_TOLERANCE * max(1.0, left))) if whole else left


def coverage(pool: PoolUse, devices_lost: float, whole: bool) -> float:
    """Give the replicas that are left per replica needed, infinite where none is: a phase that takes no time."""
    return replicas_left(pool, devices_lost, whole) / pool.need if pool.need > 0 else math.inf


def share_left(pool: PoolUse, devices_lost: float, whole: bool) -> float:
    """Give the share of its rates that a pool still serves, within max_utilization and memory."""
    share = coverage(pool, devices_lost, whole)
    return 1.0 if share >= 1.0 - TOLERANCE else share


def servers_lost(plan: doc.Plan, scenario: Scenario) -> tuple[ServerLost, ...]:
    """Lose one server of each device type in the fleet, in the order of the fleet; empty where nothing is deployed."""
    if not plan.deployments:
        return ()
    deployed = deployed_of(plan, scenario)
    return tuple(_lost(deployed, device) for device in device_counts(scenario, deployed.pools))


def _lost(deployed: Deployed, device: str) -> ServerLost:
    pools = [pool for pool in deployed.pools if pool.device == device]
    if counts_slots(deployed, pools):
        return _not_counted(device)
    scenario, whole = deployed.scenario, deployed.scenario.counts == "integer"

    worst = min(pools, key=lambda pool: coverage(pool, server_of(scenario, pool).devices, whole))
    server = server_of(scenario, worst)
    left, share = replicas_left(worst, server.devices, whole), share_left(worst, server.devices, whole)
    return ServerLost(
        device=device,
        devices_lost=server.devices,
        counted_by=server.counted_by,
        pool=worst.name,
        phases=members_of(worst),
        replicas_before=worst.replicas,
        replicas_left=left,
        serves=share == 1.0,
        breach=None if share == 1.0 else _breach(worst, left),
        rate_share=share,
        workloads=_workloads_left(deployed, pools),
        utilization_needed=worst.busy / left if left > 0 else None,
        reason=None,
    )


def _not_counted(device: str) -> ServerLost:
    return ServerLost(
        device=device,
        devices_lost=None,
        counted_by=None,
        pool=None,
        phases=(),
        replicas_before=None,
        replicas_left=None,
        serves=None,
        breach=None,
        rate_share=None,
        workloads=(),
        utilization_needed=None,
        reason=SLOTS,
    )


def _breach(pool: PoolUse, left: float) -> Breach:
    return Breach(
        name="memory" if pool.memory_need > pool.capacity_need else "capacity",
        pool=pool.name,
        device=pool.device,
        phases=members_of(pool),
        needed=pool.need,
        available=left,
        at_growth=None,
    )


# ------------------------------------------------------------------------------------- what is left by workload


def _workloads_left(deployed: Deployed, pools: Sequence[PoolUse]) -> tuple[WorkloadLeft, ...]:
    """Give for each workload on these pools what the worst placement of the server leaves to it."""
    hit = dict.fromkeys(member.workload for pool in pools for member in pool.members)
    return tuple(_workload_left(deployed, pools, name) for name in hit)


def _workload_left(deployed: Deployed, pools: Sequence[PoolUse], name: str) -> WorkloadLeft:
    rates = {k: one.rate_rps for k, one in enumerate(deployed.servings) if one.design.workload == name}
    own = {k: [pool for pool in pools if any(member.serving == k for member in pool.members)] for k in rates}
    demand, total = deployed.scenario.workloads[name].limits.demand_rps, sum(rates.values())
    left = _least_rate(deployed, rates, own)
    return WorkloadLeft(
        workload=name,
        rate_share=None if left is None else left / total,
        rate_rps=left,
        meets_demand=None if left is None or demand is None else left >= demand * (1.0 - TOLERANCE),
    )


def _least_rate(deployed: Deployed, rates: dict[int, float], own: dict[int, list[PoolUse]]) -> float | None:
    """Give the least rate that the designs of a workload keep, wherever the server's devices stand.

    One design keeps least where its tightest pool loses them all. Several with pools of their own share the loss: a
    table over the devices that those before have lost. Null where several designs share pools or shares of devices.
    """
    scenario, whole = deployed.scenario, deployed.scenario.counts == "integer"
    hit = [k for k in rates if own[k]]
    spared = sum(rate for k, rate in rates.items() if k not in hit)
    if len(hit) == 1:
        (k,) = hit
        return spared + rates[k] * min(share_left(pool, server_of(scenario, pool).devices, whole) for pool in own[k])
    servers = {server_of(scenario, pool) for k in hit for pool in own[k]}
    if scenario.shared_pools or not whole or len(servers) != 1:
        return None
    lost = range(round(servers.pop().devices) + 1)
    least = [spared for _ in lost]
    for k in hit:
        kept = [rates[k] * min(share_left(pool, float(n), whole) for pool in own[k]) for n in lost]
        least = [min(least[n - mine] + kept[mine] for mine in range(n + 1)) for n in lost]
    return least[-1]

"""The limits that a user sets: which there are, what value a deployment has for each, how to move one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.fleet import UNLIMITED_KW, Deployed, device_counts, power_w, rack_power_w, usd_per_hour
from planner.schema.scenario import Scenario, Stock
from planner.words import LIMIT_UNITS, LimitName, PowerBasis

TOLERANCE = 1e-6

FLOORS: frozenset[LimitName] = frozenset({"interactivity_floor", "demand"})
# Limits of a workload: the field that holds each, and the factor from its unit to SI.
_WORKLOAD_FIELDS: dict[LimitName, tuple[str, float]] = {
    "interactivity_floor": ("interactivity_floor_tps", 1.0),
    "ttft_ceiling": ("ttft_ceiling_ms", 1e-3),
    "demand": ("demand_rps", 1.0),
}


@dataclass(frozen=True)
class Limit:
    """One limit in SI units."""

    name: LimitName
    bound: float
    workload: str | None = None
    device: str | None = None
    rack: str | None = None
    basis: PowerBasis | None = None

    @property
    def unit(self) -> str:
        """Unit of the bound."""
        return LIMIT_UNITS[self.name]

    @property
    def is_floor(self) -> bool:
        """Whether the value must be at least the bound."""
        return self.name in FLOORS

    def slack(self, value: float) -> float:
        """How far a value is on the good side of the bound."""
        return value - self.bound if self.is_floor else self.bound - value

    def is_violated(self, value: float) -> bool:
        """Whether a value breaks the limit by more than a relative tolerance."""
        return self.slack(value) < -TOLERANCE * max(abs(self.bound), TOLERANCE)

    def is_met_exactly(self, value: float | None) -> bool:
        """Whether nothing of the limit is left; a value that is not known leaves that open."""
        return value is not None and self.slack(value) <= TOLERANCE * max(abs(self.bound), TOLERANCE)

    def label(self, among: Sequence[Limit]) -> str:
        """Name the limit, with workload or device where another limit has the same name."""
        if sum(other.name == self.name for other in among) < 2:
            return self.name
        return f"{self.name}[{self.workload or self.device or self.rack or 'fleet'}]"


def limits_of(scenario: Scenario) -> tuple[Limit, ...]:
    """List every limit that the scenario sets."""
    found: list[Limit] = []
    fleet = scenario.limits
    if fleet.power_budget_kw is not None:
        found.append(Limit("power_budget", fleet.power_budget_kw * 1e3, basis=scenario.power_basis))
    if fleet.cost_budget_usd_per_hour is not None:
        found.append(Limit("cost_budget", fleet.cost_budget_usd_per_hour))
    found += [
        Limit("inventory", stock.available, device=name)
        for name, stock in fleet.inventory.items()
        if math.isfinite(stock.available)
    ]
    for name, rack in scenario.servers.racks.items():
        found.append(Limit("power_budget", rack.power_limit_kw * 1e3, rack=name, basis="provisioned"))
    for workload_name, workload in scenario.workloads.items():
        for name, (field, scale) in _WORKLOAD_FIELDS.items():
            value = getattr(workload.limits, field)
            if value is not None:
                found.append(Limit(name, value * scale, workload=workload_name))
    return tuple(found)


def with_bound(scenario: Scenario, limit: Limit, bound: float | None) -> Scenario:
    """Give the scenario with one limit moved to a bound in SI units, or dropped (null)."""
    if limit.workload is not None:
        field, scale = _WORKLOAD_FIELDS[limit.name]
        workload = scenario.workloads[limit.workload]
        limits = workload.limits.replace(**{field: None if bound is None else bound / scale})
        return scenario.replace(workloads={**scenario.workloads, limit.workload: workload.replace(limits=limits)})
    if limit.rack is not None:
        return _with_rack_limit(scenario, limit.rack, bound)
    if limit.name == "inventory" and limit.device is not None:
        return _with_stock(scenario, limit.device, bound)
    field, scale = {"power_budget": ("power_budget_kw", 1e3), "cost_budget": ("cost_budget_usd_per_hour", 1.0)}[
        limit.name
    ]
    return scenario.replace(limits=scenario.limits.replace(**{field: None if bound is None else bound / scale}))


def _with_rack_limit(scenario: Scenario, key: str, bound: float | None) -> Scenario:
    rack = scenario.servers.racks[key].replace(power_limit_kw=UNLIMITED_KW if bound is None else bound * 1e-3)
    servers = scenario.servers.replace(racks={**scenario.servers.racks, key: rack})
    return scenario.replace(servers=servers)


def _with_stock(scenario: Scenario, device: str, bound: float | None) -> Scenario:
    """Move what can be bought; below what is owned, own less. Dropping the limit lets any number be bought."""
    owned = scenario.limits.inventory[device].owned
    inventory = dict(scenario.limits.inventory)
    if bound is None:
        inventory[device] = Stock(owned=owned, purchasable=None)
    else:
        inventory[device] = Stock(owned=min(owned, round(bound)), purchasable=max(0, round(bound) - owned))
    return scenario.replace(limits=scenario.limits.replace(inventory=inventory))


def without(scenario: Scenario, limits: Sequence[Limit]) -> Scenario:
    """Drop several limits."""
    for limit in limits:
        scenario = with_bound(scenario, limit, None)
    return scenario


def value_of(limit: Limit, deployed: Deployed) -> float | None:
    """Compute what a deployment has for a limit: the worst design's service, or the sum over the fleet."""
    scenario, pools = deployed.scenario, deployed.pools
    mine = [serving for serving in deployed.servings if serving.design.workload == limit.workload]
    if limit.rack is not None:
        return rack_power_w(deployed, limit.rack)
    if limit.name == "power_budget":
        return power_w(scenario, deployed.servings, pools, scenario.power_basis)
    if limit.name == "cost_budget":
        return usd_per_hour(scenario, pools)
    if limit.name == "inventory":
        count = device_counts(scenario, pools).get(limit.device or "")
        return 0.0 if count is None else count.had
    if limit.name == "demand":
        return sum((serving.rate_rps for serving in mine), 0.0)
    if limit.name == "ttft_ceiling":
        return max(serving.metrics.ttft_s for serving in mine)
    return min(serving.metrics.interactivity_tps for serving in mine)

"""Demand grown: what the fleet as bought carries, what breaks first, and what the grown rates take planned anew."""

from __future__ import annotations

from collections.abc import Sequence

from planner.assemble import power_document
from planner.comparison.bought import SLOTS, counts_slots, deployed_of, grown, members_of
from planner.errors import InputError
from planner.fleet import Deployed, PoolUse, serving_replicas
from planner.limits import TOLERANCE, limits_of, value_of
from planner.schema import documents as doc
from planner.schema.comparison import Breach, GrownAsBought, Growth, GrowthStep, PlannedAnew
from planner.schema.scenario import Scenario
from planner.solve import Settings, solve
from planner.words import Objective

_NOTHING_BREAKS = "nothing breaks at any growth"
GROWTHS = (0.10, 0.25, 0.50)
NO_POWER = doc.PowerByBasis(forward=None, average=None, provisioned=None)

# At given rates throughput is given: the least of what a fleet takes is asked for, as far as its figures are known.
_INSTEAD_OF_THROUGHPUT: tuple[Objective, ...] = ("power", "cost", "energy")


def growth_of(plan: doc.Plan, scenario: Scenario, settings: Settings) -> Growth | None:
    """Grow all rates of a plan; null where nothing is deployed."""
    if not plan.deployments:
        return None
    deployed = deployed_of(plan, scenario)
    slots = counts_slots(deployed, deployed.pools)
    breaches = () if slots else breaches_of(deployed)
    first = breaches[0].at_growth if breaches else None
    steps = []
    for fraction in GROWTHS:
        settings.tick(f"{plan.scenario} at {fraction:.0%} more demand")
        rates = _rates(deployed, 1.0 + fraction)
        as_bought = None if slots else _as_bought(deployed, breaches, fraction)
        anew = planned_anew(scenario, rates, settings)
        steps.append(GrowthStep(growth=fraction, request_rate_rps=rates, as_bought=as_bought, anew=anew))
    return Growth(
        carried=first,
        breaches=tuple(one for one in breaches if one.at_growth == first),
        steps=tuple(steps),
        reason=SLOTS if slots else None if breaches else _NOTHING_BREAKS,
    )


def _rates(deployed: Deployed, factor: float) -> dict[str, float]:
    rates = dict.fromkeys(deployed.scenario.workloads, 0.0)
    for serving in deployed.servings:
        rates[serving.design.workload] += serving.rate_rps * factor
    return rates


# --------------------------------------------------------------------------------------------- fleet as bought


def breaches_of(deployed: Deployed) -> tuple[Breach, ...]:
    """List everything that growth breaks on the fleet as bought, first what breaks at the least growth.

    Needs of a pool are proportional to the rates. Power is linear in them with the devices held fixed; provisioned
    power, cost, inventories and racks are of the devices alone, service limits of the designs: growth moves none.
    """
    found = [breach for pool in deployed.pools for breach in _pool_breaches(deployed, pool)]
    found += _power_breaches(deployed)
    return tuple(sorted(found, key=lambda breach: breach.at_growth or 0.0))


def _pool_breaches(deployed: Deployed, pool: PoolUse) -> list[Breach]:
    serving = serving_replicas(deployed, pool)
    needs = (("capacity", pool.capacity_need), ("memory", pool.memory_need))
    return [
        Breach(
            name="capacity" if name == "capacity" else "memory",
            pool=pool.name,
            device=pool.device,
            phases=members_of(pool),
            needed=need,
            available=serving,
            at_growth=_growth(serving / need),
        )
        for name, need in needs
        if need > 0
    ]


def _power_breaches(deployed: Deployed) -> list[Breach]:
    found, twice = [], grown(deployed, 2.0)
    for limit in limits_of(deployed.scenario):
        now, then = value_of(limit, deployed), value_of(limit, twice)
        if limit.name != "power_budget" or limit.rack is not None or now is None or then is None:
            continue
        if then > now * (1.0 + TOLERANCE):
            at = _growth(1.0 + (limit.bound - now) / (then - now))
            found.append(
                Breach(
                    name="power_budget",
                    pool=None,
                    device=None,
                    phases=(),
                    needed=now,
                    available=limit.bound,
                    at_growth=at,
                )
            )
    return found


def _growth(factor: float) -> float:
    """Give the growth of a factor; what only rounding keeps from the bound has none."""
    return max(0.0, factor - 1.0) if abs(factor - 1.0) > TOLERANCE else 0.0


def _as_bought(deployed: Deployed, breaches: Sequence[Breach], fraction: float) -> GrownAsBought:
    then = grown(deployed, 1.0 + fraction)
    power = power_document(then)
    broken = [one for one in breaches if (one.at_growth or 0.0) < fraction * (1.0 - TOLERANCE)]
    watts = power.model_dump()[deployed.scenario.power_basis]
    return GrownAsBought(
        serves=not broken,
        breaches=tuple(
            one.replace(needed=watts if one.name == "power_budget" else one.needed * (1.0 + fraction)) for one in broken
        ),
        power_w=power,
    )


# -------------------------------------------------------------------------------------------------- planned anew


def planned_anew(scenario: Scenario, rates: dict[str, float], settings: Settings) -> PlannedAnew:
    """Plan for grown rates under all other limits; where there is no plan, say which limits are in conflict."""
    objectives = _INSTEAD_OF_THROUGHPUT if scenario.objective == "throughput" else (scenario.objective,)
    problems: InputError | None = None
    for objective in objectives:
        asked = _asked(scenario, rates, objective)
        try:
            return _anew(asked, solve(asked, settings))
        except InputError as error:
            problems = error
    return _unplanned(str(problems))


def _asked(scenario: Scenario, rates: dict[str, float], objective: Objective) -> Scenario:
    workloads = {
        name: workload.replace(limits=workload.limits.replace(demand_rps=rates[name]))
        for name, workload in scenario.workloads.items()
    }
    return scenario.replace(workloads=workloads, objective=objective)


def _anew(asked: Scenario, plan: doc.Plan) -> PlannedAnew:
    slots = any(row.devices is None for row in plan.fleet)
    return PlannedAnew(
        status=plan.status,
        objective=asked.objective,
        devices=None if slots or not plan.fleet else {row.device: row.devices or 0.0 for row in plan.fleet},
        power_w=plan.totals.power_w,
        usd_per_hour=plan.totals.usd_per_hour,
        infeasibility=plan.infeasibility,
        reason=None,
    )


def _unplanned(reason: str) -> PlannedAnew:
    return PlannedAnew(
        status=None,
        objective=None,
        devices=None,
        power_w=NO_POWER,
        usd_per_hour=None,
        infeasibility=(),
        reason=reason,
    )

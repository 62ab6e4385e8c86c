"""The front by nested loops, from the raw fields of catalog and scenario: every design (or set of designs), then every
pair of points compared. Nothing of planner's arithmetic is called."""

from __future__ import annotations

import itertools
from typing import Any

import fleet_oracles
import oracles

# Sums in another order differ in the last bits: what is nearer than this is one point.
ROUNDING = 1e-9

Pair = tuple[float, float]


def non_dominated(pairs: list[Pair], rounding: float = ROUNDING) -> list[Pair]:
    """(tok/s, J/token) that no other pair beats in one figure without losing in the other; by rising tok/s."""
    kept: list[Pair] = []
    for tps, energy in sorted(set(pairs), key=lambda pair: (-pair[0], pair[1])):
        if not any(other >= tps * (1 - rounding) and least <= energy * (1 + rounding) for other, least in kept):
            kept = [one for one in kept if not (one[0] <= tps * (1 + rounding) and one[1] >= energy * (1 - rounding))]
            kept.append((tps, energy))
    return sorted(kept)


def front_of_one(scenario: Any) -> list[Pair]:
    """One workload with private pools: at the demand within every limit, or of a large fleet where there is none."""
    ((_, workload),) = scenario.workloads.items()
    rate, large = workload.limits.demand_rps or 1.0, workload.limits.demand_rps is None
    counted = scenario.model_copy(update={"counts": "fractional"}) if large else scenario
    pairs = []
    for one in oracles.points(scenario):
        if not oracles.serves(scenario, one):
            continue
        if not (in_stock(scenario, one) if large else oracles.affordable(scenario, one, rate)):
            continue
        n = oracles.counts(counted, one, rate)
        pairs.append((one.interactivity_tps, oracles.watts(scenario, one, rate, n) / (rate * workload.osl_tokens)))
    return non_dominated(pairs)


def in_stock(scenario: Any, one: oracles.Point) -> bool:
    """Whether every device type of a design can be had at all: one device, or the devices of one whole replica."""
    whole = scenario.counts == "integer"
    return all(
        scenario.limits.inventory[device].available >= (degree if whole else 1)
        for device, degree, _ in one.places.values()
        if device in scenario.limits.inventory
    )


def front_of_fleet(scenario: Any) -> list[Pair]:
    """Several workloads at their demands, one design each: every set of designs on pools of every kind."""
    names = list(scenario.workloads)
    rates = [scenario.workloads[name].limits.demand_rps for name in names]
    tokens = sum(rate * scenario.workloads[name].osl_tokens for rate, name in zip(rates, names, strict=True))
    pairs = []
    for designs in itertools.product(*(fleet_oracles.designs_of(scenario, name) for name in names)):
        if not all(fleet_oracles.keeps_promises(scenario.workloads[one.workload].limits, one) for one in designs):
            continue
        crew = fleet_oracles.Crew(scenario, designs)
        n = crew.serving(rates)
        if crew.holds(rates, n):
            pairs.append((crew.figure("interactivity", rates, n), crew.figure("power", rates, n) / tokens))
    return non_dominated(pairs)

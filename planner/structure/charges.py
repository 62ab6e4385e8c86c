"""What a fleet costs on one measure where phases share its devices, and what crosses between device types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.measure import Kind
from planner.options import CostTable
from planner.schema.scenario import Scenario
from planner.structure.least import Floats
from planner.structure.staircase import Indices
from planner.transfers import FREE, Transfer, kv_transfer, step_exchange
from planner.words import PHASES, Phase


@dataclass(frozen=True)
class Charge:
    """One measure of a whole fleet, at most ``most``.

    Attributes
    ----------
    per_rate
        (O, S) by phase: for one request/s.
    each, bought, owned
        (D + 1,) by device type: for a device; for one beyond those owned; how many are owned. The last type is none.
    per_joule
        For one W of transfers.
    """

    per_rate: dict[Phase, Floats]
    each: Floats
    bought: Floats
    owned: Floats
    per_joule: float
    most: float

    def of_devices(self, device: Indices, count: Floats) -> Floats:
        """Cost of a number of devices of one type."""
        beyond = np.maximum(0.0, count - self.owned[device])
        return np.asarray(self.each[device] * count + self.bought[device] * beyond)

    def plus(self, other: Charge, weight: float) -> Charge:
        """Add a weight of another measure's cost."""
        per_rate = {phase: self.per_rate[phase] + weight * other.per_rate[phase] for phase in PHASES}
        return replace(
            self,
            per_rate=per_rate,
            each=self.each + weight * other.each,
            bought=self.bought + weight * other.bought,
            per_joule=self.per_joule + weight * other.per_joule,
        )


@dataclass(frozen=True)
class Moved:
    """One kind of transfer between device types, by speculation (S,): exposed seconds, and joules per request."""

    time_s: Floats
    energy_j: Floats


def per_joule(scenario: Scenario, kind: Kind) -> float:
    """Give what one W of transfers costs, as ``planner.fleet.power_w``."""
    if kind == "cost" or (kind == "power" and scenario.power_basis == "provisioned"):
        return 0.0
    if kind == "energy":
        return 1.0
    return scenario.pue * (scenario.host_factor if scenario.power_basis == "average" else 1.0)


def moved_of(scenario: Scenario, table: CostTable) -> tuple[Moved, Moved, Moved]:
    """Give the transfers of every speculation, as ``planner.evaluate.transfers_of`` for device types that differ."""
    target, proposers = kv_transfer(scenario, table.workload, scenario.target), scenario.catalog.proposers
    kv: list[Transfer] = [
        FREE if s.proposer is None else kv_transfer(scenario, table.workload, proposers[s.proposer].model)
        for s in table.speculations
    ]
    step = [step_exchange(scenario, s.proposer, s.draft_length) for s in table.speculations]

    def arrays(some: Sequence[Transfer], times: Floats | float) -> Moved:
        return Moved(np.array([m.exposed_s for m in some]), times * np.array([m.energy_j for m in some]))

    return arrays([target] * len(step), 1.0), arrays(kv, 1.0), arrays(step, table.steps)

"""What an option costs, on any measure, as watts (or dollars, or joules) per replica and per request/s.

Every measure of a fleet is Σ a·replicas + g·rate over the options in use: power on its three bases, cost, and forward
energy. Bounds, the exact structure and the tie-break all take it from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.options import CostTable
from planner.schema.scenario import Scenario
from planner.words import Phase

Floats = NDArray[np.float64]

Kind = Literal["power", "cost", "energy"]


@dataclass(frozen=True)
class Measure:
    """One phase's coefficients.

    Attributes
    ----------
    per_replica
        (O, 1) cost of a replica that is bought, whether it works or not.
    per_rate
        (O, S) cost of one request/s on top.
    """

    per_replica: Floats
    per_rate: Floats

    def at_capacity(self, busy_s: Floats, max_utilization: float) -> Floats:
        """(O, S) cost of one request/s at the fewest, fractional replicas that carry it."""
        return self.per_replica * busy_s / max_utilization + self.per_rate


def device_figure(scenario: Scenario, table: CostTable, phase: Phase, field: str) -> Floats:
    """(O, 1) a figure of the options' devices (zero where it is not known), times the devices of a replica."""
    devices = scenario.catalog.devices
    values = []
    for option in table.phases[phase].options:
        device = devices[option.device]
        figure = _price(scenario, option.device) if field == "price" else getattr(device, field)
        values.append((figure or 0.0) * option.tensor_parallel)
    return np.array(values, dtype=float).reshape(-1, 1)


def _price(scenario: Scenario, device: str) -> float:
    price = scenario.catalog.devices[device].price
    return 0.0 if price is None else price.usd_per_hour


def owned_usd_per_hour(scenario: Scenario) -> float:
    """Give what the owned devices would cost at their prices: cost ≥ Σ price·devices − this."""
    return sum(stock.owned * _price(scenario, name) for name, stock in scenario.limits.inventory.items())


def measure_of(scenario: Scenario, table: CostTable, phase: Phase, kind: Kind) -> Measure:
    """Give one phase's coefficients: W on the scenario's basis with PUE, USD/h, or forward W without PUE."""
    energy = table.energy_per_request_j(phase)
    none = np.zeros((len(table.phases[phase].options), 1))
    if kind == "energy":
        return Measure(none, energy)
    if kind == "cost":
        return Measure(device_figure(scenario, table, phase, "price"), np.zeros_like(energy))
    if scenario.power_basis == "forward":
        return Measure(none, scenario.pue * energy)
    if scenario.power_basis == "provisioned":
        watts = device_figure(scenario, table, phase, "provisioned_power_w")
        return Measure(scenario.pue * watts, np.zeros_like(energy))
    idle = device_figure(scenario, table, phase, "idle_power_w")
    factor = scenario.pue * scenario.host_factor
    return Measure(factor * idle, factor * (energy - idle * table.busy_s(phase)))

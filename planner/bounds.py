"""Bounds on the rate that an option can carry under the limits, and what one request/s costs on it. Pure formulas.

Every bound is valid for the whole problem: it never cuts off a plan. The program takes its big-M values from here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.options import CostTable
from planner.schema.scenario import Scenario
from planner.words import PHASES, Phase, PowerBasis

Floats = NDArray[np.float64]


def _per_option(scenario: Scenario, table: CostTable, phase: Phase, field: str) -> Floats:
    """(O, 1) a device figure times the devices of a replica."""
    devices = scenario.catalog.devices
    values = []
    for option in table.phases[phase].options:
        device = devices[option.device]
        figure = (device.price.usd_per_hour if device.price else 0.0) if field == "price" else getattr(device, field)
        values.append((figure or 0.0) * option.tensor_parallel)
    return np.array(values).reshape(-1, 1)


def power_per_rate_w(scenario: Scenario, table: CostTable, phase: Phase, basis: PowerBasis) -> Floats:
    """(O, S) least power that one request/s costs on each option: counts at their fractional least, memory left out."""
    energy = table.energy_per_request_j(phase)
    busy, U = table.busy_s(phase), scenario.max_utilization
    if basis == "forward":
        per_rate = energy
    elif basis == "provisioned":
        per_rate = _per_option(scenario, table, phase, "provisioned_power_w") * busy / U
    else:
        idle = _per_option(scenario, table, phase, "idle_power_w") * busy
        per_rate = scenario.host_factor * (idle / U + energy - idle)
    return scenario.pue * per_rate


def cost_per_rate_usd_per_hour(scenario: Scenario, table: CostTable, phase: Phase) -> Floats:
    """(O, S) least cost that one request/s needs on each option."""
    return _per_option(scenario, table, phase, "price") * table.busy_s(phase) / scenario.max_utilization


def _budget_rates(budget: float, per_rate: dict[Phase, Floats], usable: dict[Phase, NDArray[np.bool_]]) -> dict[Phase, Floats]:
    """Rate at which an option, with the cheapest of every other phase, uses up a budget: (O, S) by phase."""
    least = {
        phase: np.where(usable[phase], per_rate[phase], np.inf).min(axis=0, initial=np.inf) for phase in PHASES
    }
    least = {phase: np.where(np.isinf(value), 0.0, value) for phase, value in least.items()}
    total = sum(least.values(), np.zeros_like(least["target_prefill"]))
    rates = {}
    for phase in PHASES:
        spent = total - least[phase] + per_rate[phase]
        with np.errstate(divide="ignore", invalid="ignore"):
            rates[phase] = np.where(spent > 0, budget / spent, np.inf)
    return rates


def _inventory_rates(scenario: Scenario, table: CostTable, phase: Phase) -> Floats:
    """(O, S) rate that every device in the inventory could carry if it served this option alone."""
    busy = table.busy_s(phase)
    inventory = scenario.limits.inventory
    replicas = np.array(
        [
            [inventory[option.device] // option.tensor_parallel if scenario.counts == "integer"
             else inventory[option.device] / option.tensor_parallel]
            if option.device in inventory
            else [np.inf]
            for option in table.phases[phase].options
        ]
    ).reshape(-1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(busy > 0, scenario.max_utilization * replicas / busy, np.inf)


def largest_rates(scenario: Scenario, table: CostTable) -> tuple[dict[Phase, Floats], Floats]:
    """Bound the request rate by budgets and inventories.

    Returns
    -------
    by_option
        (O, S) by phase: the largest rate that an option can carry in any plan.
    by_speculation
        (S,) the largest rate of any plan with that speculation; infinite where nothing bounds it.
    """
    usable = {phase: table.phases[phase].available for phase in PHASES}
    by_option = {phase: _inventory_rates(scenario, table, phase) for phase in PHASES}
    budgets: list[tuple[float, dict[Phase, Floats]]] = []
    limits = scenario.limits
    if limits.power_budget_kw is not None:
        per_rate = {phase: power_per_rate_w(scenario, table, phase, scenario.power_basis) for phase in PHASES}
        budgets.append((limits.power_budget_kw * 1e3, per_rate))
    if limits.cost_budget_usd_per_hour is not None:
        costs = {phase: cost_per_rate_usd_per_hour(scenario, table, phase) for phase in PHASES}
        budgets.append((limits.cost_budget_usd_per_hour, costs))
    for budget, per_rate in budgets:
        for phase, rates in _budget_rates(budget, per_rate, usable).items():
            by_option[phase] = np.minimum(by_option[phase], rates)
    by_speculation = np.full(len(table.speculations), np.inf)
    for phase in PHASES:
        best = np.where(usable[phase], by_option[phase], 0.0).max(axis=0, initial=0.0)
        by_speculation = np.where(table.runs(phase), np.minimum(by_speculation, best), by_speculation)
    return {phase: np.minimum(rates, by_speculation) for phase, rates in by_option.items()}, by_speculation


def runnable(table: CostTable) -> NDArray[np.bool_]:
    """(S,) whether every phase that a speculation runs has an option."""
    able = np.ones(len(table.speculations), dtype=bool)
    for phase in PHASES:
        able &= ~table.runs(phase) | table.phases[phase].available.any(axis=0)
    return able

"""Bounds on the rate that an option can carry under the limits, and what one request/s costs on it. Pure formulas.

Every bound is valid for the whole problem: it never cuts off a plan. The program takes its big-M values from here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.measure import Kind, measure_of, owned_usd_per_hour
from planner.options import CostTable, Option
from planner.schema.scenario import Scenario
from planner.words import DRAFT_PHASES, PHASES, STEP_PHASES, Phase

Floats = NDArray[np.float64]
_ROUNDING = 1e-7


def _budget_rates(
    budget: float, per_rate: dict[Phase, Floats], mask: dict[Phase, NDArray[np.bool_]]
) -> dict[Phase, Floats]:
    """Rate at which an option, with the cheapest of every other phase, uses up a budget: (O, S) by phase."""
    least = {phase: np.where(mask[phase], per_rate[phase], np.inf).min(axis=0, initial=np.inf) for phase in PHASES}
    least = {phase: np.where(np.isinf(value), 0.0, value) for phase, value in least.items()}
    total = sum(least.values(), np.zeros_like(least["target_prefill"]))
    rates = {}
    for phase in PHASES:
        spent = total - least[phase] + per_rate[phase]
        with np.errstate(divide="ignore", invalid="ignore"):
            rates[phase] = np.where(spent > 0, budget / spent, np.inf)
    return rates


def _replicas_available(scenario: Scenario, option: Option) -> float:
    stock = scenario.limits.inventory.get(option.device)
    if stock is None or np.isinf(stock.available):
        return np.inf
    replicas = stock.available / option.tensor_parallel
    return float(np.floor(replicas)) if scenario.counts == "integer" else replicas


def _inventory_rates(scenario: Scenario, table: CostTable, phase: Phase) -> Floats:
    """(O, S) rate that every device in the inventory could carry if it served this option alone."""
    busy = table.busy_s(phase)
    available = np.array([_replicas_available(scenario, option) for option in table.phases[phase].options])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(busy > 0, scenario.max_utilization * available.reshape(-1, 1) / busy, np.inf)


def _budgets(scenario: Scenario) -> list[tuple[Scenario, float, Kind]]:
    """List budgets with the scenario that says how they are measured; racks together are one in provisioned watts."""
    limits, racks = scenario.limits, scenario.servers.racks.values()
    budgets: list[tuple[Scenario, float, Kind]] = []
    if limits.power_budget_kw is not None:
        budgets.append((scenario, limits.power_budget_kw * 1e3, "power"))
    if limits.cost_budget_usd_per_hour is not None:
        budgets.append((scenario, limits.cost_budget_usd_per_hour + owned_usd_per_hour(scenario), "cost"))
    if racks:
        provisioned = scenario.replace(power_basis="provisioned")
        budgets.append((provisioned, sum(rack.power_limit_kw for rack in racks) * 1e3, "power"))
    return budgets


def largest_rates(
    scenario: Scenario, table: CostTable, mask: dict[Phase, NDArray[np.bool_]]
) -> tuple[dict[Phase, Floats], Floats]:
    """Bound the request rate by budgets, racks and inventories, over the options that a mask leaves.

    Returns
    -------
    by_option
        (O, S) by phase: the largest rate that an option can carry in any plan.
    by_speculation
        (S,) the largest rate of any plan with that speculation; infinite where nothing bounds it.
    """
    by_option = {phase: _inventory_rates(scenario, table, phase) for phase in PHASES}
    for asked, budget, kind in _budgets(scenario):
        per_rate = {
            phase: measure_of(asked, table, phase, kind).at_capacity(table.busy_s(phase), scenario.max_utilization)
            for phase in PHASES
        }
        for phase, rates in _budget_rates(budget, per_rate, mask).items():
            by_option[phase] = np.minimum(by_option[phase], rates)
    by_speculation = np.full(len(table.speculations), np.inf)
    for phase in PHASES:
        best = np.where(mask[phase], by_option[phase], 0.0).max(axis=0, initial=0.0)
        by_speculation = np.where(table.runs(phase), np.minimum(by_speculation, best), by_speculation)
    return {phase: np.minimum(rates, by_speculation) for phase, rates in by_option.items()}, by_speculation


def usable(scenario: Scenario, table: CostTable) -> dict[Phase, NDArray[np.bool_]]:
    """(O, S) by phase: options that can run and that no limit on the workload's service rules out.

    An option whose time, together with the least time of every other phase, breaks the interactivity floor or the TTFT
    ceiling is in no plan: transfers only add to the sum. A relative margin keeps what breaks a limit by rounding alone.
    """
    mask = {phase: table.phases[phase].available.copy() for phase in PHASES}
    limits = scenario.workloads[table.workload].limits
    latency = {phase: np.where(mask[phase], table.phases[phase].latency_s, np.inf) for phase in PHASES}
    if limits.interactivity_floor_tps is not None:
        longest_step = table.tokens_per_step / limits.interactivity_floor_tps
        _drop_slow(table, mask, {phase: latency[phase] for phase in STEP_PHASES}, longest_step)
    if limits.ttft_ceiling_ms is not None:
        ceiling = np.full(len(table.speculations), limits.ttft_ceiling_ms * 1e-3)
        prefill = latency["target_prefill"]
        _drop_slow(table, mask, {"target_prefill": prefill, "target_verify": table.through_target_s}, ceiling)
        ways: dict[Phase, Floats] = {phase: latency[phase] for phase in DRAFT_PHASES}
        ways |= {"target_verify": table.through_draft_s, "target_prefill": np.where(table.hidden_states, prefill, 0.0)}
        _drop_slow(table, mask, ways, np.where(table.first_from_prefill, np.inf, ceiling))
    return mask


def _drop_slow(
    table: CostTable, mask: dict[Phase, NDArray[np.bool_]], times_s: dict[Phase, Floats], longest_s: Floats
) -> None:
    """Drop options of a sum of phases that exceeds ``longest_s`` even with the fastest of the others, in place."""
    times = {phase: np.where(mask[phase], time_s, np.inf) for phase, time_s in times_s.items()}
    least = {phase: np.where(table.runs(phase), times[phase].min(axis=0, initial=np.inf), 0.0) for phase in times}
    for phase in times:
        others = sum((least[other] for other in times if other != phase), np.zeros_like(longest_s))
        slow = others + times[phase] > longest_s * (1 + _ROUNDING)
        mask[phase] &= ~(slow & table.runs(phase))


def runnable(table: CostTable, mask: dict[Phase, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """(S,) whether every phase that a speculation runs has a usable option."""
    able = np.ones(len(table.speculations), dtype=bool)
    for phase in PHASES:
        able &= ~table.runs(phase) | mask[phase].any(axis=0)
    return able


def least_cost(scenario: Scenario, table: CostTable, kind: Kind, rate: float) -> float:
    """Bound a measure from below at a rate: the cheapest option of each of the target's phases, one replica at least.

    Zero where devices are owned or cost nothing.
    """
    mask, total = usable(scenario, table), 0.0
    fewest = 1.0 if scenario.counts == "integer" else 0.0
    for phase in PHASES[:2]:
        measure = measure_of(scenario, table, phase, kind)
        need = np.maximum(rate * table.busy_s(phase) / scenario.max_utilization, fewest)
        value = np.where(mask[phase], measure.per_replica * need + rate * measure.per_rate, np.inf)
        least = float(value.min(initial=np.inf))
        total += least if np.isfinite(least) else 0.0
    return max(0.0, total - owned_usd_per_hour(scenario)) if kind == "cost" else total

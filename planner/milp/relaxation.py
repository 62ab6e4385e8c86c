"""A bound for coupled questions, by columns: every workload mixes designs freely, and counts are fractional.

Each column is a design at one request/s with what it uses: devices by type, power, and what the objective counts. A
linear program mixes columns within inventories and budgets; its prices make a measure, and for that measure the exact
structure finds each workload's best further column. Ignored are whole counts, nodes, spares, racks, batch fill, the
number of shares and the times of links, and memory where pools are shared: each only makes plans dearer, so the bound
holds for the whole problem. For any prices π ≥ 0 the Lagrangian gives a bound; the best one is kept.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from planner.measure import Measure, measure_of
from planner.milp.solver import Linear, Program, row_prices, solve
from planner.options import CostTable
from planner.question import Question
from planner.schema.scenario import Scenario, Servers, Stock
from planner.structure.least import (
    Found,
    Service,
    Tableau,
    least,
    lower_bound,
    reduced,
    sliced,
)
from planner.words import PHASES, Phase

Tables = dict[str, CostTable]

_ROUNDS = 200
_CLOSED = 1e-7
_DEAR = 1e3
_ONE_RPS = 1.0
_ROUNDING = 1e-7


@dataclass(frozen=True)
class Prices:
    """Prices of the limits, in objective units.

    ``power`` and ``cost``: of the whole budget. ``stock``: of a device that can be had, by type. ``owned``: of a device
    that is owned, by type; at most what buying one costs.
    """

    power: float = 0.0
    cost: float = 0.0
    stock: dict[str, float] = field(default_factory=dict)
    owned: dict[str, float] = field(default_factory=dict)

    def of_device(self, name: str) -> float:
        """Price of using a device."""
        return self.stock.get(name, 0.0) + self.owned.get(name, 0.0)


@dataclass(frozen=True)
class Column:
    """A design at one request/s: what it adds to the objective, its share of the power budget, devices by type."""

    workload: str
    found: Found
    objective: float
    power: float
    devices: dict[str, float]


@dataclass
class Relaxation:
    """The bound of the minimization (throughput: minus a scale), its prices, all columns, and those mixed."""

    bound: float = -np.inf
    prices: Prices | None = None
    columns: list[Column] = field(default_factory=list)
    mixed: list[Column] = field(default_factory=list)


@dataclass(frozen=True)
class Relaxed:
    """The problem with everything left out that the module's head names."""

    scenario: Scenario
    tables: Tables
    question: Question
    tableaus: dict[str, Tableau]
    power: dict[str, dict[Phase, Measure]]
    own: dict[str, dict[Phase, Measure]]
    weights: dict[str, float]
    stocks: dict[str, float]
    owned: dict[str, float]
    dollars: dict[str, float]

    @property
    def maximizes(self) -> bool:
        """Whether a scale of the mix is maximized instead of a cost minimized."""
        return self.question.rates is None


def relaxed(scenario: Scenario, tables: Tables, question: Question) -> Relaxed:
    """Set the relaxation up. ``weights``: request rates, or shares of the mix where throughput is maximized."""
    plain = scenario.replace(counts="fractional", servers=Servers(), shared_pools=False, max_shares=1)
    tableaus = {name: Tableau.of(plain, table, "energy") for name, table in tables.items()}
    if scenario.shared_pools:
        tableaus = {
            name: replace(t, held_per_replica={p: np.full_like(t.busy_s[p], np.inf) for p in PHASES})
            for name, t in tableaus.items()
        }
    budget = (scenario.limits.power_budget_kw or 0.0) * 1e3
    power = {
        name: {p: _scaled(measure_of(plain, table, p, "power"), 1.0 / budget if budget else 0.0) for p in PHASES}
        for name, table in tables.items()
    }
    mix = sum(workload.mix for workload in scenario.workloads.values())
    weights = question.rates or {name: w.mix / mix for name, w in scenario.workloads.items()}
    own = {name: _own(plain, table, question, weights[name]) for name, table in tables.items()}
    stocks = {name: s.available for name, s in scenario.limits.inventory.items() if np.isfinite(s.available)}
    dollars = {}
    if scenario.limits.cost_budget_usd_per_hour is not None or question.aim == "cost":
        devices = scenario.catalog.devices.items()
        dollars = {name: device.price.usd_per_hour for name, device in devices if device.price is not None}
    owned = {name: float(scenario.limits.inventory.get(name, Stock()).owned) for name in dollars}
    return Relaxed(scenario, tables, question, tableaus, power, own, weights, stocks, owned, dollars)


def _scaled(measure: Measure, factor: float) -> Measure:
    return Measure(measure.per_replica * factor, measure.per_rate * factor)


def _own(scenario: Scenario, table: CostTable, question: Question, rate: float) -> dict[Phase, Measure]:
    """Give what one request/s adds to the objective, cost of devices left out: power, or energy per token."""
    workload = scenario.workloads[table.workload]
    if question.aim == "power":
        return {phase: measure_of(scenario, table, phase, "power") for phase in PHASES}
    if question.aim == "energy":
        mix = sum(other.mix for other in scenario.workloads.values())
        factor = workload.mix / mix / (rate * workload.osl_tokens)
        return {phase: _scaled(measure_of(scenario, table, phase, "energy"), factor) for phase in PHASES}
    return {phase: _scaled(measure_of(scenario, table, phase, "energy"), 0.0) for phase in PHASES}


def solve_relaxation(problem: Relaxed, time_limit_s: float) -> Relaxation:
    """Generate columns until no workload has a better one, or the time is over; the bound holds at any moment."""
    start, found = time.perf_counter(), Relaxation()
    prices = _first_prices(problem)
    for _ in range(_ROUNDS):
        columns = _price(problem, prices)
        if columns is None:
            return found
        bound = _lagrangian(problem, prices, columns)
        if bound > found.bound:
            found.bound, found.prices = bound, prices
        found.columns += [column for column in columns if not _is_known(column, found.columns)]
        value, prices, found.mixed = _master(problem, found.columns)
        closed = value - found.bound <= _CLOSED * max(abs(value), 1e-9)
        if closed or time.perf_counter() - start > time_limit_s:
            return found
    return found


def _first_prices(problem: Relaxed) -> Prices:
    limits, aim = problem.scenario.limits, problem.question.aim
    cost = 1.0 if limits.cost_budget_usd_per_hour is not None else 0.0
    dear = {name: _worth(problem, name, cost) for name in problem.dollars}
    power = 1.0 if limits.power_budget_kw is not None and aim not in ("power", "energy") else 0.0
    return Prices(power, cost, dict.fromkeys(problem.stocks, 0.0 if aim in ("power", "energy", "cost") else 1e-3), dear)


def _worth(problem: Relaxed, device: str, cost: float) -> float:
    """Give what buying a device costs, in objective units: its dollars, and its share of the cost budget."""
    budget = problem.scenario.limits.cost_budget_usd_per_hour
    share = cost / budget if budget is not None else 0.0
    return problem.dollars[device] * (share + (1.0 if problem.question.aim == "cost" else 0.0))


def _is_known(column: Column, columns: list[Column]) -> bool:
    return any(
        other.workload == column.workload
        and (other.found.s, other.found.options) == (column.found.s, column.found.options)
        for other in columns
    )


def priced(problem: Relaxed, name: str, prices: Prices) -> Tableau:
    """Give a workload's tableau with what its options cost at the prices."""
    table = problem.tables[name]
    measures = {}
    for phase in PHASES:
        own, power = problem.own[name][phase], problem.power[name][phase]
        devices = np.array(
            [prices.of_device(o.device) * o.tensor_parallel for o in table.phases[phase].options], dtype=float
        ).reshape(-1, 1)
        measures[phase] = Measure(
            own.per_replica + prices.power * power.per_replica + devices,
            own.per_rate + prices.power * power.per_rate,
        )
    return replace(problem.tableaus[name], measures=measures)


def _price(problem: Relaxed, prices: Prices) -> list[Column] | None:
    """Find each workload's best column at the prices; null where one has none at all."""
    columns = []
    for name in problem.tables:
        found = least(priced(problem, name, prices), _ONE_RPS, Service.of(problem.scenario, name))
        if not np.isfinite(found.value):
            return None
        columns.append(_column(problem, name, found))
    return columns


def _column(problem: Relaxed, name: str, found: Found) -> Column:
    base, table = problem.tableaus[name], problem.tables[name]
    devices: dict[str, float] = {}
    for phase, o in found.options.items():
        option = table.phases[phase].options[o]
        unit = {p: Measure(np.zeros_like(base.measures[p].per_replica), np.zeros_like(base.busy_s[p])) for p in PHASES}
        unit[phase] = Measure(np.ones_like(unit[phase].per_replica), unit[phase].per_rate)
        replicas = replace(base, measures=unit).cost_of(_ONE_RPS, found)
        devices[option.device] = devices.get(option.device, 0.0) + replicas * option.tensor_parallel
    return Column(
        name,
        found,
        replace(base, measures=problem.own[name]).cost_of(_ONE_RPS, found),
        replace(base, measures=problem.power[name]).cost_of(_ONE_RPS, found),
        devices,
    )


def _cost(column: Column, prices: Prices) -> float:
    devices = sum(prices.of_device(device) * count for device, count in column.devices.items())
    return column.objective + prices.power * column.power + devices


def offered(problem: Relaxed, prices: Prices) -> float:
    """Give what the limits are worth at the prices, Σ π·b: budgets are 1, stocks and owned devices are counted."""
    stocks = sum(prices.stock.get(name, 0.0) * count for name, count in problem.stocks.items())
    owned = sum(prices.owned.get(name, 0.0) * count for name, count in problem.owned.items())
    return prices.power + prices.cost + stocks + owned


def _lagrangian(problem: Relaxed, prices: Prices, best: list[Column]) -> float:
    """Bound from prices: Σ rate·(cheapest column) − Σ π·b; for throughput, minus the scale that Σ π·b allows."""
    spent = sum(problem.weights[column.workload] * _cost(column, prices) for column in best)
    if problem.maximizes:
        return -offered(problem, prices) / spent if spent > 0 else -np.inf
    return spent - offered(problem, prices)


def _master(problem: Relaxed, columns: list[Column]) -> tuple[float, Prices, list[Column]]:
    """Mix the columns found within the limits; give the value, the limits' prices, and the columns in the mix."""
    program = Program("mix_of_columns")
    x = [program.variable(f"x_{number}") for number in range(len(columns))]
    goal = Linear((variable, column.objective) for variable, column in zip(x, columns, strict=True))
    scale = program.variable("scale") if problem.maximizes else None
    if scale is not None:
        goal.add([(scale, -1.0)])
    for number, (name, weight) in enumerate(problem.weights.items()):
        mixed = Linear((v, 1.0) for v, column in zip(x, columns, strict=True) if column.workload == name)
        if scale is None:
            missing = program.variable(f"missing_{number}")
            goal.add([(missing, _DEAR * max(_cost(c, _first_prices(problem)) + 1e-9 for c in columns))])
            program.row(f"rate_{number}", mixed.add([(missing, 1.0)]), "==", weight)
        else:
            program.row(f"rate_{number}", mixed.add([(scale, -weight)]), "==", 0.0)
    spent = _limit_rows(program, problem, x, columns)
    if problem.question.aim == "cost":
        goal.add(spent.pairs())
    program.minimize(goal)
    outcome = solve(program)
    used = [column for v, column in zip(x, columns, strict=True) if v.varValue and v.varValue > 0]
    return outcome.objective, _prices_of(problem, row_prices(program)), used


def _limit_rows(program: Program, problem: Relaxed, x: Sequence[Any], columns: Sequence[Column]) -> Linear:
    """Write power, stocks, purchases and cost; give the dollars spent."""
    if problem.scenario.limits.power_budget_kw is not None:
        program.row("power", Linear((v, c.power) for v, c in zip(x, columns, strict=True)), "<=", 1.0)
    for number, (name, count) in enumerate(problem.stocks.items()):
        used = _used(x, columns, name)
        if used.pairs():
            program.row(f"stock_{number}", used, "<=", count)
    spent = Linear()
    for number, (name, count) in enumerate(problem.owned.items()):
        used = _used(x, columns, name)
        if used.pairs():
            bought = program.variable(f"bought_{number}")
            program.row(f"owned_{number}", used.add([(bought, -1.0)]), "<=", count)
            spent.add([(bought, problem.dollars[name])])
    budget = problem.scenario.limits.cost_budget_usd_per_hour
    if budget is not None and spent.pairs():
        program.row("cost", spent.scaled(1.0 / budget), "<=", 1.0)
    return spent


def _used(x: Sequence[Any], columns: Sequence[Column], device: str) -> Linear:
    return Linear((v, c.devices.get(device, 0.0)) for v, c in zip(x, columns, strict=True))


def _prices_of(problem: Relaxed, duals: dict[str, float]) -> Prices:
    """Turn duals into prices that prove a bound: none below zero, none of an owned device above what buying costs."""

    def price(row: str) -> float:
        return max(0.0, -duals.get(row, 0.0))

    cost = price("cost")
    stock = {name: price(f"stock_{number}") for number, name in enumerate(problem.stocks)}
    owned = {name: min(price(f"owned_{n}"), _worth(problem, name, cost)) for n, name in enumerate(problem.owned)}
    return Prices(price("power"), cost, stock, owned)


# ------------------------------------------------------------------------------------------------ smaller tables


def tables_of_columns(problem: Relaxed, columns: list[Column]) -> Tables:
    """Keep the options and speculations that the columns use."""
    tables = problem.tables.items()
    return {name: _table_of(table, [c for c in columns if c.workload == name]) for name, table in tables}


def tables_within(problem: Relaxed, prices: Prices, best: float) -> Tables:
    """Drop what no plan better than ``best`` (of the minimization) can have, by the prices' own bound.

    Proof: with an option of one workload forced, the Lagrangian bound charges that workload the cheapest column with
    that option; where even that is no better than ``best``, every plan with the option is no better.
    """
    least_costs = {name: lower_bound(priced(problem, name, prices), _ONE_RPS) for name in problem.tables}
    spent = sum(problem.weights[name] * cost for name, cost in least_costs.items())
    worth = offered(problem, prices)
    # Throughput: scale ≤ worth/spent must exceed −best. Costs: spent − worth must stay below best.
    allowed = (worth / -best if best < 0 else np.inf) if problem.maximizes else best + worth
    tables = {}
    for name, cost in least_costs.items():
        most = cost + (allowed - spent) / problem.weights[name]
        tables[name] = reduced(priced(problem, name, prices), _ONE_RPS, most * (1 + _ROUNDING) + _ROUNDING * abs(cost))
    return tables


def _table_of(table: CostTable, columns: list[Column]) -> CostTable:
    keep = {phase: np.zeros_like(table.phases[phase].latency_s, dtype=bool) for phase in PHASES}
    for column in columns:
        for phase, o in column.found.options.items():
            keep[phase][o, :] = True
    used = np.array(sorted({column.found.s for column in columns}), dtype=np.intp)
    known = {phase: keep[phase] & np.isfinite(table.phases[phase].latency_s) for phase in PHASES}
    return sliced(table, known, used)

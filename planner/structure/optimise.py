"""Every aim from one function, the least cost of a workload at a rate under service limits.

Where workloads share nothing but one budget, the fleet's least cost is the sum of the workloads' own. One workload
alone may also have stocks, nodes, links and several budgets: see ``planner.structure.coupled``. The cost never falls
when the rate rises or a service limit gets stricter: a design that carries more also carries less, and one that meets a
stricter limit meets a looser one. So throughput, interactivity and TTFT are found by bisection on that step function,
down to neighbouring floating-point numbers where need be; what bisection rules out is the proven bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.bounds import largest_rates, runnable, usable
from planner.errors import InputError
from planner.evaluate import Design, request_metrics
from planner.measure import Kind
from planner.options import CostTable
from planner.question import Aim, Question, Solution, is_maximized, relative_gap
from planner.rates import NOTHING_BOUNDS, knows_power
from planner.schema.scenario import Scenario
from planner.structure.coupled import Coupled, Measured
from planner.structure.least import (
    NOTHING,
    Floats,
    Found,
    Service,
    Tableau,
    least,
    lower_bound,
    reduced,
)
from planner.words import PHASES, STEP_PHASES

_CLOSED = 1e-11
_ROUGH = 1e-3
_STAGES = (0.3, 0.05, 1e-2, 1e-3)
_WORTH_DROPPING = 1.02
_AT_ONCE = 1023
_ROUNDING = 1e-9
_TIE = 1e-10
_ALMOST_NOTHING = 1e-9

Tables = dict[str, CostTable]
Rates = dict[str, float]
Designs = dict[str, Found]
Stricter = Callable[[str, Service], Service]


def _own(_: str, service: Service) -> Service:
    return service


def budgets_of(scenario: Scenario) -> list[tuple[Kind, float]]:
    """List the budgets, in W and USD/h."""
    limits = scenario.limits
    found: list[tuple[Kind, float]] = []
    if limits.power_budget_kw is not None:
        found.append(("power", limits.power_budget_kw * 1e3))
    if limits.cost_budget_usd_per_hour is not None:
        found.append(("cost", limits.cost_budget_usd_per_hour))
    return found


def separates(scenario: Scenario, question: Question) -> bool:
    """Whether the structure answers: one workload, or several that share nothing but one budget.

    Racks, shares and shared pools couple choices in other ways; those need the program.
    """
    if scenario.shared_pools or scenario.servers.racks or scenario.max_shares > 1:
        return False
    if scenario.servers.min_batch_fill > 0 and question.aim in ("throughput", "rate"):
        return False  # a batch too large for a small rate may fill at a larger one: cost can fall as the rate rises
    return len(scenario.workloads) == 1 or shares_one_budget(scenario, question)


def shares_one_budget(scenario: Scenario, question: Question) -> bool:
    """Whether there is at most one budget, the aim is its own measure, a rate or a service, and nothing else is shared.

    Inventories and nodes couple workloads, and so do two budgets; links couple only the phases of each.
    """
    if scenario.limits.inventory or scenario.servers.by_node:
        return False
    kinds = [kind for kind, _ in budgets_of(scenario)]
    if question.aim in ("power", "cost"):
        return kinds in ([], [question.aim])
    if question.aim == "energy":
        return not kinds or (kinds == ["power"] and scenario.power_basis == "forward")
    return question.aim != "devices" and len(kinds) <= 1


@dataclass(frozen=True)
class Coupling:
    """What the phases of a workload share besides links: budgets of other measures, the device type that is counted."""

    budgets: tuple[tuple[Kind, float], ...]
    device: str | None = None


@dataclass
class _Fleet:
    """The workloads with their tableaus of one measure; remembers the last designs, to start the next search from."""

    scenario: Scenario
    tables: Tables
    kind: Measured
    budget: float
    coupled: Coupling | None = None
    tableaus: dict[str, Tableau] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    last: Designs = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tableaus = {name: self._tableau(table) for name, table in self.tables.items()}
        self.services = {name: Service.of(self.scenario, name) for name in self.tables}

    def _tableau(self, table: CostTable) -> Tableau:
        if self.coupled is not None:
            return Coupled.sharing(self.scenario, table, self.kind, self.coupled.budgets, self.coupled.device)
        assert self.kind != "devices"  # only a fleet that is shared counts them
        return Tableau.of(self.scenario, table, self.kind)

    def least(self, rates: Rates, stricter: Stricter = _own, any_will_do: bool = False) -> tuple[float, Designs]:
        """Give the least cost of all workloads within the budget, and their designs; infinite where there is none.

        ``any_will_do``: one workload's design within the budget need not be its cheapest.
        """
        total, designs = 0.0, {}
        enough = self.budget if any_will_do and len(self.tableaus) == 1 else -np.inf
        for name, tableau in self.tableaus.items():
            service, last = stricter(name, self.services[name]), self.last.get(name, NOTHING)
            found = least(tableau, rates[name], service, last, enough)
            total += found.value
            if not total <= self.budget * (1 + _ROUNDING) or np.isinf(total):
                return np.inf, {}
            designs[name] = found
        self.last.update(designs)
        return total, designs

    def begin_with(self, designs: Sequence[Design]) -> None:
        """Remember designs that are likely good, as if they had been found; nothing where one breaks a limit."""
        found = {}
        for design in designs:
            place = _place(self.tables[design.workload], design)
            if place is None or not self._serves(design):
                return
            found[design.workload] = place
        self.last = found if found.keys() == self.tables.keys() else {}

    def _serves(self, design: Design) -> bool:
        """Whether a design that can run meets the limits on its service."""
        metrics = request_metrics(self.scenario, design, self.tables[design.workload])
        service = self.services[design.workload]
        return metrics.interactivity_tps >= service.floor_tps and metrics.ttft_s <= service.ceiling_s

    def fits(self, rates: Rates) -> bool:
        """Whether some designs serve these rates within the budget; searches only where no bound decides.

        The last designs may still fit; the sum of lower bounds may already be too much.
        """
        if self.carry(rates):
            return True
        if not self._within(sum(lower_bound(tableau, rates[name]) for name, tableau in self.tableaus.items())):
            return False
        return bool(self.least(rates, any_will_do=True)[1])

    def carry(self, rates: Rates) -> bool:
        """Whether the last designs serve these rates within the budget."""
        return bool(self.last) and bool(self._within(self.cost(rates, self.last)))

    def reach(self, shares: Rates, low: float, high: float, closed: float = _CLOSED) -> float:
        """Give the largest scale of these rates, from ``low`` (above 0) up to ``high``, that the last designs carry."""
        while high - low > closed * high:
            scales = np.linspace(low, high, _AT_ONCE + 2)[1:-1]
            costs = sum(self.tableaus[name].costs_of(scales * shares[name], found) for name, found in self.last.items())
            carried = int(np.count_nonzero(self._within(np.asarray(costs))))
            edges = [low, *scales.tolist(), high]
            low, high = edges[carried], edges[carried + 1]
        return low

    def _within(self, costs: float | Floats) -> NDArray[np.bool_]:
        return np.isfinite(costs) & (costs <= self.budget * (1 + _ROUNDING))

    def drop_what_is_too_dear(self, rates: Rates, found: tuple[float, Designs] | None = None) -> None:
        """Keep only what the budget allows some workload at these rates or above, the others at their least.

        ``found``: the least cost at these rates, where it is known already.
        """
        total, designs = found or self.least(rates)
        named = [found.design(self.tables[name]) for name, found in designs.items()]
        for name, tableau in list(self.tableaus.items()):
            most = self.budget * (1 + 2 * _ROUNDING) - total + designs[name].value
            self.tables = {**self.tables, name: reduced(tableau, rates[name], most)}
            self.tableaus[name] = self._tableau(self.tables[name])
        self.begin_with(named)

    def cost(self, rates: Rates, designs: Designs) -> float:
        """Cost of given designs."""
        return sum(self.tableaus[name].cost_of(rates[name], found) for name, found in designs.items())

    def least_power_among_equals(self, rates: Rates, stricter: Stricter, designs: Designs) -> Designs:
        """Break ties: among designs of the same cost take the least power, or energy where power is the cost."""
        kind: Kind = "power" if self.kind != "power" and knows_power(self.scenario, self.tables) else "energy"
        if self.kind == kind or (self.kind == "power" and self.scenario.power_basis == "forward"):
            return designs
        other = _Fleet(self.scenario, self.tables, kind, np.inf, None if self.coupled is None else Coupling(()))
        cost, second = self.cost(rates, designs), other.cost(rates, designs)
        if cost <= 0 or second <= 0:
            return designs
        weight = _TIE * cost / second
        chosen = {}
        for name, tableau in self.tableaus.items():
            weighted = tableau.with_tie_break(other.tableaus[name], weight)
            chosen[name] = least(weighted, rates[name], stricter(name, self.services[name]), designs[name])
        good = self.cost(rates, chosen) <= min(cost * (1 + _ROUNDING), self.budget * (1 + _ROUNDING))
        return chosen if good else designs


def _place(table: CostTable, design: Design) -> Found | None:
    """Find a design in a table; null where it cannot run there."""
    if design.speculation not in table.speculations:
        return None
    s, options = table.speculations.index(design.speculation), {}
    for phase in PHASES:
        costs, option = table.phases[phase], design.options[phase]
        if bool(table.runs(phase)[s]) != (option is not None):
            return None
        if option is not None:
            if option.bare not in costs.options or not costs.available[costs.options.index(option.bare), s]:
                return None
            options[phase] = costs.options.index(option.bare)
    return Found(np.nan, s, options)


def _fleet_of(scenario: Scenario, tables: Tables, question: Question) -> _Fleet:
    """Choose what is minimized inside: the aim's own measure, else a budget's, else power where it is known.

    Where workloads share one budget it is that budget's: for the aims allowed, its least is the aim's own too.
    """
    budgets = budgets_of(scenario)
    own: dict[Aim, Measured] = {"power": "power", "cost": "cost", "energy": "energy", "devices": "devices"}
    most_of: dict[Measured, float] = dict(budgets)
    else_: Measured = "power" if knows_power(scenario, tables) else "energy"
    if shares_one_budget(scenario, question):
        kind = next(iter(most_of), own.get(question.aim, else_))
        coupling = None if scenario.transfers is None else Coupling(())
        return _Fleet(scenario, tables, kind, most_of.get(kind, np.inf), coupling)
    kind = own[question.aim] if question.aim in own else next(iter(most_of), else_)
    others = tuple(budget for budget in budgets if budget[0] != kind)
    return _Fleet(scenario, tables, kind, most_of.get(kind, np.inf), Coupling(others, question.device))


def optimise(scenario: Scenario, tables: Tables, question: Question) -> Solution | None:
    """Answer a question exactly; null where only the program can.

    Raises
    ------
    InputError
        If nothing bounds the throughput.
    """
    if not separates(scenario, question):
        return None
    start = time.perf_counter()
    fleet = _fleet_of(scenario, tables, question)
    by_rate = question.aim == "rate" or (question.aim == "throughput" and question.rates is None)
    if by_rate and not all(tableau.never_falls_with_rate() for tableau in fleet.tableaus.values()):
        return None
    answer = (_ANSWERS[question.aim] if by_rate or question.aim != "throughput" else _at_rates)(fleet, question)
    if answer is None:
        return Solution("infeasible", (), None, None, None, time.perf_counter() - start, "structure")
    rates, stricter, designs, bound = answer
    designs = fleet.least_power_among_equals(rates, stricter, designs)
    value = _value(fleet, question, rates, designs)
    if bound is None or (bound < value if is_maximized(question.aim) else bound > value):
        bound = value
    named = tuple((found.design(fleet.tables[name]), rates[name]) for name, found in designs.items())
    gap = relative_gap(value, bound)
    return Solution("optimal", named, value, bound, gap, time.perf_counter() - start, "structure")


Answer = tuple[Rates, Stricter, Designs, float | None]


def _at_rates(fleet: _Fleet, question: Question) -> Answer | None:
    """Least power, cost or energy at exact rates: the sum of the workloads' least."""
    assert question.rates is not None
    _, designs = fleet.least(question.rates)
    return (question.rates, _own, designs, None) if designs else None


def _throughput(fleet: _Fleet, question: Question) -> Answer | None:
    """Largest scale of the mix within the budget."""
    workloads = fleet.scenario.workloads
    total_mix = sum(workload.mix for workload in workloads.values())
    shares = {name: workload.mix / total_mix for name, workload in workloads.items()}

    def rates(scale: float) -> Rates:
        return {name: scale * share for name, share in shares.items()}

    tokens = sum(share * workloads[name].osl_tokens for name, share in shares.items())
    high = _largest_scale(fleet, shares)
    asked = [(w.limits.demand_rps or 0.0) / shares[name] for name, w in workloads.items()]
    known = question.reached * (1 - _ROUNDING) / tokens
    known = max(known, _begin(fleet, question, shares, high) * (1 - _ROUNDING))
    low = max(*asked, _ALMOST_NOTHING * high, known)
    if low > high * (1 + _ROUNDING):
        return None
    cost, designs = fleet.least(rates(low))
    if not designs:
        return None
    proportional = fleet.scenario.counts == "fractional" and not fleet.scenario.servers.spare_replicas
    if proportional and fleet.coupled is None:
        return rates(low * fleet.budget / cost), _own, designs, None
    if low > _ALMOST_NOTHING * high:
        fleet.drop_what_is_too_dear(rates(low), (cost, designs))
    if fleet.fits(rates(high)):
        low = high
    for closed in _STAGES if low > known else ():
        low, high = _bisect(low, high, lambda scale: scale if fleet.fits(rates(scale)) else None, closed)
        fleet.drop_what_is_too_dear(rates(low))
    if low <= known:
        low = fleet.reach(shares, low, high)
        beyond = low * (1 + _CLOSED)
        high = beyond if beyond < high and not fleet.fits(rates(beyond)) else high
    low, high = _climb(fleet, shares, low, high)
    return rates(low), _own, fleet.least(rates(low))[1], high * tokens


def _begin(fleet: _Fleet, question: Question, shares: Rates, high: float) -> float:
    """Begin with the best of the designs that are likely good; give a scale that they carry, 0 where there are none."""
    reached, least = 0.0, _ALMOST_NOTHING * high
    best: tuple[Design, ...] = ()
    for designs in question.likely:
        fleet.begin_with(designs)
        if fleet.carry({name: least * share for name, share in shares.items()}):
            scale = fleet.reach(shares, least, high, _ROUGH)
            reached, best = (scale, designs) if scale > reached else (reached, best)
    fleet.begin_with(best)
    return reached


def _climb(fleet: _Fleet, shares: Rates, low: float, high: float) -> tuple[float, float]:
    """Close in on the largest scale that fits; ``low`` does and ``high`` does not, unless they are the same.

    Designs are followed as far as they carry. Where nothing fits just above that, it is the largest; else what lies
    between is halved, so that a row of designs that are hardly better than the one before is not climbed step by step.
    """

    def rates(scale: float) -> Rates:
        return {name: scale * share for name, share in shares.items()}

    dropped = 0.0
    while high - low > _CLOSED * high:
        if fleet.last:
            low = fleet.reach(shares, low, high)
        if low > _WORTH_DROPPING * dropped:
            fleet.drop_what_is_too_dear(rates(low))
            dropped = low
        for next_scale in (low * (1 + _CLOSED), 0.5 * (low + high)):
            if next_scale >= high:
                continue
            if fleet.fits(rates(next_scale)):
                low = next_scale
            else:
                high = next_scale
    return low, high


def _rate(fleet: _Fleet, question: Question) -> Answer | None:
    """Largest rate of one workload within the budget, the others at exact rates."""
    free, fixed = question.workload, question.rates or {}
    assert free is not None
    high = _largest_scale(fleet, {free: 1.0}, question.out_of_reach.get(free, np.inf))

    def rates(rate: float) -> Rates:
        return {**fixed, free: rate}

    low = _ALMOST_NOTHING * high
    if not fleet.least(rates(low))[1]:
        return None
    if fleet.fits(rates(high)):
        low = high
    low, high = _bisect(low, high, lambda rate: rate if fleet.fits(rates(rate)) else None)
    return rates(low), _own, fleet.least(rates(low))[1], high


def _largest_scale(fleet: _Fleet, shares: dict[str, float], most: float = np.inf) -> float:
    scales = []
    for name in shares:
        table = fleet.tables[name]
        mask = usable(fleet.scenario, table)
        rates = largest_rates(fleet.scenario, table, mask)[1][runnable(table, mask)]
        scales.append(float(rates.max(initial=0.0)) / shares[name])
    largest = min(*scales, most)
    if not np.isfinite(largest):
        raise InputError(NOTHING_BOUNDS)
    return largest


def _interactivity(fleet: _Fleet, question: Question) -> Answer | None:
    """Highest floor that every workload can be given."""
    rates = question.rates
    assert rates is not None

    def stricter(floor: float) -> Stricter:
        def give(name: str, own: Service) -> Service:
            return Service(max(own.floor_tps, floor), own.ceiling_s) if question.concerns(name) else own

        return give

    def reached(floor: float) -> float | None:
        _, designs = fleet.least(rates, stricter(floor))
        return _worst_interactivity(fleet, question, designs) if designs else None

    low = reached(0.0)
    if low is None:
        return None
    high = min(_fastest_interactivity(t) for name, t in fleet.tableaus.items() if question.concerns(name))
    high = max(low, high)
    low, high = (high, high) if reached(high) else _bisect(low, high, reached)
    return rates, stricter(low), fleet.least(rates, stricter(low))[1], high


def _fastest_interactivity(tableau: Tableau) -> float:
    """Bound the interactivity: the fastest option of each step phase, whatever it costs."""
    step = np.zeros_like(tableau.table.steps)
    for phase in STEP_PHASES:
        runs = tableau.table.runs(phase)
        step = step + np.where(runs, tableau.latency_s[phase].min(axis=0, initial=np.inf), 0.0)
    return float((tableau.table.tokens_per_step / step)[tableau.able].max(initial=0.0))


def _fastest_ttft_s(tableau: Tableau) -> float:
    """Bound the TTFT: the fastest prefill and the fastest way through the replicas that verify, whatever they cost."""
    table = tableau.table
    prefill = tableau.latency_s["target_prefill"].min(axis=0, initial=np.inf)
    able = np.isfinite(tableau.latency_s["target_verify"])
    through = np.where(able, table.through_target_s, np.inf).min(axis=0, initial=np.inf)
    ways = np.where(table.runs("target_prefill"), prefill, 0.0) + through
    return float(ways[tableau.able].min(initial=np.inf))


def _worst_interactivity(fleet: _Fleet, question: Question, designs: Designs) -> float:
    return min(
        request_metrics(fleet.scenario, found.design(fleet.tables[name]), fleet.tables[name]).interactivity_tps
        for name, found in designs.items()
        if question.concerns(name)
    )


def _worst_ttft(fleet: _Fleet, question: Question, designs: Designs) -> float:
    return max(
        request_metrics(fleet.scenario, found.design(fleet.tables[name]), fleet.tables[name]).ttft_s
        for name, found in designs.items()
        if question.concerns(name)
    )


def _ttft(fleet: _Fleet, question: Question) -> Answer | None:
    """Shortest ceiling that every workload can be given, as the largest reciprocal."""
    rates = question.rates
    assert rates is not None

    def stricter(reciprocal: float) -> Stricter:
        def give(name: str, own: Service) -> Service:
            return Service(own.floor_tps, min(own.ceiling_s, 1.0 / reciprocal)) if question.concerns(name) else own

        return give

    def reached(reciprocal: float) -> float | None:
        _, designs = fleet.least(rates, stricter(reciprocal))
        return 1.0 / _worst_ttft(fleet, question, designs) if designs else None

    _, designs = fleet.least(rates)
    if not designs:
        return None
    fastest = max(_fastest_ttft_s(t) for name, t in fleet.tableaus.items() if question.concerns(name))
    low, high = 1.0 / _worst_ttft(fleet, question, designs), 1.0 / fastest
    low, high = (high, high) if reached(high) else _bisect(low, high, reached)
    return rates, stricter(low), fleet.least(rates, stricter(low))[1], 1.0 / high


def _bisect(
    low: float, high: float, reached: Callable[[float], float | None], closed: float = _CLOSED
) -> tuple[float, float]:
    """Close in on the largest value that is feasible, down to a relative distance.

    ``reached`` gives, for a value that is feasible, the value that its design really has (at least that value), else
    null; ``low`` is feasible and ``high`` is not, unless they are the same. Returns the largest feasible value found,
    and the least one known to be infeasible.
    """
    while high - low > closed * high:
        middle = 0.5 * (low + high)
        found = reached(middle)
        if found is None:
            high = middle
        else:
            low = min(max(middle, found), high)
    return low, high


def _value(fleet: _Fleet, question: Question, rates: Rates, designs: Designs) -> float:
    """Compute an aim's figure in its own unit."""
    workloads, aim = fleet.scenario.workloads, question.aim
    if aim == "rate":
        return sum(rate for name, rate in rates.items() if question.concerns(name))
    if aim == "throughput":
        return sum(rate * workloads[name].osl_tokens for name, rate in rates.items())
    if aim == "interactivity":
        return _worst_interactivity(fleet, question, designs)
    if aim == "ttft":
        return _worst_ttft(fleet, question, designs)
    if aim == "energy":
        return _energy_j_per_token(fleet, designs)
    return fleet.cost(rates, designs) if aim in ("power", "cost", "devices") else 0.0


def _energy_j_per_token(fleet: _Fleet, designs: Designs) -> float:
    workloads = fleet.scenario.workloads
    total = sum(workload.mix for workload in workloads.values())
    figure = 0.0
    for name, found in designs.items():
        table = fleet.tables[name]
        energy_j = request_metrics(fleet.scenario, found.design(table), table).energy_j
        figure += workloads[name].mix / total * energy_j / workloads[name].osl_tokens
    return figure


_ANSWERS: dict[Aim, Callable[[_Fleet, Question], Answer | None]] = {
    "throughput": _throughput,
    "rate": _rate,
    "interactivity": _interactivity,
    "ttft": _ttft,
    "power": _at_rates,
    "cost": _at_rates,
    "energy": _at_rates,
    "devices": _at_rates,
    "any": _at_rates,
}

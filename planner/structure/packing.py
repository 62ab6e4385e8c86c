"""Good plans of several workloads on one fleet, one workload after the other: quick, and without a proof.

Each workload in turn gets the design that is cheapest at given prices of what is scarce, exactly, from what those
before it have left of stocks, owned devices and budgets. A workload that finds no room goes first in the next attempt.
Whole nodes are counted by workload, which is never fewer than the plan needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from planner.measure import Kind
from planner.options import CostTable
from planner.schema.scenario import Scenario
from planner.structure.charges import Charge
from planner.structure.coupled import Coupled
from planner.structure.least import Floats, Found, Service, least

_CLOSE = 1e-5

Rates = dict[str, float]
Designs = dict[str, Found]


@dataclass(frozen=True)
class Packing:
    """Workloads with prices of the limits: of a device by type (D + 1,), and of each budget as a whole."""

    services: dict[str, Service]
    workloads: dict[str, Coupled]

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        tables: dict[str, CostTable],
        own: Kind | None,
        device_prices: dict[str, float],
        budgets: dict[Kind, tuple[float, float]],
        scales: Rates,
    ) -> Packing:
        """Price what every workload can choose from.

        Parameters
        ----------
        scenario, tables
            What is asked, with private pools and without racks.
        own
            The measure that the objective counts besides what is scarce; null where it counts none.
        device_prices
            Price of a device by type.
        budgets
            Bound of each budget, and the price of all of it.
        scales
            What the objective counts one unit of its measure for, by workload.
        """
        bounds = [(kind, most) for kind, (most, _) in budgets.items()]
        each = np.array([*(device_prices.get(name, 0.0) for name in scenario.catalog.devices), 0.0])
        workloads = {}
        for name, table in tables.items():
            coupled = Coupled.sharing(scenario, table, own or "energy", bounds)
            first, *charges = coupled.charges
            first = first.plus(first, (scales[name] if own is not None else 0.0) - 1.0)
            for charge, (most, price) in zip(charges, budgets.values(), strict=True):
                first = first.plus(charge, price / most)
            workloads[name] = replace(coupled, charges=(replace(first, each=first.each + each), *charges))
        return cls({name: Service.of(scenario, name) for name in tables}, workloads)

    def at(self, rates: Rates, attempts: int) -> Designs | None:
        """Find designs that serve the rates within all limits; null where no attempt does."""
        order = sorted(rates, key=lambda name: -self._alone(name, rates[name]))
        for _ in range(attempts):
            found = self._in_turn(order, rates)
            if len(found) == len(order):
                return found
            stuck = order[len(found)]
            order = [stuck, *(name for name in order if name != stuck)]
        return None

    def _alone(self, name: str, rate: float) -> float:
        return least(self.workloads[name], rate, self.services[name]).value

    def _in_turn(self, order: list[str], rates: Rates) -> Designs:
        """Give a design to one workload after the other, until one finds no room."""
        left, designs = _Left.of(next(iter(self.workloads.values()))), Designs()
        for name in order:
            tableau = left.given_to(self.workloads[name])
            found = least(tableau, rates[name], self.services[name])
            if not np.isfinite(found.value):
                break
            designs[name] = found
            left = left.after(tableau, rates[name], found)
        return designs


@dataclass(frozen=True)
class _Left:
    """What is left of stocks and owned devices by type, and of the budgets."""

    available: Floats
    owned: Floats
    budgets: tuple[float, ...]

    @classmethod
    def of(cls, tableau: Coupled) -> _Left:
        return cls(tableau.available, tableau.charges[0].owned, tuple(charge.most for charge in tableau.charges[1:]))

    def given_to(self, tableau: Coupled) -> Coupled:
        """Let a workload choose from what is left."""
        first, *charges = (replace(charge, owned=self.owned) for charge in tableau.charges)
        budgets: list[Charge] = [replace(c, most=most) for c, most in zip(charges, self.budgets, strict=True)]
        return replace(tableau, available=self.available, charges=(first, *budgets))

    def after(self, tableau: Coupled, rate: float, found: Found) -> _Left:
        """Take away what a design uses."""
        had, figures = tableau.uses(rate, found)
        spent = zip(self.budgets, figures[1:], strict=True)
        budgets = tuple(max(0.0, most - figure) for most, figure in spent)
        return _Left(np.maximum(0.0, self.available - had), np.maximum(0.0, self.owned - had), budgets)


def largest_packed(
    packing: Packing, weights: Rates, low: float, high: float, attempts: int, in_time: Callable[[], bool]
) -> tuple[float, Designs | None]:
    """Find a large scale of the mix at which the workloads still find room, between a least one and a bound.

    The bound itself is tried first: often one workload alone is what limits the scale, and then it is reached.
    """

    def at(scale: float) -> Designs | None:
        return packing.at({name: scale * weight for name, weight in weights.items()}, attempts)

    if low > high:
        return low, None
    best = high, at(high)
    if best[1] is not None:
        return best
    while high - low > _CLOSE * high and in_time():
        scale = 0.5 * (low + high)
        found = at(scale)
        if found is None:
            high = scale
        else:
            best, low = (scale, found), scale
    return best

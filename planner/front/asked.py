"""What a front is asked about: at which rates, under which limits, with which options."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.errors import InputError
from planner.options import CostTable, Option, cost_table
from planner.rates import UNIT_RATE_RPS, require_figures
from planner.schema.scenario import FleetLimits, Scenario, Servers
from planner.structure.least import sliced
from planner.words import PHASES, Phase

AT_ANY_SIZE = (
    "without a demand the front is of a large fleet: counts are fractional, and budgets, inventories, racks and spares"
    " limit its size, not its points; a device type that is out of stock is not used"
)
AT_THE_DEMAND = "the front serves exactly the demand, within every limit of the scenario"


@dataclass(frozen=True)
class Asked:
    """The scenario with least power as objective, costs by workload, rates by workload in requests/s, and what it is.

    ``large``: no demand is given, so that the front is of a large fleet, whatever its size.
    """

    scenario: Scenario
    tables: dict[str, CostTable]
    rates: dict[str, float]
    large: bool

    @property
    def sentence(self) -> str:
        """Say what the front is of."""
        return AT_ANY_SIZE if self.large else AT_THE_DEMAND


def asked_of(scenario: Scenario, tables: dict[str, CostTable] | None = None) -> Asked:
    """Read what a front is asked about.

    With a demand, it is served exactly and every limit applies. Without one nothing says how many devices there are:
    then the front is of a large fleet in which rounding disappears. Limits on service apply in both.

    Raises
    ------
    InputError
        If only some workloads have a demand, or a device lacks the figure that the power basis needs.
    """
    demands = {name: workload.limits.demand_rps for name, workload in scenario.workloads.items()}
    lacking = [name for name, demand in demands.items() if demand is None]
    if lacking and len(lacking) < len(demands):
        raise InputError(f"a front needs a demand for all workloads or for none (none for {', '.join(lacking)})")
    tables = tables or {name: cost_table(scenario, name) for name in scenario.workloads}
    asked = scenario.replace(objective="power")
    require_figures(asked, tables)
    if not lacking:
        return Asked(asked, tables, {name: demand or 0.0 for name, demand in demands.items()}, large=False)
    total = sum(workload.mix for workload in scenario.workloads.values())
    rates = {name: UNIT_RATE_RPS * workload.mix / total for name, workload in scenario.workloads.items()}
    fleet = asked.replace(
        counts="fractional",
        limits=FleetLimits(),
        servers=Servers(min_batch_fill=scenario.servers.min_batch_fill),
        max_shares=1,
    )
    return Asked(fleet, {name: _in_stock(scenario, table) for name, table in tables.items()}, rates, large=True)


def _in_stock(scenario: Scenario, table: CostTable) -> CostTable:
    """Leave out what no fleet of the scenario can have: options of which not one replica can be had or housed."""

    def can_be_had(option: Option) -> bool:
        stock = scenario.limits.inventory.get(option.device)
        available = math.inf if stock is None else stock.available
        fewest = option.tensor_parallel if scenario.counts == "integer" else 1
        racks = scenario.servers.racks.values()
        housed = not racks or any(rack.devices is None or option.device in rack.devices for rack in racks)
        return available >= fewest and housed

    keep: dict[Phase, NDArray[np.bool_]] = {}
    for phase in PHASES:
        had = np.array([can_be_had(option) for option in table.phases[phase].options], dtype=bool).reshape(-1, 1)
        keep[phase] = had & np.ones((1, len(table.speculations)), dtype=bool)
    if all(kept.all() for kept in keep.values()):
        return table
    return sliced(table, keep, np.arange(len(table.speculations)))

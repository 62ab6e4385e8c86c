"""Which request rates a question is about, and what it lacks to be one."""

from __future__ import annotations

from planner.errors import InputError
from planner.fleet import UNLIMITED_KW, basis_is_known
from planner.options import CostTable
from planner.proposers import rule_of
from planner.schema.scenario import Scenario
from planner.words import PHASES

UNIT_RATE_RPS = 1.0

NOTHING_BOUNDS = (
    "nothing bounds the throughput: some design uses nothing of what is limited; give --budget-kw,"
    " --budget-usd-per-hour, or an inventory for more devices"
)


def is_bounded(scenario: Scenario) -> bool:
    """Whether a budget, an inventory or racks can bound the throughput."""
    limits, racks = scenario.limits, scenario.servers.racks.values()
    housed = bool(racks) and all(rack.power_limit_kw < UNLIMITED_KW for rack in racks)
    return bool(limits.power_budget_kw or limits.cost_budget_usd_per_hour or limits.inventory or housed)


def has_demand(scenario: Scenario) -> bool:
    """Whether any workload has a demand."""
    return any(workload.limits.demand_rps is not None for workload in scenario.workloads.values())


def fixed_rates(scenario: Scenario) -> dict[str, float] | None:
    """Give the rates that a plan must serve exactly, by workload; null where throughput is what is maximized.

    Throughput that only a demand bounds serves that demand. Without a demand, energy and interactivity are asked at
    one request/s in total, split by mix.
    """
    if scenario.objective == "throughput" and is_bounded(scenario):
        return None
    total = sum(workload.mix for workload in scenario.workloads.values())
    return {
        name: workload.limits.demand_rps or UNIT_RATE_RPS * workload.mix / total
        for name, workload in scenario.workloads.items()
    }


def require_answerable(scenario: Scenario) -> None:
    """Refuse a question that lacks a bound or a demand.

    Raises
    ------
    InputError
        Naming the missing flag.
    """
    if scenario.objective == "throughput" and not is_bounded(scenario) and not has_demand(scenario):
        raise InputError(
            "throughput without a bound: give --budget-kw, --budget-usd-per-hour, an inventory"
            " (--set limits.inventory.DEVICE=N) or --demand-rps"
        )
    if scenario.objective in ("power", "cost"):
        lacking = [name for name, workload in scenario.workloads.items() if workload.limits.demand_rps is None]
        if lacking:
            raise InputError(
                f"least {scenario.objective} needs a demand: give --demand-rps (none for {', '.join(lacking)})"
            )


def devices_used(scenario: Scenario, tables: dict[str, CostTable]) -> list[str]:
    """List the device types of all options, in catalog order."""
    used = {option.device for table in tables.values() for phase in PHASES for option in table.phases[phase].options}
    return [name for name in scenario.catalog.devices if name in used]


def knows_power(scenario: Scenario, tables: dict[str, CostTable]) -> bool:
    """Whether every option's device has the figure that the scenario's power basis needs."""
    devices = scenario.catalog.devices
    return all(basis_is_known(devices[name], scenario.power_basis) for name in devices_used(scenario, tables))


def require_figures(scenario: Scenario, tables: dict[str, CostTable]) -> None:
    """Refuse a limit or objective on power or cost where an option's device lacks the figure that it needs.

    Raises
    ------
    InputError
        Naming each device and the key that is missing.
    """
    names = devices_used(scenario, tables)
    devices, basis = scenario.catalog.devices, scenario.power_basis
    problems: list[str] = []
    if scenario.limits.power_budget_kw is not None or scenario.objective == "power":
        key = {"average": "idle_power_w", "provisioned": "provisioned_power_w", "forward": ""}[basis]
        problems += [
            f"catalog.devices.{name}.{key}: missing, and power on the basis '{basis}' needs it"
            " (give it, or choose another --power-basis)"
            for name in names
            if not basis_is_known(devices[name], basis)
        ]
    if scenario.limits.cost_budget_usd_per_hour is not None or scenario.objective == "cost":
        what = "--budget-usd-per-hour" if scenario.limits.cost_budget_usd_per_hour is not None else "--objective cost"
        problems += [
            f"catalog.devices.{name}.price: missing, and {what} needs it"
            for name in names
            if devices[name].price is None
        ]
    if scenario.servers.racks:
        problems += [
            f"catalog.devices.{name}.provisioned_power_w: missing, and the power limits of racks need it"
            for name in names
            if devices[name].provisioned_power_w is None
        ]
    problems += _unknown_hidden_states(scenario)
    if problems:
        raise InputError(*dict.fromkeys(problems))


def _unknown_hidden_states(scenario: Scenario) -> list[str]:
    """Proposers that read the target's hidden states over a link, where nothing says how many bytes these are."""
    if scenario.transfers is None or scenario.catalog.models[scenario.target].shape is not None:
        return []
    return [
        f"catalog.proposers.{name}.hidden_bytes_per_token: missing, and the link needs it"
        f" ('{scenario.target}' has no shape to count it from)"
        for name in scenario.proposers
        if rule_of(scenario, name).hidden_vectors
        and rule_of(scenario, name).drafts == "pool"
        and scenario.catalog.proposers[name].hidden_bytes_per_token is None
    ]

"""Properties of plans of one fleet: what more of anything buys, and what changes nothing."""

import math

import fleet_strategies as strategies
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.optimise import optimise
from planner.options import cost_table
from planner.schema.scenario import Rack, Scenario, Stock
from planner.words import MAXIMIZED

RELATIVE = 1e-6
usual = settings(max_examples=12)
seeds = st.integers(0, 10**6)


def drawn(kind: str, seed: int, **fixed: object) -> Scenario:
    return strategies.seeded(kind, f"property {seed}", **fixed)


def optimum(scenario: Scenario) -> float:
    """The optimum, so that more is better; minus infinity if there is no plan."""
    found = optimise(scenario, {name: cost_table(scenario, name) for name in scenario.workloads}, polish=False)
    if found.status == "infeasible":
        return -math.inf
    assert found.status == "optimal"
    return found.value if scenario.objective in MAXIMIZED else -found.value


def no_worse(better: float, worse: float) -> bool:
    return better >= worse - RELATIVE * abs(worse) if math.isfinite(worse) else better >= worse


def same(a: float, b: float) -> bool:
    return a == b or a == pytest.approx(b, rel=RELATIVE, abs=1e-9)


def with_limits(scenario: Scenario, **changes: object) -> Scenario:
    return scenario.replace(limits=scenario.limits.replace(**changes))


def with_servers(scenario: Scenario, **changes: object) -> Scenario:
    return scenario.replace(servers=scenario.servers.replace(**changes))


# -------------------------------------------------------------------------------------------- more is never worse


@usual
@given(seed=seeds, kind=st.sampled_from(["pairs", "shares", "servers", "shared"]), more=st.integers(1, 4))
def test_more_devices_never_lower_the_optimum(seed, kind, more):
    scenario = drawn(kind, seed)
    assume(scenario.limits.inventory)
    base = optimum(scenario)
    for name, stock in scenario.limits.inventory.items():
        bought = stock.purchasable if stock.purchasable is None else stock.purchasable + more
        for larger in (Stock(owned=stock.owned, purchasable=bought), stock.replace(owned=stock.owned + more)):
            inventory = {**scenario.limits.inventory, name: larger}
            assert no_worse(optimum(with_limits(scenario, inventory=inventory)), base)


@usual
@given(seed=seeds, kind=st.sampled_from(["pairs", "servers", "shared"]), owned=st.integers(1, 5))
def test_owning_devices_of_a_type_without_a_limit_never_lowers_the_optimum(seed, kind, owned):
    scenario = drawn(kind, seed)
    free = [name for name in scenario.catalog.devices if name not in scenario.limits.inventory]
    # A budget of dollars alone says nothing once devices are owned.
    assume(free and not (scenario.objective == "throughput" and scenario.limits.power_budget_kw is None))
    inventory = {**scenario.limits.inventory, free[0]: Stock(owned=owned, purchasable=None)}
    assert no_worse(optimum(with_limits(scenario, inventory=inventory)), optimum(scenario))


@usual
@given(seed=seeds, objective=st.sampled_from(["throughput", "power", "cost", "energy", "interactivity"]))
def test_more_shares_are_never_worse(seed, objective):
    scenario = drawn("shares", seed, objective=objective)
    one, two, three = (optimum(scenario.replace(max_shares=number)) for number in (1, 2, 3))
    assert no_worse(two, one)
    assert no_worse(three, two)


@usual
@given(seed=seeds, kind=st.sampled_from(["pairs", "shares"]))
def test_shared_pools_are_never_worse_than_private_ones(seed, kind):
    # A private pool counts whole sequences and a shared one bytes: the shared one holds as much or more.
    scenario = drawn(kind, seed)
    assert no_worse(optimum(scenario.replace(shared_pools=True)), optimum(scenario))


@usual
@given(seed=seeds, factor=st.floats(1.05, 3.0))
def test_more_rack_power_and_another_rack_are_never_worse(seed, factor):
    scenario = drawn("servers", seed)
    racks = scenario.servers.racks
    assume(racks)
    base = optimum(scenario)
    for name, rack in racks.items():
        stronger = {**racks, name: rack.replace(power_limit_kw=rack.power_limit_kw * factor)}
        assert no_worse(optimum(with_servers(scenario, racks=stronger)), base)
    another = {**racks, "another": Rack(power_limit_kw=factor)}
    assert no_worse(optimum(with_servers(scenario, racks=another)), base)


@usual
@given(seed=seeds)
def test_what_servers_demand_never_makes_a_plan_better(seed):
    scenario = drawn("servers", seed)
    base, servers = optimum(scenario), scenario.servers
    for looser in (
        {"spare_replicas": max(0, servers.spare_replicas - 1)},
        {"min_batch_fill": servers.min_batch_fill / 2},
        {"by_node": False},
        {"racks": {}},
    ):
        assert no_worse(optimum(with_servers(scenario, **looser)), base)


# ----------------------------------------------------------------------------------------- what changes nothing


@usual
@given(seed=seeds, kind=st.sampled_from(["pairs", "servers", "shared"]), factor=st.sampled_from([1e-3, 0.37, 1e4]))
def test_scaling_all_mixes_changes_nothing(seed, kind, factor):
    scenario = drawn(kind, seed)
    workloads = {name: workload.replace(mix=workload.mix * factor) for name, workload in scenario.workloads.items()}
    assert same(optimum(scenario.replace(workloads=workloads)), optimum(scenario))


@usual
@given(seed=seeds, objective=st.sampled_from(["throughput", "power", "cost", "energy", "interactivity"]))
def test_two_equal_halves_of_a_workload_are_the_workload(seed, objective):
    # One budget, no stock: mixing two designs buys nothing that the better of them does not.
    scenario = drawn("pairs", seed, objective=objective, counts="fractional")
    budget = scenario.limits.power_budget_kw or 5.0
    scenario = scenario.replace(limits=type(scenario.limits)(power_budget_kw=budget))
    first, *rest = scenario.workloads.items()
    half = halved(first[1])
    halves = scenario.replace(workloads={"one-half": half, **dict(rest), "other-half": half})
    assume(not (objective == "cost" and len(scenario.catalog.devices) > 1))
    assert same(optimum(halves), optimum(scenario))


def halved(workload: object) -> object:
    demand = workload.limits.demand_rps
    limits = workload.limits.replace(demand_rps=None if demand is None else demand / 2)
    return workload.replace(mix=workload.mix / 2, limits=limits)


@usual
@given(seed=seeds, kind=st.sampled_from(["pairs", "shares", "servers", "shared"]))
def test_the_order_of_workloads_devices_and_racks_changes_nothing(seed, kind):
    scenario = drawn(kind, seed)
    catalog = scenario.catalog
    turned = scenario.replace(
        catalog=catalog.replace(devices=backwards(catalog.devices), models=backwards(catalog.models)),
        workloads=backwards(scenario.workloads),
        proposers=scenario.proposers[::-1],
        limits=scenario.limits.replace(inventory=backwards(scenario.limits.inventory)),
        servers=scenario.servers.replace(racks=backwards(scenario.servers.racks)),
    )
    assert same(optimum(turned), optimum(scenario))


def backwards(entries: dict) -> dict:
    return dict(reversed(entries.items()))


@usual
@given(seed=seeds, kind=st.sampled_from(["shares", "servers", "shared"]))
def test_owned_devices_without_a_price_on_money_are_like_bought_ones(seed, kind):
    scenario = drawn(kind, seed)
    inventory = scenario.limits.inventory
    assume(inventory and scenario.objective != "cost" and scenario.limits.cost_budget_usd_per_hour is None)
    bought = {
        name: stock if stock.purchasable is None else Stock(owned=0, purchasable=stock.owned + stock.purchasable)
        for name, stock in inventory.items()
    }
    assert same(optimum(with_limits(scenario, inventory=bought)), optimum(scenario))

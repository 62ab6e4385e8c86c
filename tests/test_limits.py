"""Limits: their values and units, what it means to meet or break one, what moving one buys."""

import oracles
import pytest
import strategies
from tiny import PLAIN_DESIGN, TINY, tiny

from planner.assemble import deploy, limit_values
from planner.limits import Limit, limits_of, value_of, with_bound, without
from planner.schema.scenario import Scenario
from planner.solve import solve
from planner.whatif import step_of

ALL = Scenario.model_validate(TINY)


def test_every_limit_is_listed_in_si_units():
    assert [(limit.name, limit.bound, limit.unit) for limit in limits_of(ALL)] == [
        ("power_budget", 10_000.0, "W"),
        ("cost_budget", 50.0, "USD/h"),
        ("inventory", 12.0, "device"),
        ("inventory", 6.0, "device"),
        ("interactivity_floor", 10.0, "tok/s"),
        ("ttft_ceiling", 0.5, "s"),
        ("demand", 2.0, "request/s"),
    ]
    assert limits_of(tiny()) == ()
    named = {limit.label(limits_of(ALL)) for limit in limits_of(ALL)}
    assert {"inventory[gpu]", "inventory[lpu]", "power_budget", "ttft_ceiling"} <= named


@pytest.mark.parametrize("limit", limits_of(ALL), ids=lambda limit: f"{limit.name}-{limit.device}")
def test_a_limit_moves_alone(limit):
    moved = with_bound(ALL, limit, limit.bound * 1.5)
    after = {(one.name, one.device): one.bound for one in limits_of(moved)}
    before = {(one.name, one.device): one.bound for one in limits_of(ALL)}
    assert after == pytest.approx(before | {(limit.name, limit.device): limit.bound * 1.5})
    dropped = with_bound(ALL, limit, None)
    assert {(one.name, one.device) for one in limits_of(dropped)} == set(before) - {(limit.name, limit.device)}
    assert without(ALL, [limit]) == dropped
    assert with_bound(ALL, limit, limit.bound) == ALL


def test_without_drops_all():
    assert limits_of(without(ALL, limits_of(ALL))) == ()


@pytest.mark.parametrize(
    ("name", "value", "slack", "violated", "met"),
    [
        ("power_budget", 99.0, 1.0, False, False),
        ("power_budget", 100.0, 0.0, False, True),
        ("power_budget", 100.0 + 5e-5, -5e-5, False, True),
        ("power_budget", 100.001, -0.001, True, True),
        ("demand", 101.0, 1.0, False, False),
        ("demand", 100.0, 0.0, False, True),
        ("demand", 100.0 - 5e-5, -5e-5, False, True),
        ("demand", 99.999, -0.001, True, True),
    ],
)
def test_slack_and_violation(name, value, slack, violated, met):
    limit = Limit(name, 100.0)
    assert limit.is_floor == (name == "demand")
    assert limit.slack(value) == pytest.approx(slack)
    assert (limit.is_violated(value), limit.is_met_exactly(value)) == (violated, met)


def test_values_of_a_deployment():
    deployed = deploy(ALL, [(PLAIN_DESIGN, 2.0)])
    values = {(limit.name, limit.device): value for limit, value in limit_values(deployed)}
    assert values == pytest.approx(
        {
            ("power_budget", None): 1.2 * 5 * 500,
            ("cost_budget", None): 10.0,
            ("inventory", "gpu"): 5.0,
            ("inventory", "lpu"): 0.0,
            ("interactivity_floor", None): 1 / 0.030,
            ("ttft_ceiling", None): 0.1,
            ("demand", None): 2.0,
        }
    )


def test_a_value_that_is_not_known_is_null():
    limit = Limit("cost_budget", 5.0)
    scenario = strategies.seeded("unknown price", objective="energy")
    bare = {name: device.replace(price=None) for name, device in scenario.catalog.devices.items()}
    scenario = scenario.replace(catalog=scenario.catalog.replace(devices=bare))
    point = next(oracles.points(scenario))
    deployed = deploy(scenario, [(strategies.design_of(point), 1.0)])
    assert value_of(limit, deployed) is None


# ------------------------------------------------------------------------------------- what moving one buys


@pytest.mark.parametrize(
    ("limit", "step"),
    [
        (Limit("power_budget", 5000.0), 1000.0),
        (Limit("cost_budget", 50.0), 1.0),
        (Limit("inventory", 3.0, device="gpu"), 1.0),
        (Limit("interactivity_floor", 50.0), -0.5),
        (Limit("demand", 30.0), -0.3),
        (Limit("ttft_ceiling", 0.2), 0.002),
    ],
)
def test_a_limit_is_relaxed_by_its_step(limit, step):
    assert step_of(tiny(), limit) == pytest.approx(step)


def moved_best(scenario, limit, bound):
    """The loops' optimum with one limit moved or dropped; infinite where nothing bounds the throughput any more."""
    other = with_bound(scenario, limit, bound)
    if scenario.objective == "throughput" and oracles.question_rate(scenario) is None:
        return float("inf") if oracles.question_rate(other) is not None else oracles.best(other).value
    return oracles.best(other).value


def assert_rows(scenario, plan):
    tolerance = 2e-6 * abs(plan.objective.value)
    rows = [row for row in plan.limits if row.name != "memory"]
    limits = limits_of(scenario)
    assert [(row.name, row.bound, row.device) for row in rows] == [(one.name, one.bound, one.device) for one in limits]
    for limit, row in zip(limits, rows, strict=True):
        step = step_of(scenario, limit)
        change = moved_best(scenario, limit, limit.bound + step) - plan.objective.value
        assert row.marginal_delta == pytest.approx(step)
        assert row.marginal_value == pytest.approx(change / step, abs=tolerance / abs(step))
        assert row.slack == pytest.approx(limit.slack(row.value))
        assert row.binding == binds(scenario, limit, row, change, plan.objective.value, tolerance), limit


def binds(scenario, limit, row, change, reached, tolerance):
    """Nothing is left of the limit, or moving it helps, or dropping it does."""
    if limit.is_met_exactly(row.value) or abs(change) > tolerance:
        return True
    return abs(moved_best(scenario, limit, None) - reached) > tolerance


@pytest.mark.parametrize("block", range(3))
@pytest.mark.parametrize("objective", ["throughput", "power", "cost", "energy", "interactivity"])
def test_marginal_values_are_those_of_solving_again(objective, block):
    for counts in ("integer", "fractional"):
        fixed = {"objective": objective, "counts": counts, "max_draft_length": 3}
        scenario = strategies.seeded(f"marginal {block} {objective} {counts}", **fixed)
        plan = solve(scenario)
        if plan.status == "optimal":
            assert_rows(scenario, plan)


def test_a_budget_that_is_used_up_has_a_price():
    # Plain decode on the forward basis: 1.2 · 240 J per request of 101 tokens, so a kW buys 350.7 tokens/s.
    scenario = tiny(fleet={"power_budget_kw": 6.0}, proposers=(), counts="fractional", power_basis="forward")
    (row,) = [row for row in solve(scenario).limits if row.name == "power_budget"]
    assert (row.binding, row.marginal_delta) == (True, 1000.0)
    assert row.slack == pytest.approx(0.0, abs=1e-9)
    assert row.marginal_value == pytest.approx(101 / 288)


def test_a_budget_with_something_left_can_bind():
    # One prefills, three verify, 8 USD/h; 9.50 USD/h buy no fifth device, nor do 10 before the next step of 10.
    scenario = tiny(fleet={"cost_budget_usd_per_hour": 8.5}, proposers=())
    (row,) = [row for row in solve(scenario).limits if row.name == "cost_budget"]
    assert row.slack == pytest.approx(0.5)
    assert row.marginal_value == 0.0
    assert row.binding is True


def test_a_limit_with_room_does_not_bind():
    scenario = tiny({"ttft_ceiling_ms": 300.0, "interactivity_floor_tps": 5.0}, {"inventory": {"gpu": 4}}, proposers=())
    rows = {row.name: row for row in solve(scenario).limits}
    assert rows["inventory"].binding is True
    for name in ("ttft_ceiling", "interactivity_floor"):
        assert (rows[name].binding, rows[name].marginal_value) == (False, 0.0)


def test_the_last_bound_of_the_throughput_binds_though_something_is_left():
    # One replica verifies at 100 %: one request/s; 0.50 USD/h are left, and another USD/h buys no third gpu.
    scenario = tiny(fleet={"cost_budget_usd_per_hour": 4.5}, proposers=(), max_utilization=1.0)
    chat = scenario.workloads["chat"].replace(osl_tokens=67 + 1)
    gpu = scenario.catalog.devices["gpu"]
    verify = {"b2": gpu.profiles["target"]["target_verify"]["b2"].replace(latency_ms={"constant": 2000 / 67})}
    profiles = {**gpu.profiles, "target": {**gpu.profiles["target"], "target_verify": verify}}
    catalog = scenario.catalog.replace(devices={"gpu": gpu.replace(profiles=profiles)})
    plan = solve(scenario.replace(workloads={"chat": chat}, catalog=catalog))
    assert plan.totals.request_rate_rps == pytest.approx(1.0)
    (row,) = [row for row in plan.limits if row.name == "cost_budget"]
    assert (row.marginal_value, row.binding) == (0.0, True)

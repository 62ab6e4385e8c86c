"""Why no plan exists: the set of limits is smallest, and every nearest value is one that the loops find too."""

import math
import random
from itertools import combinations

import oracles
import pytest
import strategies
from tiny import tiny, with_device

from planner import whatif
from planner.limits import limits_of, with_bound, without
from planner.options import cost_table
from planner.schema.scenario import FleetLimits, WorkloadLimits
from planner.solve import solve
from planner.whatif import is_feasible
from planner.words import COUNTS, OBJECTIVES

SLACK = 1e-6
SHORT = 1e-4
AIMS = {
    "power_budget": "power",
    "cost_budget": "cost",
    "inventory": "devices",
    "interactivity_floor": "interactivity",
    "ttft_ceiling": "ttft",
    "demand": "throughput",
}


def contradictory(seed: str, **fixed):
    """A scenario whose limits are each within reach, or nearly, but seldom together."""
    rng = random.Random(seed)
    while True:
        base = strategies.unlimited(rng, **fixed)
        points = [one for one in oracles.points(base) if one.fits]
        if len(points) < 4:
            continue
        scenario = _between(rng, base, points)
        if not oracles.best(scenario).feasible:
            return scenario


def _between(rng, base, points):
    """Limits that different designs meet: a fast one, a prompt one, a cheap one at the rate of a third."""
    fastest = max(one.interactivity_tps for one in points)
    promptest = min(one.ttft_s for one in points)
    some = rng.choice(points)
    rate = rng.uniform(0.5, 4) / max(some.need(phase) for phase in some.places if phase.startswith("target"))
    if base.objective in ("energy", "interactivity") and rng.random() < 0.3:
        rate = None
    asked = rate or 1.0
    counted = [(one, oracles.counts(base, one, asked)) for one in points]
    workload = {"demand_rps": rate} if rate else {}
    if rng.random() < 0.7:
        workload["interactivity_floor_tps"] = fastest * rng.uniform(0.6, 1.01)
    if rng.random() < 0.6:
        workload["ttft_ceiling_ms"] = promptest * 1e3 * rng.uniform(0.99, 1.5)
    fleet = {}
    if rng.random() < 0.6 or base.objective == "throughput":
        least = min(oracles.watts(base, one, asked, n) for one, n in counted)
        fleet["power_budget_kw"] = least * rng.uniform(0.9, 1.5) / 1e3
    if rng.random() < 0.4:
        least = min(oracles.dollars(base, one, n) for one, n in counted)
        fleet["cost_budget_usd_per_hour"] = least * rng.uniform(0.9, 1.5)
    if rng.random() < 0.4:
        fleet["inventory"] = {name: rng.randint(0, 6) for name in base.catalog.devices if rng.random() < 0.7}
    asking = base.workloads["w"].replace(limits=WorkloadLimits(**workload))
    return base.replace(workloads={"w": asking}, limits=FleetLimits(**fleet))


# ------------------------------------------------------------------------------------------ the loops' answers


def only(scenario, keep):
    return without(scenario, [limit for limit in limits_of(scenario) if limit not in keep])


def rate_of(scenario, keep):
    """The rate at which some limits are asked together: a demand that is dropped leaves almost nothing."""
    demands = [limit for limit in limits_of(scenario) if limit.name == "demand"]
    if demands:
        return demands[0].bound if demands[0] in keep else oracles.ALMOST_NO_RATE_RPS
    return oracles.question_rate(scenario) or oracles.ALMOST_NO_RATE_RPS


def meet_together(scenario, keep):
    return oracles.feasible(only(scenario, keep), rate_of(scenario, keep))


def nearest(scenario, limit, held):
    aim = AIMS[limit.name]
    rate = None if limit.name == "demand" else rate_of(scenario, held)
    value = oracles.best_for(only(scenario, held), aim, rate, limit.device).value
    if limit.name == "inventory" and value is not None:
        return float(math.ceil(value * (1 - oracles.ROUNDING)))
    return value / scenario.workloads["w"].osl_tokens if limit.name == "demand" and value is not None else value


def limit_of(scenario, row):
    return next(one for one in limits_of(scenario) if (one.name, one.device) == (row.limit, row.device))


def held_of(scenario, row):
    limits = limits_of(scenario)
    held = [limit for limit in limits if limit.label(limits) in row.holding]
    assert len(held) == len(row.holding)
    assert all(row.holding[limit.label(limits)] == limit.bound for limit in held)
    return held


def cases():
    return [(objective, counts, seed) for objective in OBJECTIVES for counts in COUNTS for seed in range(3)]


@pytest.mark.parametrize(("objective", "counts", "seed"), cases())
def test_the_conflict_is_smallest_and_its_nearest_values_are_right(objective, counts, seed):
    scenario = contradictory(f"conflict {objective} {counts} {seed}", objective=objective, counts=counts)
    plan = solve(scenario)
    assert plan.status == "infeasible"
    assert (plan.deployments, plan.pools, plan.baselines, plan.objective.value) == ((), (), (), None)
    rows = plan.infeasibility
    conflict = list(dict.fromkeys(limit_of(scenario, row) for row in rows))
    assert_smallest(scenario, conflict)
    for row in rows:
        assert_nearest(scenario, row, conflict)
    assert_rows(rows, conflict)


def assert_smallest(scenario, conflict):
    assert conflict
    assert not meet_together(scenario, conflict)
    for dropped in conflict:
        assert meet_together(scenario, [limit for limit in conflict if limit != dropped]), dropped
    assert len(conflict) == len(smallest(scenario))


def assert_nearest(scenario, row, conflict):
    limit, held = limit_of(scenario, row), held_of(scenario, row)
    assert (row.asked, row.unit) == (limit.bound, limit.unit)
    others = [other for other in limits_of(scenario) if other != limit]
    in_conflict = [other for other in conflict if other != limit]
    assert held in ([], others, in_conflict)
    expected = nearest(scenario, limit, held)
    assert row.achievable == (None if expected is None else pytest.approx(expected, rel=1e-6, abs=1e-9))
    if held == in_conflict and held != others:
        assert nearest(scenario, limit, others) is None
    if expected is None:
        return
    assert mended(scenario, limit, held, expected, SLACK)
    assert not mended(scenario, limit, held, expected, -SHORT)


def moved(scenario, limit, value, slack):
    """The scenario with a limit moved to a value, and a relative slack further; an inventory is whole."""
    bound = value * (1 - slack if limit.is_floor else 1 + slack)
    if limit.name == "inventory":
        bound = value - (slack < 0)
    return with_bound(scenario, limit, bound)


def mended(scenario, limit, held, value, slack):
    """Whether moving the limit to the value mends the conflict with what is held."""
    if limit.name == "inventory" and value == 0.0 and slack < 0:
        return False
    other = moved(scenario, limit, value, slack)
    names = {(one.name, one.device) for one in (*held, limit)}
    return meet_together(other, [one for one in limits_of(other) if (one.name, one.device) in names])


def assert_rows(rows, conflict):
    """One row per limit of the conflict; where several conflict, another per promise that says what nothing exceeds."""
    promises = [limit for limit in conflict if limit.name in ("interactivity_floor", "ttft_ceiling")]
    extra = promises if len(conflict) > 1 else []
    assert [row.limit for row in rows] == [limit.name for limit in (*conflict, *extra)]
    assert all(row.holding == {} for row in rows[len(conflict) :])


@pytest.mark.parametrize("seed", range(6))
def test_a_plan_exists_once_a_limit_is_moved_to_what_is_achievable(seed):
    scenario = contradictory(f"moved {seed}", counts=COUNTS[seed % 2])
    for row in solve(scenario).infeasibility:
        limit, held = limit_of(scenario, row), held_of(scenario, row)
        if row.achievable is None or len(held) < len(limits_of(scenario)) - 1:
            continue
        assert solve(moved(scenario, limit, row.achievable, SLACK)).status == "optimal"


def smallest(scenario):
    """A smallest set of limits that no design meets together, by trying all."""
    limits = limits_of(scenario)
    sets = (some for size in range(len(limits) + 1) for some in combinations(limits, size))
    return next(some for some in sets if not meet_together(scenario, some))


def test_the_cases_are_worth_their_name():
    sizes = []
    for objective, counts, seed in cases():
        scenario = contradictory(f"conflict {objective} {counts} {seed}", objective=objective, counts=counts)
        sizes.append(len(smallest(scenario)))
    assert sum(size == 1 for size in sizes) < len(sizes) * 0.6
    assert sum(size >= 3 for size in sizes) >= 5


# ------------------------------------------------------------------------------------------------------ by hand


def test_a_budget_too_small_for_the_demand():
    # Plain decode, forward basis: 1.2 · 240 J a request; 20 requests/s need 5.76 kW, 5 kW serve 17.36.
    scenario = tiny({"demand_rps": 20.0}, {"power_budget_kw": 5.0}, proposers=(), power_basis="forward")
    power, demand = solve(scenario).infeasibility
    assert (power.limit, power.asked, power.achievable) == ("power_budget", 5000.0, pytest.approx(5760.0))
    assert power.holding == {"demand": 20.0}
    assert (demand.limit, demand.asked, demand.achievable) == ("demand", 20.0, pytest.approx(5000 / 288))
    assert demand.holding == {"power_budget": 5000.0}


def test_a_floor_that_nothing_reaches():
    (row,) = solve(tiny({"interactivity_floor_tps": 50.0, "demand_rps": 1.0}, objective="power")).infeasibility
    assert (row.limit, row.achievable) == ("interactivity_floor", pytest.approx(1.6 / 0.044))


def test_a_question_without_a_demand_is_explained_at_its_rate():
    scenario = tiny(fleet={"power_budget_kw": 0.2}, objective="energy", power_basis="forward", proposers=())
    (row,) = solve(scenario).infeasibility
    assert (row.limit, row.achievable, row.holding) == ("power_budget", pytest.approx(288.0), {})


def test_limits_that_are_held_are_named_with_their_device():
    # One gpu cannot run both phases. With no lpu nothing drafts, and plain decode misses the floor.
    scenario = tiny({"interactivity_floor_tps": 35.0}, {"inventory": {"gpu": 9, "lpu": 0}}, counts="integer")
    rows = solve(scenario).infeasibility
    assert [row.limit for row in rows] == ["inventory", "interactivity_floor", "interactivity_floor"]
    assert (rows[0].device, rows[0].achievable) == ("lpu", 1.0)
    assert rows[0].holding == {"inventory[gpu]": 9.0, "interactivity_floor": 35.0}
    assert rows[1].holding == {"inventory[gpu]": 9.0, "inventory[lpu]": 0.0}
    assert rows[1].achievable == pytest.approx(1 / 0.030)
    assert (rows[2].achievable, rows[2].holding) == (pytest.approx(1.6 / 0.044), {})


@pytest.mark.parametrize(("memory_gb", "held"), [(7.0, 0.0), (8.0, 0.0), (11.9, 1.0)])
def test_a_batch_that_does_not_fit_is_the_reason(memory_gb, held):
    scenario = with_device(tiny({"demand_rps": 1.0}, objective="power"), "gpu", memory_gb=memory_gb)
    (row,) = [row for row in solve(scenario).infeasibility if row.asked == 2.0]
    assert (row.limit, row.device, row.achievable, row.unit) == ("memory", "gpu", held, "sequence")


def test_memory_that_does_not_rule_out_every_plan_is_no_reason():
    roomy = with_device(tiny({"demand_rps": 1.0}, objective="power"), "lpu", memory_gb=0.5)
    assert solve(roomy).status == "optimal"
    late = with_device(tiny({"ttft_ceiling_ms": 1.0}, objective="energy"), "lpu", memory_gb=0.5)
    assert [row.limit for row in solve(late).infeasibility] == ["ttft_ceiling"]


def test_many_limits_are_explained_by_few_questions(monkeypatch):
    limits, fleet = {"interactivity_floor_tps": 35.0, "demand_rps": 2.0}, {"cost_budget_usd_per_hour": 15.0}
    base = tiny(limits, fleet, objective="power")
    spare = {f"spare{n}": base.catalog.devices["lpu"].replace(profiles={}) for n in range(20)}
    catalog = base.catalog.replace(devices={**base.catalog.devices, **spare})
    inventory = {"gpu": 99, "lpu": 0, **dict.fromkeys(spare, 0)}
    scenario = base.replace(catalog=catalog, limits=base.limits.replace(inventory=inventory))
    asked = []

    def counting(*arguments):
        asked.append(arguments)
        return is_feasible(*arguments)

    monkeypatch.setattr(whatif, "is_feasible", counting)
    conflict = whatif.smallest_conflict(scenario, {"chat": cost_table(scenario, "chat")})
    assert [(limit.name, limit.device) for limit in conflict] == [("inventory", "lpu"), ("interactivity_floor", None)]
    assert len(asked) < 60


def test_a_demand_is_explained_though_a_device_without_limit_exists():
    """A second gpu, without limit, misses the floor only by its link: to the bounds it looks as if it could serve."""
    floor, asked = 1.6 / 0.0425, 100.0
    scenario = tiny(
        {"interactivity_floor_tps": floor, "demand_rps": asked}, {"inventory": {"gpu": 12}}, objective="cost"
    )
    gpu = scenario.catalog.devices["gpu"]
    decode = gpu.profiles["small"]["draft_decode"]["b2"].replace(latency_ms={"per_token": 2.0})
    near = {**gpu.profiles, "small": {**gpu.profiles["small"], "draft_decode": {"b2": decode}}}
    devices = {"big": gpu.replace(profiles={"target": gpu.profiles["target"]}), "gpu": gpu.replace(profiles=near)}
    catalog = scenario.catalog.replace(devices={**scenario.catalog.devices, **devices})
    rows = solve(scenario.replace(catalog=catalog, proposers=("drafter",))).infeasibility
    assert [row.limit for row in rows[:3]] == ["inventory", "interactivity_floor", "demand"]
    assert rows[2].holding == {"inventory": 12.0, "interactivity_floor": floor}
    # Ten of twelve verify, 20 ms a request and step, at 80 %; one prefills, one drafts, the lpu prefills the draft.
    assert rows[2].achievable == pytest.approx(10 * 0.8 / (101 / 1.6 * 0.020))

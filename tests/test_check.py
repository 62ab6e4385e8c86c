"""Every corruption of a plan is caught, and what catches it imports no solver."""

import json
import subprocess
import sys

import pytest
import strategies
from tiny import tiny, with_device

from planner.assemble import NO_TOTALS
from planner.check import check
from planner.schema.documents import Plan
from planner.schema.scenario import Scenario
from planner.solve import solve

# Marginal values and baselines need a solver to recompute; provenance is history. A bound is checked against its gap.
NOT_RECOMPUTED = {"marginal_value", "marginal_delta", "baselines", "provenance", "infeasibility", "schema_version"}
# Plain decode gives 33 tokens/s, drafting on the lpu 36.
SCENARIO = tiny(
    {"interactivity_floor_tps": 35.0, "ttft_ceiling_ms": 500.0, "demand_rps": 2.0},
    {"power_budget_kw": 10.0, "cost_budget_usd_per_hour": 50.0, "inventory": {"gpu": 12, "lpu": 20}},
    power_basis="average",
)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(SCENARIO)


def leaves(node, path=()):
    """Paths of all values of a document that a check can recompute."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key not in NOT_RECOMPUTED:
                yield from leaves(value, (*path, key))
    elif isinstance(node, (list, tuple)):
        for index, value in enumerate(node):
            yield from leaves(value, (*path, index))
    else:
        yield path, node


def changed(plan: Plan, path, value) -> Plan:
    """The plan with one leaf replaced, validated like a document that is read."""
    document = json.loads(plan.model_dump_json())
    node = document
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return Plan.model_validate_json(json.dumps(document))


def test_a_plan_holds(plan):
    assert plan.status == "optimal"
    assert check(plan, SCENARIO) == []
    (deployment,) = plan.deployments
    assert deployment.draft_length == 1  # so that every phase has a placement, a share and a pool
    assert len({place.device for place in deployment.placements.values()}) == 2


def test_a_plan_that_was_written_and_read_holds(plan):
    assert check(Plan.model_validate_json(plan.model_dump_json()), SCENARIO) == []


def test_every_number_is_recomputed(plan):
    numbers = [(path, value) for path, value in leaves(plan.model_dump()) if type(value) in (int, float)]
    assert len(numbers) > 90
    for path, value in numbers:
        worse = value + 1 if isinstance(value, int) else value * (1 + 1e-4) + 1e-4
        assert check(changed(plan, path, worse), SCENARIO), f"{path}: {value} → {worse}"


def test_every_number_that_is_made_smaller_is_caught(plan):
    for path, value in leaves(plan.model_dump()):
        if isinstance(value, float) and abs(value) > 1e-6:
            assert check(changed(plan, path, value * 0.99), SCENARIO), path


def test_every_word_is_recomputed(plan):
    words = [
        (path, value)
        for path, value in leaves(plan.model_dump())
        if isinstance(value, str) and path[0] not in ("assumptions", "warnings")
    ]
    others = {
        "device": "nowhere",
        "status": "infeasible",
        "phase": "target_prefill",
        "proposer": "head",
        "proposer_kind": "eagle3",
        "layout": "aggregated",
        "basis": "forward",
    }
    assert len(words) > 30
    for path, value in words:
        field = path[-1]
        if field == "name" and path[0] in ("limits", "objective"):
            other = {"limits": "memory", "objective": "energy"}[path[0]]
        else:
            other = others.get(field, "something")
        if other == value:
            other = {"target_prefill": "target_verify", "memory": "demand"}[value]
        assert check(changed(plan, path, other), SCENARIO), f"{path}: {value} → {other}"


def test_every_value_that_is_left_out_is_missed(plan):
    document = json.loads(plan.model_dump_json())
    for path, value in leaves(document):
        # Whether a limit with something left binds is null where it was not solved again.
        if value is None or path[0] in ("assumptions", "warnings") or path[-1] == "binding":
            continue
        try:
            without = changed(plan, path, None)
        except ValueError:  # the schema itself refuses null there
            continue
        assert check(without, SCENARIO), path


@pytest.mark.parametrize("group", ["deployments", "pools", "fleet", "limits"])
def test_a_missing_or_doubled_entry_is_caught(plan, group):
    entries = getattr(plan, group)
    assert entries
    assert check(plan.replace(**{group: entries[:-1]}), SCENARIO)
    assert check(plan.replace(**{group: (*entries, entries[-1])}), SCENARIO)


def test_a_limit_that_is_used_up_binds():
    scenario = tiny(fleet={"power_budget_kw": 6.0}, proposers=(), counts="fractional")
    used_up = solve(scenario)
    assert used_up.limits[0].binding is True
    assert check(changed(used_up, ("limits", 0, "binding"), False), scenario)
    assert check(changed(used_up, ("limits", 0, "binding"), None), scenario)


def test_whether_memory_binds_is_recomputed(plan):
    rows = [(index, row) for index, row in enumerate(plan.limits) if row.name == "memory"]
    assert len(rows) == 2
    for index, row in rows:
        assert check(changed(plan, ("limits", index, "binding"), not row.binding), SCENARIO)


# --------------------------------------------------------------- a plan consistent in itself, but not with its scenario


def problems(plan: Plan, scenario: Scenario) -> str:
    return "; ".join(check(plan, scenario))


@pytest.mark.parametrize(
    ("limits", "fleet", "expected"),
    [
        ({"interactivity_floor_tps": 90.0}, {}, "interactivity_floor: "),
        ({"ttft_ceiling_ms": 50.0}, {}, "ttft_ceiling: "),
        ({"demand_rps": 1000.0}, {}, "demand: "),
        ({}, {"power_budget_kw": 0.1}, "power_budget: "),
        ({}, {"cost_budget_usd_per_hour": 1.0}, "cost_budget: "),
        ({}, {"inventory": {"gpu": 1}}, "inventory: "),
    ],
)
def test_a_broken_limit_is_named(plan, limits, fleet, expected):
    other = tiny(limits, fleet, power_basis="average")
    broken = problems(plan, other)
    assert expected in broken
    assert "breaks the bound" in broken


def test_a_limit_whose_value_is_not_known_is_named(plan):
    assert "cost_budget: the plan has no value for it" in problems(plan, with_device(SCENARIO, "gpu", price=None))


def test_a_batch_that_does_not_fit_is_named(plan):
    found = problems(plan, with_device(SCENARIO, "gpu", memory_gb=11.0))
    assert found == "memory: target_verify on gpu:tp1:b2 holds 1 sequences"


def test_a_draft_beyond_the_caps_is_named(plan):
    assert "is not on offer" in problems(plan, SCENARIO.replace(max_draft_length=0))
    assert "is not on offer" in problems(plan, SCENARIO.replace(proposers=()))


def test_an_option_outside_the_places_is_named(plan):
    draft = plan.deployments[0].placements["draft_decode"]
    other = {"gpu": "lpu", "lpu": "gpu"}[draft.device]
    assert "a deployment cannot run" in problems(plan, SCENARIO.replace(places={"draft_decode": other}))


def test_a_cost_that_is_not_known_is_named(plan):
    gpu = SCENARIO.catalog.devices["gpu"]
    verify = gpu.profiles["target"]["target_verify"]["b2"]
    short = {"b2": verify.replace(latency_ms={"table": {1: 30.0}})}
    profiles = {**gpu.profiles, "target": {**gpu.profiles["target"], "target_verify": short}}
    found = problems(plan, with_device(SCENARIO, "gpu", profiles=profiles))
    assert found == "target_verify on gpu:tp1:b2 has no known cost"


def test_counts_must_be_whole_and_the_least(plan):
    pool = plan.pools[1]
    fewer = changed(plan, ("pools", 1, "replicas"), pool.replicas - 1)
    assert f"{pool.replicas - 1:g} replicas, " in problems(fewer, SCENARIO)
    more = changed(plan, ("pools", 1, "replicas"), pool.replicas + 1)
    assert "are not the least" in problems(more, SCENARIO)
    part = changed(plan, ("pools", 1, "replicas"), pool.replicas + 0.5)
    assert "are not whole" in problems(part, SCENARIO)
    other = changed(plan, ("pools", 1, "devices"), pool.devices + 1)
    assert "devices are not replicas × tensor_parallel" in problems(other, SCENARIO)


def test_a_rate_that_was_not_asked_for_is_named():
    asked, other = tiny({"demand_rps": 2.0}, objective="energy"), tiny({"demand_rps": 1.9}, objective="energy")
    assert "2 requests/s, 1.9 are asked for" in problems(solve(asked), other)


def test_an_optimum_must_be_proven(plan):
    value = plan.objective.value
    beaten = plan.objective.replace(best_bound=value * 0.9, gap=0.1)
    assert "is beaten by the value" in problems(plan.replace(objective=beaten), SCENARIO)
    open_gap = plan.objective.replace(best_bound=value * 1.1, gap=0.1)
    assert "optimal with a gap of 0.1" in problems(plan.replace(objective=open_gap), SCENARIO)
    assert check(plan.replace(objective=open_gap, status="feasible"), SCENARIO) == []


def test_another_scenarios_plan_is_no_plan(plan):
    workload = SCENARIO.workloads["chat"]
    other = SCENARIO.replace(workloads={"talk": workload})
    assert "deployments serve chat; they must serve talk in this order" in problems(plan, other)
    assert "the plan is for tiny, not for other" in problems(plan, SCENARIO.replace(name="other"))


# ------------------------------------------------------------------------------------------------- no plan at all


def test_an_infeasible_answer_holds_nothing(plan):
    scenario = tiny({"interactivity_floor_tps": 1000.0}, {"power_budget_kw": 10.0})
    none = solve(scenario)
    assert none.status == "infeasible"
    assert check(none, scenario) == []
    assert check(none.replace(status="optimal"), scenario) == ["the plan has no deployment"]
    for group in ("pools", "fleet", "limits", "baselines", "totals"):
        assert check(none.replace(**{group: getattr(plan, group)}), scenario), group
    assert check(none.replace(objective=plan.objective), scenario)
    assert none.totals == NO_TOTALS


@pytest.mark.parametrize("seed", range(12))
def test_random_plans_hold_and_their_corruptions_do_not(seed):
    scenario = strategies.seeded(f"corrupt {seed}", tight=0.3)
    plan = solve(scenario)
    assert check(plan, scenario) == []
    numbers = [(path, value) for path, value in leaves(plan.model_dump()) if isinstance(value, float)]
    for path, value in numbers[:: 1 + len(numbers) // 12]:
        assert check(changed(plan, path, value * (1 + 1e-4) + 1e-4), scenario), path


def test_the_check_imports_no_solver():
    code = "import sys, planner.check; print(sorted({'pulp', 'highspy', 'optuna'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

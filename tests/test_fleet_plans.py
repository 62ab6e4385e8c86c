"""Plans of one fleet: bounds by columns, the whole recipe on seeded random questions, and cases made by hand.

The optimum itself is compared with loops over sets of designs and counts in ``test_reduction``.
"""

from collections import Counter

import fleet_oracles as oracles
import fleet_strategies as strategies
import pytest
from recomputed import RELATIVE, assert_optimal, near, plan_of, tables_of

from planner.check import check
from planner.errors import InputError
from planner.milp import large, relaxation
from planner.optimise import optimise
from planner.options import model_of
from planner.question import question_of
from planner.schema.scenario import Scenario
from planner.solve import solve
from planner.words import COUNTS

SEEDS = {"pairs": 100, "shares": 90, "mixed": 60, "servers": 100, "shared": 80}
EVERY_SOLVED = 16


@pytest.mark.parametrize("kind", ["pairs", "servers", "shared"])
def test_columns_bound_the_optimum_and_keep_the_designs_that_have_it(kind):
    for seed in range(SEEDS[kind]):
        scenario = strategies.seeded(kind, str(seed), max_shares=1)
        question, best = question_of(scenario), oracles.best(scenario)
        if best is None or not large.is_bounded_by_columns(question):
            continue
        if scenario.objective == "throughput" and question.rates is not None:
            continue  # the demand alone decides
        problem = relaxation.relaxed(scenario, tables_of(scenario), question)
        found = relaxation.solve_relaxation(problem, time_limit_s=60.0)
        # What is minimized for throughput is minus the scale of a mix whose shares sum to 1.
        value = -sum(best.rates) if question.rates is None else best.value
        worse = value + RELATIVE * abs(value)
        assert found.bound <= worse
        tables = relaxation.tables_within(problem, found.prices, worse)
        assert all(strategies.is_offered(tables[one.workload], one) for one in best.designs)


def assert_plan(kind: str, seed: str) -> None:
    # solve() raises if a plan does not pass its own check.
    scenario = strategies.seeded(kind, seed)
    plan, best = solve(scenario), oracles.best(scenario)
    assert plan.status == ("infeasible" if best is None else "optimal")
    assert plan.objective.value == (None if best is None else near(best.value))


@pytest.mark.parametrize("kind", SEEDS)
def test_a_whole_plan_has_the_optimum_of_loops(kind):
    for seed in range(0, SEEDS[kind], EVERY_SOLVED):
        assert_plan(kind, f"plan {seed}")


# ----------------------------------------------------------------------------------------- cases made by hand

CATALOG = {
    "schema_version": 1,
    "devices": {
        "big": {
            "memory_gb": 100.0,
            "idle_power_w": 100.0,
            "provisioned_power_w": 1000.0,
            "price": {"usd_per_hour": 4.0, "basis": "by hand", "date": "2026-01-01"},
            "profiles": {
                "target": {
                    "target_prefill": {"b1": {"latency_ms": 100, "energy_mj": 40_000}},
                    "target_verify": {"b1": {"latency_ms": 20, "energy_mj": 1_000}},
                }
            },
        },
        "small": {
            "memory_gb": 40.0,
            "idle_power_w": 50.0,
            "provisioned_power_w": 400.0,
            "price": {"usd_per_hour": 1.0, "basis": "by hand", "date": "2026-01-01"},
            "profiles": {
                model: {
                    "draft_prefill": {"b1": {"latency_ms": 10, "energy_mj": 400}},
                    "draft_decode": {"b2": {"latency_ms": 2, "energy_mj": 20}},
                }
                for model in ("light", "heavy")
            },
        },
    },
    # A sequence of 1101 tokens is 1 GB of the target, 5 GB of the heavy drafter and nothing of the light one.
    "models": {
        "target": {"weights_gb": 70.0, "kv_bytes_per_token": 1e9 / 1101},
        "light": {"weights_gb": 15.0, "kv_bytes_per_token": 0.0},
        "heavy": {"weights_gb": 12.0, "kv_bytes_per_token": 5e9 / 1101},
    },
    "proposers": {
        model: {
            "kind": "draft_model",
            "model": model,
            "acceptance": {"target": {"general": {"kind": "table", "tokens_per_step": {1: E}}}},
        }
        for model, E in (("light", 1.1), ("heavy", 1.9))
    },
}


def by_hand(fleet: dict, demand_rps: float | None = None, **fields: object) -> Scenario:
    """One workload with 101 steps of 20 ms: 2 replicas at work per request/s, and 0.1 in the prefill."""
    workload = {"isl_tokens": 1000, "osl_tokens": 101, "limits": {"demand_rps": demand_rps}}
    return Scenario.model_validate(
        {
            "schema_version": 1,
            "name": "by-hand",
            "catalog": CATALOG,
            "target": "target",
            "workloads": {"chat": workload},
            "limits": fleet,
            **fields,
        }
    )


def assert_answers(scenario: Scenario, value: float | None) -> None:
    """The loops and planner both give the value that a hand has computed."""
    best, tables = oracles.best(scenario), tables_of(scenario)
    assert (None if best is None else best.value) == (None if value is None else near(value))
    found = optimise(scenario, tables)
    assert_optimal(scenario, best, found)
    if found.designs:
        assert check(plan_of(scenario, tables, found), scenario) == []


@pytest.mark.parametrize("counts", COUNTS)
def test_owned_devices_and_a_cost_budget_bound_the_throughput(counts):
    # 3 owned and 2 bought at 4 USD/h: 4.2 replicas per 2 requests/s, or one replica for prefills and four for steps.
    fleet = {"cost_budget_usd_per_hour": 8.0, "inventory": {"big": {"owned": 3, "purchasable": None}}}
    assert_answers(by_hand(fleet, counts=counts), 101 * (5 / 2.1 if counts == "fractional" else 2.0))


def test_a_question_that_only_no_requests_at_all_would_meet_is_infeasible():
    racks = {"racks": {"r": {"power_limit_kw": 50.0, "devices": ["small"]}}}
    assert_answers(by_hand({"power_budget_kw": 10.0}, servers=racks, counts="fractional"), None)
    never_full = {"servers": {"min_batch_fill": 0.9}, "max_utilization": 0.8}
    assert_answers(by_hand({"power_budget_kw": 10.0}, counts="fractional", **never_full), None)


def test_batches_need_not_be_full_where_a_shared_pool_only_prefills():
    # 0.96 replicas in steps and 0.048 in prefills: together they would need two replicas, half of them idle.
    fleet, fill = {"power_budget_kw": 10.0}, {"min_batch_fill": 0.9}
    asked = {"objective": "power", "counts": "integer", "shared_pools": True, "servers": fill}
    assert_answers(by_hand(fleet, 0.48, proposers=["light"], max_draft_length=1, **asked), 2000.0)


def test_a_pool_of_two_drafters_holds_the_kv_of_the_one_that_drafts():
    # 100/1.9 steps of 20 + 2 ms; 28 GB for sequences of 5 GB beside the heavy drafter alone, 13 GB beside both.
    steps, demand = 100 / 1.9, 4.0
    target = max(0.1 + steps * 0.020, steps * 0.022 / 30)
    drafter = max(0.010 + steps * 0.001, steps * 0.022 / (28 / 5))
    asked = {"objective": "cost", "counts": "fractional", "shared_pools": True, "max_draft_length": 1}
    scenario = by_hand({}, demand, proposers=["light", "heavy"], **asked)
    assert_answers(scenario, demand * (4.0 * target + 1.0 * drafter))


@pytest.mark.parametrize("kind", SEEDS)
def test_most_questions_are_decided_by_what_they_are_about(kind):
    """The generator is worth something only if limits bind, designs share, pools serve two, and some cannot be met."""
    seen = Counter()
    for seed in range(0, SEEDS[kind], 2):
        scenario = strategies.seeded(kind, str(seed))
        best = oracles.best(scenario)
        if best is None:
            seen["infeasible"] += 1
            continue
        crew = oracles.Crew(scenario, best.designs)
        seen["feasible"] += 1
        seen["drafts"] += any(one.length > 0 for one in best.designs)
        seen["more designs"] += len(best.designs) > len(scenario.workloads)
        seen["pool for two"] += any(sum(busy > 0 for busy in pool.busy) > 1 for pool in crew.pools)
        seen["tight"] += min(crew.margins(best.rates, crew.serving(best.rates)), default=1.0) < RELATIVE
    least = {"feasible": 15, "infeasible": 3, "drafts": 3, "tight": 3}
    least |= {"shares": {"more designs": 4}, "mixed": {"more designs": 4}, "shared": {"pool for two": 10}}.get(kind, {})
    assert {name: seen[name] for name, number in least.items() if seen[name] < number} == {}


def test_a_shared_pool_must_hold_the_models_that_it_runs():
    asked = {"objective": "cost", "counts": "integer", "shared_pools": True, "max_draft_length": 1}
    scenario = by_hand({}, 4.0, proposers=["light", "heavy"], **asked)
    plan = solve(scenario)
    assert check(plan, scenario) == []
    (at,) = [number for number, pool in enumerate(plan.pools) if any(m.phase == "target_verify" for m in pool.phases)]

    def problems(models):
        pools = [pool.replace(models=models) if number == at else pool for number, pool in enumerate(plan.pools)]
        return "\n".join(check(plan.replace(pools=tuple(pools)), scenario))

    assert "target_verify runs target, which is not in the pool of heavy" in problems(("heavy",))
    assert "not in the pool of target+nothing" in problems(("target", "nothing"))


def test_racks_alone_bound_the_throughput():
    # 2.1 replicas of 1 kW per request/s in 10 kW, on a power basis that does not even count them.
    racks = {"servers": {"racks": {"a": {"power_limit_kw": 6.0}, "b": {"power_limit_kw": 4.0, "devices": ["big"]}}}}
    scenario = by_hand({}, counts="fractional", power_basis="forward", **racks)
    found = optimise(scenario, tables_of(scenario))
    assert (found.status, found.value) == ("optimal", near(101 * 10 / 2.1))
    plan = solve(scenario)
    assert plan.objective.value == near(101 * 10 / 2.1)
    # Each rack dropped alone leaves nothing that bounds it.
    assert [row.binding for row in plan.limits if row.rack is not None] == [True, True]


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_a_shared_pool_holds_no_model_that_it_does_not_run(seed):
    scenario = strategies.seeded("shared", str(seed))
    if scenario.servers.min_batch_fill > 0:
        scenario = scenario.replace(servers=scenario.servers.replace(min_batch_fill=0.0))
    found = optimise(scenario, tables_of(scenario))
    pools = {}
    for design, _ in found.designs:
        for phase, option in design.options.items():
            if option is not None:
                key = option.device, option.tensor_parallel, option.models
                pools.setdefault(key, set()).add(model_of(scenario, phase, design.speculation.proposer))
    assert all(set(models) == run for (_, _, models), run in pools.items())


def test_a_rack_needs_provisioned_watts():
    bare = by_hand({"power_budget_kw": 10.0}, power_basis="forward", servers={"racks": {"r": {"power_limit_kw": 1.0}}})
    devices = {name: d.replace(provisioned_power_w=None) for name, d in bare.catalog.devices.items()}
    with pytest.raises(InputError, match="provisioned_power_w: missing, and the power limits of racks need it"):
        solve(bare.replace(catalog=bare.catalog.replace(devices=devices)))

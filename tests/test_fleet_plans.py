"""Plans of one fleet against loops over sets of designs and counts, on seeded random questions.

Every question is answered by the structure where it separates, by the program, and by columns as if it were large; some
by the whole recipe. Each plan is recomputed by the loops' own arithmetic.
"""

from collections import Counter

import fleet_oracles as oracles
import fleet_strategies as strategies
import pytest

from planner.assemble import (
    deploy,
    deployment_document,
    fill_budgets,
    fleet_documents,
    limit_row,
    limit_values,
    memory_rows,
    objective_document,
    objective_value,
    pool_documents,
    totals_document,
)
from planner.check import check
from planner.errors import InputError
from planner.milp import large, relaxation
from planner.optimise import optimise
from planner.options import cost_table
from planner.question import CLOSED_GAP, Solution, question_of
from planner.schema import documents as doc
from planner.schema.scenario import Scenario
from planner.solve import Settings, provenance, solve
from planner.words import COUNTS

RELATIVE = 1e-6
SEEDS = {"pairs": 100, "shares": 90, "mixed": 60, "servers": 100, "shared": 80}
EVERY_SOLVED = 16
BLOCKS = 5
BLOCKED = [(kind, block) for kind in SEEDS for block in range(BLOCKS)]


def tables_of(scenario: Scenario) -> dict:
    return {name: cost_table(scenario, name) for name in scenario.workloads}


def near(value: float) -> object:
    return pytest.approx(value, rel=RELATIVE, abs=1e-9)


def assert_optimal(scenario: Scenario, best: oracles.Best | None, found: Solution) -> None:
    if best is None:
        assert (found.status, found.designs, found.value) == ("infeasible", (), None)
        return
    assert found.status == "optimal"
    assert found.value == near(best.value)
    assert found.gap <= CLOSED_GAP
    assert_holds(scenario, found, best.value)


def assert_holds(scenario: Scenario, found: Solution, value: float) -> None:
    """The designs at their rates have the value and meet every limit, by the loops' arithmetic."""
    crew = oracles.Crew(scenario, [oracles.own(scenario, design) for design, _ in found.designs])
    rates = [rate for _, rate in found.designs]
    n = crew.serving(rates)
    assert crew.figure(scenario.objective, rates, n) == near(value)
    assert min(crew.margins(rates, n), default=0.0) >= -RELATIVE
    assert all(oracles.keeps_promises(scenario.workloads[one.workload].limits, one) for one in crew.designs)
    served = Counter()
    for one, rate in zip(crew.designs, rates, strict=True):
        served[one.workload] += rate
    assert max(Counter(one.workload for one in crew.designs).values()) <= scenario.max_shares
    asked = oracles.asked_rates(scenario)
    if asked is not None:
        assert dict(served) == pytest.approx(asked, rel=RELATIVE)
        return
    scale = sum(served.values()) / sum(workload.mix for workload in scenario.workloads.values())
    for name, workload in scenario.workloads.items():
        assert served[name] == pytest.approx(scale * workload.mix, rel=RELATIVE)
        assert served[name] >= (workload.limits.demand_rps or 0.0) * (1 - RELATIVE)


def plan_of(scenario: Scenario, tables: dict, solution: Solution) -> doc.Plan:
    """The document of a solution, without what only solving again can say."""
    deployed = fill_budgets(deploy(scenario, solution.designs, tables, solution.racks), tables)
    rows = (limit_row(limit, value, limit.is_met_exactly(value)) for limit, value in limit_values(deployed))
    bound, value = solution.best_bound, objective_value(deployed)
    return doc.Plan(
        status=solution.status,
        scenario=scenario.name,
        objective=objective_document(scenario, value, bound, abs(value - bound) / max(abs(value), 1e-12)),
        deployments=tuple(deployment_document(deployed, index) for index in range(len(deployed.servings))),
        pools=pool_documents(deployed),
        fleet=fleet_documents(deployed),
        totals=totals_document(deployed),
        limits=(
            *(row.replace(binding=row.slack <= RELATIVE * max(row.bound, RELATIVE)) for row in rows),
            *memory_rows(deployed),
        ),
        baselines=(),
        infeasibility=(),
        assumptions=(),
        warnings=(),
        provenance=provenance(Settings(), 0.0, None),
    )


def assert_answer(kind: str, seed: str) -> None:
    scenario = strategies.seeded(kind, seed)
    best, tables = oracles.best(scenario), tables_of(scenario)
    found = optimise(scenario, tables)
    assert_optimal(scenario, best, found)
    if found.designs:
        assert check(plan_of(scenario, tables, found), scenario) == []


@pytest.mark.parametrize(("kind", "block"), BLOCKED)
def test_the_optimum_is_that_of_loops_over_designs_and_counts(kind, block):
    for seed in range(block, SEEDS[kind], BLOCKS):
        assert_answer(kind, str(seed))


@pytest.mark.parametrize("kind", SEEDS)
def test_columns_and_program_have_the_same_optimum(kind):
    for seed in range(0, SEEDS[kind], 4):
        scenario = strategies.seeded(kind, str(seed))
        question = question_of(scenario)
        if large.is_bounded_by_columns(question):
            found = large.optimise(scenario, tables_of(scenario), question, time_limit_s=None, polish=True)
            assert_optimal(scenario, oracles.best(scenario), found)


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


def test_a_rack_needs_provisioned_watts():
    bare = by_hand({"power_budget_kw": 10.0}, power_basis="forward", servers={"racks": {"r": {"power_limit_kw": 1.0}}})
    devices = {name: d.replace(provisioned_power_w=None) for name, d in bare.catalog.devices.items()}
    with pytest.raises(InputError, match="provisioned_power_w: missing, and the power limits of racks need it"):
        solve(bare.replace(catalog=bare.catalog.replace(devices=devices)))

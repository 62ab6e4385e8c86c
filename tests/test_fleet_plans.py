"""Plans of one fleet against loops over sets of designs and counts, on seeded random questions.

Every question is answered by the structure where it separates, by the program, and by columns as if it were large; some
by the whole recipe. Each plan is recomputed by the loops' own arithmetic.
"""

from collections import Counter
from dataclasses import replace

import fleet_oracles as oracles
import fleet_strategies as strategies
import pytest

from planner import whatif
from planner.assemble import (
    deploy,
    deployment_document,
    fill_budgets,
    fleet_documents,
    limit_values,
    memory_rows,
    objective_document,
    objective_value,
    pool_documents,
    totals_document,
)
from planner.check import check
from planner.milp import large
from planner.optimise import optimise
from planner.options import cost_table
from planner.question import CLOSED_GAP, Solution, question_of
from planner.schema import documents as doc
from planner.schema.scenario import Scenario
from planner.solve import Settings, provenance, solve

RELATIVE = 1e-6
SEEDS = {"pairs": 100, "shares": 90, "servers": 100, "shared": 80}
EVERY_SOLVED = 16
BLOCKS = 5
BLOCKED = [(kind, block) for kind in SEEDS for block in range(BLOCKS)]


def tables_of(scenario: Scenario) -> dict:
    return {name: cost_table(scenario, name) for name in scenario.workloads}


def seeds_of(kind: str, block: int) -> range:
    return range(block, SEEDS[kind], BLOCKS)


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
    crew = oracles.Crew(scenario, [own_design(scenario, design) for design, _ in found.designs])
    rates = [rate for _, rate in found.designs]
    n = crew.serving(rates)
    assert crew.figure(scenario.objective, rates, n) == near(value)
    assert min(crew.margins(rates, n), default=0.0) >= -RELATIVE
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


def own_design(scenario: Scenario, design: object) -> oracles.Design:
    """The loops' own figures for one of planner's designs."""
    places = {
        phase: (o.device, o.tensor_parallel, o.batch_size, o.models)
        for phase, o in design.options.items()
        if o is not None
    }
    for one in oracles.designs_of(scenario, design.workload):
        same = (one.proposer, one.length) == (design.speculation.proposer, design.speculation.draft_length)
        models = {work.phase: work.models if scenario.shared_pools else () for work in one.works}
        if same and places == {w.phase: (w.device, w.degree, w.batch, models[w.phase]) for w in one.works}:
            return one
    raise AssertionError(f"{design} is not on offer, does not fit, or breaks a promise")


def plan_of(scenario: Scenario, tables: dict, solution: Solution) -> doc.Plan:
    """The document of a solution, without what only solving again can say."""
    deployed = fill_budgets(deploy(scenario, solution.designs, tables, solution.racks), tables)
    rows = [whatif.limit_row(limit, value, binding=False) for limit, value in limit_values(deployed)]
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


@pytest.mark.parametrize(("kind", "block"), BLOCKED)
def test_the_optimum_is_that_of_loops_over_designs_and_counts(kind, block):
    for seed in seeds_of(kind, block):
        scenario = strategies.seeded(kind, str(seed))
        best, tables = oracles.best(scenario), tables_of(scenario)
        found = optimise(scenario, tables)
        assert_optimal(scenario, best, found)
        if found.designs:
            assert check(plan_of(scenario, tables, found), scenario) == []


@pytest.mark.parametrize("kind", SEEDS)
def test_columns_and_program_have_the_same_optimum(kind):
    for seed in range(0, SEEDS[kind], 4):
        scenario = strategies.seeded(kind, str(seed))
        question = question_of(scenario)
        if large.is_bounded_by_columns(question):
            found = large.optimise(scenario, tables_of(scenario), question, time_limit_s=None, polish=True)
            assert_optimal(scenario, oracles.best(scenario), found)


@pytest.mark.parametrize("kind", SEEDS)
def test_a_whole_plan_has_the_optimum_of_loops(kind):
    # solve() raises if a plan does not pass its own check.
    for seed in range(0, SEEDS[kind], EVERY_SOLVED):
        scenario = strategies.seeded(kind, f"plan {seed}")
        plan, best = solve(scenario), oracles.best(scenario)
        assert plan.status == ("infeasible" if best is None else "optimal")
        assert plan.objective.value == (None if best is None else near(best.value))


def test_a_plan_that_is_not_proven_passes_its_check():
    scenario = strategies.seeded("pairs", "3")
    tables = tables_of(scenario)
    found = optimise(scenario, tables)
    assert check(plan_of(scenario, tables, replace(found, status="feasible")), scenario) == []


def test_most_questions_are_decided_by_what_they_are_about():
    """The generator is worth something only if shares, pools, stocks, racks and fill change answers."""
    seen = Counter()
    for kind, number in SEEDS.items():
        for seed in range(number):
            scenario = strategies.seeded(kind, str(seed))
            best = oracles.best(scenario)
            seen[kind, best is not None] += 1
            if best is None:
                continue
            crew = oracles.Crew(scenario, best.designs)
            seen[kind, "drafts"] += any(one.length > 0 for one in best.designs)
            seen[kind, "two designs"] += len(best.designs) > len(scenario.workloads)
            seen[kind, "pool for two"] += any(sum(busy > 0 for busy in pool.busy) > 1 for pool in crew.pools)
            seen[kind, "tight"] += min(crew.margins(best.rates, crew.serving(best.rates)), default=1.0) < 1e-6
    for kind, number in SEEDS.items():
        assert seen[kind, True] >= 0.6 * number
        assert seen[kind, False] >= 5
        assert seen[kind, "drafts"] >= 15
        assert seen[kind, "tight"] >= 8
    assert seen["shares", "two designs"] >= 8
    assert seen["shared", "pool for two"] >= 15

"""The bound by columns holds, and bounding first changes no optimum."""

import sys
import time
from pathlib import Path

import fleet_oracles
import fleet_strategies
import pytest
import strategies
from recomputed import assert_holds, tables_of

sys.path.insert(0, str(Path(__file__).resolve().parent / "benchmarks"))

import synthetic

from planner.milp import large, program
from planner.milp.relaxation import relaxed, solve_relaxation, tables_of_columns, tables_within
from planner.optimise import optimise
from planner.options import cost_table
from planner.question import question_of
from planner.rates import require_answerable, require_figures

AIMS = ("throughput", "power", "cost", "energy")
SEEDS = range(8)


def coupled(aim, counts, seed):
    """A seeded scenario with an inventory; some of its devices are owned."""
    scenario = strategies.seeded(f"columns {aim} {counts} {seed}", objective=aim, counts=counts)
    stocks = {name: {"owned": 2 * (seed % 2), "purchasable": 3 + seed % 4} for name in scenario.catalog.devices}
    limits = type(scenario.limits).model_validate({**scenario.limits.model_dump(), "inventory": stocks})
    scenario = scenario.replace(limits=limits)
    tables = {name: cost_table(scenario, name) for name in scenario.workloads}
    require_answerable(scenario)
    require_figures(scenario, tables)
    return scenario, tables, question_of(scenario)


def figure(problem, value):
    """What the relaxation minimizes, of the objective's value."""
    if not problem.maximizes:
        return value
    workloads = problem.scenario.workloads
    return -value / sum(share * workloads[name].osl_tokens for name, share in problem.weights.items())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("counts", ["integer", "fractional"])
@pytest.mark.parametrize("aim", AIMS)
def test_no_plan_is_better_than_the_bound(aim, counts, seed):
    scenario, tables, question = coupled(aim, counts, seed)
    exact = program.optimise(scenario, tables, question)
    problem = relaxed(scenario, tables, question)
    found = solve_relaxation(problem, 10.0)
    if exact.value is None:
        return
    best = figure(problem, exact.value)
    assert found.bound <= best + 1e-6 * abs(best)
    assert found.prices is not None
    rest = tables_within(problem, found.prices, best + 1e-5 * abs(best))
    again = program.optimise(scenario, rest, question)
    assert again.value == pytest.approx(exact.value, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("aim", AIMS)
def test_bounding_first_changes_no_optimum(aim, seed):
    scenario, tables, question = coupled(aim, "integer", seed)
    exact = program.optimise(scenario, tables, question)
    bounded = large.optimise(scenario, tables, question, None, polish=True)
    assert bounded.status == exact.status
    if exact.value is not None:
        assert bounded.value == pytest.approx(exact.value, rel=1e-6, abs=1e-9)
        assert bounded.gap <= 1e-6


def test_a_fractional_mix_of_one_design_meets_its_bound():
    """Where counts are fractional and one design is enough, the relaxation leaves nothing out."""
    met = 0
    for seed in range(12):
        scenario, tables, question = coupled("throughput", "fractional", seed)
        exact = program.optimise(scenario.replace(max_shares=2), tables, question)
        problem = relaxed(scenario, tables, question)
        if exact.value is not None:
            gap = abs(solve_relaxation(problem, 10.0).bound - figure(problem, exact.value))
            met += gap <= 1e-6 * abs(figure(problem, exact.value))
    assert met >= 3


def test_columns_keep_what_they_use():
    scenario, tables, question = coupled("throughput", "integer", 1)
    problem = relaxed(scenario, tables, question)
    found = solve_relaxation(problem, 10.0)
    for name, table in tables_of_columns(problem, found.columns).items():
        used = {problem.tables[name].speculations[c.found.s] for c in found.columns if c.workload == name}
        assert set(table.speculations) == used
        assert len(table.speculations) <= len(problem.tables[name].speculations)


@pytest.mark.parametrize("seed", range(40))
def test_one_workload_after_the_other_makes_a_plan_that_holds(seed):
    """Two workloads on one fleet with stocks, nodes, spares and links: never better than the best."""
    kind = ("pairs", "servers")[seed % 2]
    scenario = fleet_strategies.seeded(kind, f"packed {seed}")
    tables, question = tables_of(scenario), question_of(scenario)
    if not large.is_bounded_by_columns(question) or scenario.servers.racks:
        return
    problem = relaxed(scenario, tables, question)
    found = solve_relaxation(problem, 10.0)
    packed = None if found.prices is None else large._packed(problem, found, 10.0, time.perf_counter())
    best = fleet_oracles.best(scenario)
    if packed is None:
        return
    assert best is not None
    assert_holds(scenario, packed, packed.value)
    worse = packed.value - best.value if question.aim != "throughput" else best.value - packed.value
    assert worse >= -1e-6 * abs(best.value)
    assert packed.best_bound <= packed.value * (1 + 1e-9) or question.aim == "throughput"


def test_one_workload_after_the_other_often_finds_the_best():
    met = judged = 0
    for seed in range(30):
        scenario = fleet_strategies.seeded("pairs", f"often {seed}")
        question, best = question_of(scenario), fleet_oracles.best(scenario)
        if best is None or not large.is_bounded_by_columns(question):
            continue
        problem = relaxed(scenario, tables_of(scenario), question)
        packed = large._packed(problem, solve_relaxation(problem, 10.0), 10.0, time.perf_counter())
        judged += 1
        met += packed is not None and abs(packed.value - best.value) <= 1e-4 * abs(best.value)
    assert judged >= 10
    assert met >= 0.6 * judged


def test_a_large_fleet_is_proven_by_the_workload_that_limits_it():
    scenario = synthetic.question(30, 4, 32, inventory=8)
    tables = tables_of(scenario)
    found = optimise(scenario, tables, time_limit_s=60.0)
    assert (found.status, found.method) == ("optimal", "program")
    assert_holds(scenario, found, found.value)
    alone = []
    for name, workload in scenario.workloads.items():
        one = scenario.replace(workloads={name: workload})
        alone.append(optimise(one, {name: tables[name]}).value / workload.osl_tokens)
    # Every workload has the same mix; the slowest of them alone bounds all.
    total = sum(workload.osl_tokens for workload in scenario.workloads.values())
    assert found.value == pytest.approx(min(alone) * total, rel=1e-6)


def test_a_time_limit_is_kept_with_an_honest_gap():
    judged = 0
    for seed in SEEDS:
        scenario, tables, question = coupled("throughput", "integer", seed)
        exact = program.optimise(scenario, tables, question)
        found = large.optimise(scenario, tables, question, 0.01, polish=False)
        if found.value is not None and exact.value is not None:
            judged += 1
            assert found.value <= exact.value * (1 + 1e-6) <= found.best_bound * (1 + 2e-6)
            assert found.gap == pytest.approx((found.best_bound - found.value) / found.value, abs=1e-9)
    assert judged >= 3

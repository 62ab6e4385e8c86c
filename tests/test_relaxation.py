"""The bound by columns holds, and bounding first changes no optimum."""

import pytest
import strategies

from planner.milp import large, program
from planner.milp.relaxation import relaxed, solve_relaxation, tables_of_columns, tables_within
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

"""The mixed-integer program against plain nested loops, on seeded random scenarios; see ``test_reduction`` for more."""

import oracles
import pytest
import strategies

from planner.assemble import deploy, fill_budgets, objective_value
from planner.errors import InputError
from planner.milp.program import Question, optimise
from planner.options import cost_table
from planner.schema.scenario import Scenario
from planner.solve import Settings, solve
from planner.words import COUNTS, OBJECTIVES

RELATIVE = 1e-6
OPTIMISED = 36
SOLVED = 6
OF_ANY_SIZE = 4


def tables_of(scenario: Scenario) -> dict:
    return {name: cost_table(scenario, name) for name in scenario.workloads}


def assert_optimal(scenario: Scenario) -> None:
    best, found = oracles.best(scenario), optimise(scenario, tables_of(scenario))
    if not best.feasible:
        assert (found.status, found.designs) == ("infeasible", ())
        return
    assert found.status == "optimal"
    assert found.value == pytest.approx(best.value, rel=RELATIVE)
    assert found.gap <= RELATIVE
    ((design, rate),) = found.designs
    assert_reaches(scenario, design, rate, best.value)


def assert_reaches(scenario: Scenario, design: object, rate: float, value: float) -> None:
    """The design has the optimum and meets the limits by the loops' own arithmetic, and by planner's."""
    point = oracles.point_of(scenario, design)
    assert oracles.serves(scenario, point)
    assert oracles.figure(scenario, point, rate, scenario.objective) == pytest.approx(value, rel=RELATIVE)
    deployed = fill_budgets(deploy(scenario, [(design, rate)]))
    assert objective_value(deployed) == pytest.approx(value, rel=RELATIVE)
    (serving,) = deployed.servings
    assert oracles.affordable(scenario, point, serving.rate_rps * (1 - RELATIVE))


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_whole_plan_has_the_optimum_of_nested_loops(objective, counts):
    # solve() raises if a plan does not pass its own check.
    for seed in range(SOLVED):
        scenario = strategies.seeded(f"plan {objective} {counts} {seed}", objective=objective, counts=counts)
        if not list(oracles.points(scenario)):
            with pytest.raises(InputError, match="has no option"):
                solve(scenario)
            continue
        plan = solve(scenario)
        best = oracles.best(scenario)
        assert plan.status == ("optimal" if best.feasible else "infeasible")
        assert plan.objective.value == (pytest.approx(best.value, rel=RELATIVE) if best.feasible else None)


@pytest.mark.parametrize("demand", [1e-6, 1e-2, 1e3])
@pytest.mark.parametrize("objective", ["power", "cost", "energy", "interactivity"])
def test_the_optimum_holds_at_demands_of_any_size(objective, demand):
    for seed in range(OF_ANY_SIZE):
        fixed = {"objective": objective, "counts": "fractional", "power_basis": "provisioned"}
        scenario = strategies.seeded(f"size {objective} {seed}", tight=0, **fixed)
        workload = scenario.workloads["w"]
        limits = workload.limits.replace(demand_rps=demand)
        fleet = scenario.limits.replace(power_budget_kw=None, cost_budget_usd_per_hour=None, inventory={})
        assert_optimal(scenario.replace(workloads={"w": workload.replace(limits=limits)}, limits=fleet))


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("aim", ["devices", "ttft", "any"])
def test_aims_that_only_explanations_ask_for(aim, counts):
    for seed in range(8):
        scenario = strategies.seeded(f"{aim} {counts} {seed}", objective="interactivity", counts=counts)
        rate = oracles.question_rate(scenario)
        device = "d0" if aim == "devices" else None
        best = oracles.best_for(scenario, aim, rate, device)
        found = optimise(scenario, tables_of(scenario), Question(aim, {"w": rate}, device=device), polish=False)
        assert (found.status != "infeasible") == best.feasible
        if best.feasible:
            assert found.value == pytest.approx(best.value, rel=RELATIVE, abs=1e-9)


def test_among_equals_the_plan_takes_the_options_of_least_power():
    for seed in range(20):
        scenario = strategies.seeded(f"equals {seed}", objective="interactivity", counts="fractional")
        best, found = oracles.best(scenario), optimise(scenario, tables_of(scenario))
        if not best.feasible:
            continue
        ((design, rate),) = found.designs
        mine = oracles.point_of(scenario, design)
        equals = [
            one
            for one in oracles.points(scenario)
            if (one.proposer, one.draft_length) == (mine.proposer, mine.draft_length)
            and one.interactivity_tps >= best.value * (1 - 1e-9)
            and oracles.serves(scenario, one)
            and oracles.affordable(scenario, one, rate)
        ]

        assert watts(scenario, mine, rate) == pytest.approx(
            min(watts(scenario, one, rate) for one in equals), rel=RELATIVE
        )


def watts(scenario, one, rate):
    return oracles.watts(scenario, one, rate, oracles.counts(scenario, one, rate))


@pytest.mark.parametrize("limit_s", [1e-9, 1e-3, 3e-3, 1e-2])
def test_stopped_early_the_plan_holds_and_the_bound_is_none_too_good(limit_s):
    for seed in range(5):
        scenario = strategies.seeded(f"throughput integer {seed}", objective="throughput", counts="integer")
        best, plan = oracles.best(scenario), solve(scenario, Settings(time_limit_s=limit_s))
        assert best.feasible or plan.status in ("infeasible", "no_incumbent")
        if not plan.deployments:
            assert plan.status == "no_incumbent" or not best.feasible
            assert plan.objective.value is None
            continue
        assert plan.status in ("optimal", "feasible")
        assert plan.objective.value <= best.value * (1 + RELATIVE)
        assert plan.objective.best_bound >= best.value * (1 - RELATIVE)
        # A closed gap that no second run confirmed in time is no proof.
        assert plan.status == "feasible" or plan.objective.gap <= RELATIVE


def test_most_cases_are_decided_by_their_limits():
    """The generator is worth something only if limits bind, some cannot be met, and speculation is often best."""
    answers = [
        oracles.best(strategies.seeded(f"{objective} integer {seed}", objective=objective, counts="integer"))
        for objective in ("throughput", "energy")
        for seed in range(OPTIMISED)
    ]
    points = [best.point for best in answers if best.feasible]
    assert 5 <= len(answers) - len(points) <= 40
    assert sum(point.draft_length > 0 for point in points) >= 15
    assert sum(len({device for device, _, _ in point.places.values()}) > 1 for point in points) >= 15

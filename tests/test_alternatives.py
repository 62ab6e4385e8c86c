"""The best plans that differ in placement, against the best of every placement by loops."""

import json

import fleet_oracles
import fleet_strategies
import pytest
import rank_oracles
import strategies
from commands import run
from recomputed import near, tables_of

from planner.alternatives import next_best
from planner.check import check
from planner.errors import InputError
from planner.optimise import optimise
from planner.placement import Allowed, placement_of, restricted
from planner.schema.documents import Plan
from planner.solve import Settings, plan_within, solve
from planner.words import COUNTS, OBJECTIVES, PHASES

MORE = 4
EACH = 20
ALONE = [(objective, counts) for objective in OBJECTIVES for counts in COUNTS]


def followers(scenario, number=MORE):
    """Placements and values of the best plan and of those after it, and whether they are proven."""
    tables = tables_of(scenario)
    best = optimise(scenario, tables)
    if best.status == "infeasible":
        return [], True
    ranked = next_best(scenario, tables, best, number, lambda _: None, lambda: None)
    return [best, *ranked.solutions], ranked.proven


def placements_of(scenario, solution):
    return tuple(tuple(placement_of(scenario, design).values()) for design, _ in solution.designs)


def assert_ranked(scenario, found, best_of):
    """Placements differ, each has its own best value, and those are the best values of all, in order."""
    placements = [placements_of(scenario, one) for one in found]
    assert len(set(placements)) == len(placements)
    values = list(best_of.values())
    assert [one.value for one in found] == [near(value) for value in values[: MORE + 1]]
    assert [one.value for one in found] == [near(best_of[where]) for where in placements]
    assert len(found) == min(MORE + 1, len(best_of))


@pytest.mark.parametrize(("objective", "counts"), ALONE)
def test_one_workload(objective, counts):
    several = 0
    for seed in range(EACH):
        scenario = strategies.seeded(f"alternatives {objective} {counts} {seed}", objective=objective, counts=counts)
        found, proven = followers(scenario)
        assert proven
        best_of = {(where,): value for where, value in rank_oracles.by_placement(scenario).items()}
        assert_ranked(scenario, found, best_of)
        several += len(found) > 2
    assert several > EACH / 4  # else little was compared


def test_there_are_two_hundred():
    assert len(ALONE) * EACH == 200


@pytest.mark.parametrize("kind", ["pairs", "servers"])
def test_fleets(kind):
    several = 0
    for seed in range(12):
        scenario = fleet_strategies.seeded(kind, f"alternatives {seed}", max_shares=1)
        rates, best_of = fleet_oracles.asked_rates(scenario), {}
        for designs in fleet_oracles.sets_of(scenario):
            one = fleet_oracles._best_of_set(scenario, designs, rates)
            if one is not None:
                where = tuple(fleet_placement(scenario, design) for design in designs)
                if fleet_oracles.better(scenario.objective, one.value, best_of.get(where)):
                    best_of[where] = one.value
        down = scenario.objective in fleet_oracles.MAXIMIZED
        best_of = dict(sorted(best_of.items(), key=lambda item: item[1], reverse=down))
        found, _ = followers(scenario)
        assert_ranked(scenario, found, best_of)
        several += len(found) > 2
    assert several


def fleet_placement(scenario, design):
    kind = None if design.proposer is None else scenario.catalog.proposers[design.proposer].kind
    at = {work.phase: work.device for work in design.works}
    if kind in ("medusa", "mtp"):
        at["draft_decode"] = at["target_verify"]
    return tuple(at.get(phase) for phase in PHASES)


def test_a_plan_lists_them_checked_and_ranked():
    plan = solve(
        strategies.seeded("alternatives throughput integer 3", objective="throughput"), Settings(alternatives=3)
    )
    values = [plan.objective.value, *(one.objective_value for one in plan.alternatives.plans)]
    assert values == sorted(values, reverse=True)
    for one in plan.alternatives.plans:
        assert one.loss == pytest.approx(plan.objective.value - one.objective_value, abs=1e-6)


def test_a_placement_that_is_not_allowed_is_in_no_table():
    scenario = strategies.seeded("alternatives power integer 1", layouts=("disaggregated", "aggregated"))
    for table in tables_of(scenario).values():
        for phase in PHASES:
            devices = {option.device for option in table.phases[phase].options}
            for device in devices:
                without = restricted(scenario, table, Allowed().but(phase, device))
                assert device not in {option.device for option in without.phases[phase].options}
                only = restricted(scenario, table, Allowed().with_only(phase, device))
                assert {option.device for option in only.phases[phase].options} <= {device}


def test_shares_are_refused(capsys):
    with pytest.raises(InputError, match="max_shares 1"):
        solve(strategies.seeded("shares", objective="throughput", max_shares=2), Settings(alternatives=2))
    code, _, err = said(
        capsys, ["--scenario", "reference", "--budget-kw", "50", "--set", "max_shares=2", "--alternatives", "2"]
    )
    assert code == 2
    assert "max_shares 1" in err


def said(capsys, arguments):
    code = run(arguments)
    return code, *capsys.readouterr()


def test_the_command_lists_them(capsys):
    code, out, _ = said(capsys, ["--budget-kw", "50", "--min-tps", "100", "--alternatives", "5", "--json"])
    assert code == 0
    plan = Plan.model_validate_json(out)
    assert (plan.alternatives.asked, plan.alternatives.proven) == (5, True)
    placements = [
        tuple(place and place.device for place in one.deployments[0].placements.values())
        for one in plan.alternatives.plans
    ]
    assert placements == [("gpu", "gpu", "accelerator", "accelerator")]
    assert plan.alternatives.plans[0].loss_share == pytest.approx(0.0422, abs=1e-4)
    code, out, _ = said(capsys, ["--budget-kw", "50", "--min-tps", "100", "--alternatives", "5"])
    assert "The next best placement (draft prefill on accelerator) gives up 2,378 tok/s" in " ".join(out.split())
    assert "there are no more" in " ".join(out.split())


def test_without_the_flag_there_are_none(capsys):
    _, out, _ = said(capsys, ["--budget-kw", "50", "--json"])
    assert json.loads(out)["alternatives"] is None


def test_an_infeasible_question_has_none(capsys):
    code, out, _ = said(capsys, ["--budget-kw", "1", "--min-tps", "500", "--alternatives", "3", "--json"])
    assert (code, json.loads(out)["alternatives"]) == (3, None)


def test_time_that_is_over_ends_the_list():
    scenario = strategies.seeded("alternatives throughput integer 3", objective="throughput")
    tables = tables_of(scenario)
    ranked = next_best(scenario, tables, optimise(scenario, tables), 3, lambda _: None, lambda: 0.0)
    assert (ranked.solutions, ranked.proven) == ((), False)


def test_each_alternative_is_checked():
    """As a plan of its own it passes the check."""
    scenario = strategies.seeded("alternatives throughput integer 3", objective="throughput")
    tables = tables_of(scenario)
    for one in followers(scenario)[0]:
        assert check(plan_within(scenario, tables, one), scenario) == []

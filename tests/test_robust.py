"""Plans for a range of acceptance, against loops that look at every case of every design."""

import json
import random
from collections import Counter

import oracles
import pytest
import rank_oracles
import strategies
from commands import run
from recomputed import near, tables_of

from planner.check import check
from planner.errors import InputError
from planner.given import Given, evaluate_given
from planner.read.load import read_scenario
from planner.robust import require_one_worst_case
from planner.schema.catalog import Catalog
from planner.schema.documents import Plan
from planner.solve import Settings, solve
from planner.tokens import tokens_per_step
from planner.words import COUNTS, OBJECTIVES

ALONE = [(objective, counts) for objective in OBJECTIVES for counts in COUNTS]
EACH = 20
RANGES = ((0.9, 1.0, 1.1), (0.6, 1.3), (1.0,), (1.2, 0.8, 0.8), ("general", "other"), ("other", 0.9))


def asked(seed, objective, counts):
    """A seeded scenario with a range of acceptance, whose proposers have curves for a second task."""
    rng = random.Random(seed)
    scenario = strategies.seeded(seed, objective=objective, counts=counts)
    data = scenario.catalog.model_dump()
    for entry in data["proposers"].values():
        for curves in entry["acceptance"].values():
            if "ranks" not in {curve["kind"] for curve in curves.values()}:
                curves["other"] = strategies.acceptance_curve(rng)
            else:
                curves["other"] = curves["general"]
    catalog = Catalog.model_validate(data)
    return scenario.replace(catalog=catalog, acceptance_range=rng.choice(RANGES))


@pytest.mark.parametrize(("objective", "counts"), ALONE)
def test_the_best_plan_for_a_range_is_that_of_loops(objective, counts):
    seen, seed = Counter(), 0
    while seen["compared"] < EACH:
        seed += 1
        scenario = asked(f"robust {objective} {counts} {seed}", objective, counts)
        if not rank_oracles.runs(scenario):
            continue
        try:
            require_one_worst_case(scenario, tables_of(scenario))
        except InputError:
            seen["refused"] += 1
            continue
        seen["compared"] += 1
        plan, value = solve(scenario), rank_oracles.robust_best(scenario)
        assert plan.objective.value == (None if value is None else near(value))
        nominal = oracles.best(scenario.replace(acceptance_range=())).value
        found = plan.robustness
        assert (None if found.nominal is None else found.nominal.objective_value) == (
            None if nominal is None else near(nominal)
        )
        if value is not None:
            seen["feasible"] += 1
            worse = nominal - value if objective in ("throughput", "interactivity") else value - nominal
            assert found.price == pytest.approx(worse, rel=1e-6, abs=2e-7 * abs(nominal))
            seen["priced"] += found.price > 0
            assert_cases(scenario, plan)
    assert seen["feasible"] >= EACH / 3, seen


def test_there_are_two_hundred():
    assert len(ALONE) * EACH == 200


def assert_cases(scenario, plan):
    """Every case is written as the loops compute it, and holds."""
    ((deployment,), (index,)) = plan.deployments, (0,)
    for written, case in zip(plan.robustness.cases, scenario.acceptance_range, strict=True):
        assert (written.case, written.violates) == (case, ())
        assert written.carried_share >= 1 - 1e-6
        changed = rank_oracles.in_case(scenario, case)
        one = next(one for one in oracles.points(changed) if same(one, deployment))
        service = written.services[index]
        assert service.tokens_per_step == near(one.tokens_per_step)
        assert service.interactivity_tps == near(one.interactivity_tps)
        assert service.ttft_s == near(one.ttft_s)
        assert written.power_w.forward == near(scenario.pue * one.energy_j * deployment.metrics.request_rate_rps)


def same(one, deployment):
    places = {
        phase: (place.device, place.tensor_parallel, place.batch_size)
        for phase, place in deployment.placements.items()
        if place is not None and phase in one.places
    }
    way = (one.proposer, one.draft_length, one.nodes + 1, one.layout)
    written = (deployment.proposer, deployment.draft_length, deployment.verify_tokens, deployment.layout)
    return (way, one.places) == (written, places)


def test_nothing_reverses():
    """What holds at the least tokens per step holds at more: the proof behind one worst case, on real hardware too."""
    seen = 0
    for seed in range(40):
        scenario = asked(f"reverse {seed}", "throughput", "integer")
        for name, table in tables_of(scenario.replace(acceptance_range=())).items():
            better = tables_of(scenario.replace(acceptance_range=(1.2,)))[name]
            assert (better.tokens_per_step >= table.tokens_per_step - 1e-12).all()
            for phase in table.phases:
                assert (better.busy_s(phase) <= table.busy_s(phase) * (1 + 1e-9))[table.phases[phase].available].all()
                energy = table.energy_per_request_j(phase) * (1 + 1e-9)
                assert (better.energy_per_request_j(phase) <= energy)[table.phases[phase].available].all()
                seen += 1
    assert seen


def test_a_factor_scales_the_accepted_drafts_and_a_task_takes_its_curve():
    scenario = asked("tokens 1", "throughput", "integer")
    name = scenario.proposers[0]
    D = [0, 1, 2]
    own = tokens_per_step(scenario.replace(acceptance_range=()), "w", name, D)
    half = tokens_per_step(scenario.replace(acceptance_range=(0.5,)), "w", name, D)
    assert half.tolist() == pytest.approx([1 + 0.5 * (E - 1) for E in own])
    most = tokens_per_step(scenario.replace(acceptance_range=(1000.0,)), "w", name, D)
    assert most.tolist() == pytest.approx([1.0, 2.0, 3.0])


# ------------------------------------------------------------------------------------------------- commands

ASKED = ["--budget-kw", "50", "--min-tps", "100"]


def said(capsys, arguments):
    code = run(arguments)
    return code, *capsys.readouterr()


def plan_of(capsys, *more):
    code, out, _ = said(capsys, [*ASKED, "--json", *more])
    assert code == 0
    return Plan.model_validate_json(out)


def test_the_reference_over_a_range(capsys):
    plan = plan_of(capsys, "--acceptance-range", "0.9,1.0,1.1")
    own = plan_of(capsys)
    assert plan.robustness.price == pytest.approx(own.objective.value - plan.objective.value)
    assert plan.robustness.nominal.objective_value == own.objective.value
    worst, _, _ = plan.robustness.nominal.cases
    assert (worst.case, worst.violates) == (0.9, ("power_budget",))
    _, out, _ = said(capsys, [*ASKED, "--acceptance-range", "0.9,1.0,1.1"])
    text = " ".join(out.split())
    assert "Holds at acceptance × 0.9, × 1 and × 1.1" in text
    assert "at × 0.9 it breaks the power budget and carries 91.7 % of its rate" in text


def test_the_range_of_a_case_is_the_case(capsys):
    """A range of one factor is the plan at that factor, whose figures ``plan evaluate`` gives too."""
    plan = plan_of(capsys, "--acceptance-range", "0.9")
    assert plan.robustness.cases[0].services[0].tokens_per_step == plan.deployments[0].metrics.tokens_per_step


def test_no_plan_over_a_range_says_whether_one_exists_without(capsys):
    code, out, _ = said(capsys, ["--budget-kw", "50", "--min-tps", "130", "--acceptance-range", "0.7,1.0"])
    assert code == 3
    assert "Without the range of acceptance a plan exists, with throughput" in " ".join(out.split())
    code, out, _ = said(capsys, ["--budget-kw", "50", "--min-tps", "500", "--acceptance-range", "0.7,1.0"])
    assert code == 3
    assert "Without the range" not in out


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0.9,,1", "neither a number nor the name of a task"),
        ("0", "'0' is not between 0.001 and 1000"),
        ("-1", "'-1' is not between"),
        ("nan", "neither a number nor the name of a task"),
        ("codes", "no acceptance for task 'codes'"),
        ("1e9", "'1e9' is not between"),
    ],
)
def test_bad_ranges(capsys, value, message):
    code, out, err = said(capsys, ["--scenario", "code-completion", "--acceptance-range", value])
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_what_could_reverse_is_refused(capsys):
    code, _, err = said(capsys, [*ASKED, "--acceptance-range", "0.9", "--set", "servers.min_batch_fill=0.5"])
    assert code == 2
    assert "min_batch_fill" in err


def test_a_plan_that_does_not_hold_in_a_case_fails_its_check():
    scenario = strategies.seeded("robust throughput integer 1", objective="throughput", counts="integer")
    loose = solve(scenario)
    while not loose.deployments:
        scenario = strategies.seeded(scenario.name + "x", objective="throughput", counts="integer")
        loose = solve(scenario)
    problems = check(loose, scenario.replace(acceptance_range=(0.2,)))
    assert problems or loose.deployments[0].draft_length == 0


def test_evaluate_uses_the_worst_case():
    scenario = read_scenario("reference").scenario
    places = dict.fromkeys(("target_prefill", "target_verify", "draft_prefill", "draft_decode"), "gpu")
    scenario = scenario.replace(places=places, acceptance_range=(0.9, 1.1))
    worst = evaluate_given(scenario, Given(7, None, None, "disaggregated"), Settings())
    own = evaluate_given(scenario.replace(acceptance_range=()), Given(7, None, None, "disaggregated"), Settings())
    expected = 1 + 0.9 * (own.metrics.tokens_per_step - 1)
    assert worst.metrics.tokens_per_step == pytest.approx(expected)


def test_the_document_names_the_cases(capsys):
    _, out, _ = said(capsys, [*ASKED, "--acceptance-range", "0.9,general", "--json"])
    assert [case["case"] for case in json.loads(out)["robustness"]["cases"]] == [0.9, "general"]

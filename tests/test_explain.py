"""Explanations are true: moving the limit gives what they promise, pinning the runner-up loses what they state."""

import io
import json
import random

import oracles
import pytest
import rank_oracles
import strategies
from commands import run
from recomputed import near, tables_of

from planner.cli import run as run_as_typed
from planner.cli.bare import with_service_flags
from planner.explain import explain
from planner.limits import limits_of, with_bound
from planner.optimise import optimise
from planner.read.load import read_scenario
from planner.read.overrides import parse_assignments
from planner.schema.explanation import Explanation
from planner.solve import solve
from planner.words import COUNTS, MAXIMIZED, OBJECTIVES, PHASES

ALONE = [(objective, counts) for objective in OBJECTIVES for counts in COUNTS]
EACH = 6


def loss(scenario, best, value):
    return best - value if scenario.objective in MAXIMIZED else value - best


def assert_limits(scenario, found, best_of):
    """Every move, solved again by ``best_of``, gives the promised value."""
    for limit, row in zip(limits_of(scenario), found.limits, strict=True):
        assert (limit.name, limit.bound, limit.workload, limit.device) == (
            row.name,
            row.bound,
            row.workload,
            row.device,
        )
        assert (row.dropped is None) == (row.name == "demand" and scenario.objective != "throughput")
        for move in (row.step, *([row.dropped] if row.dropped else [])):
            if move.unbounded:
                assert (move.objective_value, move.change) == (None, None)
                continue
            value = best_of(with_bound(scenario, limit, move.moved_to))
            assert move.objective_value == near(value)
            assert move.change == pytest.approx(value - found.objective.value, abs=2e-7 * abs(value))


@pytest.mark.parametrize(("objective", "counts"), ALONE)
def test_every_claim_is_that_of_loops(objective, counts):
    explained = rivals = 0
    for seed in range(EACH):
        scenario = strategies.seeded(f"explain {objective} {counts} {seed}", objective=objective, counts=counts)
        if not rank_oracles.runs(scenario):
            continue
        found = explain(scenario)
        every = list(rank_oracles.every(scenario))
        if found.status == "infeasible":
            assert not every
            continue
        explained += 1
        assert_limits(scenario, found, lambda moved: oracles.best(moved).value)
        rivals += sum(assert_choice(scenario, found, choice, every) for choice in found.choices)
    assert explained
    assert rivals


def assert_choice(scenario, found, choice, every):
    """The runner-up is the best of all that choose otherwise, and it has the value and loss that are stated."""
    best = found.objective.value

    def chooses(one):
        if choice.choice == "proposer":
            return one.proposer
        if choice.choice == "draft_length":
            return one.draft_length
        return rank_oracles.placement(one, scenario)[PHASES.index(choice.choice)]

    def is_rival(one):
        what = chooses(one)
        if choice.choice == "draft_length":
            return one.proposer == found.designs[0].proposer and what != choice.chosen
        return what != choice.chosen and (choice.choice == "proposer" or what is not None)

    values = [value for value, one in every if is_rival(one)]
    if not values:
        assert (choice.objective_value, choice.runner_up, choice.loss) == (None, None, None)
        return False
    rival = max(values) if scenario.objective in MAXIMIZED else min(values)
    assert choice.objective_value == near(rival)
    assert choice.loss == pytest.approx(loss(scenario, best, rival), abs=2e-7 * abs(best))
    pinned = [value for value, one in every if is_rival(one) and chooses(one) == choice.runner_up]
    assert near(rival) in [max(pinned) if scenario.objective in MAXIMIZED else min(pinned)]
    return True


# ------------------------------------------------------------------------------------------ real scenarios

QUESTIONS = [
    ["--scenario", "reference", "--budget-kw", "50", "--min-tps", "100"],
    ["--scenario", "llama-70b-chat", "--budget-kw", "50", "--min-tps", "100"],
]


def said(capsys, arguments):
    code = run(arguments)
    return code, *capsys.readouterr()


def explained(capsys, question):
    code, out, _ = said(capsys, ["explain", *question, "--json"])
    assert code == 0
    return Explanation.model_validate_json(out)


def scenario_of(question, *sets):
    scenario = read_scenario(question[1], parse_assignments(["limits.power_budget_kw=50", *sets])).scenario
    return with_service_flags(scenario, 100.0, None, None)


@pytest.mark.parametrize("question", QUESTIONS, ids=["reference", "default"])
def test_the_promised_value_comes_by_moving_the_limit(capsys, question):
    found, scenario = explained(capsys, question), scenario_of(question)
    assert_limits(scenario, found, lambda moved: optimise(moved, tables_of(moved)).value)
    named = {row.name: row.step.moved_to for row in found.limits}
    assert named["power_budget"] == pytest.approx(51_000)
    assert named["interactivity_floor"] == pytest.approx(90)


@pytest.mark.parametrize("question", QUESTIONS, ids=["reference", "default"])
def test_the_stated_loss_comes_by_pinning_the_runner_up(capsys, question):
    found, pinned = explained(capsys, question), 0
    best = found.objective.value
    for choice in found.choices:
        if choice.choice in PHASES and choice.runner_up is not None:
            scenario = scenario_of(question, f"places.{choice.choice}={choice.runner_up}")
            solution = optimise(scenario, tables_of(scenario))
            assert solution.designs[0][0].options[choice.choice].device == choice.runner_up
            assert solution.value == near(choice.objective_value)
            assert choice.loss == pytest.approx(best - solution.value, abs=2e-7 * best)
            pinned += 1
    assert pinned


def test_phase_figures_are_those_of_the_plans(capsys):
    found = explained(capsys, QUESTIONS[0])
    prefill = next(choice for choice in found.choices if choice.choice == "draft_prefill")
    here, there = prefill.figures
    assert (here.option, there.option) == ("gpu:tp1:b1", "accelerator:tp1:b1")
    assert (here.operation_s, there.operation_s) == (0.020, 0.010)


# -------------------------------------------------------------------------------------------- infeasible


def test_an_infeasible_question_gets_its_smallest_conflict_and_the_plans_beside_it(capsys):
    question = ["--budget-kw", "15", "--min-tps", "100", "--demand-rps", "40"]
    code, out, _ = said(capsys, ["explain", *question, "--json"])
    assert code == 3
    found = Explanation.model_validate_json(out)
    solved = [one for one in found.infeasibility if one.objective_value is not None]
    assert {one.conflict.limit for one in solved} == {"power_budget", "interactivity_floor", "demand"}
    flags = {
        "power_budget": ("--budget-kw", 1e-3),
        "interactivity_floor": ("--min-tps", 1),
        "demand": ("--demand-rps", 1),
    }
    for one in solved:
        flag, scale = flags[one.conflict.limit]
        easier = 1 - 1e-6 if flag != "--budget-kw" else 1 + 1e-6
        moved = list(question)
        moved[moved.index(flag) + 1] = repr(one.conflict.achievable * scale * easier)
        code, out, _ = said(capsys, [*moved, "--json"])
        assert code == 0
        assert json.loads(out)["objective"]["value"] == pytest.approx(one.objective_value, rel=1e-4)


def test_the_conflict_is_that_of_the_plan():
    """``test_infeasible`` compares those with loops."""
    seen = 0
    for seed in range(12):
        scenario = strategies.scenario(random.Random(seed), tight=0.9)
        found, plan = explain(scenario), solve(scenario)
        assert tuple(one.conflict for one in found.infeasibility) == plan.infeasibility
        for one in found.infeasibility:
            assert (one.objective_value is not None) == (one.conflict.suffices and one.conflict.limit != "memory")
            seen += 1
    assert seen


# ---------------------------------------------------------------------------------------------- the command


def test_a_plan_document_is_explained_as_the_question(tmp_path, capsys):
    _, out, _ = said(capsys, [*QUESTIONS[0], "--json"])
    path = tmp_path / "plan.json"
    path.write_text(out)
    told = {}
    for name in (str(path), str(tmp_path)):
        assert run_as_typed(["explain", name, "--json"]) == 0
        told[name] = json.loads(capsys.readouterr().out)
    said(capsys, ["explain", *QUESTIONS[0], "--json"])
    for one in told.values():
        assert one["provenance"]["command"] == json.loads(out)["provenance"]["command"]
    (first, second) = told.values()
    assert first["choices"] == second["choices"]


def test_a_plan_comes_from_standard_input(tmp_path, capsys, monkeypatch):
    _, out, _ = said(capsys, [*QUESTIONS[0], "--json"])
    monkeypatch.setattr("sys.stdin", io.StringIO(out))
    assert run_as_typed(["explain", "-"]) == 0
    assert "The power budget binds" in capsys.readouterr().out


def test_an_infeasible_plan_document_is_explained(tmp_path, capsys):
    _, out, _ = said(capsys, ["--budget-kw", "1", "--min-tps", "500", "--json"])
    (tmp_path / "plan.json").write_text(out)
    assert run_as_typed(["explain", str(tmp_path)]) == 3
    assert "No plan meets the interactivity floor" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file"),
        ("", "it is no plan document: it is empty"),
        ("{", "it is no plan document: it is no JSON"),
        ("{}", "it is no plan document: status: field required"),
        ("[1]", "it is no plan document: input should be"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path, capsys, content, message):
    path = tmp_path / "plan.json"
    if content is not None:
        path.write_text(content)
    assert run_as_typed(["explain", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err


def test_a_plan_has_its_own_question(tmp_path, capsys):
    assert run_as_typed(["explain", str(tmp_path), "--budget-kw", "3"]) == 2
    assert "leave out --budget-kw" in capsys.readouterr().err


def test_shares_are_refused(capsys):
    code, _, err = said(capsys, ["explain", "--budget-kw", "50", "--set", "max_shares=2"])
    assert code == 2
    assert "max_shares 1" in err


def test_the_choices_of_several_workloads_are_named(capsys):
    code, out, _ = said(capsys, ["explain", "--scenario", "chat-and-completion", "--max-draft-length", "2"])
    text = " ".join(out.split())
    assert code == 0
    assert "For chat, target prefill is on" in text
    assert tables_of(read_scenario("chat-and-completion").scenario).keys() >= {"chat"}


def test_a_pinned_phase_is_said_to_be_pinned(capsys):
    question = [*QUESTIONS[0], "--place", "draft_prefill=accelerator"]
    code, out, _ = said(capsys, ["explain", *question])
    assert code == 0
    text = " ".join(out.split())
    assert "Draft prefill is on accelerator; it is pinned there." in text
    assert "draft prefill is on accelerator; no other" not in text.lower()


def test_without_another_proposer_plain_decode_is_the_rival(capsys):
    _, out, _ = said(capsys, ["explain", *QUESTIONS[0]])
    assert "neither another proposer nor plain decode meets the interactivity floor" in " ".join(out.split())


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda plan: plan["objective"].update(value=1.0), "was it edited?): objective"),
        (lambda plan: plan["totals"].update(throughput_tps=1.0), "was it edited?): totals.throughput_tps"),
        (lambda plan: plan["provenance"]["catalogs"].update({"reference": "0"}), "has changed since"),
        (lambda plan: plan["provenance"].update(command="plan --scenario nosuch"), "its question cannot be asked here"),
    ],
)
def test_a_document_that_does_not_hold_says_what_is_wrong(edit, message, tmp_path, capsys):
    _, out, _ = said(capsys, [*QUESTIONS[0], "--json"])
    plan = json.loads(out)
    edit(plan)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    assert run_as_typed(["explain", str(path)]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert str(path) in err

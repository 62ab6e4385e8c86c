"""The search against nested loops and the exact front, its parts against closed forms, its studies resumed."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import fleet_strategies
import front_oracles
import oracles
import pytest
import strategies
from optuna.trial import TrialState
from tiny import TINY, tiny

from planner.cli import EXIT_INTERRUPTED, run
from planner.errors import InputError
from planner.fields import changed, path_of, value_at
from planner.front.asked import asked_of
from planner.front.recipe import exact_front
from planner.front.structure import separates
from planner.options import speculations_of
from planner.read.load import read_scenario
from planner.schema.scenario import Knob, LossyAcceptance, Scenario
from planner.search.inner import Inner
from planner.search.recipe import Searching, searched_front
from planner.search.space import BATCH, FLOOR, LENIENCE, LOWEST_FLOOR, Space
from planner.search.storage import opened
from planner.search.study import How, finished

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"
COMPARED = [
    "reference",
    "reference-slow-prefill",
    "reference-high-energy-prefill",
    "llama-70b-chat",
    "chat-and-completion",
    str(EXAMPLES / "scenario.yaml"),
]


def pairs_of(front):
    return [(point.interactivity_tps, point.energy_j_per_token) for point in front.points]


def assert_same(found, expected, relative=1e-8):
    assert len(found) == len(expected), (found, expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine == pytest.approx(theirs, rel=relative)


def space_of(scenario):
    return Space.of(scenario, asked_of(scenario).tables)


def inner_of(scenario):
    asked = asked_of(scenario)
    return Inner(Space.of(scenario, asked.tables), asked.tables)


def with_tree():
    """The example of knobs, its token tree on offer too."""
    return read_scenario(str(EXAMPLES / "knobs.yaml")).scenario.replace(proposers=("family", "family-tree"))


def knobs(**given):
    return {name: Knob.model_validate(fields) for name, fields in given.items()}


# ------------------------------------------------------------------------------------------- near the exact front


@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.parametrize("warm_start", [True, False])
def test_300_trials_come_near_the_exact_front(name, warm_start):
    """At least 99 % of its hypervolume with the warm start, 97 % without."""
    front = searched_front(read_scenario(name).scenario, How(warm_start=warm_start))
    assert front.search.trials == 300
    assert front.search.share_of_exact >= (0.99 if warm_start else 0.97)
    assert front.search.share_of_exact <= 1.0 + 1e-9
    assert (front.search.warm_started > 0) == warm_start
    assert not front.exact
    assert sum(front.search.importance.values()) == pytest.approx(1.0)
    assert front.search.history[-1] == pytest.approx(front.hypervolume)
    assert list(front.search.history) == sorted(front.search.history)


def any_design(scenario):
    return any(one.fits for one in oracles.points(scenario))


def test_begun_with_the_exact_front_it_is_that_of_nested_loops():
    compared = 0
    for seed in range(40):
        scenario = strategies.seeded(f"search {seed}", tight=0.2)
        if not any_design(scenario):
            continue
        expected = front_oracles.front_of_one(scenario)
        front = searched_front(scenario, How(trials=2 * len(expected) + 2))
        assert_same(pairs_of(front), expected, 1e-6)
        compared += len(expected) > 1
    assert compared > 5


def test_a_trial_gives_the_least_energy_of_nested_loops():
    """Over every design of the trial's proposer whose batches are no larger and which is at least as fast."""
    rng, compared = random.Random(7), 0
    for seed in range(30):
        scenario = strategies.seeded(f"trial {seed}", tight=0.1, counts="fractional")
        if not any_design(scenario) or not separates(asked_of(scenario)):
            continue
        inner = inner_of(scenario)
        values = {
            p.name: rng.choice(p.choices) if p.choices else rng.uniform(p.low, p.high) for p in inner.space.parameters
        }
        answer = inner.answer(values)
        if answer is None or not answer.is_feasible:
            continue
        chosen = scenario.replace(proposers=()) if values.get("proposer") is None else scenario
        able = [
            pair
            for pair in _energies(chosen, values.get("proposer"), values.get(BATCH, 10**9))
            if pair[0] >= answer.interactivity_tps * (1 - 1e-9)
        ]
        assert answer.energy_j_per_token == pytest.approx(min(energy for _, energy in able), rel=1e-8)
        compared += 1
    assert compared > 8


def _energies(scenario, proposer, batch):
    ((_, workload),) = scenario.workloads.items()
    rate, large = workload.limits.demand_rps or 1.0, workload.limits.demand_rps is None
    for one in oracles.points(scenario):
        if one.proposer != proposer or any(size > batch for _, _, size in one.places.values()):
            continue
        able = front_oracles.in_stock(scenario, one) if large else None
        if not oracles.serves(scenario, one):
            continue
        if not (able if large else oracles.affordable(scenario, one, rate)):
            continue
        n = oracles.counts(scenario, one, rate)
        yield one.interactivity_tps, oracles.watts(scenario, one, rate, n) / (rate * workload.osl_tokens)


@pytest.mark.parametrize("kind", ["pairs", "shared"])
def test_where_choices_are_coupled_it_finds_the_exact_front_again(kind):
    compared = 0
    for seed in range(14):
        rng = random.Random(f"front {kind} {seed}")
        scenario = fleet_strategies.scenario(rng, kind, objective="power", max_draft_length=2, max_shares=1)
        exact = exact_front(scenario)
        if not exact.points:
            continue
        front = searched_front(scenario, How(trials=4 * len(exact.points)))
        assert front.search.share_of_exact == pytest.approx(1.0, rel=1e-5)
        compared += len(exact.points) > 1
    assert compared >= 1


def test_what_is_infeasible_is_proven_so_without_a_trial():
    front = searched_front(tiny({"interactivity_floor_tps": 1e6}))
    assert (front.points, front.search, front.exact) == ((), None, True)
    assert [conflict.limit for conflict in front.infeasibility] == ["interactivity_floor"]


# ------------------------------------------------------------------------------------------------- what is varied


def test_the_parameters_of_a_scenario():
    names = {p.name: p for p in space_of(with_tree()).parameters}
    assert names["proposer"].choices == (None, "family", "family-tree")
    assert names[BATCH].choices == (16, 64)
    assert [name for name in names if "children" in name] == [f"family-tree.children.{level}" for level in range(1, 7)]
    assert (names["family-tree.children.1"].high, names["family-tree.children.1"].given) == (
        4,
        ("proposer", "family-tree"),
    )
    assert (names["drafter_size_b"].log, names["power_cap"].low, names[FLOOR].low) == (True, 0.5, LOWEST_FLOOR)
    assert [p.name for p in space_of(tiny()).parameters] == ["proposer", FLOOR]


def test_a_knob_moves_its_fields_together():
    scenario = read_scenario(str(EXAMPLES / "knobs.yaml")).scenario
    moved = space_of(scenario).scenario_of({"drafter_size_b": 2.0, "power_cap": 0.85, "max_utilization": 0.7})
    assert moved.max_utilization == 0.7
    assert moved.catalog.proposers["family"].acceptance["chat-70b"]["general"].alpha == pytest.approx(0.74)
    draft = moved.catalog.devices["big-gpu"].profiles["small"]["draft_decode"]["b16"]
    assert (draft.latency_ms.per_token, draft.energy_mj.per_token) == (pytest.approx(2.3), pytest.approx(83.0))
    assert moved.catalog.devices["big-gpu"].provisioned_power_w == pytest.approx((950 + 1275) / 2)
    assert scenario.max_utilization == 0.8, "the scenario itself stays as it is"


def test_a_knob_may_hold_names_with_dots_positions_and_whole_numbers():
    scenario = tiny(knobs=knobs(max_draft_length={"low": 1, "high": 4}))
    whole = {p.name: p.whole for p in space_of(scenario).parameters}
    assert whole == {"proposer": False, "max_draft_length": True, FLOOR: False}
    profile = "catalog.devices.gpu.profiles.target.target_verify.b2.latency_ms.per_token"
    path = path_of(scenario, profile)
    assert value_at(changed(scenario, path, 7.5), *path) == 7.5
    assert path_of(scenario, "proposers.1") == ("proposers", 1)
    dotted = Scenario.model_validate(json.loads(json.dumps(TINY).replace('"gpu"', '"gpu-1.5"')))
    assert path_of(dotted, "catalog.devices.gpu-1.5.idle_power_w")[2] == "gpu-1.5"


def test_a_number_takes_the_place_of_a_form():
    scenario = tiny()
    path = path_of(scenario, "catalog.devices.gpu.profiles.small.draft_prefill.b1.latency_ms")
    assert value_at(changed(scenario, path, 33.0), *path).constant == 33.0


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("catalog.devices.gpuu.idle_power_w", {"low": 1, "high": 2}, "nearest: gpu"),
        ("max_utilization", {"low": 0.5, "high": 1.5}, "max_utilization = 1.5"),
        ("pue", {"choices": ["high"]}, "pue = 'high'"),
        ("name", {"choices": ["a", "b"]}, "not for a search to vary"),
        ("proposer", {"low": 1, "high": 2, "sets": {"pue": [[1, 1], [2, 1.5]]}}, "a parameter already"),
    ],
)
def test_a_knob_that_does_not_fit_is_refused(name, fields, said):
    with pytest.raises(InputError, match=said):
        space_of(tiny(knobs=knobs(**{name: fields})))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"low": 2, "high": 1}, "below high"),
        ({"low": 0, "high": 1, "log": True}, "above 0"),
        ({"low": 1}, "low and high, or choices"),
        ({"low": 1, "high": 2, "step": 3}, "step must be"),
        ({"choices": [1], "low": 0}, "choices stand alone"),
        ({"low": 0, "high": 2, "sets": {"pue": [[0, 1], [1, 2]]}}, "reach from 0 to 2"),
    ],
)
def test_a_knob_that_makes_no_sense_is_refused(fields, said):
    with pytest.raises(ValueError, match=said):
        Knob.model_validate(fields)


def test_with_knobs_no_exact_front_is_claimed_and_points_name_their_values():
    scenario = tiny(knobs=knobs(pue={"low": 1.0, "high": 1.5}), front={"reference_point": {"energy_j_per_token": 90.0}})
    front = searched_front(scenario, How(trials=40))
    assert (front.search.exact_hypervolume, front.search.share_of_exact) == (None, None)
    best = front.points[0].trial.parameters
    own = searched_front(scenario.replace(pue=best["pue"], knobs={}), How(trials=20))
    assert front.points[0].energy_j_per_token == pytest.approx(own.points[0].energy_j_per_token)
    assert best["pue"] < 1.1, "less is better, and a search finds that"
    held = exact_front(scenario)
    assert any("knobs are held" in text for text in held.assumptions)


def test_lenience_is_searched_where_the_scenario_opts_in():
    lossy = LossyAcceptance(lenience=0.5, rejection_exponent=0.5)
    scenario = tiny(lossy_acceptance=lossy)
    assert {p.name: (p.low, p.high) for p in space_of(scenario).parameters}[LENIENCE] == (0.5, 1.0)
    front, strict = exact_front(scenario), exact_front(tiny())
    assert any("no longer follows the target's distribution" in text for text in front.assumptions)
    assert not any("lossy" in text for text in strict.assumptions)
    assert front.points[-1].interactivity_tps > strict.points[-1].interactivity_tps
    searched = searched_front(scenario, How(trials=60))
    assert searched.search.share_of_exact == pytest.approx(1.0)


def test_the_shape_of_a_tree_changes_acceptance_and_nodes():
    scenario = with_tree()
    wide = space_of(scenario).scenario_of(
        {"drafter_size_b": 1.0, "power_cap": 1.0, "max_utilization": 0.8, "family-tree.children.1": 4}
    )
    assert next(s.nodes for s in speculations_of(scenario, "chat") if s.proposer == "family-tree") == 3
    assert next(s.nodes for s in speculations_of(wide, "chat") if s.proposer == "family-tree") == 4
    first = {s.proposer: E for s, E in zip(*_committed(wide), strict=True) if s.draft_length == 1}
    assert first["family-tree"] == pytest.approx(1 + 0.68 + 0.11 + 0.05 + 0.02)


def _committed(scenario):
    table = asked_of(scenario).tables["chat"]
    return table.speculations, table.tokens_per_step


# ---------------------------------------------------------------------------------------------- trials and studies


def test_limits_are_constraints_by_their_names():
    """A trial whose values leave nothing within the limits tells which are broken, and by how much."""
    scenario = tiny({"demand_rps": 2.0, "ttft_ceiling_ms": 500.0}, {"power_budget_kw": 10.0}, power_basis="provisioned")
    inner = inner_of(scenario)
    able = inner.answer({"proposer": None, FLOOR: 0.0})
    assert able.is_feasible
    assert set(able.excess) == {"power_budget", "ttft_ceiling", "demand"}
    tight = inner_of(scenario.replace(limits=scenario.limits.replace(power_budget_kw=1.0)))
    broken = tight.answer({"proposer": None, FLOOR: 0.0})
    watts = broken.energy_j_per_token * 2.0 * 101
    assert broken.excess["power_budget"] == pytest.approx(watts / 1e3 - 1.0)
    assert not broken.is_feasible


def test_the_same_seed_gives_the_same_answer_and_another_one_another():
    scenario = read_scenario(str(EXAMPLES / "knobs.yaml")).scenario
    fronts = [searched_front(scenario, How(trials=40, warm_start=False, seed=seed)) for seed in (3, 3, 4)]
    told = [[point.trial for point in front.points] for front in fronts]
    assert told[0] == told[1] != told[2]
    assert fronts[0].search.history == fronts[1].search.history != fronts[2].search.history


@pytest.mark.parametrize("kind", ["journal:", "sqlite:///"])
def test_a_study_is_resumed_as_if_it_had_not_been_interrupted(kind, tmp_path):
    scenario = read_scenario("reference").scenario
    url = f"{kind}{tmp_path / 'kept'}"
    searched_front(scenario, How(trials=30, storage=url))
    resumed = searched_front(scenario, How(trials=45, storage=url))
    whole = searched_front(scenario, How(trials=45))
    assert resumed.search.trials == 45
    assert pairs_of(resumed) == pairs_of(whole)
    assert resumed.search.history == whole.search.history
    again = Searching.of(scenario, How(trials=45, storage=url))
    again.run()
    assert len(finished(again.study)) == 45, "there is nothing left to do"


def test_a_study_of_another_question_is_refused(tmp_path):
    url = f"sqlite:///{tmp_path / 'kept.db'}"
    searched_front(tiny(), How(trials=3, storage=url, study="mine"))
    with pytest.raises(InputError, match="another question"):
        searched_front(tiny(pue=1.3), How(trials=3, storage=url, study="mine"))


@pytest.mark.parametrize("kind", ["journal:", "sqlite:///"])
def test_workers_share_a_study(kind, tmp_path, capsys):
    """Enqueued designs too: each of them is tried by one worker."""
    arguments = [
        "--scenario",
        "reference",
        "--trials",
        "60",
        "--workers",
        "3",
        "--storage",
        f"{kind}{tmp_path / 'kept'}",
    ]
    assert run(["pareto", *arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert 60 <= document["search"]["trials"] <= 62
    assert document["search"]["share_of_exact"] > 0.99
    assert document["search"]["warm_started"] == len(exact_front(read_scenario("reference").scenario).points)
    assert document["warnings"] == []


def len_of(url):
    """How many trials of the studies in a storage are finished."""
    storage = opened(url, 10)
    try:
        studies = storage.get_all_studies()
        return sum(len(storage.get_all_trials(one._study_id, states=(TrialState.COMPLETE,))) for one in studies)
    finally:
        storage.remove_session()
        storage.engine.dispose()


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_keeps_what_was_found(workers, tmp_path):
    url = f"sqlite:///{tmp_path / 'kept.db'}"
    storage = ["--storage", url, "--workers", str(workers)]
    command = [sys.executable, "-m", "planner", "pareto", "--trials", "1000000", "--json", *storage]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        until = time.monotonic() + 90
        while not len_of(url) and time.monotonic() < until:
            time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        try:
            out, err = running.communicate(timeout=60)
        finally:
            running.kill()
    assert err.strip() == "interrupted: ending the trials under way", err[-900:]
    assert running.returncode == EXIT_INTERRUPTED
    document = json.loads(out)
    assert document["search"]["trials"] > 0
    assert document["points"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workers", "2"], "need a --storage"),
        (["--method", "exact", "--trials", "9"], "only a search takes --trials"),
        (["--storage", "foo"], "this is no storage"),
        (["--storage", "oracle9://x"], "this is no storage"),
        (["--storage", "journal:/nowhere/at/all"], "--storage"),
        (["--storage", "postgresql://me:secret@127.0.0.1:1/x"], "--storage"),
        (["--set", "knobs={pue: {low: 3}}"], "low and high"),
        (["--set", "knobs={puee: {low: 1, high: 2}}"], "there is no such key"),
    ],
)
def test_what_cannot_be_searched_is_said_in_a_line(arguments, said, capsys):
    assert run(["pareto", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "secret" not in err
    assert err.startswith("error: ")


def test_a_password_is_not_written_into_an_answer(capsys, monkeypatch):
    from planner.cli import common

    monkeypatch.setattr(common.click, "get_current_context", lambda: _Context())
    assert common.command_line() == "plan pareto --storage postgresql://me@host/db"


class _Context:
    def find_root(self):
        return self

    obj = ("pareto", "--storage", "postgresql://me:secret@host/db")


# --------------------------------------------------------------------------------------------------------- report


def test_a_report_shows_what_mattered_and_how_the_front_grew(tmp_path, capsys):
    arguments = [
        "report",
        "--scenario",
        str(EXAMPLES / "knobs.yaml"),
        "--trials",
        "60",
        "--output",
        str(tmp_path),
        "--json",
    ]
    assert run(arguments) == 0
    review = json.loads(capsys.readouterr().out)
    search = review["searched"]["search"]
    assert len(search["history"]) == search["trials"] == 60
    history = (tmp_path / "figures" / "search-history.svg").read_text(encoding="utf-8")
    assert f"after {1 + next(n for n, value in enumerate(search['history']) if value > 0)} trials" in history
    most = max(search["importance"], key=search["importance"].get)
    assert most in (tmp_path / "figures" / "search-importance.svg").read_text(encoding="utf-8")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "## The front by search" in text
    assert "drafter\\_size\\_b" in text


def test_a_report_without_knobs_searches_only_where_asked(tmp_path, capsys):
    assert run(["report", "--output", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["searched"] is None
    assert not (tmp_path / "figures" / "search-history.svg").exists()

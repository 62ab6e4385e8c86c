"""A review and its report: every figure is one that ``plan evaluate`` prints, and the published study comes out."""

import contextlib
import csv
import io
import json
import shlex
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from commands import run

from planner.errors import InputError
from planner.read.load import read_scenario
from planner.read.overrides import parse_assignments
from planner.report.chart_ways import STYLES
from planner.report.points import COLUMNS, points_csv
from planner.review.curves import Commands
from planner.review.recipe import review
from planner.schema.documents import BaselineName
from planner.schema.scenario import ReportSettings
from planner.words import PHASES

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ROOT / "reports"
SAMPLES = {
    "reference": 1,
    "reference-slow-prefill": 3,
    "reference-high-energy-prefill": 3,
    "llama-70b-chat": 3,
}
"""Committed reports, and which share of their points is evaluated: every one, or every third."""


@cache
def rows_of(sample):
    with (REPORTS / sample / "points.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def evaluated(command):
    """What the command in a row prints, its own JSON document."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        assert run([*shlex.split(command)[1:], "--json"]) == 0
    return json.loads(out.getvalue())


@cache
def reviewed(name):
    scenario = read_scenario(name).scenario
    return review(scenario, Commands(name))


def curve(sample, way, metric, figure="curve", speed=""):
    """A metric over the draft length, read from the committed numbers."""
    mine = [row for row in rows_of(sample) if (row["figure"], row["way"]) == (figure, way)]
    return {int(r["draft_length"]): float(r[metric]) for r in mine if r["draft_ms_per_token"] == speed}


def peak(points):
    return max(points.items(), key=lambda point: point[1])


# ------------------------------------------------------------------------------- every figure is an evaluation


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_figure_is_what_the_command_beside_it_prints(sample, monkeypatch):
    monkeypatch.chdir(ROOT)
    rows = rows_of(sample)
    assert len(rows) > 60
    for row in rows[:: SAMPLES[sample]]:
        one = evaluated(row["command"])
        metrics = one["metrics"]
        for name in (
            "tokens_per_step",
            "step_time_s",
            "interactivity_tps",
            "ttft_s",
            "energy_j_per_token",
            "tps_per_kw",
        ):
            assert float(row[name]) == pytest.approx(metrics[name], rel=1e-11), row["command"]
        assert int(row["draft_length"]) == one["draft_length"]
        for part, share in metrics["energy_share"].items():
            cell = row[f"{part}_j_per_token"]
            assert (cell == "") == (share is None)
            if share is not None:
                assert float(cell) == pytest.approx(share * metrics["energy_j_per_token"], rel=1e-11)
        if row["figure"] == "front":
            basis = read_scenario(one_scenario(row)).scenario.power_basis
            expected = one["power_w"][basis] / metrics["throughput_tps"]
            assert float(row["front_energy_j_per_token"]) == pytest.approx(expected, rel=1e-9)


def one_scenario(row):
    words = shlex.split(row["command"])
    return words[words.index("--scenario") + 1]


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_columns_are_what_they_are(sample):
    header = (REPORTS / sample / "points.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.split(",") == list(COLUMNS)


# --------------------------------------------------------------------- the ten figures of the published study

# Printed by Gimlet Labs, "Disaggregating the Disaggregated Model", 2026; its placements are our ways gpu_only =
# single_device, accelerator_draft = draft_on_fastest, split_draft. A and tau are fitted: rates within 1 %.
GPU, ACCELERATOR, SPLIT = "single_device", "draft_on_fastest", "split_draft"
SLOW, HIGH = "reference-slow-prefill", "reference-high-energy-prefill"


@pytest.mark.parametrize(("speed", "length"), [("5", 9), ("1", 15)])
def test_figure_of_draft_speeds(speed, length):
    assert peak(curve("reference", GPU, "interactivity_tps", "draft-speed", speed))[0] == length


@pytest.mark.parametrize(("way", "length", "tps"), [(GPU, 8, 61.0), (ACCELERATOR, 15, 137.0), (SPLIT, 15, 137.0)])
def test_figure_of_interactivity(way, length, tps):
    best, value = peak(curve("reference", way, "interactivity_tps"))
    assert best == length
    assert value == pytest.approx(tps, rel=0.01)
    assert curve("reference", SPLIT, "interactivity_tps") == curve("reference", ACCELERATOR, "interactivity_tps")


def test_figure_of_throughput_per_kw():
    """On the GPU alone each kW carries more; with a dear draft prefill splitting gains about 17 %."""
    assert peak(curve("reference", GPU, "tps_per_kw"))[1] > peak(curve("reference", ACCELERATOR, "tps_per_kw"))[1]
    split, whole = (peak(curve(HIGH, way, "tps_per_kw"))[1] for way in (SPLIT, ACCELERATOR))
    assert split / whole - 1 == pytest.approx(0.17, abs=0.01)


@pytest.mark.parametrize(("way", "share"), [(GPU, 0.058), (ACCELERATOR, 0.224)])
def test_figures_of_energy_by_phase(way, share):
    parts = {part: curve_with_gaps("reference", way, f"{part}_j_per_token") for part in PHASES}
    total = curve("reference", way, "energy_j_per_token")
    assert parts["draft_decode"][10] / total[10] == pytest.approx(share, abs=0.001)
    for length, energy in total.items():
        assert sum(values.get(length, 0.0) for values in parts.values()) == pytest.approx(energy, rel=1e-9)


def curve_with_gaps(sample, way, metric):
    mine = [row for row in rows_of(sample) if (row["figure"], row["way"]) == ("curve", way) and row[metric]]
    return {int(row["draft_length"]): float(row[metric]) for row in mine}


@pytest.mark.parametrize(("way", "ttft_s"), [(GPU, 0.190), (ACCELERATOR, 0.2125), (SPLIT, 0.190)])
def test_figure_of_ttft_with_a_slow_prefill(way, ttft_s):
    assert curve(SLOW, way, "ttft_s")[15] == pytest.approx(ttft_s, rel=1e-9)


def test_figure_of_accepted_tokens():
    points = curve("reference", GPU, "tokens_per_step")
    assert points[0] == 1.0
    assert list(points.values()) == sorted(points.values())
    assert all(1.0 <= value <= length + 1 for length, value in points.items())


def test_figure_of_roofs():
    found = reviewed("reference")
    assert found.roof_axes == "tokens"
    marks = {(roof.device, mark.phase): mark for roof in found.roofs for mark in roof.marks}
    assert marks["gpu", "target_prefill"].y == pytest.approx(4096 / 0.150)
    assert marks["gpu", "draft_decode"].y == pytest.approx(1 / 0.008)
    assert marks["accelerator", "draft_decode"].y == pytest.approx(1 / 0.0015)
    assert set(marks) == {
        *(("gpu", phase) for phase in PHASES),
        ("accelerator", "draft_prefill"),
        ("accelerator", "draft_decode"),
    }


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_figures_are_there(sample):
    wanted = {"front", "interactivity", "throughput-per-kw", "ttft", "tokens-per-step", "roofline"}
    wanted |= {"energy-single-device", "energy-draft-on-fastest"}
    wanted |= {"draft-speed"} if sample.startswith("reference") else {"power"}
    assert wanted <= {path.stem for path in (REPORTS / sample / "figures").glob("*.svg")}


# --------------------------------------------------------------------------------------------------- the review


def test_without_a_bound_there_is_no_plan_but_a_front():
    found = reviewed("reference")
    assert found.plan is None
    assert len(found.front.points) == 13
    assert [way.name for way in found.ways] == ["no_speculation", GPU, ACCELERATOR, SPLIT]


def test_no_way_lies_beyond_the_front():
    for name in ("reference", str(ROOT / "docs/examples/llama-70b.yaml")):
        found = reviewed(name)
        ways = [point for way in found.ways for point in way.front]
        assert len(ways) > 10
        for point in ways:
            beyond = [p for p in found.front.points if p.interactivity_tps >= point.interactivity_tps * (1 - 1e-9)]
            assert beyond, "nothing is faster than the front"
            assert beyond[0].energy_j_per_token <= point.energy_j_per_token * (1 + 1e-9)


def test_the_plan_is_drawn_as_a_way():
    scenario = read_scenario("reference").scenario
    asked = scenario.replace(limits=scenario.limits.replace(power_budget_kw=50.0))
    found = review(asked, Commands("reference"))
    (own,) = [way for way in found.ways if way.is_plan]
    (deployment,) = found.plan.deployments
    assert own.devices == {phase: place.device for phase, place in deployment.placements.items()}


def test_marks_lie_under_their_roofs_in_flop():
    found = reviewed(str(ROOT / "docs/examples/llama-70b.yaml"))
    assert found.roof_axes == "flop"
    for roof in found.roofs:
        low, ridge, _ = roof.roof
        for mark in roof.marks:
            assert mark.y <= min(ridge.y, low.y / low.x * mark.x) * (1 + 1e-9), (roof.device, mark)


def test_speeds_of_a_scenario_are_drawn():
    scenario = read_scenario("reference").scenario
    own = review(scenario.replace(report=ReportSettings(draft_ms_per_token=(3.0,))), Commands("reference")).speeds
    assert [speed.draft_ms_per_token for speed in own] == [3.0]
    usual = review(scenario.replace(report=ReportSettings()), Commands("reference")).speeds
    assert [speed.draft_ms_per_token for speed in usual] == [4.0, 1.6]


def test_a_workload_is_chosen_and_named():
    scenario = read_scenario(str(ROOT / "docs/examples/two-products.yaml")).scenario
    found = review(scenario, Commands("x"), workload="chat")
    assert found.workload == "chat"
    assert {one.workload for way in found.ways if way.curve for one in way.curve.points} == {"chat"}
    assert all("--workload chat" in command for way in found.ways if way.curve for command in way.curve.commands)
    with pytest.raises(InputError, match="no such workload"):
        review(scenario, Commands("x"), workload="chatt")


def test_the_numbers_hold_every_point():
    found = reviewed("reference")
    rows = list(csv.DictReader(io.StringIO(points_csv(found))))
    curves = [way.curve for way in found.ways if way.curve] + [speed.curve for speed in found.speeds]
    assert len(rows) == len(found.front.points) + sum(len(one.points) for one in curves)


def test_every_usual_way_has_a_look_of_its_own():
    assert set(STYLES) == {*get_args(BaselineName), "this_plan"}
    assert len({(colour, tuple(pattern)) for colour, pattern, _, _ in STYLES.values()}) == len(STYLES)


# ----------------------------------------------------------------- every kind of proposer, tree and layout

WAYS_TO_SPECULATE = {
    "a module of the target": ("deepseek-mtp", ()),
    "a host": ("code-completion", ("proposers=[ngram]",)),
    "a drafter beside the target": ("docs/examples/llama-70b.yaml", ("layouts=[colocated_drafter]",)),
    "aggregated serving": ("docs/examples/llama-70b.yaml", ("layouts=[aggregated]",)),
    "a tree": (
        "docs/examples/llama-70b.yaml",
        ("catalog.proposers.llama-1b-drafts.tree={branching: [3, 2, 1, 1, 1]}",),
    ),
    "several layouts": ("docs/examples/llama-70b.yaml", ("layouts=[disaggregated, colocated_drafter, aggregated]",)),
}


@pytest.mark.parametrize("way", WAYS_TO_SPECULATE)
def test_every_way_to_speculate_is_reviewed_by_its_own_evaluations(way, monkeypatch):
    monkeypatch.chdir(ROOT)
    name, sets = WAYS_TO_SPECULATE[way]
    scenario = read_scenario(name, parse_assignments(sets)).scenario
    found = review(scenario, Commands(name, sets))
    rows = list(csv.DictReader(io.StringIO(points_csv(found))))
    told = [(row["figure"], row["way"], row["command"]) for row in rows]
    assert len(set(told)) == len(told), "a point stands twice"
    for row in rows[:: max(1, len(rows) // 12)]:
        one = evaluated(row["command"])
        for metric in ("interactivity_tps", "ttft_s", "energy_j_per_token"):
            assert float(row[metric]) == pytest.approx(one["metrics"][metric], rel=1e-9), row["command"]
        assert int(row["draft_length"]) == one["draft_length"]

"""Every outcome that the published reference prints, through the command.

Source of every printed figure: Gimlet Labs, "Disaggregating the Disaggregated Model", 2026. The study prints no
parameters of its acceptance curve; they are fitted (planner/fit.py), so that figures are held to 1 %, shares of energy
to 0.1 point, the gain in throughput per kW to one point. Draft lengths and times to first token are exact.
"""

import contextlib
import io
import json
from functools import cache

import pytest
from commands import run

from planner.words import PHASES

PLACEMENTS = {
    "gpu_only": ("gpu", "gpu", "gpu", "gpu"),
    "accelerator_draft": ("gpu", "gpu", "accelerator", "accelerator"),
    "split_draft": ("gpu", "gpu", "gpu", "accelerator"),
}
# Draft lengths of the study's figures, and beyond them as far as the scenario looks.
LENGTHS = range(1, 41)
PER_TOKEN = "catalog.devices.gpu.profiles.drafter.draft_decode.b1.latency_ms.per_token"


def places(placement):
    return [f"--place={phase}={device}" for phase, device in zip(PHASES, PLACEMENTS[placement], strict=True)]


@cache
def answer(*arguments):
    """Run the command in this process; give the JSON document that it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run([*arguments, "--json"]) == 0
    return json.loads(out.getvalue())


def evaluated(placement, length, scenario="reference", *more):
    arguments = ["evaluate", "--scenario", scenario, *places(placement), "--draft-length", str(length)]
    return answer(*arguments, *more)["metrics"]


def curve(metric, placement, scenario="reference", *more):
    """A metric over the draft length, as the study's figures draw it."""
    return {length: evaluated(placement, length, scenario, *more)[metric] for length in LENGTHS}


def peak(metric, placement, scenario="reference", *more):
    """Draft length and value of the highest point of a curve."""
    points = curve(metric, placement, scenario, *more)
    return max(points.items(), key=lambda point: point[1])


def within(value, printed, share=0.01):
    return value == pytest.approx(printed, rel=share)


# Printed: best draft length and peak interactivity in tokens/s per request.
PEAKS = [("gpu_only", 8, 61.0), ("accelerator_draft", 15, 137.0)]
# Printed: best draft length where the GPU drafts a token in 5 ms, and in 1 ms.
FASTER = [("5", 9), ("1", 15)]


@pytest.mark.parametrize(("placement", "length", "tps"), PEAKS)
def test_peak_interactivity(placement, length, tps):
    best, value = peak("interactivity_tps", placement)
    assert best == length
    assert within(value, tps)


@pytest.mark.parametrize(("placement", "length", "tps"), PEAKS)
def test_the_plan_finds_the_peak_by_itself(placement, length, tps):
    plan = answer("--objective", "interactivity", *places(placement))
    (deployment,) = plan["deployments"]
    assert plan["status"] == "optimal"
    assert deployment["draft_length"] == length
    assert within(plan["objective"]["value"], tps)


def test_without_places_the_plan_finds_the_better_peak():
    plan = answer("--objective", "interactivity")
    (deployment,) = plan["deployments"]
    assert deployment["draft_length"] == 15
    assert deployment["placements"]["draft_decode"]["device"] == "accelerator"
    assert within(plan["objective"]["value"], 137.0)


def test_ratio_of_the_peaks():
    assert within(peak("interactivity_tps", "accelerator_draft")[1] / peak("interactivity_tps", "gpu_only")[1], 2.25)


@pytest.mark.parametrize(("milliseconds", "length"), FASTER)
def test_a_faster_drafter_drafts_further_ahead(milliseconds, length):
    setting = f"--set={PER_TOKEN}={milliseconds}"
    assert peak("interactivity_tps", "gpu_only", "reference", setting)[0] == length
    plan = answer("--objective", "interactivity", *places("gpu_only"), setting)
    assert plan["deployments"][0]["draft_length"] == length


@pytest.mark.parametrize(("placement", "share"), [("gpu_only", 0.058), ("accelerator_draft", 0.224)])
def test_draft_decode_share_of_energy_at_ten(placement, share):
    shares = evaluated(placement, 10)["energy_share"]
    assert shares["draft_decode"] == pytest.approx(share, abs=0.001)
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-12)


def test_split_draft_is_as_fast_as_accelerator_draft_at_every_length():
    assert curve("interactivity_tps", "split_draft") == curve("interactivity_tps", "accelerator_draft")


@pytest.mark.parametrize(
    ("placement", "scenario", "ttft_s"),
    [
        ("accelerator_draft", "reference-slow-prefill", 0.2125),
        ("split_draft", "reference-slow-prefill", 0.190),
        ("gpu_only", "reference", 0.190),
        ("gpu_only", "reference-slow-prefill", 0.190),
    ],
)
def test_time_to_first_token_at_fifteen(placement, scenario, ttft_s):
    assert evaluated(placement, 15, scenario)["ttft_s"] == pytest.approx(ttft_s, rel=1e-12)


def test_a_slow_draft_prefill_costs_time_to_first_token_only():
    slow = curve("interactivity_tps", "accelerator_draft", "reference-slow-prefill")
    assert slow == curve("interactivity_tps", "accelerator_draft")


def gain(better, worse):
    return better / worse - 1.0


def test_gain_in_throughput_per_kw_of_splitting_the_draft():
    """Printed: approximately 17 %, with an accelerator whose draft prefill costs 100 J."""
    scenario = "reference-high-energy-prefill"
    split = peak("tps_per_kw", "split_draft", scenario)[1]
    assert gain(split, peak("tps_per_kw", "accelerator_draft", scenario)[1]) == pytest.approx(0.17, abs=0.01)


def test_the_plan_of_least_energy_finds_the_same_gain():
    def least(placement):
        chosen = ["--scenario", "reference-high-energy-prefill", *places(placement)]
        return answer("--objective", "energy", *chosen)["objective"]["value"]

    assert gain(least("accelerator_draft"), least("split_draft")) == pytest.approx(0.17, abs=0.01)


def test_the_second_source_prints_tokens_per_step():
    """About 2.8 at alpha 0.7 and four draft tokens. Source: Ales Analytics, 2026-11-08."""
    general = "catalog.proposers.drafter.acceptance.target.general"
    setting = f"--set={general}={{kind: geometric, alpha: 0.7}}"
    assert evaluated("gpu_only", 4, "reference", setting)["tokens_per_step"] == pytest.approx(2.8, abs=0.05)

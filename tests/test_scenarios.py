"""The bundled scenarios: proven, checked, stable, and saying what they rest on; drafts shorten as batches grow."""

import functools
import json
from itertools import pairwise

import pytest

from planner.check import check
from planner.options import cost_table
from planner.read import library
from planner.read.load import read_scenario
from planner.read.overrides import parse_assignments
from planner.solve import solve
from planner.words import PHASES

QUESTIONS = {
    "llama-70b-chat": ("limits.power_budget_kw=50", "workloads.chat.limits.interactivity_floor_tps=100"),
    "deepseek-mtp": (),
    "code-completion": (),
    "long-context-rag": (),
    "chat-and-completion": (),
}
EVERY_BATCH = "candidates.batch_sizes=[1,8,32,64,128,256,512]"
SWEEP = (EVERY_BATCH, "counts=fractional", "layouts=[disaggregated]")
DENSE = (*SWEEP, "proposers=[llama-3.3-70b-eagle3]", "workloads.chat.limits.interactivity_floor_tps=1")
MIXTURE = (*SWEEP, "workloads.assistant.limits.interactivity_floor_tps=1")


def scenario_of(name, *sets):
    return read_scenario(name, parse_assignments(sets)).scenario


@functools.cache
def solved(name, *sets):
    scenario = scenario_of(name, *sets)
    return scenario, solve(scenario)


def choices(plan):
    """What was chosen, without the figures: for each design the drafter, D, the options and their counts."""
    return {
        deployment.workload: {
            "proposer": deployment.proposer,
            "draft_length": deployment.draft_length,
            **{
                phase: None
                if (place := deployment.placements[phase]) is None
                else f"{place.device}:tp{place.tensor_parallel}:b{place.batch_size}"
                for phase in PHASES
            },
        }
        for deployment in plan.deployments
    } | {"pools": {pool.name: pool.replicas for pool in plan.pools}}


def test_every_bundled_scenario_is_asked_here():
    ours = {name for name in library.names("scenario") if not name.startswith("reference")}
    assert ours == set(QUESTIONS)


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_is_proven_and_passes_the_check(name):
    scenario, plan = solved(name, *QUESTIONS[name])
    assert plan.status == "optimal"
    assert plan.objective.gap <= 1e-6
    assert plan.infeasibility == ()
    assert check(plan, scenario) == []


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_is_real_hardware_in_whole_devices(name):
    scenario = scenario_of(name)
    assert scenario.counts == "integer"
    assert scenario.power_basis == "provisioned"
    assert scenario.first_token == "after_prefill"
    assert scenario.max_utilization < 1
    link = scenario.catalog.links[scenario.transfers.link]
    assert 0 < scenario.transfers.kv_exposed_share < 1
    assert link.energy_pj_per_byte > 0
    for workload in scenario.workloads.values():
        assert workload.limits.interactivity_floor_tps
        assert 0 < workload.limits.ttft_ceiling_ms <= 4000


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_assumed_or_recalled_is_named(name):
    scenario, plan = solved(name, *QUESTIONS[name])
    text = "\n".join(plan.assumptions)
    used = {place.device for d in plan.deployments for place in d.placements.values() if place is not None}
    entries = [("device", used, scenario.catalog.devices), ("proposer", scenario.proposers, scenario.catalog.proposers)]
    named = 0
    for kind, names, catalog in entries:
        for entry in names:
            weak = [f"{f} {how}" for f, how in catalog[entry].confidence.items() if how in ("assumed", "recalled")]
            assert all(
                any(line.startswith(f"{kind} {entry}: ") and w in line for line in plan.assumptions) for w in weak
            )
            named += len(weak)
    assert named > 3
    assert "(assumed" in text, "the scenario's own assumptions are said"


@pytest.mark.parametrize("name", QUESTIONS)
def test_its_answer_is_stable(name, golden):
    _, plan = solved(name, *QUESTIONS[name])
    golden(f"scenarios/{name}.json", json.dumps(choices(plan), indent=2) + "\n")


def test_the_default_has_the_shelf_that_it_should():
    scenario = scenario_of("llama-70b-chat")
    kinds = {scenario.catalog.proposers[name].kind for name in scenario.proposers}
    assert kinds == {"draft_model", "eagle3"}
    sheets = {name: scenario.catalog.devices[name].data_sheet for name in scenario.candidates.devices}
    assert sum(sheet.kind == "gpu" for sheet in sheets.values()) >= 4
    (in_sram,) = (name for name, sheet in sheets.items() if sheet.weights_in_sram)
    device = scenario.catalog.devices[in_sram]
    assert device.data_sheet.host.nameplate_kw == 23
    assert device.confidence["data_sheet.host.nameplate_kw"] == "read"
    table = cost_table(scenario, "chat")
    assert {s.layout for s in table.speculations} == set(scenario.layouts)
    assert any(o.device == in_sram for o in table.phases["draft_decode"].options), "it may draft, and is not chosen"


# ------------------------------------------------------------------------------------- draft length and batch


def swept(name, sets, option):
    """Draft length, throughput over plain decode, J/token and J/token of plain decode, by batch of verification."""
    found = {}
    for batch in (1, 8, 32, 64, 128, 256, 512):
        pinned = (*sets, f"places={{target_verify: {option}:b{batch}}}")
        (one,) = solved(name, *pinned)[1].deployments
        (plain,) = solved(name, *pinned, "proposers=[]")[1].deployments
        figures = (d.metrics.energy_j_per_token for d in (one, plain))
        found[batch] = (one.draft_length, one.metrics.throughput_tps / plain.metrics.throughput_tps, *figures)
    return found


@functools.cache
def dense():
    return swept("llama-70b-chat", DENSE, "h200-sxm:tp4")


@functools.cache
def mixture():
    return swept("deepseek-mtp", MIXTURE, "h200-sxm:tp8")


def test_drafts_of_a_dense_target_shorten_as_batches_grow():
    lengths = [length for length, *_ in dense().values()]
    assert lengths == sorted(lengths, reverse=True)
    assert (lengths[0], lengths[-1]) == (6, 1)
    gains = [gain for _, gain, *_ in dense().values()]
    assert all(next_one <= one * (1 + 1e-3) for one, next_one in pairwise(gains))
    assert gains[0] > 2
    assert gains[-1] < 1.05


def test_energy_saved_by_speculation_vanishes_as_batches_grow():
    saved = {batch: 1 - own / plain for batch, (_, _, own, plain) in dense().items()}
    assert saved[1] > 0.5
    assert saved[64] > 0.15
    assert saved[512] < 0.05


def test_a_mixture_gives_up_long_drafts_earlier():
    """Drafted tokens choose further experts; from 64 on nearly all are read anyway, see docs/speedups.md."""
    length = {batch: found[0] for batch, found in mixture().items()}
    gain = {batch: found[1] for batch, found in mixture().items()}
    assert length[1] == 4
    assert length[8] == length[32] == 1
    assert dense()[8][0] > 1
    assert dense()[32][0] > 1
    assert all(gain[batch] < dense()[batch][1] for batch in (1, 8, 32))
    assert gain[32] < gain[8] < gain[1]
    assert gain[128] > gain[32], "the return that the model has, and measurements hardly"
    assert length[512] == 0
    assert gain[512] == pytest.approx(1.0)

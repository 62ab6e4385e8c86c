"""One request of one design, computed by hand on the tiny scenario and by loops on random ones."""

import math

import oracles
import pytest
import strategies
from hypothesis import given
from tiny import GPU, GPU_PREFILL, HEAD_SPLIT, LPU, PLAIN_DESIGN, SPLIT, design, tiny

from planner.evaluate import (
    interactivity_tps,
    request_metrics,
    step_time_s,
    transfers_of,
    ttft_after_prefill_s,
    ttft_after_verify_s,
)
from planner.options import PLAIN, Option, Speculation, cost_table, steps_per_request
from planner.schema.catalog import Link
from planner.transfers import link_energy_j, link_time_s
from planner.words import PHASES

# Moving the drafter's KV of 1000 tokens from gpu to lpu: 500 µs and 1000/1101 GB at 1 GB/s, of which a quarter shows.
DRAFT_KV_S = 0.25 * (0.0005 + 1000 / 1101)
# A step's exchange: two messages of 500 µs, and 1 MB.
EXCHANGE_S = 0.001 + 0.001


def test_step_time_and_interactivity():
    assert step_time_s(0.010, 0.040) == pytest.approx(0.050)
    assert step_time_s(0.010, 0.040, 0.002) == pytest.approx(0.052)
    assert interactivity_tps(4.0, 0.050) == pytest.approx(80.0)


def test_ttft_formulas():
    assert ttft_after_prefill_s(0.1, 0.02) == pytest.approx(0.12)
    # The drafter's own prefill hides behind the target's, or shows.
    assert ttft_after_verify_s(0.1, 0.05, 0.04) == pytest.approx(0.14)
    assert ttft_after_verify_s(0.1, 0.15, 0.04) == pytest.approx(0.19)
    assert ttft_after_verify_s(0.1, 0.105, 0.04, target_kv_s=0.01) == pytest.approx(0.15)
    # One that needs the hidden states starts when the prefill ends, while the KV moves.
    assert ttft_after_verify_s(0.1, 0.05, 0.04, hidden_states=True) == pytest.approx(0.19)
    assert ttft_after_verify_s(0.1, 0.05, 0.04, target_kv_s=0.07, hidden_states=True) == pytest.approx(0.21)


def test_links():
    link = Link(bandwidth_gb_per_s=2.0, latency_us=100.0, energy_pj_per_byte=500.0)
    assert link_time_s(link, 4e9) == pytest.approx(2.0001)
    assert link_time_s(link, 0.0, messages=3) == pytest.approx(3e-4)
    assert link_energy_j(link, 4e9) == pytest.approx(2.0)


def test_plain_decode():
    m = request_metrics(tiny(), PLAIN_DESIGN)
    assert (m.tokens_per_step, m.steps) == (1.0, 100.0)  # the first of 101 tokens comes from the prefill
    assert m.step_time_s == pytest.approx(0.030)
    assert m.interactivity_tps == pytest.approx(1 / 0.030)
    assert m.tpot_s == pytest.approx(0.030)
    assert m.ttft_s == pytest.approx(0.100)
    assert m.energy_j == pytest.approx(40 + 100 * 2.0)
    assert m.transfer_energy_j == 0.0
    assert m.residency_s == pytest.approx(3.0)
    assert m.phases["target_verify"].busy_s == pytest.approx(100 * 0.030 / 2)
    assert m.phases["target_verify"].energy_j == pytest.approx(200.0)
    assert m.phases["target_verify"].sequences == 4.0
    assert m.phases["target_prefill"].busy_s == pytest.approx(0.1)
    assert m.phases["draft_prefill"] is m.phases["draft_decode"] is None


def test_drafting_on_another_device():
    m = request_metrics(tiny(), SPLIT)
    assert (m.tokens_per_step, m.steps) == (1.6, 101 / 1.6)  # every token comes from a verify
    assert m.step_time_s == pytest.approx(0.002 + 0.040 + EXCHANGE_S)
    assert m.interactivity_tps == pytest.approx(1.6 / 0.044)
    assert m.residency_s == pytest.approx(101 / 1.6 * 0.044)
    first_draft_s = 0.020 + DRAFT_KV_S + 0.002 + EXCHANGE_S
    assert first_draft_s > 0.1
    assert m.ttft_s == pytest.approx(first_draft_s + 0.040)
    moved_j = 1000 / 1101 + 101 / 1.6 * 1e6 * 1e-9
    assert m.transfer_energy_j == pytest.approx(moved_j)
    assert m.energy_j == pytest.approx(40 + 4 + 101 / 1.6 * (2.0 + 0.1) + moved_j)
    assert m.phases["draft_decode"].busy_s == pytest.approx(101 / 1.6 * 0.002)
    assert m.phases["draft_decode"].sequences == 3.0


def test_a_draft_on_the_targets_device_moves_nothing():
    together = design(Speculation("drafter", 1), GPU_PREFILL, GPU, GPU_PREFILL, GPU)
    m = request_metrics(tiny(), together)
    assert m.step_time_s == pytest.approx(0.010 + 0.040)
    assert m.ttft_s == pytest.approx(max(0.100, 0.020 + 0.010) + 0.040)
    assert m.transfer_energy_j == 0.0


def test_hidden_states_add_the_prefill():
    m = request_metrics(tiny(), HEAD_SPLIT)
    assert m.ttft_s == pytest.approx(0.100 + 0.020 + DRAFT_KV_S + 0.002 + EXCHANGE_S + 0.040)
    assert m.step_time_s == request_metrics(tiny(), SPLIT).step_time_s


def test_first_token_from_the_prefill():
    m = request_metrics(tiny(first_token="after_prefill"), SPLIT)
    assert m.steps == pytest.approx(100 / 1.6)
    assert m.ttft_s == pytest.approx(0.100)
    assert steps_per_request(101.0, m.tokens_per_step, True) == m.steps
    assert steps_per_request(101.0, m.tokens_per_step, False) == pytest.approx(101 / 1.6)


def test_links_are_free_where_none_is_set():
    m = request_metrics(tiny(transfers=None), SPLIT)
    assert m.step_time_s == pytest.approx(0.042)
    assert m.transfer_energy_j == 0.0
    assert m.ttft_s == pytest.approx(0.100 + 0.040)


def test_transfers_of_a_design():
    moved = transfers_of(tiny(), SPLIT, 1.6)
    assert moved.target_kv.exposed_s == 0.0
    assert moved.draft_kv.exposed_s == pytest.approx(DRAFT_KV_S)
    assert moved.step.exposed_s == pytest.approx(EXCHANGE_S)
    assert moved.step.energy_j == pytest.approx(1e-3)
    apart = design(PLAIN, Option("lpu", 1, 1), GPU, None, None)
    kv = transfers_of(tiny(), apart, 1.0).target_kv
    assert kv.exposed_s == pytest.approx(0.25 * (0.0005 + 2 * 1000 / 1101))
    assert kv.energy_j == pytest.approx(2000 / 1101)


def test_a_design_needs_options_that_exist():
    with pytest.raises(KeyError, match="target_verify cannot run on lpu:tp1:b1"):
        request_metrics(tiny(), design(PLAIN, GPU_PREFILL, LPU, None, None))
    with pytest.raises(KeyError, match="draft_decode cannot run on None"):
        request_metrics(tiny(), design(Speculation("drafter", 1), GPU_PREFILL, GPU, GPU_PREFILL, None))


@given(scenario=strategies.scenarios())
def test_every_design_of_a_random_scenario_has_the_metrics_of_the_loops(scenario):
    table = cost_table(scenario, "w")
    points = list(oracles.points(scenario))
    for point in points[:: 1 + len(points) // 40]:
        m = request_metrics(scenario, strategies.design_of(point), table)
        found = (m.tokens_per_step, m.steps, m.step_time_s, m.interactivity_tps, m.ttft_s, m.energy_j)
        expected = (
            point.tokens_per_step,
            point.steps,
            point.step_s,
            point.interactivity_tps,
            point.ttft_s,
            point.energy_j,
        )
        assert found == pytest.approx(expected, rel=1e-9)
        assert m.transfer_energy_j == pytest.approx(point.transfer_j, rel=1e-9, abs=1e-15)
        uses = {phase: use for phase, use in m.phases.items() if use is not None}
        assert on_its_replicas(point, {phase: use.busy_s for phase, use in uses.items()}) == pytest.approx(
            point.busy_s, rel=1e-9
        )
        assert on_its_replicas(point, {phase: use.energy_j for phase, use in uses.items()}) == pytest.approx(
            point.phase_energy_j, rel=1e-9
        )
        fits = all(uses[phase].sequences >= place[2] for phase, place in point.places.items())
        assert fits == point.fits


def on_its_replicas(point, figures):
    """Figures by phase, those of hosted phases added to verification's."""
    found = {phase: figure for phase, figure in figures.items() if phase in point.places}
    found["target_verify"] += sum(figure for phase, figure in figures.items() if phase not in point.places)
    return found


@given(scenario=strategies.scenarios())
def test_the_table_offers_exactly_the_designs_of_the_loops(scenario):
    table = cost_table(scenario, "w")
    offered = 0
    for s in range(len(table.speculations)):
        counts = [
            int((math.inf > table.phases[phase].latency_s[:, s]).sum()) for phase in PHASES if table.runs(phase)[s]
        ]
        offered += math.prod(counts)
    assert offered == sum(1 for _ in oracles.points(scenario))

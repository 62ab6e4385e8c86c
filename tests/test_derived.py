"""Options that the roofline derives: the same as costing one at a time, held to memory, candidates and pins."""

from pathlib import Path

import numpy as np
import pytest

from planner.check import check
from planner.errors import InputError
from planner.memory import sequences_per_replica
from planner.options import PLAIN, Option, Speculation, cost_table
from planner.read.load import read_scenario
from planner.read.overrides import parse_assignments
from planner.roofline.hardware import hardware
from planner.roofline.option import profile
from planner.roofline.passes import draft_decode, heads_draft
from planner.schema.hardware import ParallelHeads
from planner.solve import solve

EXAMPLE = str(Path(__file__).resolve().parents[1] / "docs" / "examples" / "llama-70b.yaml")
DRAFT = Speculation("llama-1b-drafts", 4)


def scenario(*sets):
    return read_scenario(EXAMPLE, parse_assignments(sets)).scenario


@pytest.mark.parametrize(
    ("phase", "model", "precision", "asked"),
    [
        ("target_verify", "llama-3.3-70b", "fp8", {"context": 2200, "draft_length": 4}),
        ("target_prefill", "llama-3.3-70b", "fp8", {"context": 2000}),
        ("draft_decode", "llama-3.2-1b", "bf16", {"context": 2200, "draft_length": 4}),
        ("draft_prefill", "llama-3.2-1b", "bf16", {"context": 2000}),
    ],
)
def test_every_option_costs_what_it_costs_alone(phase, model, precision, asked):
    given = scenario()
    costs = cost_table(given, "chat", [DRAFT]).phases[phase]
    assert len(costs.options) >= 30
    for row, option in enumerate(costs.options):
        if not costs.available[row, 0]:
            continue
        alone = profile(
            given.catalog.devices[option.device],
            given.catalog.models[model],
            phase,
            precision,
            degree=option.tensor_parallel,
            batch=option.batch_size,
            **asked,
        )
        assert costs.latency_s[row, 0] == pytest.approx(float(alone.latency_s), rel=1e-12)
        assert costs.energy_j[row, 0] == pytest.approx(float(alone.energy_j), rel=1e-12)


def test_a_replica_that_does_not_hold_the_batch_is_no_option():
    costs = cost_table(scenario(), "chat", [PLAIN]).phases["target_verify"]
    held = dict(zip(costs.options, costs.sequences[:, 0], strict=True))
    assert held[Option("h100-sxm", 1, 1)] < 32 < held[Option("h100-sxm", 8, 1)]
    fits = dict(zip(costs.options, costs.available[:, 0], strict=True))
    assert not fits[Option("h100-sxm", 1, 32)]
    assert fits[Option("h100-sxm", 8, 32)]


def test_cards_without_a_link_run_alone():
    costs = cost_table(scenario(), "chat", [DRAFT]).phases["draft_decode"]
    assert {o.tensor_parallel for o in costs.options if o.device == "l40s"} == {1}
    assert {o.tensor_parallel for o in costs.options if o.device == "h200-sxm"} == {1, 2, 4, 8}


def test_pins_and_candidates_hold_for_derived_options():
    pinned = scenario("places.target_verify=h200-sxm:tp4:b32", "candidates.devices=[h200-sxm, b200-sxm]")
    table = cost_table(pinned, "chat", [DRAFT])
    assert table.phases["target_verify"].options == (Option("h200-sxm", 4, 32),)
    assert {o.device for o in table.phases["draft_decode"].options} == {"h200-sxm", "b200-sxm"}


def test_a_characterized_profile_hides_the_roofline_of_its_device():
    profiles = "{llama-3.3-70b: {target_verify: {tp2:b8: {latency_ms: 12, energy_mj: 900}}}}"
    measured = scenario(f"catalog.devices.h200-sxm.profiles={profiles}")
    costs = cost_table(measured, "chat", [PLAIN]).phases["target_verify"]
    assert [o for o in costs.options if o.device == "h200-sxm"] == [Option("h200-sxm", 2, 8)]
    assert costs.latency_s[costs.options.index(Option("h200-sxm", 2, 8)), 0] == pytest.approx(0.012)


def test_a_figure_that_is_missing_is_named():
    with pytest.raises(InputError, match=r"catalog\.devices\.groq-lp30: .*candidates\.devices"):
        cost_table(scenario("candidates.devices=[groq-lp30]"), "chat", [PLAIN])


def test_a_replica_of_on_chip_memory_has_as_many_chips_as_it_needs():
    costs = cost_table(scenario("candidates.devices=[groq-lpu-v1]"), "chat", [PLAIN]).phases["target_verify"]
    chips = [option.tensor_parallel for option in costs.options]
    assert min(chips) > 100
    assert chips == sorted(chips)
    assert np.all(costs.sequences[:, 0] >= costs.batch_sizes[:, 0])


def test_the_example_is_planned_and_says_what_it_rests_on():
    given = scenario("candidates.devices=[h200-sxm, b200-sxm, mi300x]", "candidates.batch_sizes=[8, 64]")
    plan = solve(given)
    assert plan.status == "optimal"
    assert check(plan, given) == []
    assert plan.totals.power_w.provisioned <= 60e3
    used = {row.device for row in plan.fleet}
    assert all(any(text.startswith(f"device {name}: ") for text in plan.assumptions) for name in used)
    assert "proposer llama-1b-drafts: acceptance assumed" in plan.assumptions


def test_a_more_precise_target_is_slower():
    fast, slow = (cost_table(scenario(f"precisions.llama-3.3-70b={p}"), "chat", [PLAIN]) for p in ("fp8", "bf16"))
    option = Option("h200-sxm", 4, 8)
    times = [
        t.phases["target_verify"].latency_s[t.phases["target_verify"].options.index(option), 0] for t in (fast, slow)
    ]
    assert times[1] > 1.3 * times[0]


def test_memory_is_one_rule_for_private_pools_and_for_a_drafter_beside_the_target():
    given = scenario("layouts=[disaggregated, colocated_drafter]")
    together = Speculation("llama-1b-drafts", 4, None, "colocated_drafter")
    costs = cost_table(given, "chat", [PLAIN, together]).phases["target_verify"]
    both = ("llama-3.3-70b", "llama-3.2-1b")
    for row, option in enumerate(costs.options):
        ends = given, "chat", option.device
        alone = sequences_per_replica(*ends, both[:1], option.tensor_parallel)
        assert costs.sequences[row, 0] == alone
        assert costs.sequences[row, 1] == sequences_per_replica(*ends, both, option.tensor_parallel) <= alone


def test_parallel_heads_read_their_weights_once_per_step():
    """5 heads of 148 M parameters in bf16 are 1.48 GB; reading them takes as long whatever the batch."""
    hw = hardware(scenario().catalog.devices["h100-sxm"], "bf16")
    heads = ParallelHeads(count=5, hidden=4096, vocabulary=32000)
    one, many = heads_draft(hw, heads, 5, 1), heads_draft(hw, heads, 5, 16)
    read_s = 5 * 2 * (4096**2 + 4096 * 32000) / (float(hw.stream_fraction) * float(hw.bandwidth_byte_per_s))
    assert float(one.terms_s["weights"]) == pytest.approx(read_s)
    assert float(many.latency_s) == pytest.approx(float(one.latency_s))
    assert float(heads_draft(hw, heads, 2, 1).terms_s["weights"]) == pytest.approx(0.4 * read_s)


def test_a_tree_drafts_its_mean_width_at_every_level():
    hw, model = hardware(scenario().catalog.devices["h100-sxm"], "bf16"), scenario().catalog.models["llama-3.2-1b"]
    chain = draft_decode(hw, model.shape, "bf16", 4, 32, 2000)
    tree = draft_decode(hw, model.shape, "bf16", 4, 32, 2000, nodes=12)
    wide = draft_decode(hw, model.shape, "bf16", 4, 96, 2000)
    assert float(tree.terms_s["compute"]) == pytest.approx(3 * float(chain.terms_s["compute"]))
    assert float(tree.terms_s["compute"]) == pytest.approx(float(wide.terms_s["compute"]))
    assert float(tree.terms_s["kv"]) == pytest.approx(float(chain.terms_s["kv"]))

"""Whether speculation pays: by hand on the tiny scenario, and by the words that a plan says of it."""

import pytest
from tiny import GPU, SPLIT, tiny

from planner.assemble import deploy
from planner.evaluate import Design
from planner.options import PLAIN
from planner.payoff import payoffs
from planner.report.sentences import payoff_sentence
from planner.solve import solve

# Verify of a batch of 2 takes 30 ms (1 token) or 40 ms (2 tokens) and 500 W; a draft of 1 token takes 2 ms on a 200 W
# chip, alone. 1.6 tokens per step, a request of 101 tokens: all from verifies, but plain decode's first.
SPEEDUP = 1.6 * 30 / (40 + 2 + 2)  # and 2 ms of link
PREFILL_W = 500 * 0.100
PLAIN_W = PREFILL_W + 500 * 100 * 0.030 / 2
DRAFT_W = PREFILL_W + 500 * 101 / 1.6 * 0.040 / 2 + 200 * 101 / 1.6 * 0.002 + 500 * 0.020


def paid(scenario, design):
    (found,) = payoffs(deploy(scenario, [(design, 1.0)]))
    return found


def test_a_draft_beside_plain_decode():
    found = paid(tiny(max_utilization=1.0), SPLIT)
    assert (found.batch_size, found.chosen.batch_size, found.chosen.proposer) == (2, 2, "drafter")
    assert found.chosen.speedup == pytest.approx(SPEEDUP)
    assert found.chosen.cost_ratio == pytest.approx(DRAFT_W / PLAIN_W)


def test_every_batch_has_its_cheapest_draft():
    found = paid(tiny(max_utilization=1.0), SPLIT)
    (only,) = found.batches
    assert only.cost_ratio <= found.chosen.cost_ratio
    assert found.stops_at_batch == (2 if only.cost_ratio >= 1 else None)


def test_plain_decode_says_what_the_best_draft_would_take():
    plain = Design("chat", PLAIN, {**SPLIT.options, "draft_prefill": None, "draft_decode": None})
    found = paid(tiny(max_utilization=1.0), plain)
    assert found.chosen is None
    assert "no speculation: at batch 2 on gpu the best draft takes" in payoff_sentence(found, several=False)


def test_without_a_proposer_there_is_nothing_to_say():
    plain = Design("chat", PLAIN, {**SPLIT.options, "draft_prefill": None, "draft_decode": None})
    assert payoffs(deploy(tiny(proposers=()), [(plain, 1.0)])) == ()


def batches(verify_ms, most):
    """The tiny catalog with a verify of several batches, whose time grows with the tokens of the whole batch."""
    base = tiny(fleet={"power_budget_kw": 10.0})
    gpu = base.catalog.devices["gpu"]
    form = type(gpu.profiles["target"]["target_verify"]["b2"])
    verify = {
        f"b{b}": form.model_validate({"latency_ms": {"floor": 30, "per_token": verify_ms * b}, "energy_mj": 2000.0})
        for b in (1, 2, 4, 8, 16, 32, 64)
        if b <= most
    }
    profiles = {**gpu.profiles, "target": {**gpu.profiles["target"], "target_verify": verify}}
    devices = {**base.catalog.devices, "gpu": gpu.replace(profiles=profiles, memory_gb=400.0)}
    return base.replace(catalog=base.catalog.replace(devices=devices))


def test_speculation_stops_paying_where_verifying_is_bound_by_compute():
    found = paid(batches(verify_ms=1.0, most=64), SPLIT)
    ratios = [point.cost_ratio for point in found.batches]
    assert [point.batch_size for point in found.batches] == [1, 2, 4, 8, 16, 32, 64]
    assert ratios[0] < 1 < ratios[-1]
    assert found.stops_at_batch in (16, 32, 64)
    at = [point.batch_size for point in found.batches].index(found.stops_at_batch)
    assert all(ratio >= 1 for ratio in ratios[at:])
    assert ratios[at - 1] < 1
    assert payoff_sentence(found, several=False).endswith(f"from batch {found.stops_at_batch} on no draft saves power")


def test_a_dearer_verify_stops_it_earlier():
    cheap, dear = (paid(batches(verify_ms=each, most=64), SPLIT).stops_at_batch for each in (1.0, 4.0))
    assert dear < cheap


def test_the_plan_says_it():
    plan = solve(tiny(fleet={"power_budget_kw": 10.0}))
    assert len(plan.payoffs) == len(plan.deployments)
    assert GPU.device == plan.payoffs[0].device

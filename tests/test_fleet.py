"""Replicas, devices, power on its three bases and cost, by hand on the tiny scenario and by loops on random ones."""

import math

import oracles
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from tiny import PLAIN_DESIGN, SPLIT, tiny, with_device

from planner.assemble import deploy
from planner.evaluate import request_metrics
from planner.fleet import (
    Serving,
    basis_is_known,
    capacity_replicas,
    forward_power_w,
    least_count,
    memory_replicas,
    pool_uses,
    power_w,
    usd_per_hour,
)
from planner.words import COUNTS, POWER_BASES


def served(scenario, design, rate):
    serving = Serving(design, request_metrics(scenario, design), rate)
    return [serving], pool_uses(scenario, [serving])


def test_capacity_and_memory_replicas():
    assert capacity_replicas(10.0, 0.2, 0.8) == pytest.approx(2.5)
    # 10 requests/s that stay 3 s are 30 sequences; at 80 % a replica that holds 10 counts for 8.
    assert memory_replicas(10.0, 3.0, 10.0, 0.8) == pytest.approx(3.75)
    assert memory_replicas(10.0, 3.0, math.inf, 0.8) == 0.0


@pytest.mark.parametrize(
    ("need", "whole"),
    [(0.0, 0), (1e-12, 1), (1e-9, 1), (0.3, 1), (1.0, 1), (1 + 1e-12, 1), (1 + 1e-6, 2), (7.0000000001, 7), (7.1, 8)],
)
def test_least_count(need, whole):
    assert least_count(need, integer=True) == whole
    assert least_count(need, integer=False) == need


@given(need=st.floats(1e-15, 1e9))
def test_a_whole_count_covers_the_need_and_one_less_does_not(need):
    count = least_count(need, integer=True)
    assert count == int(count) >= 1
    assert count >= need * (1 - 1e-9)
    assert count == 1 or count - 1 < need


def test_pools_of_plain_decode():
    _, pools = served(tiny(), PLAIN_DESIGN, 2.0)
    prefill, verify = pools
    assert (prefill.members[0].phase, verify.members[0].phase) == ("target_prefill", "target_verify")
    assert prefill.busy == pytest.approx(0.2)
    assert prefill.capacity_need == prefill.need == pytest.approx(0.25)
    assert (prefill.memory_need, prefill.replicas, prefill.devices) == (0.0, 1.0, 1.0)
    # 2 requests/s × 1.5 s = 3 busy replicas, 3.75 at 80 %; 2 × 3 s = 6 sequences in flight need 6/(0.8 · 4).
    assert verify.busy == pytest.approx(3.0)
    assert verify.capacity_need == pytest.approx(3.75)
    assert verify.memory_need == pytest.approx(6 / 3.2)
    assert verify.replicas == 4.0


def test_memory_sizes_the_drafters_pool():
    _, pools = served(tiny(counts="fractional"), SPLIT, 2.0)
    draft = pools[3]
    assert draft.capacity_need == pytest.approx(2 * 101 / 1.6 * 0.002 / 0.8)
    assert draft.need == draft.memory_need == draft.replicas == pytest.approx(2 * 101 / 1.6 * 0.044 / (0.8 * 3))


def test_power_of_plain_decode_on_every_basis():
    whole, shared = tiny(), tiny(counts="fractional")
    servings, pools = served(whole, PLAIN_DESIGN, 2.0)
    assert forward_power_w(servings) == pytest.approx(480.0)
    assert power_w(whole, servings, pools, "forward") == pytest.approx(1.2 * 480)
    assert power_w(whole, servings, pools, "provisioned") == pytest.approx(1.2 * 5 * 500)
    # 5 devices idle at 100 W, of which 0.2 + 3 are at work: their idle power is already in the energy of a pass.
    assert power_w(whole, servings, pools, "average") == pytest.approx(1.2 * 1.25 * (500 + 480 - 100 * 3.2))
    assert usd_per_hour(whole, pools) == pytest.approx(10.0)
    servings, pools = served(shared, PLAIN_DESIGN, 2.0)
    assert power_w(shared, servings, pools, "provisioned") == pytest.approx(1.2 * 4 * 500)
    assert power_w(shared, servings, pools, "average") == pytest.approx(1.2 * 1.25 * (400 + 480 - 320))
    assert usd_per_hour(shared, pools) == pytest.approx(8.0)


def test_transfers_draw_power():
    scenario = tiny(counts="fractional", max_utilization=1.0)
    servings, pools = served(scenario, SPLIT, 2.0)
    moved_w = 2 * (1000 / 1101 + 101 / 1.6 * 1e-3)
    assert power_w(scenario, servings, pools, "forward") == pytest.approx(1.2 * (2 * (44 + 101 / 1.6 * 2.1) + moved_w))
    waiting = sum(pool.devices - pool.busy for pool in pools if pool.device == "lpu")
    average = 2 * (44 + 101 / 1.6 * 2.1) + 20 * waiting + moved_w
    assert waiting > 0.5
    assert power_w(scenario, servings, pools, "average") == pytest.approx(1.2 * 1.25 * average)


def test_what_is_not_known_is_null():
    bare = with_device(tiny(), "gpu", idle_power_w=None, provisioned_power_w=None, price=None)
    servings, pools = served(bare, PLAIN_DESIGN, 2.0)
    assert power_w(bare, servings, pools, "forward") is not None
    assert power_w(bare, servings, pools, "average") is None
    assert power_w(bare, servings, pools, "provisioned") is None
    assert usd_per_hour(bare, pools) is None
    gpu = bare.catalog.devices["gpu"]
    assert [basis_is_known(gpu, basis) for basis in POWER_BASES] == [False, False, True]


def test_an_unknown_figure_of_an_unused_device_does_not_matter():
    bare = with_device(tiny(), "lpu", idle_power_w=None, provisioned_power_w=None, price=None)
    servings, pools = served(bare, PLAIN_DESIGN, 2.0)
    assert power_w(bare, servings, pools, "average") is not None
    assert usd_per_hour(bare, pools) == pytest.approx(10.0)


def owner(pool):
    """The phase whose replicas these are; others may be hosted."""
    phases = [member.phase for member in pool.members]
    return "target_verify" if "target_verify" in phases else phases[0]


@given(scenario=strategies.scenarios(), rate=st.floats(1e-4, 1e4))
def test_fleets_of_random_designs_are_those_of_the_loops(scenario, rate):
    points = [point for point in oracles.points(scenario) if point.fits]
    for point in points[:: 1 + len(points) // 15]:
        for counts in COUNTS:
            asked = scenario.replace(counts=counts)
            deployed = deploy(asked, [(strategies.design_of(point), rate)])
            n = oracles.counts(asked, point, rate)
            assert {owner(pool): pool.replicas for pool in deployed.pools} == pytest.approx(n, rel=1e-9)
            assert usd_per_hour(asked, deployed.pools) == pytest.approx(oracles.dollars(asked, point, n), rel=1e-9)
            for basis in POWER_BASES:
                expected = oracles.watts(asked, point, rate, n, basis)
                assert power_w(asked, deployed.servings, deployed.pools, basis) == pytest.approx(expected, rel=1e-9)

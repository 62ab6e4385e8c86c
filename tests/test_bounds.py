"""Bounds on rates and the options that limits rule out: right by hand, and never wrong on random scenarios."""

import math

import numpy as np
import oracles
import pytest
import strategies
from hypothesis import given
from tiny import GPU, LPU, tiny

from planner.bounds import largest_rates, runnable, usable
from planner.measure import measure_of
from planner.options import PLAIN, Speculation, cost_table
from planner.words import PHASES

DRAFT, HEAD = Speculation("drafter", 1), Speculation("head", 1)
VERIFY_BUSY_S = 100 * 0.030 / 2


def per_rate_of(scenario, table, kind, phase, basis=None):
    scenario = scenario if basis is None else scenario.replace(power_basis=basis)
    return measure_of(scenario, table, phase, kind).at_capacity(table.busy_s(phase), scenario.max_utilization)


def bounded(scenario):
    table = cost_table(scenario, "chat")
    mask = usable(scenario, table)
    by_option, by_speculation = largest_rates(scenario, table, mask)
    return table, mask, by_option, by_speculation


@pytest.mark.parametrize(
    ("basis", "prefill", "verify"),
    [
        ("forward", 1.2 * 40, 1.2 * 200),
        ("provisioned", 1.2 * 500 * 0.1 / 0.8, 1.2 * 500 * VERIFY_BUSY_S / 0.8),
        ("average", 1.5 * (100 * 0.1 / 4 + 40), 1.5 * (100 * VERIFY_BUSY_S / 4 + 200)),
    ],
)
def test_power_per_rate(basis, prefill, verify):
    scenario = tiny()
    table = cost_table(scenario, "chat", [PLAIN])
    assert per_rate_of(scenario, table, "power", "target_prefill", basis) == pytest.approx(np.array([[prefill]]))
    assert per_rate_of(scenario, table, "power", "target_verify", basis) == pytest.approx(np.array([[verify]]))


def test_cost_per_rate():
    scenario = tiny()
    table = cost_table(scenario, "chat", [DRAFT])
    assert per_rate_of(scenario, table, "cost", "target_prefill") == pytest.approx(np.array([[2.0 * 0.125]]))
    draft = per_rate_of(scenario, table, "cost", "draft_decode")
    busy = 101 / 1.6
    assert draft == pytest.approx(np.array([[2.0 * busy * 0.010 / 2 / 0.8], [1.0 * busy * 0.002 / 0.8]]))


def test_a_budget_bounds_every_option_with_the_cheapest_of_the_others():
    scenario = tiny(fleet={"power_budget_kw": 6.0}, power_basis="forward")
    table, _, by_option, by_speculation = bounded(scenario)
    plain, draft = table.speculations.index(PLAIN), table.speculations.index(DRAFT)
    best = 6000 / (1.2 * (40 + 3 + 101 / 1.6 * 2.1))
    assert by_speculation[plain] == pytest.approx(6000 / (1.2 * 240))
    assert by_speculation[draft] == pytest.approx(best)
    gpu = table.phases["draft_decode"].options.index(GPU)
    assert by_option["draft_decode"][gpu, draft] == pytest.approx(6000 / (1.2 * (43 + 101 / 1.6 * 3.0)))
    assert by_option["draft_decode"][1 - gpu, draft] == pytest.approx(best)


def test_the_tightest_limit_bounds():
    fleet = {"power_budget_kw": 6.0, "cost_budget_usd_per_hour": 1.0, "inventory": {"gpu": 4}}
    table, _, by_option, by_speculation = bounded(tiny(fleet=fleet, counts="fractional", power_basis="forward"))
    plain = table.speculations.index(PLAIN)
    assert by_speculation[plain] == pytest.approx(1.0 / (2.0 * (0.1 + VERIFY_BUSY_S) / 0.8))
    table, _, by_option, by_speculation = bounded(tiny(fleet={"inventory": {"gpu": 4}}, counts="fractional"))
    assert by_option["target_verify"][0, plain] == pytest.approx(4 * 0.8 / VERIFY_BUSY_S)
    assert by_speculation[plain] == pytest.approx(4 * 0.8 / VERIFY_BUSY_S)


@pytest.mark.parametrize(("counts", "replicas"), [("integer", 1), ("fractional", 1.5)])
def test_whole_replicas_of_an_inventory(counts, replicas):
    scenario = tiny(fleet={"inventory": {"gpu": 3}}, counts=counts)
    gpu = scenario.catalog.devices["gpu"]
    verify = gpu.profiles["target"]["target_verify"]["b2"]
    profiles = {**gpu.profiles, "target": {**gpu.profiles["target"], "target_verify": {"tp2:b2": verify}}}
    devices = {**scenario.catalog.devices, "gpu": gpu.replace(profiles=profiles)}
    _, _, by_option, _ = bounded(scenario.replace(catalog=scenario.catalog.replace(devices=devices)))
    assert by_option["target_verify"][0, 0] == pytest.approx(replicas * 0.8 / VERIFY_BUSY_S)


def test_nothing_bounds_a_rate_without_limits():
    _, _, by_option, by_speculation = bounded(tiny())
    assert np.isinf(by_speculation).all()
    assert all(np.isinf(rates).all() for rates in by_option.values())
    # An inventory of a device that a speculation can do without does not bound it.
    _, _, _, by_speculation = bounded(tiny(fleet={"inventory": {"lpu": 0}}))
    assert np.isinf(by_speculation).all()


def test_a_floor_rules_out_slow_options():
    # Drafting on gpu gives 1.6 tokens in 50 ms, on lpu in 42 ms and more; plain decode one in 30 ms.
    table, mask, _, _ = bounded(tiny({"interactivity_floor_tps": 34.0}))
    draft = table.speculations.index(DRAFT)
    options = table.phases["draft_decode"].options
    assert [bool(on) for on in mask["draft_decode"][:, draft]] == [option == LPU for option in options]
    assert runnable(table, mask).tolist() == [False, True, True]
    table, mask, _, _ = bounded(tiny({"interactivity_floor_tps": 32.0}))
    assert mask["draft_decode"][:, draft].all()
    assert runnable(table, mask).tolist() == [True, True, True]
    table, mask, _, _ = bounded(tiny({"interactivity_floor_tps": 39.0}))
    assert not runnable(table, mask).any()


def test_a_ceiling_rules_out_slow_options():
    table, mask, _, _ = bounded(tiny({"ttft_ceiling_ms": 150.0}))
    prefill = table.phases["draft_prefill"]
    draft = table.speculations.index(DRAFT)
    on = {prefill.options[o].device for o in np.flatnonzero(mask["draft_prefill"][:, draft])}
    assert on == {"gpu"}  # 120 ms on lpu, a draft and a verify are too long
    table, mask, _, _ = bounded(tiny({"ttft_ceiling_ms": 139.9}))
    assert runnable(table, mask).tolist() == [True, False, False]
    table, mask, _, _ = bounded(tiny({"ttft_ceiling_ms": 99.9}))
    assert not runnable(table, mask).any()
    table, mask, _, _ = bounded(tiny({"ttft_ceiling_ms": 100.0}, first_token="after_prefill"))
    assert runnable(table, mask).all()


def test_what_meets_a_limit_exactly_is_kept():
    table, mask, _, _ = bounded(tiny({"interactivity_floor_tps": 1 / 0.030, "ttft_ceiling_ms": 100.0}))
    assert runnable(table, mask)[table.speculations.index(PLAIN)]


@given(scenario=strategies.scenarios())
def test_no_limit_on_service_rules_out_a_design_that_meets_it(scenario):
    table = cost_table(scenario, "w")
    mask = usable(scenario, table)
    for point in oracles.points(scenario):
        if oracles.serves(scenario, point):
            s, chosen = in_table(table, point)
            assert all(mask[phase][o, s] for phase, o in chosen.items())
            assert runnable(table, mask)[s]


@given(scenario=strategies.scenarios(objective="throughput"))
def test_no_design_serves_more_than_its_bounds(scenario):
    table = cost_table(scenario, "w")
    by_option, by_speculation = largest_rates(scenario, table, usable(scenario, table))
    if oracles.question_rate(scenario) is not None:
        return
    for point in oracles.points(scenario):
        rate = oracles.largest_rate(scenario, point) if oracles.serves(scenario, point) else None
        if rate is not None:
            s, chosen = in_table(table, point)
            assert rate <= by_speculation[s] * (1 + 1e-9)
            assert all(rate <= by_option[phase][o, s] * (1 + 1e-9) for phase, o in chosen.items())


def in_table(table, point):
    design = strategies.design_of(point)
    s = table.speculations.index(design.speculation)
    return s, {phase: table.phases[phase].options.index(design.options[phase]) for phase in point.places}


@given(scenario=strategies.scenarios(counts="fractional"))
def test_power_and_cost_per_rate_are_the_least_of_any_fleet(scenario):
    table = cost_table(scenario, "w")
    for point in [one for one in oracles.points(scenario) if one.fits][:20]:
        s, chosen = in_table(table, point)
        n = {phase: point.capacity[phase] for phase in point.places}
        for basis in ("forward", "average", "provisioned"):
            per_rate = sum(per_rate_of(scenario, table, "power", phase, basis)[o, s] for phase, o in chosen.items())
            moved = scenario.pue * point.transfer_j * {"average": scenario.host_factor, "forward": 1.0}.get(basis, 0.0)
            assert per_rate == pytest.approx(oracles.watts(scenario, point, 1.0, n, basis) - moved, rel=1e-9, abs=1e-9)
        per_rate = sum(per_rate_of(scenario, table, "cost", phase)[o, s] for phase, o in chosen.items())
        assert per_rate == pytest.approx(oracles.dollars(scenario, point, n), rel=1e-9)


def test_phases_that_do_not_run_bound_nothing():
    table, _, by_option, by_speculation = bounded(tiny(fleet={"power_budget_kw": 6.0}, power_basis="forward"))
    plain = table.speculations.index(PLAIN)
    assert all(len(by_option[phase]) == len(table.phases[phase].options) for phase in PHASES)
    assert not table.runs("draft_decode")[plain]
    assert math.isfinite(by_speculation[plain])

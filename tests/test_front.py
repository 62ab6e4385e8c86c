"""The exact front against nested loops, its two methods against each other, and its parts against closed forms."""

import random
from dataclasses import replace
from pathlib import Path

import fleet_oracles
import fleet_strategies
import front_oracles
import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from tiny import tiny

from planner.errors import CheckError, InputError
from planner.front.asked import asked_of
from planner.front.geometry import front_of, hypervolume_of, knee_of, reference_energy_of, undominated
from planner.front.recipe import SWEEP, exact_front
from planner.front.structure import front_by_structure, separates
from planner.read.load import read_scenario
from planner.schema.scenario import FleetLimits, FrontSettings, ReferencePoint
from planner.solve import Settings
from planner.words import POWER_BASES

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"
CASES = 300
RELATIVE = 1e-6


def pairs_of(front):
    return [(point.interactivity_tps, point.energy_j_per_token) for point in front.points]


def assert_same(front, expected, relative=1e-8):
    found = pairs_of(front)
    assert len(found) == len(expected), (found, expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine == pytest.approx(theirs, rel=relative)
    assert front.exact


# ------------------------------------------------------------------------------------------------ nested loops


def drawn(seed, **fixed):
    """A scenario with any limits, transfers, memory and proposers; some without a demand, some unanswerable."""
    return strategies.seeded(f"front {seed}", **fixed)


def case(seed):
    """One of the cases: every second one with few limits, so that the front has several points."""
    return drawn(seed, power_basis=POWER_BASES[seed % 3], tight=0.6 if seed % 2 else 0.1)


def any_design(scenario):
    return any(one.fits for one in front_oracles.oracles.points(scenario))


@pytest.mark.parametrize("part", range(10))
def test_the_front_is_that_of_nested_loops(part):
    """300 small catalogs: all bases, whole and fractional counts, floors, ceilings, budgets, stocks, transfers."""
    for seed in range(part, CASES, 10):
        scenario = case(seed)
        if next(front_oracles.oracles.points(scenario), None) is None:
            with pytest.raises(InputError):
                exact_front(scenario)
            continue
        front = exact_front(scenario)
        relative = RELATIVE if front.provenance.solver == SWEEP else 1e-8
        assert_same(front, front_oracles.front_of_one(scenario), relative)


def test_the_drawn_cases_are_of_every_kind():
    """Looked at in a part of them: both methods, with and without a demand, fronts of several points and of none."""
    scenarios = [case(seed) for seed in range(0, CASES, 5)]
    asked = [asked_of(scenario) for scenario in scenarios]
    assert 15 < sum(separates(one) for one in asked) < 45
    assert 5 < sum(one.large for one in asked) < 55
    lengths = [len(front_oracles.front_of_one(scenario)) for scenario in scenarios]
    assert sum(length > 3 for length in lengths) > 5
    assert sum(length == 0 for length in lengths) > 3
    assert {scenario.power_basis for scenario in map(case, range(6))} == set(POWER_BASES)


@pytest.mark.parametrize("basis", POWER_BASES)
@pytest.mark.parametrize("counts", ["integer", "fractional"])
def test_structure_and_sweep_agree(basis, counts):
    compared = 0
    for seed in range(12):
        scenario = drawn(f"both {seed}", power_basis=basis, counts=counts)
        if not any_design(scenario) or not separates(asked_of(scenario)):
            continue
        mine, other = exact_front(scenario), exact_front(scenario, use_structure=False)
        assert other.provenance.solver == SWEEP
        assert_same(mine, pairs_of(other), RELATIVE)
        compared += len(mine.points) > 1
    assert compared >= 2


def at_the_demand(kind, seed):
    """Two workloads on one fleet, both with a demand."""
    rng = random.Random(f"front {kind} {seed}")
    return fleet_strategies.scenario(rng, kind, objective="power", max_draft_length=2, max_shares=1)


@pytest.mark.parametrize("kind", ["pairs", "servers", "shared"])
def test_the_front_of_a_fleet_is_that_of_nested_loops(kind):
    longest = 0
    for seed in range(16):
        scenario = at_the_demand(kind, seed)
        expected = front_oracles.front_of_fleet(scenario)
        assert_same(exact_front(scenario), expected, RELATIVE)
        longest = max(longest, len(expected))
    assert longest >= 2


def test_workloads_that_share_nothing_are_summed():
    met = 0
    for seed in range(18):
        rng = random.Random(f"summed {seed}")
        scenario = fleet_strategies.separable(rng, "power", max_draft_length=2)
        names = list(scenario.workloads)[:2]
        scenario = scenario.replace(workloads={name: scenario.workloads[name] for name in names})
        assert separates(asked_of(scenario))
        expected = front_oracles.front_of_fleet(scenario)
        assert_same(exact_front(scenario), expected)
        met += len(names) == 2 and len(expected) > 2
    assert met > 1


# ---------------------------------------------------------------------------------------------- what a front means


def test_a_point_is_its_deployment():
    front = exact_front(read_scenario("reference").scenario)
    assert len(front.points) > 10
    for point in front.points:
        metrics = point.deployment.metrics
        assert point.interactivity_tps == metrics.interactivity_tps
        assert point.energy_j_per_token == pytest.approx(metrics.energy_j_per_token, rel=1e-12)
        assert point.tps_per_kw == pytest.approx(1e3 / point.energy_j_per_token, rel=1e-12)
        assert point.ttft_s == metrics.ttft_s
        assert point.usd_per_million_tokens is None
    tps = [point.interactivity_tps for point in front.points]
    assert tps == sorted(tps)
    assert tps[-1] == pytest.approx(136.2, rel=1e-3)


def test_on_provisioned_power_an_idle_drafter_is_not_free():
    front = exact_front(tiny({"demand_rps": 2.0}, power_basis="provisioned"))
    for point in front.points:
        devices = sum(place.devices for place in point.deployment.placements.values() if place is not None)
        assert point.power_w.provisioned >= 1.2 * 200.0 * devices
        assert point.energy_j_per_token == pytest.approx(point.power_w.provisioned / (2.0 * 101), rel=1e-12)


def test_a_search_that_contradicts_the_evaluation_is_refused(monkeypatch):
    def wrong(asked):
        return [replace(claim, power_w=1.001 * claim.power_w) for claim in front_by_structure(asked)]

    monkeypatch.setattr("planner.front.recipe.front_by_structure", wrong)
    with pytest.raises(CheckError, match="the search of the front found"):
        exact_front(tiny())


def test_without_a_demand_the_front_is_of_a_large_fleet():
    """Whole counts at a growing demand come as near as one likes; budgets, stocks and spares do not matter."""
    free = exact_front(tiny(counts="integer"))
    assert free.counts == "fractional"
    assert "large fleet" in free.assumptions[0]
    small = FleetLimits(power_budget_kw=0.001, cost_budget_usd_per_hour=0.001)
    assert pairs_of(exact_front(tiny(fleet=small.model_dump(exclude_none=True)))) == pairs_of(free)
    large = exact_front(tiny({"demand_rps": 1e6}, counts="integer"))
    assert large.counts == "integer"
    assert_same(large, pairs_of(free), 1e-4)


def test_without_demands_workloads_are_served_in_their_mix():
    scenario = read_scenario(str(EXAMPLES / "two-products.yaml")).scenario
    total = sum(workload.mix for workload in scenario.workloads.values())

    def with_demands(scale):
        workloads = {
            name: workload.replace(
                limits=workload.limits.replace(demand_rps=None if scale is None else scale * workload.mix / total)
            )
            for name, workload in scenario.workloads.items()
        }
        return scenario.replace(workloads=workloads, limits=FleetLimits(), counts="fractional")

    free, served = exact_front(with_demands(None)), exact_front(with_demands(70.0))
    assert len(free.points) > 3
    assert_same(served, pairs_of(free))


def test_what_is_out_of_stock_is_in_no_point():
    def devices(fleet):
        points = exact_front(tiny(fleet=fleet)).points
        places = [place for point in points for place in point.deployment.placements.values()]
        return {place.device for place in places if place is not None}

    assert devices({}) == {"gpu", "lpu"}
    assert devices({"inventory": {"lpu": 1}}) == {"gpu", "lpu"}
    assert devices({"inventory": {"lpu": 0}}) == {"gpu"}


def test_some_demands_are_refused():
    scenario = read_scenario(str(EXAMPLES / "two-products.yaml")).scenario
    chat = scenario.workloads["chat"]
    free = chat.replace(limits=chat.limits.replace(demand_rps=None))
    with pytest.raises(InputError, match="none for chat"):
        exact_front(scenario.replace(workloads={**scenario.workloads, "chat": free}))


def test_a_basis_without_figures_is_refused():
    with pytest.raises(InputError, match=r"gpu\.provisioned_power_w"):
        exact_front(read_scenario("reference").scenario.replace(power_basis="provisioned"))


def test_no_point_is_a_result_with_its_reasons():
    front = exact_front(tiny({"interactivity_floor_tps": 1e4}))
    assert (front.points, front.knee, front.hypervolume, front.reference_point) == ((), None, None, None)
    assert front.exact
    assert [conflict.limit for conflict in front.infeasibility] == ["interactivity_floor"]
    limited = exact_front(tiny({"demand_rps": 2.0, "interactivity_floor_tps": 20.0}, {"power_budget_kw": 0.1}))
    assert limited.points == ()
    assert "power_budget" in {conflict.limit for conflict in limited.infeasibility}


def test_a_time_limit_gives_a_front_that_is_not_called_exact():
    scenario = at_the_demand("shared", 0)
    assert not exact_front(scenario, Settings(time_limit_s=1e-9)).exact
    assert exact_front(scenario, Settings(time_limit_s=600.0)).exact


def test_limits_on_service_cut_the_front():
    whole = pairs_of(exact_front(tiny()))
    floor = whole[len(whole) // 2][0]
    assert pairs_of(exact_front(tiny({"interactivity_floor_tps": floor}))) == whole[len(whole) // 2 :]


# ------------------------------------------------------------------------------------------------------- geometry

FIGURES = st.sampled_from([1.0, 1.5, 2.0, 3.0, 3.5, 7.0])
POINTS = st.lists(st.tuples(FIGURES, FIGURES), min_size=1, max_size=12)


@given(POINTS)
def test_the_plane_is_filtered_as_by_loops(points):
    tps, energy = np.array(points).T
    rows = front_of(tps, energy)
    assert [(tps[row], energy[row]) for row in rows] == front_oracles.non_dominated(points)


@given(st.lists(st.tuples(FIGURES, FIGURES, FIGURES), min_size=1, max_size=12))
def test_rows_that_nothing_undercuts(rows):
    kept = {rows[index] for index in undominated(np.array(rows))}
    undercut = {
        row for row in rows for other in rows if other != row and all(a <= b for a, b in zip(other, row, strict=True))
    }
    assert kept == set(rows) - undercut


def test_of_equal_energies_the_fastest_and_of_near_equals_one():
    assert front_of(np.array([1.0, 2.0, 3.0]), np.array([5.0, 5.0, 5.0 * (1 + 1e-12)])).tolist() == [2]
    assert front_of(np.array([2.0 * (1 + 1e-12), 2.0]), np.array([6.0, 5.0])).tolist() == [1]
    assert front_of(np.array([1.0]), np.array([np.inf])).tolist() == []


@given(POINTS)
def test_the_hypervolume_is_that_of_unit_squares(points):
    """Counted on a grid of half units; and a further point never takes any of it away."""
    tps, energy = np.array(points).T
    reference = (0.5, 8.0)
    cells = [
        (x, y)
        for x in np.arange(0.5, 7.0, 0.5)
        for y in np.arange(1.0, 8.0, 0.5)
        if any(x + 0.5 <= t and y >= e for t, e in points)
    ]
    volume = hypervolume_of(tps, energy, reference)
    assert volume == pytest.approx(0.25 * len(cells))
    assert hypervolume_of(tps[:-1], energy[:-1], reference) <= volume + 1e-12 if len(tps) > 1 else volume >= 0


def test_points_beyond_the_reference_count_nothing():
    assert hypervolume_of(np.array([1.0, 5.0]), np.array([1.0, 9.0]), (2.0, 8.0)) == 0.0


def test_the_knee_does_not_depend_on_units_or_on_which_way_energy_is_drawn():
    tps, energy = np.array([10.0, 20.0, 40.0, 50.0]), np.array([1.0, 1.2, 1.6, 9.0])
    assert knee_of(tps, energy) == 2
    assert knee_of(tps * 60, energy / 3600) == 2
    assert knee_of(tps, 1e3 * energy) == 2


def test_a_front_that_bends_the_other_way_has_no_knee():
    assert knee_of(np.array([10.0, 11.0, 20.0]), np.array([1.0, 2.0, 2.1])) is None
    assert knee_of(np.array([10.0, 20.0, 40.0]), np.array([1.0, 2.0, 4.0])) is None


@given(st.floats(1e-3, 1e6))
def test_the_default_reference_lies_just_beyond_the_front(most):
    reference = reference_energy_of(np.array([most / 2, most]))
    assert 1.1 * most * (1 - 1e-9) <= reference <= 1.1 * most * 1.1


def test_the_reference_point_of_a_scenario_is_used():
    own = FrontSettings(reference_point=ReferencePoint(interactivity_tps=10.0, energy_j_per_token=5.0))
    front = exact_front(tiny(front=own))
    assert front.reference_point.model_dump() == {"interactivity_tps": 10.0, "energy_j_per_token": 5.0}
    tps, energy = np.array(pairs_of(front)).T
    assert front.hypervolume == pytest.approx(hypervolume_of(tps, energy, (10.0, 5.0)))


def test_the_oracle_of_fleets_and_that_of_one_workload_agree():
    scenario = tiny({"demand_rps": 2.0}, power_basis="provisioned")
    one, fleet = front_oracles.front_of_one(scenario), front_oracles.front_of_fleet(scenario)
    assert len(one) > 1
    assert np.array(one) == pytest.approx(np.array(fleet))
    assert fleet_oracles.ROUNDING == front_oracles.ROUNDING

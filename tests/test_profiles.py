"""Latency and energy of one operation: hand values, where each form rises, and what it does not know."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.profiles import characterized, energy_mj, latency_ms
from planner.schema.catalog import Characterized, EnergyForm, LatencyForm

TOKENS = np.arange(1, 65)
AMOUNTS = st.floats(0.001, 1e6)
TABLES = st.dictionaries(st.integers(1, 64), AMOUNTS, min_size=1, max_size=6)

LATENCIES = st.one_of(
    st.builds(lambda a: LatencyForm(constant=a), AMOUNTS),
    st.builds(lambda a: LatencyForm(per_token=a), AMOUNTS),
    st.builds(lambda a, b: LatencyForm(floor=a, per_token=b), AMOUNTS, AMOUNTS),
    st.builds(lambda a, b: LatencyForm(base=a, per_token=b), AMOUNTS, AMOUNTS),
)
ENERGIES = st.one_of(
    st.builds(lambda a: EnergyForm(constant=a), AMOUNTS),
    st.builds(lambda a: EnergyForm(per_token=a), AMOUNTS),
    st.builds(lambda a, b: EnergyForm(base=a, per_token=b), AMOUNTS, AMOUNTS),
)


@pytest.mark.parametrize(
    ("form", "values"),
    [
        ({"constant": 150.0}, [150.0, 150.0, 150.0]),
        ({"per_token": 8.0}, [8.0, 64.0, 128.0]),
        ({"floor": 40.0, "per_token": 2.5}, [40.0, 40.0, 40.0]),
        ({"floor": 10.0, "per_token": 2.5}, [10.0, 20.0, 40.0]),
        ({"base": 10.0, "per_token": 2.5}, [12.5, 30.0, 50.0]),
        ({"table": {1: 5.0, 16: 20.0}}, [5.0, 12.0, 20.0]),
    ],
)
def test_latency_by_hand(form, values):
    assert latency_ms(LatencyForm(**form), [1, 8, 16]).tolist() == values


@pytest.mark.parametrize(
    ("form", "values"),
    [
        ({"constant": 250_000.0}, [250_000.0, 250_000.0]),
        ({"per_token": 150.0}, [150.0, 2400.0]),
        ({"base": 720.0, "per_token": 40.0}, [760.0, 1360.0]),
    ],
)
def test_energy_by_hand(form, values):
    assert energy_mj(EnergyForm(**form), [1, 16]).tolist() == values


def test_the_published_verify_is_bound_by_memory_up_to_sixteen_tokens():
    """The reference's max(40, 2.5·(D+1)) ms: equal at D+1 = 16."""
    verify = LatencyForm(floor=40.0, per_token=2.5)
    assert latency_ms(verify, [15, 16, 17]).tolist() == [40.0, 40.0, 42.5]


@given(LATENCIES)
def test_more_tokens_never_take_less_time(form):
    latency = latency_ms(form, TOKENS)
    assert (latency > 0).all()
    assert (np.diff(latency) >= 0).all()


@given(ENERGIES)
def test_more_tokens_never_take_less_energy(form):
    assert (np.diff(energy_mj(form, TOKENS)) >= 0).all()


@given(AMOUNTS, AMOUNTS)
def test_floor_and_base_are_the_larger_and_the_sum(first, per_token):
    line = latency_ms(LatencyForm(per_token=per_token), TOKENS)
    floored = latency_ms(LatencyForm(floor=first, per_token=per_token), TOKENS)
    affine = latency_ms(LatencyForm(base=first, per_token=per_token), TOKENS)
    assert floored.tolist() == np.maximum(first, line).tolist()
    assert affine == pytest.approx(first + line, rel=1e-15)


@given(TABLES)
def test_a_table_goes_through_its_points_and_stays_between_them(points):
    form = LatencyForm(table=points)
    inside = np.arange(min(points), max(points) + 1)
    assert latency_ms(form, sorted(points)).tolist() == [points[point] for point in sorted(points)]
    values = latency_ms(form, inside)
    assert (values >= min(points.values()) * (1 - 1e-12)).all()
    assert (values <= max(points.values()) * (1 + 1e-12)).all()


@given(TABLES)
def test_a_table_is_not_known_outside_its_points(points):
    outside = [min(points) - 0.5, max(points) + 1]
    assert np.isnan(latency_ms(LatencyForm(table=points), outside)).all()


@given(LATENCIES, ENERGIES)
def test_characterized_is_in_seconds_and_joules(latency, energy):
    profile = Characterized(latency_ms=latency, energy_mj=energy)
    ((seconds,), (joules,)) = characterized([profile], TOKENS)
    assert seconds == pytest.approx(latency_ms(latency, TOKENS) / 1e3, rel=1e-14)
    assert joules == pytest.approx(energy_mj(energy, TOKENS) / 1e3, rel=1e-14)


def test_many_profiles_are_costed_at_once():
    forms = [150, {"floor": 40, "per_token": 2.5}, {"base": 3, "per_token": 2}, {"table": {1: 5.0, 3: 9.0}}]
    profiles = [Characterized(latency_ms=form, energy_mj={"base": 7, "per_token": 2.0}) for form in forms]
    seconds, joules = characterized(profiles, [1, 2, 40])
    assert seconds.shape == joules.shape == (4, 3)
    for row, profile in enumerate(profiles):
        assert seconds[row] == pytest.approx(latency_ms(profile.latency_ms, [1, 2, 40]) / 1e3, nan_ok=True)
        assert joules[row] == pytest.approx(energy_mj(profile.energy_mj, [1, 2, 40]) / 1e3)


def test_a_plain_number_is_a_constant():
    assert Characterized(latency_ms=150, energy_mj=0).latency_ms == LatencyForm(constant=150.0)


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"floor": 1.0},
        {"base": 1.0},
        {"constant": 1.0, "per_token": 1.0},
        {"floor": 1.0, "base": 1.0, "per_token": 1.0},
        {"table": {1: 1.0}, "constant": 1.0},
        {"constant": 0.0},
        {"per_token": 0.0},
        {"table": {1: 1.0, 2: 0.0}},
        {"table": {}},
        {"constant": None},
    ],
)
def test_a_latency_of_no_form_or_of_nothing_is_refused(form):
    with pytest.raises(ValidationError):
        LatencyForm(**form)


@pytest.mark.parametrize("form", [{}, {"base": 1.0}, {"constant": 1.0, "per_token": 1.0}, {"per_token": -1.0}])
def test_an_energy_of_no_form_is_refused(form):
    with pytest.raises(ValidationError):
        EnergyForm(**form)


def test_energy_may_be_nothing():
    assert energy_mj(EnergyForm(constant=0.0), [1]).tolist() == [0.0]

"""Tokens per step: hand values, bounds, where each curve rises, and how far it is covered."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from planner import acceptance
from planner.assumptions import warnings_of
from planner.options import PLAIN, Speculation, speculations_of
from planner.read.load import read_scenario
from planner.schema.catalog import AcceptanceCurve
from planner.schema.scenario import LossyAcceptance
from planner.tokens import covered_draft_length, curve_of

LENGTHS = np.arange(41)
CHANCES = st.floats(0, 1)


def curve(kind, **fields):
    return TypeAdapter(AcceptanceCurve).validate_python({"kind": kind, **fields})


def tables(rising=False):
    """Measured points with 1 ≤ E ≤ D+1."""

    def points(drawn):
        found = {length: 1.0 + share * length for length, share in drawn.items()}
        if rising:
            highest = np.maximum.accumulate([found[length] for length in sorted(found)])
            found = dict(zip(sorted(found), map(float, highest), strict=True))
        return curve("table", tokens_per_step=found)

    return st.dictionaries(st.integers(1, 30), CHANCES, min_size=1, max_size=6).map(points)


FORMULAS = st.one_of(
    st.builds(
        lambda A, tau, offset: curve("saturating_exponential", A=A, tau=tau, offset=offset),
        st.floats(0.01, 1e3),
        st.floats(0.01, 1e3),
        st.sampled_from([0.0, 1.0, 5.0]),
    ),
    st.builds(lambda alpha: curve("geometric", alpha=alpha), CHANCES),
)
CURVES = st.one_of(
    FORMULAS,
    st.builds(lambda p: curve("positions", probabilities=p), st.lists(CHANCES, min_size=1, max_size=30)),
    tables(),
)


def covered(any_curve):
    longest = acceptance.covered_draft_length(any_curve)
    return LENGTHS if longest is None else np.arange(longest + 1)


# --------------------------------------------------------------------------------------------- every curve


@given(CURVES)
def test_a_step_commits_one_to_all_of_its_tokens(any_curve):
    lengths = covered(any_curve)
    tokens = acceptance.tokens_per_step(any_curve, lengths)
    assert tokens[0] == 1.0
    assert (tokens >= 1.0).all()
    assert (tokens <= lengths + 1.0 + 1e-12).all()


@given(CURVES)
def test_one_length_and_many_give_the_same(any_curve):
    lengths = covered(any_curve)
    many = acceptance.tokens_per_step(any_curve, lengths)
    assert many.shape == lengths.shape
    assert [float(acceptance.tokens_per_step(any_curve, int(length))) for length in lengths] == many.tolist()
    assert acceptance.tokens_per_step(any_curve, lengths.reshape(1, -1)).tolist() == [many.tolist()]


@given(
    st.one_of(
        FORMULAS,
        tables(rising=True),
        st.builds(lambda p: curve("positions", probabilities=p), st.lists(CHANCES, min_size=1, max_size=30)),
    )
)
def test_a_longer_draft_never_commits_less(any_curve):
    E = acceptance.tokens_per_step(any_curve, covered(any_curve))
    assert (np.diff(E) >= -1e-12).all()


# ------------------------------------------------------------------------------------------ one curve each


@pytest.mark.parametrize(
    ("length", "A", "tau", "offset", "E"),
    [
        (1, 10.0, 1.0, 0.0, 2.0),  # 6.32, but one draft token commits two at most
        (1, 1.0, 1.0, 0.0, 1.0),  # 0.63, but a step always commits one
        (5, 2.0, 5.0, 1.0, 1 + 2 * (1 - np.exp(-1))),
        (1000, 3.0, 5.0, 1.0, 4.0),
        (8, 10.25, 8.4, 0.0, 10.25 * (1 - np.exp(-8 / 8.4))),
    ],
)
def test_saturating_exponential_by_hand(length, A, tau, offset, E):
    assert acceptance.saturating_exponential(length, A, tau, offset) == pytest.approx(E, rel=1e-14)


@given(st.floats(0.01, 1e3), st.floats(0.01, 1e3), st.floats(0.01, 1e3))
def test_saturating_exponential_rises_with_its_size_and_falls_with_tau(A, tau, more):
    tokens = acceptance.saturating_exponential(LENGTHS, A, tau)
    assert (acceptance.saturating_exponential(LENGTHS, A + more, tau) >= tokens - 1e-9).all()
    assert (acceptance.saturating_exponential(LENGTHS, A, tau + more) <= tokens + 1e-9).all()


@pytest.mark.parametrize(
    ("length", "alpha", "E"),
    [(0, 0.7, 1.0), (1, 0.7, 1.7), (4, 0.7, 2.7731), (4, 0.0, 1.0), (4, 1.0, 5.0), (3, 0.5, 1.875)],
)
def test_geometric_by_hand(length, alpha, E):
    assert acceptance.geometric(length, alpha) == pytest.approx(E, rel=1e-14)


@given(CHANCES)
def test_geometric_is_the_sum_of_powers(alpha):
    sums = np.cumsum(alpha ** LENGTHS.astype(float))
    assert acceptance.geometric(LENGTHS, alpha) == pytest.approx(sums, rel=1e-12)


@given(st.integers(1, 300))
def test_geometric_next_to_one_is_as_exact_as_elsewhere(digits):
    """(1 − α^(D+1))/(1 − α) cancels there; expanded, it is D+1 − δ·D(D+1)/2 for α = 1 − δ."""
    delta = 10.0 ** (-8 - digits / 30)
    assume(1.0 - delta < 1.0)
    delta = 1.0 - (1.0 - delta)  # what the double really holds
    expanded = LENGTHS + 1 - delta * LENGTHS * (LENGTHS + 1) / 2
    assert acceptance.geometric(LENGTHS, 1.0 - delta) == pytest.approx(expanded, rel=1e-12)


@given(CHANCES, CHANCES)
def test_geometric_rises_with_alpha(one, other):
    low, high = sorted([one, other])
    assert (acceptance.geometric(LENGTHS, high) >= acceptance.geometric(LENGTHS, low) - 1e-12).all()


def test_positions_by_hand():
    tokens = acceptance.positions([0, 1, 2, 3], [0.8, 0.5, 0.25])
    assert tokens == pytest.approx([1.0, 1.8, 2.2, 2.3], rel=1e-14)


@given(CHANCES, st.integers(1, 40))
def test_equal_positions_are_geometric(alpha, count):
    lengths = np.arange(count + 1)
    assert acceptance.positions(lengths, [alpha] * count) == pytest.approx(
        acceptance.geometric(lengths, alpha), rel=1e-12
    )


def test_a_position_that_is_never_accepted_ends_the_draft():
    assert acceptance.positions([1, 2, 3], [0.5, 0.0, 1.0]).tolist() == [1.5, 1.5, 1.5]


@given(tables())
def test_a_table_goes_through_its_points(measured):
    for length, E in measured.tokens_per_step.items():
        assert acceptance.table(length, measured.tokens_per_step) == E


def test_a_table_is_straight_between_its_points_and_begins_at_one():
    E = acceptance.table([0, 1, 2, 3, 4, 6], {2: 2.0, 6: 4.0})
    assert E.tolist() == [1.0, 1.5, 2.0, 2.5, 3.0, 4.0]


@pytest.mark.parametrize(
    "beyond",
    [curve("positions", probabilities=[0.9, 0.8]), curve("table", tokens_per_step={1: 1.5, 2: 2.0})],
    ids=["positions", "table"],
)
def test_nothing_is_extrapolated(beyond):
    acceptance.tokens_per_step(beyond, 2)
    with pytest.raises(IndexError):
        acceptance.tokens_per_step(beyond, 3)


# ------------------------------------------------------------------------------------- how far it is covered


@pytest.mark.parametrize(
    ("given_curve", "longest", "falls"),
    [
        (curve("geometric", alpha=0.7), None, False),
        (curve("saturating_exponential", A=10.0, tau=8.0), None, False),
        (curve("positions", probabilities=[0.9, 0.1, 0.0]), 3, False),
        (curve("table", tokens_per_step={2: 2.0, 4: 3.0}), 4, False),
        (curve("table", tokens_per_step={2: 2.0, 4: 3.0, 6: 2.9}), 4, True),
        (curve("table", tokens_per_step={2: 2.0, 4: 1.9, 6: 2.5}), 6, False),
        (curve("table", tokens_per_step={2: 2.0, 4: 2.0}), 4, False),
        (curve("table", tokens_per_step={2: 2.0, 4: 2.0, 6: 1.5}), 4, True),
        (curve("table", tokens_per_step={0: 1.0, 2: 1.0}), 2, False),
    ],
)
def test_how_far_a_curve_is_covered(given_curve, longest, falls):
    assert acceptance.covered_draft_length(given_curve) == longest
    assert acceptance.falls(given_curve) is falls


def offering(acceptance_curve, osl_tokens=512, max_draft_length=40, own=None):
    """The reference with another acceptance curve."""
    scenario = read_scenario("reference").scenario
    drafter = scenario.catalog.proposers["drafter"]
    curves = {"target": {"general": acceptance_curve}}
    proposers = {"drafter": drafter.replace(acceptance=curves, max_draft_length=own)}
    workload = scenario.workloads["reference"].replace(osl_tokens=osl_tokens)
    return scenario.replace(
        catalog=scenario.catalog.replace(proposers=proposers),
        workloads={"reference": workload},
        max_draft_length=max_draft_length,
    )


@pytest.mark.parametrize(
    ("scenario", "longest"),
    [
        (offering(curve("geometric", alpha=0.7)), 40),
        (offering(curve("geometric", alpha=0.7), max_draft_length=3), 3),
        (offering(curve("geometric", alpha=0.7), own=7), 7),
        (offering(curve("geometric", alpha=0.7), osl_tokens=5), 4),
        (offering(curve("positions", probabilities=[0.9] * 6)), 6),
        (offering(curve("table", tokens_per_step={2: 2.0, 5: 3.0})), 5),
        (offering(curve("table", tokens_per_step={2: 2.0, 5: 3.0, 9: 2.5})), 5),
    ],
    ids=["scenario", "flag", "proposer", "output tokens", "positions", "last point", "maximum"],
)
def test_draft_lengths_on_offer_end_at_the_least_cap(scenario, longest):
    expected = [PLAIN, *(Speculation("drafter", length) for length in range(1, longest + 1))]
    assert list(speculations_of(scenario, "reference")) == expected


def test_covered_is_what_can_be_evaluated_whatever_the_scenario_looks_at():
    scenario = offering(curve("geometric", alpha=0.7), max_draft_length=3)
    assert covered_draft_length(scenario, "reference", "drafter") == 511


def test_a_table_that_falls_is_told():
    falling = offering(curve("table", tokens_per_step={2: 2.0, 5: 3.0, 9: 2.5}))
    (warning,) = warnings_of(falling)
    assert "falls after draft length 5: draft length is capped there" in warning
    assert warnings_of(offering(curve("table", tokens_per_step={2: 2.0, 5: 3.0}))) == ()


def test_the_curve_is_that_of_the_target_and_the_task():
    scenario = offering(curve("geometric", alpha=0.7))
    assert curve_of(scenario, "reference", "drafter") == curve("geometric", alpha=0.7)


# ------------------------------------------------------------------------------------------------ lenience and ranks

LOSSY = st.builds(LossyAcceptance, lenience=st.floats(0.05, 1.0), rejection_exponent=st.floats(0.05, 1.0))


@given(st.floats(0, 1), LOSSY)
def test_lenience_accepts_more_and_never_more_than_its_rule_allows(chance, lossy):
    more = float(acceptance.lenient(chance, lossy))
    assert chance - 1e-12 <= more <= min(1.0, chance / lossy.lenience) + 1e-12
    assert more <= 1 - (1 - chance) * lossy.lenience**lossy.rejection_exponent + 1e-12


@given(CURVES, LOSSY)
def test_under_lenience_a_step_commits_more_and_at_most_all(any_curve, lossy):
    lengths = covered(any_curve)
    strict, loose = (acceptance.tokens_per_step(any_curve, lengths, lossy=one) for one in (None, lossy))
    assert np.all(loose >= strict * (1 - 1e-9))
    assert np.all(loose <= lengths + 1 + 1e-9)
    same = LossyAcceptance(lenience=1.0, rejection_exponent=lossy.rejection_exponent)
    assert acceptance.tokens_per_step(any_curve, lengths, lossy=same).tolist() == strict.tolist()


@given(st.floats(0.01, 0.99), st.integers(1, 40))
def test_a_constant_chance_commits_what_it_was_taken_from(alpha, length):
    E = acceptance.geometric(length, alpha)
    assert float(acceptance.constant_chance(length, E)) == pytest.approx(alpha, rel=1e-6)


def test_a_tree_by_rank_is_a_chain_where_nobody_has_siblings():
    chain = acceptance.ranks([0, 1, 2, 3], [0.7, 0.1], [1, 1, 1])
    assert chain.tolist() == pytest.approx(acceptance.geometric([0, 1, 2, 3], 0.7).tolist())
    wide = acceptance.ranks([2], [0.7, 0.1], [2, 5])
    assert wide.tolist() == pytest.approx([1 + 0.8 + 0.8 * 0.8])
    by_rank = curve("ranks", probabilities=(0.7, 0.1))
    lossy = LossyAcceptance(lenience=0.25, rejection_exponent=0.5)
    assert acceptance.tokens_per_step(by_rank, [1], (2,), lossy).tolist() == pytest.approx([1 + 0.9])


def test_ranks_are_chances_of_one_event():
    with pytest.raises(ValueError, match="more than 1"):
        curve("ranks", probabilities=(0.7, 0.4))

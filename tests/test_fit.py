"""The catalog's acceptance curve is what the fit finds, and the fit is close to what was printed."""

import pytest

from planner.fit import fit
from planner.read.load import read_scenario


@pytest.fixture(scope="module")
def scenario():
    return read_scenario("reference").scenario


def test_the_catalog_holds_the_fit(scenario):
    found = fit(scenario)
    curve = scenario.catalog.proposers["drafter"].acceptance["target"]["general"]
    assert (curve.A, curve.tau, curve.offset) == (round(found.A, 2), round(found.tau, 2), 0.0)


def test_no_printed_outcome_is_further_off_than_its_tolerance(scenario):
    assert fit(scenario).worst < 0.6


def test_a_coarser_fit_is_worse(scenario):
    assert fit(scenario, rounds=1, points=9).worst > fit(scenario).worst

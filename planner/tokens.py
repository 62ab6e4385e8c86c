"""Tokens that a proposer commits per step in a scenario: which curve, under which lenience, over which range.

Where acceptance is uncertain a scenario names cases: factors on the rate of accepted drafts, (E − 1)/D, or tasks whose
curves are taken. What is planned with is the least of them, by draft length: every figure that depends on E is then
worst. Fewer tokens per step mean more steps per request, so a request is longer on its way, keeps replicas busier and
takes more energy, and nothing of it reverses (``planner.robust`` refuses the two questions where something would).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner import acceptance
from planner.schema.catalog import AcceptanceCurve
from planner.schema.scenario import AcceptanceCase, Scenario

Floats = NDArray[np.float64]

NOMINAL: AcceptanceCase = 1.0


def cases_of(scenario: Scenario) -> tuple[AcceptanceCase, ...]:
    """List the cases that the scenario plans for; the catalog's own acceptance where it names none."""
    return scenario.acceptance_range or (NOMINAL,)


def curve_of(scenario: Scenario, workload: str, proposer: str, case: AcceptanceCase = NOMINAL) -> AcceptanceCurve:
    """Give the acceptance curve of a proposer for the scenario's target and a workload's task, or the case's."""
    task = case if isinstance(case, str) else scenario.workloads[workload].task
    return scenario.catalog.proposers[proposer].acceptance[scenario.target][task]


def covered_draft_length(scenario: Scenario, workload: str, proposer: str) -> int:
    """Give the longest draft that a proposer's acceptance covers in every case, at most OSL − 1."""
    longest = scenario.workloads[workload].osl_tokens - 1
    for case in cases_of(scenario):
        covered = acceptance.covered_draft_length(curve_of(scenario, workload, proposer, case))
        longest = longest if covered is None else min(longest, covered)
    return longest


def tokens_per_step(scenario: Scenario, workload: str, proposer: str, draft_length: ArrayLike) -> Floats:
    """E(D) of a proposer for a workload: the least over the scenario's cases, in the shape of ``draft_length``."""
    tree = scenario.catalog.proposers[proposer].tree
    branching = () if tree is None else tree.branching or ()
    lengths = np.asarray(draft_length, dtype=float)
    found = []
    for case in cases_of(scenario):
        curve = curve_of(scenario, workload, proposer, case)
        tokens = acceptance.tokens_per_step(curve, lengths, branching, scenario.lossy_acceptance)
        found.append(tokens if isinstance(case, str) else scaled(tokens, lengths, case))
    return np.asarray(np.min(found, axis=0))


def scaled(tokens: ArrayLike, draft_length: ArrayLike, factor: float) -> Floats:
    """Scale the drafts that are accepted per step: 1 + factor·(E − 1), at most D + 1.

    (E − 1)/D is the draft acceptance rate that engines report; it is what the factor multiplies.

    >>> scaled([1.0, 3.0, 3.9], [0, 4, 3], 1.1).round(6).tolist()
    [1.0, 3.2, 4.0]
    """
    E, D = np.asarray(tokens, dtype=float), np.asarray(draft_length, dtype=float)
    return np.asarray(E if factor == 1.0 else np.minimum(1.0 + factor * (E - 1.0), D + 1.0))

"""Loops over every design for what stands beside an optimum: other placements, other choices, a range of acceptance."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import oracles

Placement = tuple[str | None, ...]


def placement(one: oracles.Point, scenario: Any) -> Placement:
    """The device type of every phase; null where it does not run or needs no device."""
    kind = None if one.proposer is None else scenario.catalog.proposers[one.proposer].kind
    inside = oracles.hosted(kind, one.layout)
    at = {phase: one.places.get(oracles.VERIFY if phase in inside else phase) for phase in oracles.PHASES}
    return tuple(None if place is None else place[0] for place in at.values())


def every(scenario: Any) -> Iterator[tuple[float, oracles.Point]]:
    """Every design that meets the limits, with the scenario's objective at the rate that it would serve."""
    rate = oracles.question_rate(scenario)
    for one in oracles.points(scenario):
        if oracles.serves(scenario, one):
            served = oracles._served(scenario, one, rate, oracles.Best(None))
            if served is not None:
                yield oracles.figure(scenario, one, served, scenario.objective), one


def runs(scenario: Any) -> bool:
    """Whether anything can run, whatever the limits: else the question is refused."""
    return next(oracles.points(scenario), None) is not None


def better(scenario: Any, one: float, other: float | None) -> bool:
    return other is None or (one > other if oracles._maximized(scenario.objective) else one < other)


def by_placement(scenario: Any) -> dict[Placement, float]:
    """The best value of every placement, best first."""
    found: dict[Placement, float] = {}
    for value, one in every(scenario):
        key = placement(one, scenario)
        if better(scenario, value, found.get(key)):
            found[key] = value
    reverse = oracles._maximized(scenario.objective)
    return dict(sorted(found.items(), key=lambda item: item[1], reverse=reverse))


# -------------------------------------------------------------------------------------- a range of acceptance


def in_case(scenario: Any, case: float | str) -> Any:
    """The scenario with the curves of a case: tables of scaled drafts, or another task's curve."""
    (workload,) = scenario.workloads.values()
    proposers = {}
    for key in scenario.proposers:
        entry = scenario.catalog.proposers[key]
        curves = entry.acceptance[scenario.target]
        curve = curves[case if isinstance(case, str) else workload.task]
        if not isinstance(case, str):
            longest = oracles.longest_draft(scenario, workload, entry)
            tokens = {D: oracles.expected_tokens(curve, D) for D in range(1, longest + 1)}
            scaled = {D: min(1.0 + case * (E - 1.0), D + 1.0) for D, E in tokens.items()}
            curve = Table(scaled) if scaled else curve
        proposers[key] = Proposer(entry, {scenario.target: {workload.task: curve}})
    return Changed(scenario, catalog=Changed(scenario.catalog, proposers=proposers), acceptance_range=())


@dataclasses.dataclass
class Table:
    tokens_per_step: dict[int, float]
    kind: str = "table"


class Changed:
    """A document with some fields replaced, unchecked: the loops only read."""

    def __init__(self, document: Any, **fields: Any) -> None:
        self.__dict__.update(fields)
        self._document = document

    def __getattr__(self, name: str) -> Any:
        return getattr(self._document, name)


class Proposer(Changed):
    def __init__(self, entry: Any, acceptance: Any) -> None:
        super().__init__(entry, acceptance=acceptance)


Case = tuple[Any, oracles.Point]


def _key(one: oracles.Point) -> Any:
    return one.proposer, one.draft_length, one.nodes, one.layout, tuple(sorted(one.places.items()))


def over_range(scenario: Any) -> Iterator[list[Case]]:
    """Every design with its point in every case; left out where a case's curve does not cover its draft length."""
    cases = [in_case(scenario, case) for case in scenario.acceptance_range]
    points = [{_key(one): one for one in oracles.points(case)} for case in cases]
    for key in points[0]:
        if all(key in some for some in points):
            yield [(case, some[key]) for case, some in zip(cases, points, strict=True)]


def robust_best(scenario: Any) -> float | None:
    """The best value that one design, one rate and one fleet keep in every case, under every limit."""
    found = None
    for cases in over_range(scenario):
        if all(oracles.serves(case, one) for case, one in cases):
            rate = oracles.question_rate(scenario)
            if rate is None:
                rate = _largest(cases)
                asked = next(iter(scenario.workloads.values())).limits.demand_rps
                if rate is None or (asked is not None and not oracles.within(asked, rate)):
                    continue
            elif not _holds(cases, rate, _counts(cases, rate)):
                continue
            value = _worst(scenario, cases, rate)
            if better(scenario, value, found):
                found = value
    return found


def _counts(cases: list[Case], rate: float) -> dict[str, float]:
    every = [oracles.counts(case, one, rate) for case, one in cases]
    return {phase: max(counts[phase] for counts in every) for phase in every[0]}


def _holds(cases: list[Case], rate: float, n: dict[str, float]) -> bool:
    return all(oracles._affordable_with(case, one, rate, n) for case, one in cases)


def _largest(cases: list[Case]) -> float | None:
    """The largest rate that every case carries on the same replicas, looked for between the steps of all counts."""
    highest = min(oracles._fractional_rate(case, one) for case, one in cases)
    if cases[0][0].counts == "fractional":
        return highest if highest > 0 and _holds(cases, highest, _counts(cases, highest)) else None
    steps = {highest}
    for _, one in cases:
        for phase in one.places:
            each = one.need(phase)
            steps |= {k / each for k in range(1, int(highest * each) + 1)}
    highs = sorted(steps, reverse=True)
    for high, low in zip(highs, [*highs[1:], 0.0], strict=True):
        n = _counts(cases, high)
        rates = [oracles._rate_at_counts(case, one, n, low, high) for case, one in cases]
        if all(rate is not None for rate in rates):
            return min(rates)
    return None


def _worst(scenario: Any, cases: list[Case], rate: float) -> float:
    n, osl = _counts(cases, rate), next(iter(scenario.workloads.values())).osl_tokens
    if scenario.objective == "power":
        return max(oracles.watts(case, one, rate, n) for case, one in cases)
    if scenario.objective == "cost":
        return oracles.dollars(scenario, cases[0][1], n)
    if scenario.objective == "energy":
        return max(one.energy_j for _, one in cases) / osl
    if scenario.objective == "interactivity":
        return min(one.interactivity_tps for _, one in cases)
    assert math.isfinite(rate)
    return rate * osl

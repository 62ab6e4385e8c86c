"""The least cost of serving one workload at a given rate, over all designs: exact, without a solver.

For one speculation s the cost is a sum over phases: prefill options depend on the rest only through the TTFT, the two
step phases through the step time (interactivity, TTFT, and the memory that a sequence holds while the other phase
works). So the search is over pairs of step options, with the cheapest prefills looked up.

Branch and bound, exact: for every s a lower bound of the cost is the sum over phases of the least cost of an option,
where memory is charged with the *shortest* step that the option can be part of. Counts only grow with the step time, so
the bound never exceeds the true cost. Speculations are visited by rising bound until the bound reaches the incumbent;
within one, only options whose bound, with the least of every other phase, stays below the incumbent are paired.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.bounds import usable
from planner.evaluate import Design
from planner.fleet import COUNT_TOLERANCE
from planner.measure import Kind, Measure, measure_of
from planner.options import CostTable, Hosted, Option, PhaseCosts
from planner.schema.scenario import Scenario
from planner.structure.staircase import FREE, Indices, Staircase, both, staircase
from planner.words import PHASES, STEP_PHASES, Phase

Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
_TOP = 12


@dataclass(frozen=True)
class Service:
    """What every user is promised; infinite or zero where nothing is."""

    floor_tps: float = 0.0
    ceiling_s: float = np.inf

    @classmethod
    def of(cls, scenario: Scenario, workload: str) -> Service:
        """Read a workload's limits."""
        limits = scenario.workloads[workload].limits
        ceiling = np.inf if limits.ttft_ceiling_ms is None else limits.ttft_ceiling_ms * 1e-3
        return cls(limits.interactivity_floor_tps or 0.0, ceiling)


@dataclass(frozen=True)
class Tableau:
    """One workload's options with the coefficients of one measure, ready to be costed at any rate.

    Arrays are (O, S) by phase, infinite latency where an option cannot run.
    """

    scenario: Scenario
    table: CostTable
    measures: dict[Phase, Measure]
    latency_s: dict[Phase, Floats]
    busy_s: dict[Phase, Floats]
    held_per_replica: dict[Phase, Floats]
    able: NDArray[np.bool_]

    @classmethod
    def of(cls, scenario: Scenario, table: CostTable, kind: Kind) -> Tableau:
        """Cost a workload's options on a measure."""
        mask = usable(scenario, table)
        latency = {phase: np.where(mask[phase], table.phases[phase].latency_s, np.inf) for phase in PHASES}
        able = np.ones(len(table.speculations), dtype=bool)
        for phase in PHASES:
            able &= ~table.runs(phase) | mask[phase].any(axis=0)
        return cls(
            scenario,
            table,
            {phase: measure_of(scenario, table, phase, kind) for phase in PHASES},
            latency,
            {phase: np.where(mask[phase], table.busy_s(phase), np.inf) for phase in PHASES},
            {phase: scenario.max_utilization * table.phases[phase].sequences for phase in PHASES},
            able,
        )

    def replicas(self, need: Floats) -> Floats:
        """Least count of replicas for a need, as ``planner.fleet.least_count`` for arrays."""
        if self.scenario.counts != "integer":
            return need
        finite = np.where(np.isfinite(need), need, 0.0)
        count = np.ceil(finite - COUNT_TOLERANCE * np.maximum(1.0, finite))
        return np.where(np.isfinite(need), np.maximum(count, finite > 0), np.inf)

    def serving(
        self, phase: Phase, rate: float | Floats, held_s: Floats, rows: slice | Indices, s: int | slice
    ) -> Floats:
        """Replicas that serve on options of a phase at a rate, spares left out; infinite where they cannot.

        Parameters
        ----------
        phase, rows, s
            Which options and speculations.
        rate
            Requests/s, above 0; an array of them for one option.
        held_s
            N × step time, seconds that a sequence is held; used where the phase holds KV while the other works.
        """
        need = rate * self.busy_s[phase][rows, s] / self.scenario.max_utilization
        if phase in STEP_PHASES:
            with np.errstate(invalid="ignore"):
                held = rate * held_s / self.held_per_replica[phase][rows, s]
            need = np.maximum(need, np.where(np.isnan(held), np.inf, held))
        count, fill = self.replicas(need), self.scenario.servers.min_batch_fill
        if fill > 0 and phase in STEP_PHASES:
            count = np.where(fill * count <= rate * self.busy_s[phase][rows, s] * (1 + _TOLERANCE), count, np.inf)
        return count

    def cost(self, phase: Phase, rate: float | Floats, held_s: Floats, rows: slice | Indices, s: int | slice) -> Floats:
        """Cost of options of a phase at a rate, see ``serving``; infinite where they cannot serve."""
        serving, measure = self.serving(phase, rate, held_s, rows, s), self.measures[phase]
        per_replica = measure.per_replica[rows]
        per_replica = per_replica[..., 0] if serving.ndim < per_replica.ndim else per_replica
        with np.errstate(invalid="ignore"):
            value = per_replica * (serving + self.scenario.servers.spare_replicas) + rate * measure.per_rate[rows, s]
        return np.where(np.isfinite(serving), value, np.inf)

    def floors(self, rate: float) -> dict[Phase, Floats]:
        """(O, S) by phase: the cost of each option if its step were as short as it can be, a lower bound."""
        every = slice(None)
        return {phase: self.cost(phase, rate, self.shortest_held_s(phase), every, every) for phase in PHASES}

    def shortest_held_s(self, phase: Phase) -> Floats:
        """(O, S) N × the shortest step that an option can be part of: with the fastest option of the other phase."""
        if phase not in STEP_PHASES:
            return np.zeros_like(self.table.steps)
        other: Phase = "draft_decode" if phase == "target_verify" else "target_verify"
        fastest = np.where(self.table.runs(other), self.latency_s[other].min(axis=0, initial=np.inf), 0.0)
        return np.asarray(self.table.steps * (self.latency_s[phase] + fastest))

    def best_of(self, rate: float, service: Service, s: int, floors: dict[Phase, Floats], incumbent: float) -> Found:
        """Find the best design of one speculation that costs less than the incumbent."""
        return _least_of(self, rate, service, s, floors, incumbent)

    def cost_of(self, rate: float, found: Found) -> float:
        """Cost of one design at a rate."""
        return float(self.costs_of(np.array([rate]), found)[0])

    def costs_of(self, rates: Floats, found: Found) -> Floats:
        """(R,) cost of one design at each of R rates."""
        step_s = sum(float(self.latency_s[p][found.options[p], found.s]) for p in STEP_PHASES if p in found.options)
        held_s = np.full(1, self.table.steps[found.s] * step_s)
        costs = [self.cost(phase, rates, held_s, np.array([o]), found.s) for phase, o in found.options.items()]
        return np.asarray(sum(costs, np.zeros_like(rates)))

    def never_falls_with_rate(self) -> bool:
        """Whether no cost falls as the rate grows: no pass costs less than the idling that it replaces."""
        return all(bool((m.per_rate[np.isfinite(m.per_rate)] >= 0).all()) for m in self.measures.values())

    def with_tie_break(self, other: Tableau, weight: float) -> Tableau:
        """Add a small weight of another measure's cost, so that it decides between equals."""
        measures = {
            phase: Measure(
                self.measures[phase].per_replica + weight * other.measures[phase].per_replica,
                self.measures[phase].per_rate + weight * other.measures[phase].per_rate,
            )
            for phase in PHASES
        }
        return replace(self, measures=measures)


@dataclass(frozen=True)
class Found:
    """A design of least cost: the cost, and the position of its speculation and of its option by phase."""

    value: float
    s: int
    options: dict[Phase, int]

    def design(self, table: CostTable) -> Design:
        """Name the design."""
        options: dict[Phase, Option | None] = dict.fromkeys(PHASES)
        for phase, o in self.options.items():
            options[phase] = table.phases[phase].options[o]
        return Design(table.workload, table.speculations[self.s], options)


NOTHING = Found(np.inf, -1, {})


def least(tableau: Tableau, rate: float, service: Service, hint: Found = NOTHING, enough: float = -np.inf) -> Found:
    """Find the design of least cost at a rate under service limits.

    Parameters
    ----------
    tableau, rate, service
        What is costed, in requests/s and SI. No design serves a rate of zero.
    hint
        A design that is likely good, to start with; it changes the time, not the answer.
    enough
        A cost at which the search may end: any design that costs no more will do.

    Returns
    -------
    Found
        ``NOTHING`` (infinite) where no design meets the service limits.
    """
    table = tableau.table
    if rate <= 0:
        return NOTHING
    floors = tableau.floors(rate)
    least_of = {phase: np.where(table.runs(phase), floors[phase].min(axis=0, initial=np.inf), 0.0) for phase in PHASES}
    total = np.where(tableau.able & _can_be_fast(tableau, service), sum(least_of.values()), np.inf)
    best = NOTHING
    if hint.s >= 0 and np.isfinite(total[hint.s]):
        best = tableau.best_of(rate, service, hint.s, {p: floors[p][:, hint.s] for p in PHASES}, np.inf)
    for s in np.argsort(total, kind="stable"):
        if total[s] >= best.value or (best.s >= 0 and best.value <= enough):
            break
        if s == hint.s:
            continue
        found = tableau.best_of(rate, service, int(s), {p: floors[p][:, s] for p in PHASES}, best.value)
        if found.value < best.value:
            best = found
    return best


def _can_be_fast(tableau: Tableau, service: Service) -> NDArray[np.bool_]:
    """(S,) whether the fastest options of a speculation meet the interactivity floor."""
    table, shortest_s = tableau.table, np.zeros_like(tableau.table.steps)
    for phase in STEP_PHASES:
        fastest = tableau.latency_s[phase].min(axis=0, initial=np.inf)
        shortest_s = shortest_s + np.where(table.runs(phase), fastest, 0.0)
    return is_fast(table, slice(None), shortest_s, service)


def _least_of(
    tableau: Tableau, rate: float, service: Service, s: int, floors: dict[Phase, Floats], incumbent: float
) -> Found:
    """Find the best design of one speculation that costs less than the incumbent."""
    table = tableau.table
    if not table.runs("draft_decode")[s]:
        return _without_draft(tableau, service, s, floors)
    prefill = _Prefills.of(tableau, service, s, floors)
    rest = incumbent - prefill.least
    verify, draft = floors["target_verify"], floors["draft_decode"]
    if np.isinf(incumbent):
        first = _pairs(tableau, rate, service, s, prefill, smallest(verify), smallest(draft))
        rest, incumbent = min(rest, first.value - prefill.least), first.value
    else:
        first = NOTHING
    rows = np.flatnonzero(verify + draft.min() < rest)
    columns = np.flatnonzero(draft + verify.min() < rest)
    if not rows.size or not columns.size:
        return first
    found = _pairs(tableau, rate, service, s, prefill, rows, columns)
    return found if found.value < first.value else first


def smallest(values: Floats, number: int = _TOP) -> NDArray[np.intp]:
    """Give the positions of the smallest finite values."""
    finite = np.flatnonzero(np.isfinite(values))
    return finite[np.argsort(values[finite], kind="stable")[:number]]


def _without_draft(tableau: Tableau, service: Service, s: int, floors: dict[Phase, Floats]) -> Found:
    """No replicas that draft: the options of verification alone make the step, with the cheapest prefills for each."""
    table = tableau.table
    fast = is_fast(table, s, tableau.latency_s["target_verify"][:, s], service)
    prefill = _Prefills.of(tableau, service, s, floors)
    rows = np.arange(len(fast))
    prefills, t, d = prefill.at(rows, np.zeros(len(rows)))
    value = np.where(fast, floors["target_verify"] + prefills, np.inf)
    if not value.size or not np.isfinite(value.min()):
        return NOTHING
    v = int(np.argmin(value))
    return Found(float(value[v]), s, _chosen(table, s, (int(t[v]), v, int(d[v]), -1)))


def _chosen(table: CostTable, s: int, rows: tuple[int, int, int, int]) -> dict[Phase, int]:
    """Keep the options of the phases that are choices of their own."""
    return {phase: row for phase, row in zip(PHASES, rows, strict=True) if table.runs(phase)[s]}


def is_fast(table: CostTable, s: int | slice, step_s: Floats, service: Service) -> NDArray[np.bool_]:
    """Whether steps that take these times meet the interactivity floor."""
    if service.floor_tps <= 0:
        return np.isfinite(step_s)
    return np.asarray(step_s * service.floor_tps <= table.tokens_per_step[s] * (1 + _TOLERANCE))


@dataclass(frozen=True)
class _Prefills:
    """Cheapest prefills within what the step options leave of the TTFT ceiling."""

    target: Staircase
    draft: Staircase
    sums: Staircase | None
    pairs: NDArray[np.intp] | None
    through_target_s: Floats
    through_draft_s: Floats
    ceiling_s: float

    @classmethod
    def of(cls, tableau: Tableau, service: Service, s: int, floors: dict[Phase, Floats]) -> _Prefills:
        """Make the staircases of one speculation; a prefill that is no choice of its own costs and takes nothing."""
        table, ceiling = tableau.table, service.ceiling_s * (1 + _TOLERANCE)
        target, draft = (
            staircase(tableau.latency_s[phase][:, s], floors[phase]) if table.runs(phase)[s] else FREE
            for phase in ("target_prefill", "draft_prefill")
        )
        sums, pairs = None, None
        if not table.first_from_prefill[s] and table.hidden_states[s] and np.isfinite(ceiling):
            sums, pairs = both(target, draft)
        through_draft = table.through_draft_s[:, s]
        if table.first_from_prefill[s]:  # no first token comes through a draft
            through_draft = np.full_like(through_draft, -np.inf)
        return cls(target, draft, sums, pairs, table.through_target_s[:, s], through_draft, ceiling)

    @property
    def least(self) -> float:
        return self.target.least + self.draft.least

    def at(self, verify: NDArray[np.intp], draft_s: Floats) -> tuple[Floats, Indices, Indices]:
        """Give cost, target option and draft option for options of target_verify and times of draft_decode."""
        with np.errstate(invalid="ignore"):  # an option that cannot run leaves infinity less infinity: no time
            before_verify = np.nan_to_num(self.ceiling_s - self.through_target_s[verify], nan=-np.inf, posinf=np.inf)
            before_draft = self.ceiling_s - self.through_draft_s[verify] - draft_s
        before_draft = np.nan_to_num(before_draft, nan=-np.inf, posinf=np.inf)
        target, t = self.target.at(before_verify)
        if self.sums is not None and self.pairs is not None and len(self.pairs):
            # The way through the draft holds the target's prefill too, and no more time is left there.
            value, choice = self.sums.at(before_draft)
            waits = np.where(np.isfinite(target), value, np.inf)
            return waits, self.pairs[choice, 0], self.pairs[choice, 1]
        draft, d = self.draft.at(before_draft)
        return target + draft, t, d


def _pairs(
    tableau: Tableau,
    rate: float,
    service: Service,
    s: int,
    prefill: _Prefills,
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
) -> Found:
    """Cost every pair of a verify and a draft option of one speculation exactly."""
    table = tableau.table
    verify_s = tableau.latency_s["target_verify"][rows, s][:, None]
    draft_s = tableau.latency_s["draft_decode"][columns, s][None, :]
    step_s = verify_s + draft_s
    held_s = table.steps[s] * step_s
    value = tableau.cost("target_verify", rate, held_s, np.broadcast_to(rows[:, None], step_s.shape), s)
    value = value + tableau.cost("draft_decode", rate, held_s, np.broadcast_to(columns[None, :], step_s.shape), s)
    prefills, t, d = prefill.at(np.broadcast_to(rows[:, None], step_s.shape), np.broadcast_to(draft_s, step_s.shape))
    value = np.where(is_fast(table, s, step_s, service), value + prefills, np.inf)
    if not value.size or not np.isfinite(value.min()):
        return NOTHING
    i, j = np.unravel_index(int(np.argmin(value)), value.shape)
    options = _chosen(table, s, (int(t[i, j]), int(rows[i]), int(d[i, j]), int(columns[j])))
    return Found(float(value[i, j]), s, options)


def lower_bound(tableau: Tableau, rate: float) -> float:
    """Bound the least cost at a rate from below, without looking at pairs."""
    floors = tableau.floors(rate)
    runs = tableau.table.runs
    total = sum(np.where(runs(p), floors[p].min(axis=0, initial=np.inf), 0.0) for p in PHASES)
    return float(np.where(tableau.able, total, np.inf).min(initial=np.inf))


def reduced(tableau: Tableau, rate: float, most: float) -> CostTable:
    """Drop the options and speculations that no design of cost ``most`` or less, at this rate or above, can have.

    Proof: the bound of an option with the least of every other phase never exceeds the cost of a design that has it,
    and costs never fall with the rate. What the bound puts above ``most`` here stays above it at every larger rate.
    """
    table, floors = tableau.table, tableau.floors(rate)
    runs = {phase: table.runs(phase) for phase in PHASES}
    least_of = {phase: np.where(runs[phase], floors[phase].min(axis=0, initial=np.inf), 0.0) for phase in PHASES}
    total = np.where(tableau.able, sum(least_of.values()), np.inf)
    columns = np.flatnonzero(np.isfinite(total) & (total <= most))
    with np.errstate(invalid="ignore"):
        rest = {phase: total - least_of[phase] for phase in PHASES}
        keep = {p: np.isfinite(floors[p]) & (floors[p] + rest[p] <= most) for p in PHASES}
    return sliced(table, keep, columns)


def sliced(table: CostTable, keep: dict[Phase, NDArray[np.bool_]], columns: NDArray[np.intp]) -> CostTable:
    """Give a table with some speculations only, and with the options that are kept for any of them.

    Parameters
    ----------
    table
        The whole table.
    keep
        (O, S) by phase, whether an option is kept for a speculation.
    columns
        The speculations to keep.
    """
    phases, verify = {}, np.ix_([], columns)
    for phase in PHASES:
        runs = table.runs(phase)[columns]
        kept = keep[phase][:, columns] & runs
        if phase not in STEP_PHASES:  # the program prices a prefill once for all speculations that may choose it
            kept = kept.any(axis=1, keepdims=True) & runs
        rows = np.flatnonzero(kept.any(axis=1))
        costs, block = table.phases[phase], np.ix_(rows, columns)
        verify = block if phase == "target_verify" else verify
        latency = np.where(kept[rows], costs.latency_s[block], np.where(runs, np.nan, 0.0))
        options = tuple(costs.options[o] for o in rows)
        phases[phase] = PhaseCosts(options, latency, costs.energy_j[block], costs.sequences[block])
    return CostTable(
        table.workload,
        tuple(table.speculations[s] for s in columns),
        table.tokens_per_step[columns],
        table.steps[columns],
        table.hidden_states[columns],
        table.first_from_prefill[columns],
        {phase: table.operations[phase][columns] for phase in PHASES},
        phases,
        {phase: Hosted(part.busy_s[verify], part.energy_j[verify]) for phase, part in table.hosted.items()},
        table.through_target_s[verify],
        table.through_draft_s[verify],
    )

"""The front without a solver, where workloads share nothing: exact, vectorised over pairs of step options.

For one speculation s, the step time is a sum over the two step phases and the cost a sum over all four; prefills matter
to the rest only through the TTFT. So the front of s comes from the pairs of step options, each with the cheapest
prefills that its TTFT allows; the front of a workload is the union over s, filtered again. A step option is left out
beforehand where another of the phase is at least as good in everything that a pair can see (``_step_options``): the
pair with that other option is at least as fast, as cheap and as quick to its first token. What the points found so far
undercut even at its lower bound, an option with the least of every other phase, is not paired either.

Where transfers between device types cost something, all of this is done by pairs of device types, within which a
transfer is a constant.

The least power of several workloads whose users all see at least r is the sum of their own least powers: so the front
of the fleet is the sum of the workloads' step functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.evaluate import Design
from planner.front.asked import Asked
from planner.front.geometry import ROUNDING, front_of, undominated
from planner.options import CostTable
from planner.schema.scenario import Scenario
from planner.structure.charges import AllMoved, moved_of
from planner.structure.least import Found, Service, Tableau
from planner.structure.staircase import FREE as NO_PREFILL
from planner.structure.staircase import Staircase, both, staircase
from planner.transfers import FREE, Transfer, prompt_hidden_bytes
from planner.words import PHASES, Phase

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

NOT_RUN = -1


@dataclass(frozen=True)
class Points:
    """Designs of one workload.

    Attributes
    ----------
    interactivity_tps, cost_w
        (n,) what users see, and power at the rate.
    speculation
        (n,) positions in the cost table.
    options
        (n, 4) positions by phase; ``NOT_RUN`` where the phase does not run.
    """

    interactivity_tps: Floats
    cost_w: Floats
    speculation: Indices
    options: Indices

    def take(self, rows: Indices) -> Points:
        """Give some of the points."""
        return Points(self.interactivity_tps[rows], self.cost_w[rows], self.speculation[rows], self.options[rows])

    @property
    def front(self) -> Points:
        """The non-dominated points by rising interactivity."""
        return self.take(front_of(self.interactivity_tps, self.cost_w))

    def undercuts(self, interactivity_tps: Floats, cost_w: Floats) -> NDArray[np.bool_]:
        """Whether a point of this front is at least as fast and costs no more than each of some others."""
        row = np.searchsorted(self.interactivity_tps, interactivity_tps)
        return np.append(self.cost_w, np.inf)[row] <= cost_w

    def design(self, table: CostTable, row: int) -> Design:
        """Name a point's design."""
        options = {phase: int(o) for phase, o in zip(PHASES, self.options[row], strict=True) if o != NOT_RUN}
        return Found(float(self.cost_w[row]), int(self.speculation[row]), options).design(table)


def _joined(parts: list[Points]) -> Points:
    return Points(
        np.concatenate([part.interactivity_tps for part in parts] or [np.empty(0)]),
        np.concatenate([part.cost_w for part in parts] or [np.empty(0)]),
        np.concatenate([part.speculation for part in parts] or [np.empty(0, dtype=np.intp)]),
        np.concatenate([part.options for part in parts] or [np.empty((0, 4), dtype=np.intp)]),
    )


def separates(asked: Asked) -> bool:
    """Whether workloads and phases share nothing but one power budget.

    Finite inventories, racks, whole nodes, shared pools, a cost budget, and shares of whole counts couple choices. So
    do, for a proposer that needs hidden states, a transfer that runs beside its draft under a TTFT ceiling, and the
    hidden states of a prompt that cross from one prefill to the other, where their time or energy matters.
    """
    scenario = asked.scenario
    servers, limits, whole = scenario.servers, scenario.limits, scenario.counts == "integer"
    if scenario.shared_pools or servers.racks or limits.cost_budget_usd_per_hour is not None:
        return False
    if any(np.isfinite(stock.available) for stock in limits.inventory.values()):
        return False
    if whole and (servers.by_node or scenario.max_shares > 1):
        return False
    return scenario.transfers is None or not any(_prefills_meet(scenario, table) for table in asked.tables.values())


def _prefills_meet(scenario: Scenario, table: CostTable) -> bool:
    """Whether the choice of one prefill matters to the other: hidden states pass between them at some price."""
    timed = scenario.workloads[table.workload].limits.ttft_ceiling_ms is not None
    if timed and bool((table.hidden_states & ~table.first_from_prefill).any()):
        return True
    proposers = {s.proposer for s in table.speculations if s.proposer is not None}
    sends = any(prompt_hidden_bytes(scenario, table.workload, name) > 0 for name in proposers)
    return sends and scenario.power_basis != "provisioned"


# ------------------------------------------------------------------------------------------------ the whole front

Designs = tuple[tuple[Design, float], ...]


@dataclass(frozen=True)
class Claim:
    """The designs of a point with their rates, and what the search found them to have: to be recomputed."""

    designs: Designs
    interactivity_tps: float
    power_w: float


def front_by_structure(asked: Asked) -> list[Claim]:
    """Give every point of the front by rising interactivity.

    The power budget, if any, applies to the sum over workloads.
    """
    fronts = {name: workload_front(asked, name) for name in asked.tables}
    budget_kw = asked.scenario.limits.power_budget_kw
    most_w = np.inf if budget_kw is None else budget_kw * 1e3 * (1.0 + ROUNDING)
    rows, tps, cost = _together(list(fronts.values()))
    within = np.flatnonzero(cost <= most_w)
    chosen = within[front_of(tps[within], cost[within])]
    return [
        Claim(
            tuple(
                (front.design(asked.tables[name], int(rows[w, point])), asked.rates[name])
                for w, (name, front) in enumerate(fronts.items())
            ),
            float(tps[point]),
            float(cost[point]),
        )
        for point in chosen
    ]


def _together(fronts: list[Points]) -> tuple[Indices, Floats, Floats]:
    """Sum step functions: at every floor that some workload reaches, each takes its cheapest point at or above it.

    Returns
    -------
    rows, interactivity_tps, cost_w
        (workloads, n) the point of each, and (n,) the worst interactivity and the total cost.
    """
    floors = np.unique(np.concatenate([front.interactivity_tps for front in fronts]))
    reach = min(front.interactivity_tps.max(initial=0.0) for front in fronts)
    floors = floors[floors <= reach]
    rows = np.array([np.searchsorted(front.interactivity_tps, floors) for front in fronts], dtype=np.intp)
    every = list(zip(fronts, rows, strict=True))
    tps = np.array([front.interactivity_tps[row] for front, row in every]).min(axis=0)
    cost = np.array([front.cost_w[row] for front, row in every]).sum(axis=0)
    return rows, tps, cost


def workload_front(asked: Asked, workload: str) -> Points:
    """Give the front of interactivity against power of one workload at its rate, within its limits on service."""
    search, front = _Search.of(asked, workload), _joined([])
    for s in np.flatnonzero(search.tableau.able):
        front = _joined([front, *search.points(int(s), front)]).front
    return front


# ------------------------------------------------------------------------------------------------ one speculation


@dataclass(frozen=True)
class _Search:
    """One workload's options, its rate and limits on service, and the power of a joule per request at that rate."""

    scenario: Scenario
    tableau: Tableau
    rate: float
    service: Service
    watts_per_joule: float
    moved: AllMoved
    device: dict[str, int]

    @classmethod
    def of(cls, asked: Asked, workload: str) -> _Search:
        scenario, rate = asked.scenario, asked.rates[workload]
        factor = {"forward": 1.0, "average": scenario.host_factor, "provisioned": 0.0}[scenario.power_basis]
        tableau = Tableau.of(scenario, asked.tables[workload], "power")
        device = {name: number for number, name in enumerate(scenario.catalog.devices)}
        service, moved = Service.of(scenario, workload), moved_of(scenario, asked.tables[workload])
        return cls(scenario, tableau, rate, service, factor * scenario.pue * rate, moved, device)

    @property
    def ceiling_s(self) -> float:
        return self.service.ceiling_s * (1.0 + ROUNDING)

    def points(self, s: int, known: Points) -> Iterator[Points]:
        """Give the points of a speculation that the front known so far does not undercut.

        All at once, or by pairs of device types where transfers count.
        """
        prefills = _Prefills(self, s)
        verifies = self._groups("target_verify", s)
        if not self.tableau.table.runs("draft_decode")[s]:
            for device, rows in verifies:
                yield self._without_draft(s, rows, prefills.allowed(device, device))
            return
        drafts = self._groups("draft_decode", s)
        for device, rows in verifies:
            for other, columns in drafts:
                link = self._exchange(device, other, s)
                yield self._pairs(s, rows, columns, link, prefills.allowed(device, other), known)

    def _exchange(self, device: str | None, other: str | None, s: int) -> Transfer:
        """Give a step's exchange between two device types; its energy is that of a request."""
        if device is None or other is None:
            return FREE
        ends = np.array(self.device[device]), np.array(self.device[other])
        return Transfer(float(self.moved.step.time_s(*ends, s)), float(self.moved.step.energy_j(*ends, s)))

    def _groups(self, phase: Phase, s: int) -> list[tuple[str | None, Indices]]:
        """Give the options of a step phase worth a look: together, or by device type where transfers count."""
        options = self.tableau.table.phases[phase].options
        able = np.flatnonzero(np.isfinite(self.tableau.latency_s[phase][:, s]))
        if self.scenario.transfers is None:
            return [(None, _step_options(self.tableau, phase, s, able))]
        by_device: dict[str, list[int]] = {}
        for o in able:
            by_device.setdefault(options[o].device, []).append(int(o))
        return [(name, _step_options(self.tableau, phase, s, np.array(rows))) for name, rows in by_device.items()]

    def _without_draft(self, s: int, rows: Indices, prefills: _Allowed) -> Points:
        """No replicas that draft: the options of verification alone make the step."""
        table = self.tableau.table
        step_s = self.tableau.latency_s["target_verify"][rows, s]
        prefill, target, draft = prefills.at(rows, np.zeros(rows.size))
        cost = self.tableau.cost("target_verify", self.rate, table.steps[s] * step_s, rows, s) + prefill
        options = np.column_stack([target, rows, draft, np.full(rows.size, NOT_RUN, dtype=np.intp)])
        able = np.flatnonzero(np.isfinite(cost) & self._is_fast(s, step_s))
        return self._points(s, step_s[able], cost[able], options[able])

    def _pairs(
        self, s: int, rows: Indices, columns: Indices, link: Transfer, prefills: _Allowed, known: Points
    ) -> Points:
        """Every pair of a verify and a draft option, each with the cheapest prefills that its TTFT allows."""
        E, steps = self.tableau.table.tokens_per_step[s], self.tableau.table.steps[s]
        rest = prefills.least + self.watts_per_joule * link.energy_j
        verify_s = self.tableau.latency_s["target_verify"][rows, s]
        draft_s = self.tableau.latency_s["draft_decode"][columns, s] + link.exposed_s
        if not rows.size or not columns.size:
            return _joined([])
        # What no partner saves is left out: the fastest and the cheapest of the other phase, were they one option.
        verify_step_s, draft_step_s = verify_s + draft_s.min(), draft_s + verify_s.min()
        verify_w = self.tableau.cost("target_verify", self.rate, steps * verify_step_s, rows, s)
        draft_w = self.tableau.cost("draft_decode", self.rate, steps * draft_step_s, columns, s)
        v = np.flatnonzero(~known.undercuts(E / verify_step_s, verify_w + draft_w.min() + rest))
        d = np.flatnonzero(~known.undercuts(E / draft_step_s, draft_w + verify_w.min() + rest))
        step_s = verify_s[v][:, None] + draft_s[d][None, :]
        held_s = steps * step_s
        cost = self.tableau.cost("target_verify", self.rate, held_s, np.broadcast_to(rows[v][:, None], step_s.shape), s)
        cost = cost + self.tableau.cost(
            "draft_decode", self.rate, held_s, np.broadcast_to(columns[d][None, :], step_s.shape), s
        )
        able = np.isfinite(cost) & self._is_fast(s, step_s) & ~known.undercuts(E / step_s, cost + rest)
        i, j = np.nonzero(able)
        prefill, target, draft = prefills.at(rows[v][i], draft_s[d][j])
        cost = cost[i, j] + prefill + (rest - prefills.least)
        found = np.flatnonzero(np.isfinite(cost))
        options = np.column_stack([target, rows[v][i], draft, columns[d][j]])
        return self._points(s, step_s[i, j][found], cost[found], options[found])

    def _is_fast(self, s: int, step_s: Floats) -> NDArray[np.bool_]:
        """Whether a step keeps to the interactivity floor."""
        most = self.tableau.table.tokens_per_step[s] * (1.0 + ROUNDING)
        return np.asarray(step_s * self.service.floor_tps <= most)

    def _points(self, s: int, step_s: Floats, cost: Floats, options: Indices) -> Points:
        """Keep what nothing of the same speculation dominates."""
        kept = undominated(np.column_stack([step_s, cost]))
        E = self.tableau.table.tokens_per_step[s]
        return Points(E / step_s[kept], cost[kept], np.full(kept.size, s, dtype=np.intp), options[kept])


def _step_options(tableau: Tableau, phase: Phase, s: int, rows: Indices) -> Indices:
    """Leave out options that another of the group matches or beats in all that the cost of a pair depends on.

    That is the latency, the part in the time of a first token, and of the power w·count + g, where count covers
    capacity and held sequences: with fractional counts the power at capacity, that per held sequence, and g; with whole
    counts or spares w, busy time, held sequences and g themselves. A least batch fill asks for *few* held sequences
    too, so then nothing is left out.
    """
    scenario, measure = tableau.scenario, tableau.measures[phase]
    if scenario.servers.min_batch_fill > 0:
        return rows
    watts, per_rate = measure.per_replica[rows, 0], measure.per_rate[rows, s]
    busy, latency = tableau.busy_s[phase][rows, s], tableau.latency_s[phase][rows, s]
    per_held = 1.0 / tableau.held_per_replica[phase][rows, s]
    first: list[Floats] = []
    if phase == "target_verify":
        first = [way[rows, s] for way in (tableau.table.through_target_s, tableau.table.through_draft_s)]
    if scenario.counts == "integer" or scenario.servers.spare_replicas:
        columns = [*first, latency, watts, busy, per_held, per_rate]
    else:
        columns = [*first, latency, watts * busy / scenario.max_utilization + per_rate, watts * per_held, per_rate]
    return rows[undominated(np.column_stack(columns))]


# ------------------------------------------------------------------------------------------------------- prefills


@dataclass(frozen=True)
class _Allowed:
    """Cheapest prefills for the step options of one pair of device types."""

    target: Staircase
    draft: Staircase
    sums: tuple[Staircase, Indices] | None
    for_target_s: Floats
    for_draft_s: Floats

    @property
    def least(self) -> float:
        """The cheapest prefills of all, whatever time they take."""
        return self.target.least + self.draft.least

    def at(self, verify: Indices, draft_s: Floats) -> tuple[Floats, Indices, Indices]:
        """Give cost, target option and draft option for options of target_verify, and the time that a draft takes."""
        before_draft = self.for_draft_s[verify] - draft_s
        target, t = self.target.at(self.for_target_s[verify])
        if self.sums is not None and len(self.sums[1]):
            steps, pairs = self.sums
            value, choice = steps.at(before_draft)
            return np.where(np.isfinite(target), value, np.inf), pairs[choice, 0], pairs[choice, 1]
        draft, d = self.draft.at(before_draft)
        return target + draft, t, d


class _Prefills:
    """Prefills of one speculation as step functions of the time they are allowed, by device type of the next phase."""

    def __init__(self, search: _Search, s: int) -> None:
        self.search, self.s = search, s
        self.known: dict[tuple[Phase, str | None], Staircase] = {}

    def allowed(self, verify_device: str | None, draft_device: str | None) -> _Allowed:
        """Cheapest prefills of both models, their KV transfers included."""
        table, ceiling, s = self.search.tableau.table, self.search.ceiling_s, self.s
        target = self._staircase("target_prefill", verify_device)
        draft = self._staircase("draft_prefill", draft_device)
        waits = not bool(table.first_from_prefill[s])
        adds = waits and bool(table.hidden_states[s]) and np.isfinite(ceiling)
        known = np.isfinite(self.search.tableau.latency_s["target_verify"][:, s])
        for_target, for_draft = np.full((2, known.size), -np.inf)
        for_target[known] = ceiling - table.through_target_s[known, s]
        for_draft[known] = ceiling - table.through_draft_s[known, s] if waits else np.inf
        return _Allowed(target, draft, both(target, draft) if adds else None, for_target, for_draft)

    def _staircase(self, phase: Phase, next_device: str | None) -> Staircase:
        if not self.search.tableau.table.runs(phase)[self.s]:
            return NO_PREFILL
        if (phase, next_device) not in self.known:
            search = self.search
            tableau = search.tableau
            options = tableau.table.phases[phase].options
            moves = search.moved
            move = moves.target_kv if phase == "target_prefill" else moves.draft_kv
            start = np.array([search.device[option.device] for option in options], dtype=np.intp)
            end = np.array(NOT_RUN if next_device is None else search.device[next_device])
            cost = tableau.cost(phase, search.rate, np.zeros(1), slice(None), self.s)
            time_s = tableau.latency_s[phase][:, self.s] + move.time_s(start, end, self.s)
            cost = cost + search.watts_per_joule * move.energy_j(start, end, self.s)
            self.known[phase, next_device] = staircase(time_s, cost)
        return self.known[phase, next_device]

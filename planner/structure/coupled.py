"""The least cost of one workload whose phases share stocks, nodes, several budgets or links: exact, without a solver.

Phases that sit on one device type share its stock, its owned devices and its nodes; so the cost of a design is no sum
over phases any more. But one design has four phases only, and what they share is known once they are chosen.

**Bounds.** What u devices of a type cost, each·u + bought·max(0, u − owned), is convex and zero at zero, so it is
superadditive: g(u) + g(v) ≤ g(u + v). Devices had, whole nodes, are never fewer than devices used, and links only add
time and energy. So the sum over phases of what each would cost had it the whole fleet to itself never exceeds the cost
of the design: an option that alone needs more than the stock, or that with the least of every other phase exceeds a
budget, is in no design.

**Completion.** A pair of step options is completed with prefills by rising bound, until the bound passes the incumbent.
A prefill given the pair alone costs what it adds to it, from what the pair leaves of the stock of its device type.
Increments of a convex function grow, so both prefills together add at least the sum of what each adds alone. Where the
two cheapest ones add just that, and break no limit, they are the pair's best; else every two prefills whose sum stays
below the incumbent are looked at.

**Monotone.** Counts never fall when the rate rises, so devices do not, and no measure does where no pass costs less
than the idling that it replaces (``never_falls_with_rate``). What is ruled out at a rate is ruled out above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from planner.fleet import COUNT_TOLERANCE, devices_per_unit
from planner.measure import Kind, measure_of
from planner.options import CostTable, hosted_by_verify
from planner.schema.scenario import Scenario
from planner.structure.charges import AllMoved, Charge, Moved, moved_of, per_joule
from planner.structure.least import NOTHING, Floats, Found, Service, Tableau, is_fast, smallest
from planner.structure.staircase import Indices, Staircase, staircase
from planner.words import PHASES, STEP_PHASES, Phase

Measured = Kind | Literal["devices"]

_TOLERANCE = 1e-9
_MANY = 1000
_CHUNK = 512
_GRID = 100_000
_NOBODY = -1


@dataclass(frozen=True)
class Coupled(Tableau):
    """A workload's options with all that its phases share.

    Attributes
    ----------
    available, unit
        (D + 1,) devices that can be had by type, and devices of a unit that is bought. The last type is none.
    device, degree
        (O,) by phase: the options' types and the devices of a replica.
    charges
        The measure that is minimized, then the budgets of others.
    moved
        What crosses between device types.
    """

    available: Floats
    unit: Floats
    device: dict[Phase, Indices]
    degree: dict[Phase, Floats]
    charges: tuple[Charge, ...]
    moved: AllMoved

    @classmethod
    def sharing(
        cls,
        scenario: Scenario,
        table: CostTable,
        kind: Measured,
        budgets: Sequence[tuple[Kind, float]] = (),
        device: str | None = None,
    ) -> Coupled:
        """Cost a workload's options on a measure, or in devices of one type, within budgets of other measures."""
        names = list(scenario.catalog.devices)
        number = {name: position for position, name in enumerate(names)}
        base = Tableau.of(scenario, table, "energy" if kind == "devices" else kind)
        devices = {p: np.array([number[o.device] for o in table.phases[p].options], dtype=np.intp) for p in PHASES}
        degrees = {p: np.array([float(o.tensor_parallel) for o in table.phases[p].options]) for p in PHASES}
        stocks = [scenario.limits.inventory.get(name) for name in names]
        coupled = cls(
            **{name: getattr(base, name) for name in Tableau.__dataclass_fields__},
            available=np.array([*(np.inf if stock is None else stock.available for stock in stocks), np.inf]),
            unit=np.array([*(devices_per_unit(scenario, name) for name in names), 1.0]),
            device=devices,
            degree=degrees,
            charges=(),
            moved=moved_of(scenario, table),
        )
        owned = np.array([*(0.0 if stock is None else float(stock.owned) for stock in stocks), 0.0])
        others = [coupled._charge(other, owned, most) for other, most in budgets]
        if kind == "devices":
            first = replace(coupled._charge("cost", owned, np.inf), each=np.array([*(n == device for n in names), 0.0]))
            first = replace(first, bought=np.zeros_like(owned))
        else:
            first = coupled._charge(kind, owned, np.inf)
        return replace(coupled, charges=(first, *others))

    def _charge(self, kind: Kind, owned: Floats, most: float) -> Charge:
        measures = {phase: measure_of(self.scenario, self.table, phase, kind) for phase in PHASES}
        each, none = np.zeros_like(owned), np.zeros_like(owned)
        for phase, measure in measures.items():
            each[self.device[phase]] = measure.per_replica[:, 0] / self.degree[phase]
        per_rate = {phase: measure.per_rate for phase, measure in measures.items()}
        each, bought = (none, each) if kind == "cost" else (each, none)
        return Charge(per_rate, each, bought, owned, per_joule(self.scenario, kind), most)

    def had(self, device: Indices, used: Floats) -> Floats:
        """Devices had where some are used: whole nodes, as ``planner.fleet.device_counts``."""
        if self.scenario.counts != "integer":
            return used
        units = used / self.unit[device]
        return np.asarray(self.unit[device] * np.ceil(units - COUNT_TOLERANCE * np.maximum(1.0, units)))

    def used(self, phase: Phase, rate: float | Floats, held_s: Floats, rows: slice | Indices, s: int | slice) -> Floats:
        """Devices of options of a phase, spares included."""
        serving: Floats = self.serving(phase, rate, held_s, rows, s)
        degree = self.degree[phase][rows]
        degree = degree[:, None] if serving.ndim > degree.ndim else degree
        return np.asarray(degree * (serving + self.scenario.servers.spare_replicas))

    def floors(self, rate: float) -> dict[Phase, Floats]:
        """(O, S) by phase: the cost of each option alone with the whole fleet, infinite where a budget rules it out."""
        runs = {phase: self.table.runs(phase) for phase in PHASES}
        used = {p: self.used(p, rate, self.shortest_held_s(p), slice(None), slice(None)) for p in PHASES}
        most = self.available * (1 + _TOLERANCE)
        floors: dict[Phase, Floats] = {}
        for number, charge in reversed(list(enumerate(self.charges))):
            for phase in PHASES:
                device = self.device[phase][:, None]
                possible = np.isfinite(used[phase]) & (used[phase] <= most[device])
                if number + 1 < len(self.charges):
                    possible &= np.isfinite(floors[phase])
                count = np.where(possible, used[phase], 0.0)
                value = charge.of_devices(device, count) + rate * charge.per_rate[phase]
                floors[phase] = np.where(possible, value, np.inf)
            least = {p: np.where(runs[p], floors[p].min(axis=0, initial=np.inf), 0.0) for p in PHASES}
            total = sum(least.values(), np.zeros_like(self.table.steps))
            with np.errstate(invalid="ignore"):
                rest = {p: np.where(np.isfinite(least[p]), total - least[p], np.inf) for p in PHASES}
            dear = {p: runs[p] & (floors[p] + rest[p] > charge.most * (1 + _TOLERANCE)) for p in PHASES}
            floors = {p: np.where(dear[p], np.inf, floors[p]) for p in PHASES}
        return floors

    def best_of(self, rate: float, service: Service, s: int, floors: dict[Phase, Floats], incumbent: float) -> Found:
        """Find the best design of one speculation that costs less than the incumbent."""
        search = _Search(self, rate, service, s, floors)
        drafts = bool(self.table.runs("draft_decode")[s])
        verify, draft = floors["target_verify"], floors["draft_decode"] if drafts else np.zeros(1)
        rest = search.target_steps.least + search.draft_steps.least

        def likely(most: float) -> tuple[Indices, Indices]:
            over = most - rest
            return np.flatnonzero(verify + draft.min() < over), np.flatnonzero(draft + verify.min() < over)

        best, (rows, columns) = NOTHING, likely(incumbent)
        if np.isinf(incumbent) and rows.size * columns.size > _MANY:
            best = search.pairs(smallest(verify), smallest(draft), np.inf)
            rows, columns = likely(best.value)
        found = search.pairs(rows, columns, min(incumbent, best.value)) if rows.size and columns.size else NOTHING
        return found if found.value < best.value else best

    def costs_of(self, rates: Floats, found: Found) -> Floats:
        """(R,) cost of one design at each of R rates; infinite where stocks or budgets do not allow it."""
        search, parts = self._of(rates, found)
        able = np.ones(rates.shape, dtype=bool)
        for part in parts:
            able &= np.isfinite(part.used)
        with np.errstate(invalid="ignore"):
            return np.where(able, search.exact(*parts), np.inf)

    def uses(self, rate: float, found: Found) -> tuple[Floats, list[float]]:
        """(D + 1,) devices had by type, and the figure of every charge, for a design that can serve the rate."""
        search, parts = self._of(rate, found)
        used = np.zeros_like(self.available)
        for part in parts:
            used[part.device[0]] += part.used[0]
        return self.had(np.arange(used.size), used), [float(f[0]) for f in search.figures(*parts)[0]]

    def _of(self, rate: float | Floats, found: Found) -> tuple[_Search, tuple[_Part, _Part, _Part, _Part]]:
        search = _Search(self, rate, Service(), found.s, {})
        rows = {phase: np.array([found.options.get(phase, _NOBODY)]) for phase in PHASES}
        verify, draft = (search.part(phase, rows[phase]) for phase in STEP_PHASES)
        verify, draft, _ = search.with_counts(verify, draft)
        target = search.part("target_prefill", rows["target_prefill"])
        return search, (verify, draft, target, search.part("draft_prefill", rows["draft_prefill"]))

    def never_falls_with_rate(self) -> bool:
        """Whether no measure falls as the rate grows."""
        figures = [charge.per_rate[phase] for charge in self.charges for phase in PHASES]
        return all(bool((figure[np.isfinite(figure)] >= 0).all()) for figure in figures)

    def with_tie_break(self, other: Tableau, weight: float) -> Coupled:
        """Add a small weight of another measure's cost, so that it decides between equals."""
        assert isinstance(other, Coupled)
        first, *budgets = self.charges
        return replace(self, charges=(first.plus(other.charges[0], weight), *budgets))


@dataclass(frozen=True)
class _Part:
    """Options of one phase as arrays that broadcast with those of other phases; row -1 on no type: it does not run.

    ``used``: devices; ``rates``: what each charge asks for the rate.
    """

    rows: Indices
    latency_s: Floats
    device: Indices
    used: Floats
    rates: tuple[Floats, ...]

    def __getitem__(self, index: Any) -> _Part:  # noqa: ANN401
        rates = tuple(rate[index] for rate in self.rates)
        return _Part(self.rows[index], self.latency_s[index], self.device[index], self.used[index], rates)


@dataclass(frozen=True)
class _Search:
    """The search among the designs of one speculation at one rate."""

    tableau: Coupled
    rate: float | Floats
    service: Service
    s: int
    floors: dict[Phase, Floats]

    # What there is to choose from.

    def part(self, phase: Phase, rows: Indices) -> _Part:
        """Give options of a phase; devices of step phases follow once both are known."""
        t, s = self.tableau, self.s
        if not t.table.runs(phase)[s]:
            none = np.zeros(1)
            return _Part(np.array([_NOBODY]), none, np.array([_NOBODY]), none, tuple(none for _ in t.charges))
        used = np.zeros(rows.shape) if phase in STEP_PHASES else t.used(phase, self.rate, np.zeros(1), rows, s)
        rates = tuple(self.rate * charge.per_rate[phase][rows, s] for charge in t.charges)
        return _Part(rows, t.latency_s[phase][rows, s], t.device[phase][rows], used, rates)

    def _prefills(self, phase: Phase) -> _Part:
        runs = self.tableau.table.runs(phase)[self.s]
        return self.part(phase, np.flatnonzero(np.isfinite(self.floors[phase])) if runs else np.array([_NOBODY]))

    def _steps(self, phase: Phase, part: _Part) -> Staircase:
        runs = self.tableau.table.runs(phase)[self.s]
        return staircase(part.latency_s, self.floors[phase][part.rows] if runs else np.zeros(1))

    @cached_property
    def target(self) -> _Part:
        """Target prefills."""
        return self._prefills("target_prefill")

    @cached_property
    def drafter(self) -> _Part:
        """Draft prefills."""
        return self._prefills("draft_prefill")

    @cached_property
    def target_steps(self) -> Staircase:
        """Least floor of a target prefill within a time."""
        return self._steps("target_prefill", self.target)

    @cached_property
    def draft_steps(self) -> Staircase:
        """Least floor of a draft prefill within a time."""
        return self._steps("draft_prefill", self.drafter)

    # Figures.

    def with_counts(self, verify: _Part, draft: _Part) -> tuple[_Part, _Part, Floats]:
        """Give two step parts with their devices, and the step time."""
        t, s = self.tableau, self.s
        link_s = t.moved.step.time_s(verify.device, draft.device, s)
        step_s = verify.latency_s + draft.latency_s + link_s
        held_s = t.table.steps[s] * step_s
        parts = []
        for phase, part in zip(STEP_PHASES, (verify, draft), strict=True):
            used = part.used
            if t.table.runs(phase)[s]:
                used = t.used(phase, self.rate, held_s, np.broadcast_to(part.rows, step_s.shape), s)
            parts.append(replace(part, used=used))
        return parts[0], parts[1], step_s

    def _together(self, parts: Sequence[_Part], whole: bool) -> tuple[list[Floats], NDArray[np.bool_]]:
        """Give what parts cost together on every charge, transfers left out, and whether the stocks suffice.

        ``whole``: in nodes as they are bought; else a bound below.
        """
        t = self.tableau
        figures = [sum((part.rates[k] for part in parts), np.zeros(1)) for k in range(len(t.charges))]
        enough: Any = np.bool_(True)
        for number, part in enumerate(parts):
            used: Any = 0.0
            first: Any = np.bool_(True)
            for position, other in enumerate(parts):
                same = other.device == part.device
                used = used + np.where(same, other.used, 0.0)
                if position < number:
                    first = first & ~same
            had = t.had(part.device, used) if whole else used
            enough = enough & (had <= t.available[part.device] * (1 + _TOLERANCE))
            for k, charge in enumerate(t.charges):
                figures[k] = figures[k] + np.where(first, charge.of_devices(part.device, had), 0.0)
        return figures, enough

    def _transfer_w(self, moved: Moved, start: Indices, end: Indices) -> Floats:
        return np.asarray(self.rate * moved.energy_j(start, end, self.s))

    def _prefill_devices(self, verify: _Part, target: _Part, drafter: _Part) -> tuple[Indices, Indices]:
        """Give the device types where the target's and the drafter's prefill run; hosted ones where verification is."""
        hosted = hosted_by_verify(self.tableau.scenario, self.tableau.table.speculations[self.s])
        at_target = verify.device if "target_prefill" in hosted else target.device
        return at_target, verify.device if "draft_prefill" in hosted else drafter.device

    def exact(self, verify: _Part, draft: _Part, target: _Part, drafter: _Part) -> Floats:
        """Cost of whole designs, times left out; infinite where stocks or budgets do not allow them."""
        figures, allowed = self.figures(verify, draft, target, drafter)
        for figure, charge in zip(figures[1:], self.tableau.charges[1:], strict=True):
            allowed = allowed & (figure <= charge.most * (1 + _TOLERANCE))
        return np.where(allowed, figures[0], np.inf)

    def figures(
        self, verify: _Part, draft: _Part, target: _Part, drafter: _Part
    ) -> tuple[list[Floats], NDArray[np.bool_]]:
        """Give the figure of whole designs on every charge, and whether stocks allow them."""
        figures, allowed = self._together([verify, draft, target, drafter], whole=True)
        moved, hidden = self.tableau.moved, self._prefill_devices(verify, target, drafter)
        watts = (
            self._transfer_w(moved.target_kv, target.device, verify.device)
            + self._transfer_w(moved.draft_kv, drafter.device, draft.device)
            + self._transfer_w(moved.hidden, *hidden)
            + self._transfer_w(moved.step, verify.device, draft.device)
        )
        return [f + c.per_joule * watts for f, c in zip(figures, self.tableau.charges, strict=True)], allowed

    # The search.

    def pairs(self, rows: Indices, columns: Indices, incumbent: float) -> Found:
        """Find the best design with one of these verify and one of these draft options below the incumbent."""
        t, s = self.tableau, self.s
        verify, draft = self._likely(self.part("target_verify", rows), self.part("draft_decode", columns), incumbent)
        with np.errstate(invalid="ignore"):
            verify, draft, step_s = self.with_counts(verify, draft)
            figures, enough = self._together([verify, draft], whole=False)
        watts = self._transfer_w(t.moved.step, verify.device, draft.device)
        figures = [f + charge.per_joule * watts for f, charge in zip(figures, t.charges, strict=True)]
        for_target, for_draft = self._allowed_s(verify, step_s)
        bound = figures[0] + self.target_steps.at(for_target)[0] + self.draft_steps.at(for_draft)[0]
        index = np.flatnonzero(enough & is_fast(t.table, s, step_s, self.service) & (bound < incumbent))
        index = index[np.argsort(bound[index], kind="stable")]
        best = NOTHING
        for start in range(0, index.size, _CHUNK):
            some = index[start : start + _CHUNK]
            if bound[some[0]] >= min(incumbent, best.value):
                break
            pairs = _Pairs(verify, draft, figures, for_target, for_draft)[some]
            found = self._completed(pairs, min(incumbent, best.value))
            best = found if found.value < best.value else best
        return best

    def _likely(self, verify: _Part, draft: _Part, incumbent: float) -> tuple[_Part, _Part]:
        """Pair what is fast enough, and whose floors stay below the incumbent."""
        t, s = self.tableau, self.s
        floor = self.floors["target_verify"][verify.rows][:, None] + self.target_steps.least + self.draft_steps.least
        if t.table.runs("draft_decode")[s]:
            floor = floor + self.floors["draft_decode"][draft.rows][None, :]
        fast = is_fast(t.table, s, verify.latency_s[:, None] + draft.latency_s[None, :], self.service)
        i, j = np.nonzero(fast & (floor < incumbent))
        return verify[i], draft[j]

    def _allowed_s(self, verify: _Part, step_s: Floats) -> tuple[Floats, Floats]:
        """Give what a pair leaves of the TTFT ceiling for the target's prefill, and for the drafter's."""
        ceiling = np.full(step_s.shape, self.service.ceiling_s * (1 + _TOLERANCE))
        table = self.tableau.table
        with np.errstate(invalid="ignore"):  # an option that cannot run leaves infinity less infinity: no time
            for_target = ceiling - table.through_target_s[verify.rows, self.s]
            for_draft = ceiling - table.through_draft_s[verify.rows, self.s] - (step_s - verify.latency_s)
        if table.first_from_prefill[self.s]:
            for_draft = np.full(step_s.shape, np.inf)
        return tuple(np.where(np.isnan(left), -np.inf, left) for left in (for_target, for_draft))  # type: ignore[return-value]

    def _completed(self, pairs: _Pairs, incumbent: float) -> Found:
        """Find the best completion of pairs that come by rising bound."""
        verify, draft = pairs.verify, pairs.draft
        moved = self.tableau.moved
        targets = self._added(pairs, self.target, moved.target_kv, verify, pairs.for_target_s)
        drafters = self._added(pairs, self.drafter, moved.draft_kv, draft, pairs.for_draft_s)
        least = [t.min(axis=1) + d.min(axis=1) for t, d in zip(targets, drafters, strict=True)]
        bound, possible = pairs.figures[0] + least[0], np.ones(verify.rows.size, dtype=bool)
        for k, charge in enumerate(self.tableau.charges[1:], start=1):
            possible &= pairs.figures[k] + least[k] <= charge.most * (1 + _TOLERANCE)
        target, drafter = self.target[targets[0].argmin(axis=1)], self.drafter[drafters[0].argmin(axis=1)]
        value = np.where(np.isfinite(bound), self._timely(pairs, verify, draft, target, drafter), np.inf)
        n = int(np.argmin(value))
        best = self._found(value[n], verify[n], draft[n], target[n], drafter[n])
        undecided = np.flatnonzero(possible & (value > bound + _TOLERANCE * np.abs(bound)))
        undecided = undecided[np.argsort(bound[undecided], kind="stable")]
        while undecided.size and bound[undecided[0]] < (most := min(incumbent, best.value)):
            size = max(1, _GRID // (self.target.rows.size * self.drafter.rows.size))
            some, undecided = undecided[:size], undecided[size:]
            over = [a[some] - a[some].min(axis=1, keepdims=True) for a in (targets[0], drafters[0])]
            likely = [(bound[some, None] + each < most).any(axis=0) for each in over]
            found = self._best_of_grid(pairs[some], *(np.flatnonzero(each) for each in likely))
            best = found if found.value < best.value else best
        return best

    def _best_of_grid(self, pairs: _Pairs, targets: Indices, drafters: Indices) -> Found:
        """Find the best of every pair with every one of these target prefills and every one of these draft prefills."""
        verify, draft = pairs.verify[:, None, None], pairs.draft[:, None, None]
        target, drafter = self.target[targets][None, :, None], self.drafter[drafters][None, None, :]
        value = self._timely(pairs[:, None, None], verify, draft, target, drafter)
        n, i, j = np.unravel_index(int(np.argmin(value)), value.shape)
        return self._found(value[n, i, j], pairs.verify[n], pairs.draft[n], target[0, i, 0], drafter[0, 0, j])

    def _added(self, pairs: _Pairs, part: _Part, moved: Moved, partner: _Part, allowed_s: Floats) -> list[Floats]:
        """(pairs, options) what a prefill adds to a pair, on every charge; infinite where stock or time forbid it."""
        t, one = self.tableau, part[None, :]
        there: Any = 0.0
        for step in (pairs.verify, pairs.draft):
            there = there + np.where(step.device[:, None] == one.device, step.used[:, None], 0.0)
        possible = there + one.used <= t.available[one.device] * (1 + _TOLERANCE)
        end = partner.device[:, None]
        possible &= one.latency_s + moved.time_s(one.device, end, self.s) <= allowed_s[:, None]
        watts = self._transfer_w(moved, one.device, end)
        found = []
        for rate, charge in zip(one.rates, t.charges, strict=True):
            added = charge.of_devices(one.device, there + one.used) - charge.of_devices(one.device, there)
            found.append(np.where(possible, rate + added + charge.per_joule * watts, np.inf))
        return found

    def _timely(self, pairs: _Pairs, verify: _Part, draft: _Part, target: _Part, drafter: _Part) -> Floats:
        """Cost of whole designs; infinite where the first token comes too late too."""
        value = self.exact(verify, draft, target, drafter)
        moved, s = self.tableau.moved, self.s
        before_draft = drafter.latency_s + moved.draft_kv.time_s(drafter.device, draft.device, s)
        before_draft = before_draft + moved.hidden.time_s(*self._prefill_devices(verify, target, drafter), s)
        if self.tableau.table.hidden_states[self.s]:
            before_draft = before_draft + target.latency_s
        kv_s = moved.target_kv.time_s(target.device, verify.device, s)
        timely = target.latency_s + kv_s <= pairs.for_target_s
        return np.where(timely & (before_draft <= pairs.for_draft_s), value, np.inf)

    def _found(self, value: float, *parts: _Part) -> Found:
        order: tuple[Phase, ...] = ("target_verify", "draft_decode", "target_prefill", "draft_prefill")
        options = {phase: int(part.rows) for phase, part in zip(order, parts, strict=True) if part.rows != _NOBODY}
        return Found(float(value), self.s, options) if np.isfinite(value) else NOTHING


@dataclass(frozen=True)
class _Pairs:
    """Pairs of step options, one an element, with their figures and what they leave of the TTFT ceiling."""

    verify: _Part
    draft: _Part
    figures: list[Floats]
    for_target_s: Floats
    for_draft_s: Floats

    def __getitem__(self, n: Any) -> _Pairs:  # noqa: ANN401
        return _Pairs(
            self.verify[n], self.draft[n], [f[n] for f in self.figures], self.for_target_s[n], self.for_draft_s[n]
        )

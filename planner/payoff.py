"""Whether speculation pays: what a draft gains and costs beside plain decode, batch by batch on the same replicas.

Speculation reads the weights once for several tokens. At a small batch that is where the time and the power go; at a
large one the matrix units are busy anyway, and verifying tokens that are then rejected costs more than it saves. Both
sides are compared at full batches and the fewest replicas that carry the flow, with the same prefill of the target;
what transfers take in energy is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.evaluate import Design
from planner.fleet import Deployed
from planner.measure import Kind, measure_of
from planner.options import CostTable, Floats, cost_table, hosted_by_verify
from planner.rates import knows_power
from planner.schema import documents as doc
from planner.schema.scenario import Scenario
from planner.transfers import link_between, step_exchange
from planner.words import DRAFT_PHASES, PHASES, Phase


def payoffs(deployed: Deployed, tables: Mapping[str, CostTable] | None = None) -> tuple[doc.Payoff, ...]:
    """Say for every deployment whether drafting pays at its load, and from which batch on it would not.

    ``tables``: the costs of every workload, by default made anew. A workload without a proposer is left out.
    """
    scenario, found = deployed.scenario, []
    for index, serving in enumerate(deployed.servings):
        name = serving.design.workload
        table = (tables or {}).get(name) or cost_table(scenario, name)
        if any(s.proposer is not None for s in table.speculations):
            payoff = _Comparison.of(scenario, table, serving.design).payoff(index, serving.design)
            found += [payoff] if payoff is not None else []
    return tuple(found)


@dataclass(frozen=True)
class _Comparison:
    """Plain decode and every way to draft on the replicas of one design, by batch.

    Attributes
    ----------
    plain
        Position of plain decode in the same layout of the target.
    drafting
        (S,) the speculations in that layout.
    rows
        Options of target_verify of the design's device type and degree, by rising batch.
    cost
        (O, S) by phase: the power of one request/s at full batches, in W (J per request, where power is not known).
    prefill
        That of the design's own target prefill, where it has replicas of its own; it is the same with every draft.
    """

    scenario: Scenario
    table: CostTable
    plain: int
    drafting: NDArray[np.intp]
    rows: NDArray[np.intp]
    cost: dict[Phase, Floats]
    prefill: float

    @classmethod
    def of(cls, scenario: Scenario, table: CostTable, design: Design) -> _Comparison:
        verify = design.options["target_verify"]
        assert verify is not None  # verification always runs
        together = "target_prefill" in hosted_by_verify(scenario, design.speculation)
        same = [("target_prefill" in hosted_by_verify(scenario, s)) == together for s in table.speculations]
        plain = [n for n, s in enumerate(table.speculations) if same[n] and s.proposer is None]
        drafting = [n for n, s in enumerate(table.speculations) if same[n] and s.proposer is not None]
        options = table.phases["target_verify"].options
        alike = (verify.device, verify.tensor_parallel)
        rows = [o for o, option in enumerate(options) if (option.device, option.tensor_parallel) == alike]
        kind: Kind = "power" if knows_power(scenario, {table.workload: table}) else "energy"
        cost: dict[Phase, Floats] = {}
        for phase in PHASES:
            costs = table.phases[phase]
            measure = measure_of(scenario, table, phase, kind).at_capacity(
                table.busy_s(phase), scenario.max_utilization
            )
            runs = table.runs(phase)
            cost[phase] = np.where(costs.available | ~runs, np.where(runs, measure, 0.0), np.inf)
        ordered = sorted(rows, key=lambda o: options[o].batch_size)
        at, prefill = design.options["target_prefill"], 0.0
        if at is not None and design.speculation in table.speculations:
            o, s = table.phases["target_prefill"].options.index(at.bare), table.speculations.index(design.speculation)
            prefill = float(cost["target_prefill"][o, s])
        first = plain[0] if plain else -1
        return cls(scenario, table, first, np.array(drafting, int), np.array(ordered, int), cost, prefill)

    def payoff(self, index: int, design: Design) -> doc.Payoff | None:
        """Compare at every batch; null where plain decode is not on offer to compare with."""
        if self.plain < 0 or not self.drafting.size:
            return None
        batches = tuple(self._batches())
        verify = design.options["target_verify"]
        assert verify is not None
        row = self.table.phases["target_verify"].options.index(verify.bare)
        return doc.Payoff(
            deployment=index,
            workload=design.workload,
            device=verify.device,
            tensor_parallel=verify.tensor_parallel,
            batch_size=verify.batch_size,
            chosen=self._chosen(design, row),
            batches=batches,
            stops_at_batch=_stops_at(batches),
        )

    def _batches(self) -> Iterator[doc.PayoffBatch]:
        """Give the draft that costs least at every batch at which plain decode runs."""
        for row in self.rows:
            plain = self.prefill + self.cost["target_verify"][row, self.plain]
            if not np.isfinite(plain) or plain <= 0:
                continue
            totals = self.prefill + self.cost["target_verify"][row]
            for phase in DRAFT_PHASES:
                least = self.cost[phase].min(axis=0, initial=np.inf)
                totals += np.where(self.table.runs(phase), least, 0.0)
            s = int(self.drafting[np.argmin(totals[self.drafting])])
            if np.isfinite(totals[s]):
                draft = int(np.argmin(self.cost["draft_decode"][:, s])) if self.table.runs("draft_decode")[s] else -1
                yield self._batch(int(row), s, draft, float(totals[s] / plain))

    def _chosen(self, design: Design, row: int) -> doc.PayoffBatch | None:
        """Compare the design's own draft with plain decode; null where it drafts nothing, or what is not on offer."""
        if design.speculation.draft_length == 0 or design.speculation not in self.table.speculations:
            return None
        s = self.table.speculations.index(design.speculation)
        plain = self.prefill + self.cost["target_verify"][row, self.plain]
        total, draft = self.prefill + self.cost["target_verify"][row, s], -1
        for phase in DRAFT_PHASES:
            option = design.options[phase]
            if option is not None and self.table.runs(phase)[s]:
                o = self.table.phases[phase].options.index(option.bare)
                total, draft = total + self.cost[phase][o, s], o if phase == "draft_decode" else draft
        if not np.isfinite(plain) or plain <= 0:
            return None
        return self._batch(row, s, draft, float(total / plain))

    def _batch(self, row: int, s: int, draft: int, cost_ratio: float) -> doc.PayoffBatch:
        table, speculation = self.table, self.table.speculations[s]
        verify = table.phases["target_verify"]
        step_s = float(verify.latency_s[row, s])
        if draft >= 0:
            decode = table.phases["draft_decode"]
            step_s += float(decode.latency_s[draft, s])
            link = link_between(self.scenario, verify.options[row].device, decode.options[draft].device)
            E = float(table.tokens_per_step[s])
            step_s += step_exchange(self.scenario, link, speculation.proposer, speculation.nodes, E).exposed_s
        faster = float(table.tokens_per_step[s]) * float(verify.latency_s[row, self.plain]) / step_s
        return doc.PayoffBatch(
            batch_size=verify.options[row].batch_size,
            proposer=speculation.proposer or "",
            draft_length=speculation.draft_length,
            speedup=faster,
            cost_ratio=cost_ratio,
        )


def _stops_at(batches: tuple[doc.PayoffBatch, ...]) -> int | None:
    """Give the batch from which on no draft saves anything; null where one does at the largest batch."""
    stops: int | None = None
    for point in reversed(batches):
        if point.cost_ratio < 1.0:
            break
        stops = point.batch_size
    return stops

"""Drop options that another one of the same device type and degree beats in everything that counts.

**Proof.** Let an option be no faster, no less busy and no more frugal (on the figures that the question reads) than
another of the same phase, device type and degree, for one speculation. Take a plan with it and put the other in its
place, at the same rate. Both use the same pool, so the replicas may stay as they are: the flow needs no more of them,
and no sequence is held longer, in this pool or, while this phase works, in another. So devices, nodes, racks, purchases
and provisioned power are unchanged; no step and no first token comes later; transfers depend on device types only. The
plan stays feasible and its objective gets no worse. Inventories, shares and several workloads change nothing of this.
Ties go to the earlier option, so that one of each tie is kept.

Two things ask for more. With ``min_batch_fill`` a busier option fills batches that a less busy one leaves empty: then
what could be in a decode pool is left alone. A shared pool takes a batch only where it fits beside all its models:
there the other's batch must not be larger.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.measure import measure_of
from planner.options import CostTable
from planner.question import Question
from planner.rates import knows_power
from planner.schema.scenario import Scenario
from planner.structure.least import Floats, sliced
from planner.words import PHASES, STEP_PHASES, Phase

Tables = dict[str, CostTable]


def undominated(scenario: Scenario, tables: Tables, question: Question) -> Tables:
    """Give the tables without options that some other option makes needless; the optimum stays the same."""
    reads_energy = question.aim == "energy" or not knows_power(scenario, tables)
    return {name: _undominated(scenario, table, reads_energy) for name, table in tables.items()}


def _undominated(scenario: Scenario, table: CostTable, reads_energy: bool) -> CostTable:
    keep = {phase: table.phases[phase].available for phase in PHASES}
    for phase in PHASES:
        if not _fills_batches(scenario, phase):
            keep[phase] = keep[phase] & ~dominated(scenario, table, phase, reads_energy)
    return sliced(table, keep, np.arange(len(table.speculations)))


def _fills_batches(scenario: Scenario, phase: Phase) -> bool:
    return scenario.servers.min_batch_fill > 0 and (scenario.shared_pools or phase in STEP_PHASES)


def figures_of(scenario: Scenario, table: CostTable, phase: Phase, reads_energy: bool) -> list[Floats]:
    """Give the (O, S) figures of a phase of which less is never worse."""
    costs = table.phases[phase]
    found = [costs.latency_s, table.busy_s(phase), measure_of(scenario, table, phase, "power").per_rate]
    if phase == "target_verify":
        found += [table.through_target_s, table.through_draft_s]
    if reads_energy:
        found.append(costs.energy_j)
    if scenario.shared_pools:
        found.append(np.broadcast_to(costs.batch_sizes, costs.latency_s.shape))
    return found


def dominated(scenario: Scenario, table: CostTable, phase: Phase, reads_energy: bool) -> NDArray[np.bool_]:
    """(O, S) whether an available option of the same device type and degree is as good in every figure."""
    costs = table.phases[phase]
    figures = [np.where(costs.available, figure, np.inf) for figure in figures_of(scenario, table, phase, reads_energy)]
    groups: dict[tuple[str, int], list[int]] = {}
    for o, option in enumerate(costs.options):
        groups.setdefault((option.device, option.tensor_parallel), []).append(o)
    found = np.zeros(costs.latency_s.shape, dtype=bool)
    for rows in groups.values():
        pairs = [(figure[rows][:, None], figure[rows][None, :]) for figure in figures]
        as_good = np.all([other <= one for one, other in pairs], axis=0)
        strictly = np.any([other < one for one, other in pairs], axis=0)
        earlier = np.arange(len(rows))[None, :, None] < np.arange(len(rows))[:, None, None]
        found[rows] = (as_good & (strictly | earlier) & costs.available[rows][None]).any(axis=1)
    return found

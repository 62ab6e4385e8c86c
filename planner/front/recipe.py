"""The recipe of a front: find the points, recompute each without the solver, measure what they span."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from planner import whatif
from planner.assemble import deploy, deployment_document, limit_values, power_document, totals_document
from planner.assumptions import assumptions_of, warnings_of
from planner.errors import CheckError
from planner.evaluate import Design
from planner.fleet import Deployed, Racked
from planner.front.asked import Asked, asked_of
from planner.front.geometry import ROUNDING, Floats, front_of, hypervolume_of, knee_of, reference_energy_of
from planner.front.structure import Claim, Designs, front_by_structure, separates
from planner.front.sweep import front_by_sweep
from planner.options import CostTable, cost_table
from planner.schema.documents import Conflict
from planner.schema.front import Front, FrontPoint, FrontReference, Trial
from planner.schema.scenario import Scenario
from planner.solve import Settings, provenance, require_options
from planner.structure.least import sliced
from planner.words import PHASES, PowerBasis

STRUCTURE = "exact structure"
SWEEP = "epsilon-constraint sweep"


def exact_front(
    scenario: Scenario,
    settings: Settings | None = None,
    tables: dict[str, CostTable] | None = None,
    use_structure: bool = True,
) -> Front:
    """Find every non-dominated point of interactivity (up) and energy per output token (down).

    Energy is watts on the scenario's power basis per output token/s, so that on provisioned power an idle drafter is
    not free. Points come by rising interactivity, each with its whole deployment. No point at all is a result too, with
    the limits that are in conflict.

    Parameters
    ----------
    scenario, settings
        What is asked, and how: a time limit stops a sweep, which is then not ``exact``.
    tables
        Costs by workload where they are known already.
    use_structure
        Off: always the sweep, for tests and for doubters.

    Raises
    ------
    InputError
        If the question lacks a figure, or if no option can run a phase of the target.
    CheckError
        If a point contradicts its scenario: a fault of the planner.
    """
    settings = settings or Settings()
    start = time.perf_counter()
    tables = tables or {name: cost_table(scenario, name) for name in scenario.workloads}
    require_options(scenario, tables)  # what is out of stock is left out later: then the front may be empty
    asked = asked_of(scenario, tables)
    by_structure = use_structure and separates(asked)
    settings.tick("front")
    if by_structure:
        claims = front_by_structure(asked)
        points, proven = _points(asked, [(claim.designs, {}) for claim in claims], claims), True
    else:
        swept = front_by_sweep(asked, settings.time_limit_s, settings.tick)
        points, proven = _points(asked, swept.points), swept.proven
    tps = np.array([point.interactivity_tps for point in points])
    energy = np.array([point.energy_j_per_token for point in points])
    reference = reference_of(scenario, energy)
    return Front(
        scenario=scenario.name,
        method="exact",
        exact=proven,
        power_basis=scenario.power_basis,
        counts=asked.scenario.counts,
        rates_rps=asked.rates,
        points=points,
        knee=knee_of(tps, energy),
        hypervolume=spanned(tps, energy, reference),
        reference_point=reference,
        infeasibility=() if points or not proven else conflicts_of(asked),
        assumptions=(asked.sentence, *_held(scenario), *assumptions_of(asked.scenario, devices_of(points) or None)),
        warnings=warnings_of(scenario),
        provenance=provenance(settings, start, STRUCTURE if by_structure else SWEEP),
    )


def _points(
    asked: Asked, found: Sequence[tuple[Designs, Racked]], claims: Sequence[Claim] = ()
) -> tuple[FrontPoint, ...]:
    """Recompute every point from the scenario, and keep what is non-dominated after that."""
    tables = _used(asked.tables, [design for designs, _ in found for design, _ in designs])
    points = [point_of(deploy(asked.scenario, designs, tables, racks)) for designs, racks in found]
    for claim, point in zip(claims, points, strict=bool(claims)):
        _compare(claim, point, asked.scenario.power_basis)
    tps = np.array([point.interactivity_tps for point in points])
    kept = front_of(tps, np.array([point.energy_j_per_token for point in points]))
    return tuple(points[index] for index in kept)


def _compare(claim: Claim, point: FrontPoint, basis: PowerBasis) -> None:
    """Refuse a front whose search and evaluation differ in a figure: then points may be missing.

    Raises
    ------
    CheckError
        Naming both figures.
    """
    watts = getattr(point.power_w, basis)
    for mine, theirs in ((claim.interactivity_tps, point.interactivity_tps), (claim.power_w, watts)):
        if abs(mine - theirs) > ROUNDING * abs(theirs):
            raise CheckError(f"the search of the front found {mine}, the evaluation {theirs}")


def point_of(deployed: Deployed, trial: Trial | None = None) -> FrontPoint:
    """Write a point from its deployment, and the trial that found it.

    Raises
    ------
    CheckError
        If it breaks a limit.
    """
    broken = [limit.name for limit, value in limit_values(deployed) if value is None or limit.is_violated(value)]
    if broken:
        raise CheckError(f"a point of the front breaks {', '.join(broken)}")
    power, totals = power_document(deployed), totals_document(deployed)
    watts = getattr(power, deployed.scenario.power_basis)
    metrics = [serving.metrics for serving in deployed.servings]
    worst = min(range(len(metrics)), key=lambda index: metrics[index].interactivity_tps)
    documents = [deployment_document(deployed, index) for index in range(len(metrics))]
    assert totals.throughput_tps is not None  # there is a deployment
    assert totals.tps_per_kw is not None
    return FrontPoint(
        interactivity_tps=metrics[worst].interactivity_tps,
        energy_j_per_token=watts / totals.throughput_tps,
        tps_per_kw=totals.tps_per_kw,
        ttft_s=max(one.ttft_s for one in metrics),
        usd_per_million_tokens=totals.usd_per_million_tokens,
        power_w=power,
        deployment=documents[worst],
        others=tuple(document for index, document in enumerate(documents) if index != worst),
        trial=trial,
    )


def _used(tables: dict[str, CostTable], designs: Sequence[Design]) -> dict[str, CostTable]:
    """Cut the tables down to the options and speculations of some designs, so that reading them is quick."""
    cut = {}
    for name, table in tables.items():
        mine = [design for design in designs if design.workload == name]
        columns = sorted({table.speculations.index(design.speculation) for design in mine})
        keep = {}
        for phase in PHASES:
            used = {option.bare for design in mine if (option := design.options[phase]) is not None}
            rows = np.array([option in used for option in table.phases[phase].options], dtype=bool).reshape(-1, 1)
            keep[phase] = rows & np.ones((1, len(table.speculations)), dtype=bool)
        cut[name] = sliced(table, keep, np.array(columns, dtype=np.intp))
    return cut


def _held(scenario: Scenario) -> tuple[str, ...]:
    """Say that the exact front does not vary what a search would."""
    return (f"knobs are held at the scenario's own values: {', '.join(scenario.knobs)}",) if scenario.knobs else ()


def devices_of(points: Sequence[FrontPoint]) -> set[str]:
    """Name the device types of some points."""
    deployments = [deployment for point in points for deployment in (point.deployment, *point.others)]
    return {place.device for one in deployments for place in one.placements.values() if place is not None}


def reference_of(scenario: Scenario, energy: Floats) -> FrontReference | None:
    """Give the scenario's own reference point, else 0 tok/s and the default energy; null for an empty front."""
    own = scenario.front.reference_point
    if own is not None:
        return FrontReference(interactivity_tps=own.interactivity_tps, energy_j_per_token=own.energy_j_per_token)
    if not energy.size:
        return None
    return FrontReference(interactivity_tps=0.0, energy_j_per_token=reference_energy_of(energy))


def spanned(tps: Floats, energy: Floats, reference: FrontReference | None) -> float | None:
    """Give the hypervolume of some points; null where there is no reference point or nothing to measure."""
    if reference is None or not tps.size:
        return None
    return hypervolume_of(tps, energy, (reference.interactivity_tps, reference.energy_j_per_token))


def conflicts_of(asked: Asked) -> tuple[Conflict, ...]:
    """Say which limits leave no point at all."""
    return whatif.conflicts(asked.scenario.replace(objective="energy"), asked.tables)

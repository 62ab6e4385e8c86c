"""Evaluate one given design: find the options that its places name, and compute its metrics."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from planner.assemble import deploy, deployment_document, power_document
from planner.assumptions import assumptions_of, warnings_of
from planner.errors import InputError, nearest
from planner.evaluate import Design
from planner.options import (
    CostTable,
    Option,
    Speculation,
    cost_table,
    draft_lengths,
    hosted_by_verify,
)
from planner.rates import UNIT_RATE_RPS
from planner.schema import documents as doc
from planner.schema.scenario import Scenario
from planner.solve import Settings, provenance
from planner.tokens import covered_draft_length
from planner.words import DRAFT_PHASES, PHASES, Layout, Phase


@dataclass(frozen=True)
class Given:
    """What is evaluated; the places stand in the scenario."""

    draft_length: int
    workload: str | None = None
    proposer: str | None = None
    layout: Layout = "disaggregated"


def evaluate_given(scenario: Scenario, given: Given, settings: Settings) -> doc.Evaluation:
    """Evaluate one given design at the workload's demand, else 1 request/s; counts are fractional, limits not applied.

    Raises
    ------
    InputError
        If a name does not exist, a phase that runs has no place or several candidates, or the acceptance does not
        cover the draft length.
    """
    start = time.perf_counter()
    workload = _named("workload", given.workload, list(scenario.workloads))
    speculation = _speculation(scenario, workload, given)
    warnings = list(warnings_of(scenario))
    if speculation.draft_length == 0:
        ignored = [phase for phase in DRAFT_PHASES if phase in scenario.places]
        warnings += [f"draft length 0: the place of {phase} is ignored" for phase in ignored]
        scenario = scenario.replace(places={p: place for p, place in scenario.places.items() if p not in ignored})
    scenario = scenario.replace(counts="fractional")
    table = cost_table(scenario, workload, [speculation])
    design = Design(workload, speculation, _options(scenario, table))
    warnings += _memory_warnings(design, table)
    rate = scenario.workloads[workload].limits.demand_rps or UNIT_RATE_RPS
    deployed = deploy(scenario, [(design, rate)], {workload: table})
    return doc.Evaluation(
        **deployment_document(deployed, 0).model_dump(),
        scenario=scenario.name,
        power_w=power_document(deployed),
        assumptions=assumptions_of(scenario, {pool.device for pool in deployed.pools}),
        warnings=tuple(warnings),
        provenance=provenance(settings, start, None),
    )


def _named(what: str, name: str | None, choices: list[str]) -> str:
    if name is None and len(choices) == 1:
        return choices[0]
    if name is None:
        raise InputError(f"--{what}: say which one ({nearest('', choices)})")
    if name not in choices:
        raise InputError(f"--{what} {name}: there is no such {what} ({nearest(name, choices)})")
    return name


def _speculation(scenario: Scenario, workload: str, given: Given) -> Speculation:
    if given.draft_length == 0 and given.proposer is None:
        return Speculation(None, 0, None, given.layout)
    proposer = _named("proposer", given.proposer, list(scenario.proposers))
    if given.draft_length == 0:
        return Speculation(None, 0, None, given.layout)
    covered = covered_draft_length(scenario, workload, proposer)
    if given.draft_length > covered:
        tokens = scenario.workloads[workload].osl_tokens
        why = f"the acceptance of '{proposer}' for '{workload}' covers {covered} at most"
        if covered == tokens - 1:
            why = f"a request of '{workload}' has {tokens} output tokens, so that {covered} are drafted at most"
        raise InputError(f"--draft-length {given.draft_length}: {why}")
    nodes = dict(draft_lengths(scenario, workload, proposer, given.draft_length))
    if given.draft_length not in nodes:
        most = scenario.catalog.proposers[proposer].max_draft_length
        offered = ", ".join(map(str, dict(draft_lengths(scenario, workload, proposer, covered))))
        why = f"'{proposer}' drafts {most} at most" if most and most < given.draft_length else f"its tree has {offered}"
        raise InputError(f"--draft-length {given.draft_length}: {why}")
    return Speculation.of(proposer, given.draft_length, nodes[given.draft_length], given.layout)


def _options(scenario: Scenario, table: CostTable) -> dict[Phase, Option | None]:
    running = [phase for phase in PHASES if table.runs(phase)[0]]
    _refuse_places_of_hosted_phases(scenario, table)
    unplaced = [phase for phase in running if phase not in scenario.places]
    if unplaced:
        raise InputError(f"these phases run and need a --place: {', '.join(unplaced)}")
    options: dict[Phase, Option | None] = dict.fromkeys(PHASES)
    problems = []
    for phase in running:
        costs = table.phases[phase]
        known = [option for o, option in enumerate(costs.options) if np.isfinite(costs.latency_s[o, 0])]
        if len(known) == 1:
            options[phase] = known[0]
        elif known:
            problems.append(f"--place {phase}={scenario.places[phase]}: say which of {', '.join(map(str, known))}")
        else:
            problems.append(f"--place {phase}={scenario.places[phase]}: {_why_no_option(scenario, table, phase)}")
    if problems:
        raise InputError(*problems)
    return options


def _refuse_places_of_hosted_phases(scenario: Scenario, table: CostTable) -> None:
    """Refuse a place for a phase that runs on the replicas that verify: it has none of its own.

    Raises
    ------
    InputError
        Naming the phases.
    """
    (speculation,) = table.speculations
    placed = [
        phase for phase in PHASES if phase in hosted_by_verify(scenario, speculation) and phase in scenario.places
    ]
    if placed:
        where = f"in layout {speculation.layout} " if speculation.layout != "disaggregated" else ""
        raise InputError(
            *(f"--place {phase}: {where}it runs where target_verify does; leave it out" for phase in placed)
        )


def _why_no_option(scenario: Scenario, table: CostTable, phase: Phase) -> str:
    free = scenario.replace(places={})
    costs = cost_table(free, table.workload, table.speculations).phases[phase]
    able = [str(option) for o, option in enumerate(costs.options) if np.isfinite(costs.latency_s[o, 0])]
    if not able:
        return "no device has a cost for this phase at this draft length"
    return f"it has no cost for this phase; these have: {', '.join(able)}"


def _memory_warnings(design: Design, table: CostTable) -> list[str]:
    found = []
    for phase, option in design.options.items():
        if option is None:
            continue
        costs = table.phases[phase]
        held = costs.sequences[costs.options.index(option.bare), 0]
        if held < option.batch_size:
            found.append(f"{phase} on {option}: memory holds {held:g} sequences, less than the batch")
    return found

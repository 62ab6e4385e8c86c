"""Which device type runs which phase in a plan, and the best plan that keeps to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.evaluate import Design
from planner.options import CostTable, Speculation, hosted_by_verify
from planner.placement import placement_of
from planner.schema.documents import DesignSummary
from planner.schema.scenario import Scenario
from planner.schema.sensitivity import PhaseMove
from planner.sensitivity.costs import Tables
from planner.structure.least import sliced
from planner.words import PHASES, Phase

Choices = tuple[DesignSummary, ...]


def choices_of(scenario: Scenario, designs: Sequence[Design]) -> Choices:
    """Say for every design who proposes, how far ahead, and which device type runs which phase."""
    return tuple(
        DesignSummary(
            workload=design.workload,
            proposer=design.speculation.proposer,
            draft_length=design.speculation.draft_length,
            devices=placement_of(scenario, design),
        )
        for design in designs
    )


def placement(choices: Choices) -> frozenset[tuple[str, tuple[str | None, ...]]]:
    """Give what a switch of the placement is told by: device types by phase, for every design of every workload."""
    return frozenset((choice.workload, tuple(choice.devices[phase] for phase in PHASES)) for choice in choices)


def phase_moves(before: Choices, after: Choices) -> tuple[PhaseMove, ...]:
    """List the phases that another device type runs; of a workload with several designs, the first are compared."""
    first = {choice.workload: choice for choice in reversed(after)}
    found = []
    for choice in {one.workload: one for one in reversed(before)}.values():
        other = first.get(choice.workload)
        for phase in PHASES:
            now, then = choice.devices[phase], other.devices[phase] if other is not None else None
            if other is not None and now != then:
                found.append(PhaseMove(workload=choice.workload, phase=phase, before=now, after=then))
    return tuple(found)


def kept(scenario: Scenario, tables: Tables, choices: Choices) -> Tables | None:
    """Give the costs of the designs that keep to a placement; null where a workload has none.

    Of a workload with several designs, a design may take for each phase the device type of any of them: that is more
    than the placement allows, and so a bound of what it can reach.
    """
    found = {}
    for name, table in tables.items():
        mine = [choice.devices for choice in choices if choice.workload == name]
        columns = [s for s, one in enumerate(table.speculations) if _fits(scenario, table, s, one, mine)]
        if not columns:
            return None
        keep = {
            phase: np.array(
                [[option.device in {devices[phase] for devices in mine}] for option in table.phases[phase].options],
                dtype=bool,
            ).reshape(-1, 1)
            & np.ones((1, len(table.speculations)), dtype=bool)
            for phase in PHASES
        }
        found[name] = sliced(table, keep, np.array(columns, dtype=np.intp))
    return found


def _fits(
    scenario: Scenario, table: CostTable, s: int, one: Speculation, allowed: Sequence[dict[Phase, str | None]]
) -> bool:
    """Whether a speculation runs the phases that some placement runs, hosted ones where it has them."""
    hosted = hosted_by_verify(scenario, one)
    return any(
        all(
            (devices[phase] == devices["target_verify"])
            if phase in hosted
            else (devices[phase] is not None) == bool(table.runs(phase)[s])
            for phase in PHASES
        )
        for devices in allowed
    )

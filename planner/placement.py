"""Which device type runs which phase of a design, and cost tables in which only some placements are left."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.evaluate import Design
from planner.options import CostTable, hosted_by_verify
from planner.schema.scenario import Scenario
from planner.structure.least import sliced
from planner.words import PHASES, Phase

# The device type of every phase; null where a phase does not run or needs no device.
Placement = dict[Phase, str | None]


def placement_of(scenario: Scenario, design: Design) -> Placement:
    """Give the device type of every phase; a hosted phase is where verification is."""
    hosted = hosted_by_verify(scenario, design.speculation)
    at = {phase: design.options["target_verify" if phase in hosted else phase] for phase in PHASES}
    return {phase: None if option is None else option.device for phase, option in at.items()}


@dataclass(frozen=True)
class Allowed:
    """Placements that are allowed: phases that must be on a device type (or nowhere), and where phases must not be."""

    only: Placement = field(default_factory=dict)
    never: frozenset[tuple[Phase, str | None]] = frozenset()

    def takes(self, phase: Phase, device: str | None) -> bool:
        """Whether a phase may be on a device type, or nowhere."""
        return self.only.get(phase, device) == device and (phase, device) not in self.never

    def but(self, phase: Phase, device: str | None) -> Allowed:
        """Forbid one place."""
        return Allowed(self.only, self.never | {(phase, device)})

    def with_only(self, phase: Phase, device: str | None) -> Allowed:
        """Pin a phase."""
        return Allowed({**self.only, phase: device}, self.never)


def restricted(scenario: Scenario, table: CostTable, allowed: Allowed) -> CostTable:
    """Give the table without what a placement that is not allowed needs; without any speculation if nothing is left.

    A hosted phase is ruled out with the option of target_verify that would host it, one that does not run with its
    speculation.
    """
    hosts = [hosted_by_verify(scenario, speculation) for speculation in table.speculations]
    keep: dict[Phase, NDArray[np.bool_]] = {}
    columns = np.ones(len(table.speculations), dtype=bool)
    verify = table.phases["target_verify"]
    at_verify = verify.available
    for phase in PHASES:
        costs, runs = table.phases[phase], table.runs(phase)
        hosted = np.array([phase in some for some in hosts], dtype=bool)
        fits = np.array([allowed.takes(phase, option.device) for option in costs.options], dtype=bool)[:, None]
        keep[phase] = costs.available & fits
        beside = np.array([allowed.takes(phase, option.device) for option in verify.options], dtype=bool)[:, None]
        at_verify = at_verify & (~hosted | beside)
        columns &= runs | hosted | allowed.takes(phase, None)
    keep["target_verify"] = keep["target_verify"] & at_verify
    for phase in PHASES:
        columns &= ~table.runs(phase) | keep[phase].any(axis=0)
    return sliced(table, keep, np.flatnonzero(columns))


def with_speculations(table: CostTable, kept: NDArray[np.bool_]) -> CostTable:
    """Give the table with some speculations only; ``kept`` is (S,)."""
    return sliced(table, {phase: table.phases[phase].available for phase in PHASES}, np.flatnonzero(kept))

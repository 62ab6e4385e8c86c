"""Curves over the draft length: one design, its options as they are, at every draft length that its proposer offers."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from planner.assemble import deploy, deployment_document
from planner.evaluate import Design
from planner.options import Option, Speculation, cost_table, speculations_of
from planner.rates import UNIT_RATE_RPS
from planner.schema.catalog import Characterized, LatencyForm, parse_option_key
from planner.schema.review import Curve
from planner.schema.scenario import Scenario
from planner.words import PHASES, Phase


@dataclass(frozen=True)
class Commands:
    """How a person evaluates a point: the arguments that make the scenario, in the order of the command line."""

    scenario: str
    sets: tuple[str, ...] = ()

    def evaluate(self, scenario: Scenario, design: Design, *sets: str) -> str:
        """Write the command that evaluates a design."""
        words = ["plan", "evaluate", "--scenario", self.scenario]
        words += [word for text in (*self.sets, *sets) for word in ("--set", text)]
        for phase in PHASES:
            option = design.options[phase]
            if option is not None:
                words += ["--place", f"{phase}={option}"]
        words += ["--draft-length", str(design.speculation.draft_length)]
        if design.speculation.layout != "disaggregated":
            words += ["--layout", design.speculation.layout]
        if len(scenario.workloads) > 1:
            words += ["--workload", design.workload]
        if len(scenario.proposers) > 1 and design.speculation.proposer is not None:
            words += ["--proposer", design.speculation.proposer]
        return shlex.join(words)


def curve_of(scenario: Scenario, design: Design, commands: Commands, *sets: str) -> Curve:
    """Evaluate a design that proposes at every draft length of its proposer, from 0 (plain decode) on.

    As ``plan evaluate`` does: counts are fractional, no limit applies, at the demand, else 1 request/s. Lengths at
    which an option has no cost or cannot hold its batch are left out.
    """
    proposer, workload = design.speculation.proposer, design.workload
    places = {phase: str(option) for phase, option in design.options.items() if option is not None}
    pinned = scenario.replace(counts="fractional", places=places, layouts=(design.speculation.layout,))
    drafting = [s for s in speculations_of(pinned, workload) if s.proposer == proposer]
    rate = scenario.workloads[workload].limits.demand_rps or UNIT_RATE_RPS
    plain = Speculation(None, 0, None, design.speculation.layout)
    table = cost_table(pinned, workload, [plain, *drafting])
    points, told = [], []
    for s, speculation in enumerate(table.speculations):
        running = [phase for phase in PHASES if table.runs(phase)[s]]
        if all(table.phases[phase].available[:, s].any() for phase in running):
            options: dict[Phase, Option | None] = {
                phase: design.options[phase] if phase in running else None for phase in PHASES
            }
            one = Design(workload, speculation, options)
            points.append(deployment_document(deploy(pinned, [(one, rate)], {workload: table}), 0))
            told.append(commands.evaluate(scenario, one, *sets))
    return Curve(commands=tuple(told), points=tuple(points))


def draft_profile(scenario: Scenario, design: Design) -> tuple[str, str, str, Characterized] | None:
    """Find the profile of a design's draft decode: device, model, option key; null where the roofline costs it."""
    option, proposer = design.options["draft_decode"], design.speculation.proposer
    model = None if proposer is None else scenario.catalog.proposers[proposer].model
    if option is None or model is None:
        return None
    profiles = scenario.catalog.devices[option.device].profiles.get(model, {}).get("draft_decode", {})
    wanted = (option.tensor_parallel, option.batch_size)
    for key, profile in profiles.items():
        if parse_option_key(key) == wanted:
            return option.device, model, key, profile
    return None


def with_draft_speed(scenario: Scenario, design: Design, ms_per_token: float) -> tuple[Scenario, str] | None:
    """Give the scenario with another speed of a design's drafter, and the ``--set`` that makes it."""
    found = draft_profile(scenario, design)
    if found is None:
        return None
    device, model, key, profile = found
    faster = profile.replace(latency_ms=LatencyForm(per_token=ms_per_token))
    entry = scenario.catalog.devices[device]
    phases = entry.profiles[model]
    changed = {**phases, "draft_decode": {**phases["draft_decode"], key: faster}}
    devices = {**scenario.catalog.devices, device: entry.replace(profiles={**entry.profiles, model: changed})}
    setting = f"catalog.devices.{device}.profiles.{model}.draft_decode.{key}.latency_ms={{per_token: {ms_per_token:g}}}"
    return scenario.replace(catalog=scenario.catalog.replace(devices=devices)), setting

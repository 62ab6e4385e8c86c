"""What an optimum is made of: the cost tables of a moved question, and when they cannot change its answer.

Two shortcuts rest on this, neither of which changes an answer:

**Only what a number reaches is costed again.** An option's costs depend on its own device type's entry and on no other
one's, so a device's number moves the rows of that device; one of a proposer, or of its model, the columns of its
drafts. Numbers in ``_FREE`` are in no table. A data sheet reaches costs only through the rates that the roofline makes
of it.

**What is no better cannot win.** Let what the answer's designs use be untouched, and let everything else be as it was
or worse: slower, hungrier, dearer, holding fewer sequences, committing fewer tokens, moving more bytes. Then every plan
of the moved question is a plan of the one before, where it reaches at least as good an objective and uses no more of
any limit; so the moved optimum is no better. And the answer's own plan is still there, at its old objective; so it is
the optimum still. Two things are not monotone and switch the shortcut off: a least batch fill, which a slower option
fills more easily, and pools shared by bytes of memory, which no table holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.derived import precision_of
from planner.errors import InputError
from planner.evaluate import Design
from planner.measure import Kind, measure_of
from planner.options import CostTable, Hosted, Option, PhaseCosts, cost_table, speculations_of
from planner.roofline.counts import body_precision
from planner.roofline.hardware import hardware
from planner.schema.scenario import Scenario, parse_place
from planner.sensitivity.numbers import Path, devices_reached, models_reached
from planner.structure.charges import moved_of
from planner.words import PHASES, Phase

Floats = NDArray[np.float64]
Tables = dict[str, CostTable]
Index = tuple[Any, ...]

_KINDS: tuple[Kind, ...] = ("power", "cost", "energy")
# Fields that no cost table reads: limits, prices, and what is charged for devices as a whole.
_FREE = {"limits", "servers", "transfers", "host_factor", "pue", "max_utilization"}
_FREE_OF_DEVICE = {"provisioned_power_w", "price", "devices_per_host"}
_FREE_OF_WORKLOAD = {"limits", "mix"}


def trimmed(scenario: Scenario) -> Scenario:
    """Leave out of the catalog what the question does not name or reach: it has no option, and costs time."""
    catalog = scenario.catalog
    named = {*devices_reached(scenario), *scenario.limits.inventory, *(scenario.candidates.devices or ())}
    named |= {device for rack in scenario.servers.racks.values() for device in rack.devices or ()}
    named |= {parse_place(place)[0] for place in scenario.places.values()}
    if scenario.transfers is not None:
        named |= {device for pair in scenario.transfers.pairs for device in pair.split(":")}
    devices = {name: device for name, device in catalog.devices.items() if name in named}
    proposers = {name: catalog.proposers[name] for name in scenario.proposers}
    models = {*models_reached(scenario), *scenario.precisions}
    models |= {model for device in devices.values() for model in device.profiles}
    models |= {target for proposer in proposers.values() for target in proposer.acceptance}
    kept = {name: model for name, model in catalog.models.items() if name in models}
    return scenario.replace(catalog=catalog.replace(devices=devices, proposers=proposers, models=kept))


def costed(scenario: Scenario) -> Tables:
    """Cost every workload of a scenario."""
    return {name: cost_table(scenario, name) for name in scenario.workloads}


def recosted(moved: Scenario, path: Path, before: Scenario, tables: Tables) -> Tables:
    """Cost a scenario in which the number at a path was moved, given the scenario and the tables before."""
    if path[0] in _FREE or path[:2] == ("catalog", "links"):
        return tables
    if path[0] == "workloads":
        name = str(path[1])
        return tables if path[2] in _FREE_OF_WORKLOAD else {**tables, name: cost_table(moved, name)}
    if path[:2] == ("catalog", "devices"):
        device = str(path[2])
        if path[3] in _FREE_OF_DEVICE or (path[3] == "data_sheet" and _rate(moved, device) == _rate(before, device)):
            return tables
        return {name: _with_device(moved, table, device) for name, table in tables.items()}
    if path[:2] == ("catalog", "proposers"):
        return {name: _with_proposers(moved, table, [str(path[2])]) for name, table in tables.items()}
    if path[:2] == ("catalog", "models") and path[2] != moved.target:
        mine = [name for name in moved.proposers if moved.catalog.proposers[name].model == path[2]]
        return {name: _with_proposers(moved, table, mine) for name, table in tables.items()}
    return costed(moved)


def _rate(scenario: Scenario, device: str) -> list[object]:
    """Give all that the roofline takes from a device's data sheet: its rates, at every precision in question."""
    entry = scenario.catalog.devices[device]
    found: list[object] = []
    for model in models_reached(scenario):
        shape = scenario.catalog.models[model].shape
        precision = precision_of(scenario, model)
        try:
            found.append(hardware(entry, precision, None if shape is None else body_precision(shape, precision)))
        except InputError as error:
            found.append(error.problems)
    return found


def _with_device(moved: Scenario, table: CostTable, device: str) -> CostTable:
    """Replace the rows of one device type; where it offers other options than before, cost everything again."""
    alone = moved.replace(candidates=moved.candidates.replace(devices=(device,)))
    found = cost_table(alone, table.workload, table.speculations)
    rows = {}
    for phase in PHASES:
        options = table.phases[phase].options
        rows[phase] = np.array([row for row, option in enumerate(options) if option.device == device], dtype=np.intp)
        if tuple(options[row] for row in rows[phase]) != found.phases[phase].options:
            return cost_table(moved, table.workload)
    if set(found.hosted) - set(table.hosted):
        return cost_table(moved, table.workload)
    every = np.arange(len(table.speculations))
    return _spliced(table, found, {phase: np.ix_(rows[phase], every) for phase in PHASES})


def _with_proposers(moved: Scenario, table: CostTable, proposers: Sequence[str]) -> CostTable:
    """Replace the columns of some proposers; where one offers other drafts than before, cost everything again."""
    if speculations_of(moved, table.workload) != table.speculations:
        return cost_table(moved, table.workload)
    columns = np.array([s for s, one in enumerate(table.speculations) if one.proposer in proposers], dtype=np.intp)
    if not columns.size:
        return table
    found = cost_table(moved, table.workload, [table.speculations[s] for s in columns])
    blocks = {}
    for phase in PHASES:
        row_of = {option: row for row, option in enumerate(table.phases[phase].options)}
        if not set(found.phases[phase].options) <= set(row_of):
            return cost_table(moved, table.workload)
        rows = np.array([row_of[option] for option in found.phases[phase].options], dtype=np.intp)
        blocks[phase] = np.ix_(rows, columns)
    if set(found.hosted) - set(table.hosted):
        return cost_table(moved, table.workload)
    spliced = _spliced(table, found, blocks)
    E, steps = table.tokens_per_step.copy(), table.steps.copy()
    E[columns], steps[columns] = found.tokens_per_step, found.steps
    operations = {phase: table.operations[phase].copy() for phase in PHASES}
    for phase in PHASES:
        operations[phase][columns] = found.operations[phase]
    return replace(spliced, tokens_per_step=E, steps=steps, operations=operations)


def _put(whole: Floats, part: Floats, block: Index) -> Floats:
    changed = whole.copy()
    changed[block] = part
    return changed


def _spliced(table: CostTable, part: CostTable, blocks: dict[Phase, Index]) -> CostTable:
    """Put the costs of a part into a table."""
    phases = {}
    for phase in PHASES:
        whole, piece, block = table.phases[phase], part.phases[phase], blocks[phase]
        arrays = (
            _put(getattr(whole, name), getattr(piece, name), block) for name in ("latency_s", "energy_j", "sequences")
        )
        phases[phase] = PhaseCosts(whole.options, *arrays)
    verify = blocks["target_verify"]
    nothing = np.zeros_like(part.through_target_s)
    hosted = {}
    for phase, old in table.hosted.items():
        new = part.hosted.get(phase, Hosted(nothing, nothing))
        hosted[phase] = Hosted(_put(old.busy_s, new.busy_s, verify), _put(old.energy_j, new.energy_j, verify))
    return replace(
        table,
        phases=phases,
        hosted=hosted,
        through_target_s=_put(table.through_target_s, part.through_target_s, verify),
        through_draft_s=_put(table.through_draft_s, part.through_draft_s, verify),
    )


# ------------------------------------------------------------------------------------------- what is no better


@dataclass(frozen=True)
class Reads:
    """All that an optimum is found from, of numbers that reach it only through costs.

    Attributes
    ----------
    frame
        What must be the same to be compared: options and speculations, which phases they run, where first tokens come
        from.
    figures
        Arrays of which a larger entry is worse, each broadcast to (O, S) or (S,).
    used
        The entries of ``figures`` that the answer's designs rest on, one index for each array.
    """

    frame: tuple[object, ...]
    figures: tuple[Floats, ...]
    used: tuple[Index, ...]

    def keeps_what_is_used(self, other: Reads) -> bool:
        """Whether what the designs use is as in another."""
        if self.frame != other.frame:
            return False
        pairs = zip(self.figures, other.figures, self.used, strict=True)
        return all(np.array_equal(mine[used], its[used]) for mine, its, used in pairs)

    def is_no_better(self, other: Reads) -> bool:
        """Whether what the designs use is as in another, and everything else as there or worse."""
        if not self.keeps_what_is_used(other):
            return False
        return all(bool((mine >= its).all()) for mine, its in zip(self.figures, other.figures, strict=True))


def comparable(scenario: Scenario, path: Path) -> bool:
    """Whether the number at a path reaches an optimum only through what ``Reads`` holds, all of it monotone."""
    if scenario.shared_pools or scenario.servers.min_batch_fill > 0:
        return False
    if path[:2] == ("catalog", "devices"):
        racked = bool(scenario.servers.racks) and path[3] == "provisioned_power_w"
        return path[3] != "devices_per_host" and not racked
    return path[:2] in (("catalog", "models"), ("catalog", "proposers")) or path[0] in ("engine", "lossy_acceptance")


def reads_of(scenario: Scenario, tables: Tables, designs: Sequence[Design]) -> Reads:
    """Collect what an optimum is found from; ``designs``: those of the answer, whose entries are marked."""
    frame: list[object] = []
    figures: list[Floats] = []
    used: list[Index] = []
    for name, table in tables.items():
        mine = [design for design in designs if design.workload == name]
        columns = [table.speculations.index(d.speculation) for d in mine if d.speculation in table.speculations]
        frame += [len(columns) == len(mine), *_frame(table)]
        for array in (-table.tokens_per_step, table.steps, *_payloads(scenario, table)):
            figures.append(array)
            used.append((..., np.array(columns, dtype=np.intp)))
        for phase in PHASES:
            row_of = {option: row for row, option in enumerate(table.phases[phase].options)}
            entries = _entries(mine, columns, row_of, phase)
            for array in _figures(scenario, table, phase):
                figures.append(array)
                used.append(entries)
    return Reads(tuple(frame), tuple(figures), tuple(used))


def _frame(table: CostTable) -> list[object]:
    found: list[object] = [table.speculations]
    found += [array.tobytes() for array in (table.hidden_states, table.first_from_prefill)]
    for phase in PHASES:
        found += [table.phases[phase].options, table.runs(phase).tobytes()]
    return found


def _entries(designs: Sequence[Design], columns: Sequence[int], row_of: dict[Option, int], phase: Phase) -> Index:
    """Give the (O, S) entries of a phase that designs use."""
    pairs = []
    for design, column in zip(designs, columns, strict=False):
        option = design.options[phase]
        row = None if option is None else row_of.get(option.bare)
        if row is not None:
            pairs.append((row, column))
    return tuple(np.array([pair[axis] for pair in pairs], dtype=np.intp) for axis in (0, 1))


def _figures(scenario: Scenario, table: CostTable, phase: Phase) -> list[Floats]:
    """(O, S) each, larger is worse; infinite where an option cannot run."""
    costs = table.phases[phase]
    shape, able = costs.latency_s.shape, costs.available
    found = [costs.latency_s, costs.energy_j, table.busy_s(phase), table.energy_per_request_j(phase)]
    for kind in _KINDS:
        measure = measure_of(scenario, table, phase, kind)
        found += [np.broadcast_to(measure.per_replica, shape), measure.per_rate]
    if phase == "target_verify":
        found += [table.through_target_s, table.through_draft_s]
        found += [array for part in table.hosted.values() for array in (part.busy_s, part.energy_j)]
    return [np.where(able, array, np.inf) for array in (*found, -costs.sequences)]


def _payloads(scenario: Scenario, table: CostTable) -> list[Floats]:
    """(D + 1, S) bytes that cross between device types, and how often; nothing where nothing does."""
    if scenario.transfers is None:
        return []
    moved = moved_of(scenario, table)
    return [
        array
        for one in (moved.target_kv, moved.draft_kv, moved.hidden, moved.step)
        for array in (one.payload, np.asarray(one.times, dtype=float))
    ]

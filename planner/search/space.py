"""What a search varies, and what each choice makes of a scenario and of its costs.

Some parameters change the scenario: knobs, lenience, the shape of a token tree. Others only restrict which designs a
trial may take: the proposer of a workload, the largest batch, the interactivity floor. Draft lengths, placements,
degrees, batch sizes and layouts are no parameters: every trial chooses them exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.errors import InputError
from planner.fields import Step, changed, path_of, value_at
from planner.options import CostTable
from planner.schema.base import Document
from planner.schema.catalog import Ranks
from planner.schema.scenario import Knob, Scalar, Scenario
from planner.structure.least import sliced
from planner.tokens import curve_of
from planner.words import PHASES

Values = Mapping[str, Scalar | None]

FLOOR = "interactivity_floor"
# The floor is a share of the way from the slowest design to the fastest; below 0 it is no floor, the slowest counts.
LOWEST_FLOOR = -0.1
BATCH = "max_batch"
LENIENCE = "lenience"
# Fields that a knob must not set: they say how a question is told, searched or measured, so that answers to different
# values could not stand in one front.
_NOT_VARIED = {
    *("schema_version", "name", "description", "knobs", "front", "report", "assumptions", "objective"),
    *("power_basis", "counts"),
}


@dataclass(frozen=True)
class Parameter:
    """One thing that a search varies: a range or choices, and for which proposer of which workload it matters.

    ``given``: the parameter and the value that it takes for this one to be looked at; null: always.
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: float | None = None
    whole: bool = False
    choices: tuple[Scalar | None, ...] = ()
    given: tuple[str, Scalar] | None = None

    def holds(self, value: Scalar | None) -> bool:
        """Whether a value lies in the range, or is one of the choices."""
        if self.choices:
            return value in self.choices
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and self.low <= float(value or 0.0) <= self.high


@dataclass(frozen=True)
class Space:
    """The parameters of a scenario: which fields the knobs set, which proposer and level the shapes of trees."""

    scenario: Scenario
    parameters: tuple[Parameter, ...]
    fields: dict[str, tuple[tuple[Step, ...], ...]]
    trees: dict[str, tuple[str, int]]

    @classmethod
    def of(cls, scenario: Scenario, tables: Mapping[str, CostTable]) -> Space:
        """Find what there is to vary.

        Raises
        ------
        InputError
            If a knob names no field, one that is not to be varied, or one that does not take its values.
        """
        fields = {name: _paths(scenario, name, knob) for name, knob in scenario.knobs.items()}
        _refuse_two_for_one(scenario, fields)
        found = [_proposers(scenario, workload) for workload in scenario.workloads] if scenario.proposers else []
        trees = {
            f"{name}.children.{level + 1}": (name, level)
            for name in scenario.proposers
            if _widest(scenario, name)
            for level in range(len(_branching(scenario, name)))
        }
        found += [_children(scenario, key, *place) for key, place in trees.items()]
        found += _batches(tables)
        lossy = scenario.lossy_acceptance
        if lossy is not None and lossy.lenience < 1.0:
            found.append(Parameter(LENIENCE, lossy.lenience, 1.0))
        found += [_knob(scenario, name, knob, fields[name]) for name, knob in scenario.knobs.items()]
        found.append(Parameter(FLOOR, LOWEST_FLOOR, 1.0))
        taken = [parameter.name for parameter in found]
        twice = sorted({name for name in taken if taken.count(name) > 1})
        if twice:
            raise InputError(f"knobs.{twice[0]}: this is a parameter already; name the knob otherwise")
        return cls(scenario, tuple(found), fields, trees)

    @cached_property
    def is_exact(self) -> bool:
        """Whether the exact method looks at the same designs: no knobs, and no trees of another shape."""
        return not self.fields and not self.trees

    def scenario_of(self, values: Values) -> Scenario:
        """Give the scenario in which the values hold that change it."""
        scenario = self.scenario
        for name, paths in self.fields.items():
            knob = scenario.knobs[name]
            for path, points in zip(paths, knob.sets.values() or (None,), strict=True):
                value = values[name] if points is None else _interpolated(points, values[name])
                scenario = changed(scenario, path, value)
        if LENIENCE in values:
            scenario = changed(scenario, ("lossy_acceptance", "lenience"), values[LENIENCE])
        for key, (proposer, level) in self.trees.items():
            if key in values:
                scenario = changed(scenario, (*_tree_path(proposer), "branching", level), values[key])
        return scenario

    def changes(self, values: Values) -> tuple[tuple[str, Scalar | None], ...]:
        """Give the values that change the scenario: with equal ones its costs are the same."""
        return tuple(
            (name, v) for name, v in values.items() if name in self.fields or name in self.trees or name == LENIENCE
        )

    def restricted(self, table: CostTable, values: Values) -> CostTable:
        """Give a workload's costs with the proposer and the batch sizes that the values leave."""
        proposer = values.get(proposer_of(self.scenario, table.workload))
        columns = [index for index, s in enumerate(table.speculations) if s.proposer == proposer]
        most = values.get(BATCH)
        most = most if isinstance(most, int) else np.inf
        keep = {}
        for phase in PHASES:
            sizes = table.phases[phase].batch_sizes
            keep[phase] = (sizes <= most) & np.ones((1, len(table.speculations)), dtype=bool)
        return sliced(table, keep, np.array(columns, dtype=np.intp))

    def own(self, proposers: Mapping[str, str | None], largest_batch: int) -> dict[str, Scalar | None]:
        """Give the values at which the scenario as it stands takes designs of these proposers by workload."""
        named = {proposer_of(self.scenario, workload): proposer for workload, proposer in proposers.items()}
        by_name = {parameter.name: parameter for parameter in self.parameters}
        batches = by_name[BATCH].choices if BATCH in by_name else ()
        enough = [size for size in batches if isinstance(size, int) and size >= largest_batch]
        own: dict[str, Scalar | None] = {**named, **({BATCH: min(enough)} if enough else {})}
        for key, (proposer, level) in self.trees.items():
            if proposer in proposers.values():
                own[key] = _branching(self.scenario, proposer)[level]
        if self.scenario.lossy_acceptance is not None:
            own[LENIENCE] = self.scenario.lossy_acceptance.lenience
        own |= {
            name: value_at(self.scenario, *paths[0])
            for name, paths in self.fields.items()
            if not self.scenario.knobs[name].sets
        }
        return {name: value for name, value in own.items() if name in by_name and by_name[name].holds(value)}


def proposer_of(scenario: Scenario, workload: str) -> str:
    """Name the parameter that says who proposes for a workload."""
    return "proposer" if len(scenario.workloads) == 1 else f"proposer[{workload}]"


def _proposers(scenario: Scenario, workload: str) -> Parameter:
    return Parameter(proposer_of(scenario, workload), choices=(None, *scenario.proposers))


def _batches(tables: Mapping[str, CostTable]) -> list[Parameter]:
    """Give the largest batches to look at: those that leave every phase an option; nothing where that is one."""
    phases = [table.phases[phase].options for table in tables.values() for phase in PHASES]
    offers = [{option.batch_size for option in options} for options in phases if options]
    least = max(min(sizes) for sizes in offers)
    choices = sorted(size for size in set().union(*offers) if size >= least)
    return [Parameter(BATCH, choices=tuple(choices))] if len(choices) > 1 else []


def _tree_path(proposer: str) -> tuple[Step, ...]:
    return ("catalog", "proposers", proposer, "tree")


def _branching(scenario: Scenario, proposer: str) -> tuple[int, ...]:
    tree = scenario.catalog.proposers[proposer].tree
    return () if tree is None else tree.branching or ()


def _widest(scenario: Scenario, proposer: str) -> int:
    """Children per node worth looking at: ranks with a known chance, where every workload's acceptance knows them."""
    curves = [curve_of(scenario, workload, proposer) for workload in scenario.workloads]
    return min((len(curve.probabilities) if isinstance(curve, Ranks) else 0 for curve in curves), default=0)


def _children(scenario: Scenario, key: str, proposer: str, level: int) -> Parameter:
    most = max(_widest(scenario, proposer), _branching(scenario, proposer)[level])
    alone = len(scenario.workloads) == 1
    return Parameter(key, 1, most, whole=True, given=("proposer", proposer) if alone else None)


def _paths(scenario: Scenario, name: str, knob: Knob) -> tuple[tuple[Step, ...], ...]:
    """Find the fields that a knob sets, and see that they take the ends of its range.

    Raises
    ------
    InputError
        If they do not, or are not to be varied.
    """
    keys = list(knob.sets) or [name]
    try:
        paths = tuple(path_of(scenario, key) for key in keys)
        for key, path in zip(keys, paths, strict=True):
            if path[0] in _NOT_VARIED or path[-1] == "description":
                raise InputError(f"{key} is not for a search to vary")
            if isinstance(value_at(scenario, *path), (Document, dict, tuple)):
                raise InputError(f"{key} is no single value; name a field in it")
        for path, points in zip(paths, knob.sets.values() or (None,), strict=True):
            for value in knob.choices or (knob.low, knob.high) if points is None else _heights(knob, points):
                changed(scenario, path, value)
    except InputError as error:
        raise InputError(*(f"knobs.{name}: {text}" for text in error.problems)) from error
    return paths


def _heights(knob: Knob, points: tuple[tuple[float, float], ...]) -> list[float]:
    """Give what a field takes at the ends of a knob and at every point between: between those it is interpolated."""
    assert knob.low is not None  # a knob that sets several fields is a range
    assert knob.high is not None
    inside = [place for place, _ in points if knob.low < place < knob.high]
    return [_interpolated(points, place) for place in (knob.low, *inside, knob.high)]


def _refuse_two_for_one(scenario: Scenario, fields: dict[str, tuple[tuple[Step, ...], ...]]) -> None:
    """Refuse a knob that sets what another knob or a parameter of the search sets: one would be without effect.

    Raises
    ------
    InputError
        Naming both.
    """
    taken: dict[tuple[Step, ...], str] = {}
    if scenario.lossy_acceptance is not None and scenario.lossy_acceptance.lenience < 1.0:
        taken["lossy_acceptance", "lenience"] = f"the parameter {LENIENCE}"
    for proposer in scenario.proposers:
        for level in range(len(_branching(scenario, proposer)) if _widest(scenario, proposer) else 0):
            taken[*_tree_path(proposer), "branching", level] = f"the parameter {proposer}.children.{level + 1}"
    for name, paths in fields.items():
        for path in paths:
            if path in taken:
                raise InputError(f"knobs.{name}: {'.'.join(map(str, path))} is set by {taken[path]} already")
            taken[path] = f"the knob {name}"


def _interpolated(points: tuple[tuple[float, float], ...], value: Scalar | None) -> float:
    assert isinstance(value, (int, float))  # a knob that sets several fields is a range
    places, heights = np.array(points).T
    return float(np.interp(value, places, heights))


def _knob(scenario: Scenario, name: str, knob: Knob, paths: tuple[tuple[Step, ...], ...]) -> Parameter:
    if knob.choices is not None:
        return Parameter(name, choices=knob.choices)
    assert knob.low is not None  # the knob was validated
    assert knob.high is not None
    whole = not knob.sets and isinstance(knob.low, int) and isinstance(knob.high, int) and _is_whole(scenario, paths[0])
    if whole and knob.step is not None and knob.step != int(knob.step):
        raise InputError(f"knobs.{name}: the field takes whole numbers, so step must be one, got {knob.step:g}")
    high = float(knob.high)
    if knob.step is not None:  # the last step that fits
        high = knob.low + knob.step * math.floor((knob.high - knob.low) / knob.step * (1 + 1e-12))
    return Parameter(name, float(knob.low), high, knob.log, knob.step, whole)


def _is_whole(scenario: Scenario, path: tuple[Step, ...]) -> bool:
    """Whether a field takes whole numbers only."""
    value = value_at(scenario, *path)
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    try:
        changed(scenario, path, float(value))
    except InputError:
        return True
    return False

"""Read a scenario with its catalog, apply overrides, and validate everything once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from planner.errors import InputError
from planner.read import library
from planner.read.locate import in_yaml, problems_of
from planner.read.overrides import Override, set_all
from planner.read.yaml_tree import Mark, Problem, Tree, parse_file, raise_all
from planner.schema.base import Document
from planner.schema.catalog import Catalog
from planner.schema.names import dangling_in_catalog, dangling_in_scenario
from planner.schema.scenario import Scenario

Read = TypeVar("Read", bound=Document)

_GROUPS = ("sources", "devices", "models", "proposers", "links")
_MAX_EXTENDS = 8
_VERSION = 1


@dataclass(frozen=True)
class Loaded:
    """A scenario, the SHA-256 of each file that went into it by shown name, and where each knob stands."""

    scenario: Scenario
    digests: dict[str, str]
    knobs: dict[str, Mark] = field(default_factory=dict)


def read_scenario(name_or_path: str, overrides: Sequence[Override] = ()) -> Loaded:
    """Read a scenario by bundled name or path, apply ``overrides`` in order, and validate it.

    Raises
    ------
    InputError
        With all problems at once, each with file, line and dotted key.
    """
    digests: dict[str, str] = {}
    tree = _scenario_tree(*library.find("scenario", name_or_path), digests, ())
    set_all(tree, overrides)
    scenario = _validated(tree, Scenario)
    marks = {name: tree.mark(("knobs", name)) for name in scenario.knobs}
    return Loaded(scenario, digests, {name: mark for name, mark in marks.items() if mark is not None})


def read_catalog(name_or_path: str) -> Catalog:
    """Read one catalog by bundled name or path; it may name models of the bundled catalogs as well as its own.

    Raises
    ------
    InputError
        With all problems at once.
    """
    path, shown = library.find("catalog", name_or_path)
    tree, _ = parse_file(str(path), shown)
    _mapping(tree, shown)
    return _validated(tree, Catalog, _bundled_models() if dangling_in_catalog(tree.data) else ())


def _bundled_models() -> list[str]:
    """Name the models of all bundled catalogs."""
    found: list[str] = []
    for name in library.names("catalog"):
        path, shown = library.find("catalog", name)
        tree, _ = parse_file(str(path), shown)
        found += _mapping(tree, shown).get("models", {})
    return found


def _validated(tree: Tree, model: type[Read], borrowed: Sequence[str] = ()) -> Read:
    """Validate a tree's data; raise what is wrong with it together with what was found on the way."""
    try:
        document = model.model_validate(tree.data, context={"models": borrowed})
    except ValidationError as error:
        raise_all([*tree.problems, *problems_of(error, tree, model, _dangling(tree, model, borrowed))])
        raise
    raise_all(tree.problems)
    return document


def _dangling(tree: Tree, model: type[Document], borrowed: Sequence[str]) -> list[str]:
    if model is Catalog:
        return dangling_in_catalog(tree.data, borrowed)
    within = dangling_in_catalog(tree.data.get("catalog"))
    return [*(f"catalog.{line}" for line in within), *dangling_in_scenario(tree.data)]


def _mapping(tree: Tree, shown: str) -> dict[Any, Any]:
    """Give the data of one file, a mapping that says its own version whatever other files it is joined with."""
    if not isinstance(tree.data, dict):
        raise InputError(f"{shown}:1: a mapping of keys is expected")
    version = tree.data.get("schema_version", _VERSION)
    if "schema_version" not in tree.data:
        tree.problems.append(Problem(tree.marks[()], "schema_version: the key is missing"))
    elif type(version) is not int or version != _VERSION:
        tree.blame(("schema_version",), f"{_VERSION} is expected, got {in_yaml(version)}")
    return tree.data


def _scenario_tree(path: Path, shown: str, digests: dict[str, str], above: tuple[str, ...]) -> Tree:
    tree, raw = parse_file(str(path), shown)
    digests[shown] = hashlib.sha256(raw).hexdigest()
    data = _mapping(tree, shown)
    if "extends" in data:
        base = _base(tree, path.parent, digests, (*above, shown))
        return _orphan(tree) if base is None else _extended(base, tree, digests, path.parent)
    if "overrides" in data:
        tree.blame(("overrides",), "needs 'extends'; set the fields themselves instead")
        del data["overrides"]
    if "catalog" in data:
        _graft_catalog(tree, data["catalog"], digests, path.parent)
    return tree


def _base(tree: Tree, beside: Path, digests: dict[str, str], above: tuple[str, ...]) -> Tree | None:
    """Read the scenario that a tree extends; null where that is not possible, which is then a problem of the tree."""
    name = tree.data["extends"]
    if not isinstance(name, str) or not name:
        tree.blame(("extends",), "a name or a path is expected")
        return None
    try:
        path, shown = library.find("scenario", name, beside)
        if shown in above or len(above) >= _MAX_EXTENDS:
            raise InputError(f"goes round in a circle ({' → '.join((*above, shown))})")
        return _scenario_tree(path, shown, digests, above)
    except InputError as error:
        _blame_all(tree, "extends", error)
        return None


def _blame_all(tree: Tree, key: str, error: InputError) -> None:
    """Say at a key what is wrong with the file that it names."""
    for problem in error.problems:
        tree.blame((key,), problem)


def _orphan(tree: Tree) -> Tree:
    """Make a tree whose base is missing fit to be looked at: no key is blamed for what the base would have."""
    for key in ("extends", "overrides", "catalog"):
        tree.data.pop(key, None)
        tree.graft((key,), {})
    tree.marks[()] = replace(tree.marks[()], broken=True)
    return tree


def _extended(base: Tree, child: Tree, digests: dict[str, str], beside: Path) -> Tree:
    """Lay a child's keys over its base: a key replaces the base's key, ``overrides`` reach deeper."""
    overrides = child.data.pop("overrides", {})
    if not isinstance(overrides, dict):
        child.blame(("overrides",), "a mapping of dotted keys is expected")
        overrides = {}
    if "name" not in child.data:
        child.problems.append(Problem(child.marks[()], "name: the key is missing"))
    base.problems += child.problems
    for key, value in child.data.items():
        if key != "extends":
            base.data[key] = value
            base.graft((key,), child.below((key,)))
    if "catalog" in child.data:
        _graft_catalog(base, child.data["catalog"], digests, beside)
    set_all(base, [(str(key), value, child.marks["overrides", key]) for key, value in overrides.items()])
    return base


def _graft_catalog(tree: Tree, given: Any, digests: dict[str, str], beside: Path) -> None:  # noqa: ANN401
    """Replace the catalog's name (or list of names) by the catalog itself."""
    wanted = given if isinstance(given, list) else [given]
    before = len(tree.problems)
    if not wanted or not all(isinstance(name, str) and name for name in wanted):
        tree.blame(("catalog",), "a name, a path or a list of them is expected")
        wanted = []
    merged = Tree({})
    for name in wanted:
        try:
            path, shown = library.find("catalog", name, beside)
            part, raw = parse_file(str(path), shown)
            digests[shown] = hashlib.sha256(raw).hexdigest()
            _merge(merged, part, _mapping(part, shown))
        except InputError as error:
            _blame_all(tree, "catalog", error)
    if len(tree.problems) > before:  # half a catalog would make every name look dangling
        tree.data["catalog"] = None
    else:
        tree.data["catalog"] = merged.data
        tree.graft(("catalog",), merged.marks, own_file=True)
    tree.problems += merged.problems


def _merge(merged: Tree, part: Tree, data: dict[Any, Any]) -> None:
    """Add a catalog to those before it. A name that stands in both, and means another thing, is a problem."""
    merged.problems += part.problems
    merged.marks.setdefault((), part.marks[()])
    for key, value in data.items():
        if key not in _GROUPS or not isinstance(value, dict) or not isinstance(merged.data.get(key), dict):
            merged.data[key] = value
            merged.graft((key,), part.below((key,)))
            continue
        for name, entry in value.items():
            if name in merged.data[key] and merged.data[key][name] == entry:
                continue
            if name in merged.data[key]:
                text = f"{key}.{name}: also stands in {merged.marks[key, name]}"
                merged.problems.append(Problem(part.marks[key, name], text))
            else:
                merged.data[key][name] = entry
                merged.graft((key, name), part.below((key, name)))

"""Read a scenario with its catalog, apply overrides, and validate everything once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from planner.errors import InputError
from planner.read import library
from planner.read.locate import located
from planner.read.overrides import set_key
from planner.read.yaml_tree import Mark, Tree, parse_file
from planner.schema.catalog import Catalog
from planner.schema.scenario import Scenario

Override = tuple[str, Any, Mark]

_GROUPS = ("sources", "devices", "models", "proposers", "links")
_MAX_EXTENDS = 8


@dataclass(frozen=True)
class Loaded:
    """A scenario and the SHA-256 of each file that went into it, by shown name."""

    scenario: Scenario
    digests: dict[str, str]


def read_scenario(name_or_path: str, overrides: Sequence[Override] = ()) -> Loaded:
    """Read a scenario by bundled name or path, apply ``overrides`` in order, and validate it.

    Raises
    ------
    InputError
        With all problems at once, each with file, line and dotted key.
    """
    digests: dict[str, str] = {}
    tree = _scenario_tree(name_or_path, None, digests, ())
    for key, value, mark in overrides:
        set_key(tree, key, value, mark)
    try:
        return Loaded(Scenario.model_validate(tree.data), digests)
    except ValidationError as error:
        raise located(error, tree, Scenario) from None


def read_catalog(name_or_path: str) -> Catalog:
    """Read one catalog by bundled name or path.

    Raises
    ------
    InputError
        With all problems at once.
    """
    path, shown = library.find("catalog", name_or_path)
    tree, _ = parse_file(str(path), shown)
    try:
        return Catalog.model_validate(_mapping(tree, shown))
    except ValidationError as error:
        raise located(error, tree, Catalog) from None


def _mapping(tree: Tree, shown: str) -> dict[Any, Any]:
    if not isinstance(tree.data, dict):
        raise InputError(f"{shown}:1: a mapping of keys is expected")
    return tree.data


def _scenario_tree(name: str, beside: Path | None, digests: dict[str, str], above: tuple[str, ...]) -> Tree:
    path, shown = library.find("scenario", name, beside)
    if shown in above or len(above) >= _MAX_EXTENDS:
        raise InputError(f"{shown}: extends itself ({' → '.join((*above, shown))})")
    tree, raw = parse_file(str(path), shown)
    digests[shown] = hashlib.sha256(raw).hexdigest()
    data = _mapping(tree, shown)
    beside = path.parent
    if "extends" in data:
        base_name = _text(tree, "extends", shown)
        base = _scenario_tree(base_name, beside, digests, (*above, shown))
        return _extended(base, tree, shown, digests, beside)
    if "overrides" in data:
        raise InputError(f"{tree.mark(('overrides',))}: overrides: needs 'extends'; set the fields themselves instead")
    if "catalog" in data:
        _graft_catalog(tree, tree, digests, beside, shown)
    return tree


def _text(tree: Tree, key: str, shown: str) -> str:
    value = tree.data[key]
    if not isinstance(value, str) or not value:
        raise InputError(f"{tree.mark((key,)) or shown}: {key}: a name or a path is expected")
    return value


def _extended(base: Tree, child: Tree, shown: str, digests: dict[str, str], beside: Path) -> Tree:
    """Lay a child's keys over its base: a key replaces the base's key, ``overrides`` reach deeper."""
    if "name" not in child.data:
        raise InputError(f"{shown}:1: name: the key is missing")
    for key, value in child.data.items():
        if key in ("extends", "overrides"):
            continue
        base.data[key] = value
        marks = {path[1:]: mark for path, mark in child.marks.items() if path[:1] == (key,)}
        base.graft((key,), Tree(value, marks))
        base.marks = {path: _rooted(mark, path, key, shown) for path, mark in base.marks.items()}
    if "catalog" in child.data:
        _graft_catalog(base, child, digests, beside, shown)
    overrides = child.data.get("overrides", {})
    if not isinstance(overrides, dict):
        raise InputError(f"{child.mark(('overrides',))}: overrides: a mapping of dotted keys is expected")
    for key, value in overrides.items():
        line = child.mark(("overrides", key))
        set_key(base, str(key), value, line if line is not None else Mark(shown))
    return base


def _rooted(mark: Mark, path: tuple[Any, ...], key: str, shown: str) -> Mark:
    """Keys of a child stand at the top of their own file, so nothing is cut from the path that is shown."""
    return Mark(mark.origin, mark.line, 0) if path[:1] == (key,) and mark.origin == shown else mark


def _graft_catalog(tree: Tree, named_in: Tree, digests: dict[str, str], beside: Path, shown: str) -> None:
    """Replace the catalog's name (or list of names) by the catalog itself."""
    given = named_in.data["catalog"]
    wanted = given if isinstance(given, list) else [given]
    mark = named_in.mark(("catalog",))
    if not wanted or not all(isinstance(name, str) and name for name in wanted):
        raise InputError(f"{mark or shown}: catalog: a name, a path or a list of them is expected")
    merged: dict[Any, Any] = {}
    marks: dict[tuple[Any, ...], Mark] = {}
    for name in wanted:
        try:
            path, catalog_shown = library.find("catalog", name, beside)
        except InputError as error:
            raise InputError(*(f"{mark}: catalog: {problem}" for problem in error.problems)) from None
        part, raw = parse_file(str(path), catalog_shown)
        digests[catalog_shown] = hashlib.sha256(raw).hexdigest()
        _merge(merged, marks, part, _mapping(part, catalog_shown))
    tree.data["catalog"] = merged
    tree.graft(("catalog",), Tree(merged, marks))


def _merge(merged: dict[Any, Any], marks: dict[tuple[Any, ...], Mark], part: Tree, data: dict[Any, Any]) -> None:
    for key, value in data.items():
        if key in _GROUPS and isinstance(value, dict) and isinstance(merged.get(key), dict):
            twice = [name for name in value if name in merged[key]]
            if twice:
                problems = (
                    f"{part.mark((key, name))}: {key}.{name}: also stands in {marks[(key, name)]}" for name in twice
                )
                raise InputError(*problems)
            merged[key].update(value)
        else:
            merged[key] = value
    for path, mark in part.marks.items():
        marks.setdefault(path, mark)

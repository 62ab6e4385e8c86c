"""Names that point at entries. They are looked up in documents, and in plain data that is not a valid document yet.

So every name that nothing has is found whatever else is wrong with a file: what is not understood is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic_core import PydanticCustomError

from planner.errors import nearest

Reference = tuple[str, Any, str, Iterable[str]]
"""Dotted key, name, what it names, the names that exist."""


def refuse(problems: Iterable[str]) -> None:
    """Refuse names that do not exist, all at once.

    Raises
    ------
    PydanticCustomError
        Of type ``dangling``, where there is any.
    """
    text = "\n".join(problems)
    if text:
        raise PydanticCustomError("dangling", "{problems}", {"problems": text})


def dangling_in_catalog(catalog: Any, borrowed: Iterable[str] = ()) -> list[str]:  # noqa: ANN401
    """List ``key: text`` for every name in a catalog that nothing has; ``borrowed`` are models of other catalogs."""
    return list(_missing(_references_of_catalog(catalog, borrowed)))


def dangling_in_scenario(scenario: Any) -> list[str]:  # noqa: ANN401
    """List ``key: text`` for every name in a scenario that nothing has; nothing where it has no catalog.

    The scenario's catalog is not looked into.
    """
    catalog = _part(scenario, "catalog")
    if not isinstance(catalog, Mapping) and not hasattr(catalog, "devices"):
        return []
    names = [name for name in _items(scenario, "proposers") if isinstance(name, str)]
    twice = ["proposers: a name stands twice"] if len(set(names)) < len(names) else []
    return [*_missing(_references_of_scenario(scenario)), *_unaccepted(scenario), *twice]


def _references_of_catalog(catalog: Any, borrowed: Iterable[str]) -> Iterator[Reference]:  # noqa: ANN401
    sources, models = _entries(catalog, "sources"), [*_entries(catalog, "models"), *borrowed]
    for group in ("devices", "models", "proposers", "links"):
        for name, entry in _entries(catalog, group).items():
            yield f"{group}.{name}.source", _part(entry, "source"), "source", sources
            for field, source in _entries(entry, "sources").items():
                yield f"{group}.{name}.sources.{field}", source, "source", sources
    for name, device in _entries(catalog, "devices").items():
        for model in _entries(device, "profiles"):
            yield f"devices.{name}.profiles.{model}", model, "model", models
    for name, proposer in _entries(catalog, "proposers").items():
        yield f"proposers.{name}.model", _part(proposer, "model"), "model", models
        for target in _entries(proposer, "acceptance"):
            yield f"proposers.{name}.acceptance.{target}", target, "model", models


def _references_of_scenario(scenario: Any) -> Iterator[Reference]:  # noqa: ANN401
    catalog = _part(scenario, "catalog")
    devices = _entries(catalog, "devices")
    yield "target", _part(scenario, "target"), "model", _entries(catalog, "models")
    for index, name in enumerate(_items(scenario, "proposers")):
        yield f"proposers.{index}", name, "proposer", _entries(catalog, "proposers")
    for index, name in enumerate(_items(_part(scenario, "candidates"), "devices")):
        yield f"candidates.devices.{index}", name, "device", devices
    for name in _entries(_part(scenario, "limits"), "inventory"):
        yield f"limits.inventory.{name}", name, "device", devices
    for key, rack in _entries(_part(scenario, "servers"), "racks").items():
        for index, name in enumerate(_items(rack, "devices")):
            yield f"servers.racks.{key}.devices.{index}", name, "device", devices
    for name in _entries(scenario, "precisions"):
        yield f"precisions.{name}", name, "model", _entries(catalog, "models")
    for phase, place in _entries(scenario, "places").items():
        yield f"places.{phase}", place.partition(":")[0] if isinstance(place, str) else None, "device", devices
    transfers = _part(scenario, "transfers")
    yield "transfers.link", _part(transfers, "link"), "link", _entries(catalog, "links")
    for pair, link in _entries(transfers, "pairs").items():
        yield f"transfers.pairs.{pair}", link, "link", _entries(catalog, "links")
        for device in pair.split(":") if isinstance(pair, str) else ():
            yield f"transfers.pairs.{pair}", device, "device", devices


def _unaccepted(scenario: Any) -> Iterator[str]:  # noqa: ANN401
    """Say which proposers have no acceptance for the target, or for a workload's task."""
    catalog, target = _part(scenario, "catalog"), _part(scenario, "target")
    proposers = _entries(catalog, "proposers")
    if not isinstance(target, str) or target not in _entries(catalog, "models"):
        return
    for index, name in enumerate(_items(scenario, "proposers")):
        if not isinstance(name, str) or name not in proposers:
            continue
        curves = _entries(proposers[name], "acceptance")
        if target not in curves:
            hint = nearest(target, curves)
            yield f"proposers.{index}: proposer '{name}' has no acceptance for target '{target}' ({hint})"
            continue
        for key, workload in _entries(scenario, "workloads").items():
            task = _part(workload, "task") or "general"
            yield from _no_curve(f"workloads.{key}.task", name, task, _entries(curves, target))
        for position, case in enumerate(_items(scenario, "acceptance_range")):
            yield from _no_curve(f"acceptance_range.{position}", name, case, _entries(curves, target))


def _no_curve(key: str, proposer: str, task: Any, curves: Mapping[Any, Any]) -> Iterator[str]:  # noqa: ANN401
    if isinstance(task, str) and task not in curves:
        yield f"{key}: proposer '{proposer}' has no acceptance for task '{task}' ({nearest(task, curves)})"


def _missing(references: Iterable[Reference]) -> Iterator[str]:
    for key, name, what, choices in references:
        if isinstance(name, str) and name not in choices:
            yield f"{key}: there is no {what} '{name}' ({nearest(name, map(str, choices))})"


def _part(node: Any, key: str) -> Any:  # noqa: ANN401
    return node.get(key) if isinstance(node, Mapping) else getattr(node, key, None)


def _entries(node: Any, key: str) -> dict[Any, Any]:  # noqa: ANN401
    found = _part(node, key)
    return dict(found) if isinstance(found, Mapping) else {}


def _items(node: Any, key: str) -> list[Any]:  # noqa: ANN401
    found = _part(node, key)
    return list(found) if isinstance(found, (list, tuple)) else []

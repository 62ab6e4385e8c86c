"""Look devices and models up by name: in catalogs that are named first, then in the bundled ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.errors import InputError, nearest
from planner.read import library
from planner.read.load import read_catalog
from planner.schema.catalog import Catalog, Device, Model


def catalogs_named(names: Sequence[str]) -> list[Catalog]:
    """Read the named catalogs, then the bundled ones."""
    return [read_catalog(name) for name in dict.fromkeys([*names, *library.names("catalog")])]


def _entry(group: str, name: str, names: Sequence[str]) -> Any:  # noqa: ANN401
    known: list[str] = []
    for catalog in catalogs_named(names):
        entries: dict[str, Any] = getattr(catalog, group)
        if name in entries:
            return entries[name]
        known += entries
    flag = group.removesuffix("s")
    raise InputError(f"--{flag} {name}: there is no such {flag} ({nearest(name, known)})")


def device_named(name: str, catalogs: Sequence[str]) -> Device:
    """Find a device type.

    Raises
    ------
    InputError
        With the nearest names, if there is none.
    """
    found: Device = _entry("devices", name, catalogs)
    return found


def model_named(name: str, catalogs: Sequence[str]) -> Model:
    """Find a model by its name or an alias of its shape.

    Raises
    ------
    InputError
        With the nearest names, if there is none.
    """
    for catalog in catalogs_named(catalogs):
        for model in catalog.models.values():
            if model.shape is not None and name in model.shape.aliases:
                return model
    found: Model = _entry("models", name, catalogs)
    return found


def merged(names: Sequence[str]) -> Catalog:
    """Put named and bundled catalogs together; an entry of an earlier one hides a later one of the same name."""
    entries: dict[str, Any] = {"schema_version": 1}
    for group in ("sources", "devices", "models", "proposers", "links"):
        entries[group] = {}
        for catalog in reversed(catalogs_named(names)):
            entries[group] |= getattr(catalog, group)
    return Catalog.model_validate(entries)

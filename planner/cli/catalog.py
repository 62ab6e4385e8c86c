"""``plan catalog``: what exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planner.cli.mistakes import Group
from planner.cli.options import output_options, scenario_options
from planner.cli.types import LibraryName

if TYPE_CHECKING:
    from planner.schema.catalog import Catalog, Entry


@click.group("catalog", cls=Group)
def command() -> None:
    """List and show what exists: devices, models, proposers."""


@command.command("list")
@output_options
def list_catalogs(as_json: bool, output: str | None) -> None:
    """List the bundled catalogs."""
    from planner.cli.common import deliver_data
    from planner.read import library
    from planner.read.load import read_catalog
    from planner.report.cards import GROUPS, catalogs_view

    catalogs = {name: read_catalog(name) for name in library.names("catalog")}
    data = {
        name: {"description": catalog.description, **{group: list(getattr(catalog, group)) for group in GROUPS}}
        for name, catalog in catalogs.items()
    }
    deliver_data({"schema_version": 1, "catalogs": data}, catalogs_view(catalogs), "catalogs", as_json, output)


@command.command("show")
@click.argument("name", type=LibraryName("catalog"))
@scenario_options
def show(name: str, scenario: str, sets: tuple[str, ...], as_json: bool, output: str | None) -> None:
    """Show a catalog, or a device, model, proposer or link, with where its numbers come from.

    NAME is a bundled catalog, a YAML file, or an entry. An entry is looked up in the scenario's catalog, with --set
    applied, and then in every bundled catalog.
    """
    from planner.cli.common import deliver_data
    from planner.errors import InputError
    from planner.read import library
    from planner.read.load import read_catalog
    from planner.report.cards import catalog_view, entry_view

    if library.is_path(name) or name in library.names("catalog"):
        if sets:
            raise InputError(
                f"--set {sets[0]}: it changes a scenario's catalog; name one of its entries instead of '{name}'"
            )
        catalog = read_catalog(name)
        data = catalog.model_dump(mode="json", exclude_unset=True)
        deliver_data(data, catalog_view(name, catalog), "catalog", as_json, output)
        return
    catalog, group, entry = _entry(name, scenario, sets)
    data = {"schema_version": 1, "name": name, "group": group, **entry.model_dump(mode="json")}
    deliver_data(data, entry_view(name, group, entry, catalog), "entry", as_json, output)


def _entry(name: str, scenario: str, sets: tuple[str, ...]) -> tuple[Catalog, str, Entry]:
    """Look an entry up in the scenario's catalog, then in the bundled ones."""
    from planner.cli.common import load
    from planner.errors import InputError, nearest
    from planner.read import library
    from planner.read.load import read_catalog
    from planner.report.cards import entry_names, find_entry

    names = list(library.names("catalog"))
    for catalog in (load(scenario, sets).scenario.catalog, *map(read_catalog, library.names("catalog"))):
        found = find_entry(catalog, name)
        if found is not None:
            return catalog, *found
        names += entry_names(catalog)
    raise InputError(f"there is no catalog or entry '{name}' ({nearest(name, names)})")

"""Catalogs, their entries and scenarios, as a person reads them, with where each number comes from."""

from __future__ import annotations

from typing import Any

from planner.report.numbers import figure
from planner.report.tables import Table
from planner.report.views import View
from planner.schema.catalog import Catalog, Entry
from planner.schema.scenario import Scenario

GROUPS = {"devices": "device", "models": "model", "proposers": "proposer", "links": "link"}


def catalogs_view(catalogs: dict[str, Catalog]) -> View:
    """List catalogs with what they hold."""
    rows = tuple((name, str(len(c.devices)), str(len(c.models)), str(len(c.proposers))) for name, c in catalogs.items())
    return View("Bundled catalogs", [], [Table("", ("catalog", "devices", "models", "proposers"), rows)])


def scenarios_view(scenarios: dict[str, Scenario]) -> View:
    """List scenarios with their descriptions."""
    rows = tuple((name, scenario.description) for name, scenario in scenarios.items())
    return View("Bundled scenarios", [], [Table("", ("scenario", "what it asks"), rows, left=2)])


def catalog_view(name: str, catalog: Catalog) -> View:
    """Show what a catalog holds, and its sources."""
    found = [
        Table(group.capitalize(), (GROUPS[group], "description"), _described(getattr(catalog, group)), left=2)
        for group in GROUPS
        if getattr(catalog, group)
    ]
    sources = tuple((key, f"{s.title}. {s.publisher}, {s.date}.") for key, s in catalog.sources.items())
    tables = [*found, Table("Sources", ("source", "what"), sources, left=2)] if sources else found
    return View(f"Catalog {name}", [catalog.description] if catalog.description else [], tables)


def _described(entries: dict[str, Entry]) -> tuple[tuple[str, str], ...]:
    return tuple((name, entry.description) for name, entry in entries.items())


def find_entry(catalog: Catalog, name: str) -> tuple[str, Entry] | None:
    """Find an entry by name; give its group and itself."""
    for group in GROUPS:
        entries: dict[str, Entry] = getattr(catalog, group)
        if name in entries:
            return group, entries[name]
    return None


def entry_names(catalog: Catalog) -> list[str]:
    """List the names of all entries."""
    return [name for group in GROUPS for name in getattr(catalog, group)]


def entry_view(name: str, group: str, entry: Entry, catalog: Catalog) -> View:
    """Show an entry's numbers, each with its source and how sure it is."""
    rows = tuple(_entry_rows(entry))
    cited = dict.fromkeys([*([entry.source] if entry.source else []), *entry.sources.values()])
    sources = tuple((key, _citation(catalog, key)) for key in cited)
    tables = [Table("Numbers", ("field", "value", "source", "confidence"), rows, left=4)] if rows else []
    if sources:
        tables.append(Table("Sources", ("source", "what"), sources, left=2))
    return View(f"{GROUPS[group].capitalize()} {name}", [entry.description] if entry.description else [], tables)


def _citation(catalog: Catalog, key: str) -> str:
    source = catalog.sources[key]
    parts = [f"{source.title}. {source.publisher}, {source.date}.", source.note or "", source.url or ""]
    return " ".join(part for part in parts if part)


def _entry_rows(entry: Entry) -> list[tuple[str, str, str, str]]:
    data = entry.model_dump(mode="json", exclude_unset=True, exclude={"description", "source", "sources", "confidence"})
    rows = []
    for path, value in _leaves(data, ()):
        covers = [".".join(path[:end]) for end in range(len(path), 0, -1)]
        source = next((entry.sources[key] for key in covers if key in entry.sources), entry.source or "–")
        sure = next(
            (entry.confidence[key] for key in covers if key in entry.confidence), "read" if entry.source else "–"
        )
        written = path[:-1] if path[-1] == "constant" else path  # a file gives a constant as a plain number
        rows.append((".".join(written), figure(value) if isinstance(value, float) else str(value), source, sure))
    return rows


def _leaves(value: Any, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:  # noqa: ANN401
    if isinstance(value, dict):
        return [leaf for key, below in value.items() for leaf in _leaves(below, (*path, str(key)))]
    if value is None:
        return []
    return [(path, value)]


def scenario_view(scenario: Scenario) -> View:
    """Show a scenario's fields, its catalog left out."""
    data = scenario.model_dump(mode="json", exclude={"catalog", "description", "assumptions", "name", "schema_version"})
    rows = tuple((".".join(path), _short(value)) for path, value in _leaves(data, ()) if value not in ({}, []))
    view = View(f"Scenario {scenario.name}", [scenario.description] if scenario.description else [])
    return View(view.title, view.sentences, [Table("", ("key", "value"), rows, left=2)], scenario.assumptions)


def _short(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return figure(value) if isinstance(value, float) else str(value)

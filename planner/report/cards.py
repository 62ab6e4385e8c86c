"""Catalogs, their entries and scenarios, as a person reads them, with where each number comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from planner.report.numbers import figure, in_unit, percent
from planner.report.tables import Table
from planner.report.views import View
from planner.schema.catalog import Catalog, Entry
from planner.schema.scenario import Scenario
from planner.schema.validation import ErrorSummary, Measurement, Validation

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
    """Show an entry's fields, a table per group of them, each number with its source and how sure it is."""
    cited = dict.fromkeys([*([entry.source] if entry.source else []), *entry.sources.values()])
    sources = tuple((key, _citation(catalog, key)) for key in cited)
    tables = [
        Table(title, ("field", "value", "source", "confidence"), tuple(rows), left=4)
        for title, rows in _entry_rows(entry).items()
    ]
    if sources:
        tables.append(Table("Sources", ("source", "what"), sources, left=2))
    return View(f"{GROUPS[group].capitalize()} {name}", [entry.description] if entry.description else [], tables)


def entry_table(name: str, group: str, entry: Entry) -> Table:
    """Give every number of an entry with its source and confidence, in one table."""
    rows = [
        (f"{title.lower()}: {row[0]}" if title != "Fields" else row[0], *row[1:])
        for title, some in _entry_rows(entry).items()
        for row in some
        if row[2] != "–" or row[3] != "–"
    ]
    headers = ("field", "value", "source", "confidence")
    return Table(f"{GROUPS[group].capitalize()} {name}", headers, tuple(rows), left=4)


def sources_table(catalog: Catalog, entries: Sequence[Entry]) -> Table:
    """Say what each source that some entries cite is."""
    cited = dict.fromkeys(
        key for entry in entries for key in ([entry.source] if entry.source else []) + list(entry.sources.values())
    )
    rows = tuple((key, _citation(catalog, key)) for key in cited)
    return Table("", ("source", "what"), rows, left=2)


def _citation(catalog: Catalog, key: str) -> str:
    source = catalog.sources[key]
    parts = [f"{source.title}. {source.publisher}, {source.date}.", source.note or "", source.url or ""]
    return " ".join(part for part in parts if part)


def _entry_rows(entry: Entry) -> dict[str, list[tuple[str, str, str, str]]]:
    """Give rows of field, value, source and confidence by group: an entry's own fields, then each nested record."""
    data = entry.model_dump(mode="json", exclude_unset=True, exclude={"description", "source", "sources", "confidence"})
    tables: dict[str, list[tuple[str, str, str, str]]] = {}
    for path, value in _leaves(data, ()):
        depth = 0 if len(path) == 1 else 2 if len(path) > 3 else 1
        title = " ".join(path[:depth]).replace("_", " ") or "fields"
        shown = figure(value) if isinstance(value, float) else str(value)
        written = path[:-1] if path[-1] == "constant" else path  # a file gives a constant as a plain number
        row = (".".join(written[depth:]), shown, *_provenance(entry, path, value))
        tables.setdefault(title[0].upper() + title[1:], []).append(row)
    return tables


def _provenance(entry: Entry, path: tuple[str, ...], value: Any) -> tuple[str, str]:  # noqa: ANN401
    """Give source and confidence of a field; words have none unless they are cited themselves."""
    covers = [".".join(path[:end]) for end in range(len(path), 0, -1)]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    default = entry.source if is_number and entry.source else "–"
    source = next((entry.sources[key] for key in covers if key in entry.sources), default)
    sure = next((entry.confidence[key] for key in covers if key in entry.confidence), "read" if default != "–" else "–")
    return source, sure


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


def profile_view(title: str, document: dict[str, Any]) -> View:
    """Show what one operation costs, and where its time goes."""
    total = document["latency_s"]
    rows = (
        ("latency", in_unit(total, "s")),
        ("energy per request in the batch", f"{figure(document['energy_j'])} J"),
        ("power of the replica", in_unit(document["power_w"], "W")),
        ("bound by", document["bound"]),
    )
    terms = tuple((name, in_unit(term, "s"), percent(term / total)) for name, term in document["terms"].items())
    tables = [
        Table("Cost", ("what", "value"), rows),
        Table("Terms", ("term", "time", "of latency"), terms, note="Terms may overlap; the latency is not their sum."),
    ]
    return View(title, [], tables, tuple(document["assumed"]))


def validation_view(rows: Sequence[Measurement], validation: Validation) -> View:
    """Show how far predictions are from measurements: by metric, device and model, with the worst rows."""
    tables = [_errors("All rows", {name: metric.all for name, metric in validation.metrics.items()}, "metric")]
    for name, metric in validation.metrics.items():
        tables.append(_errors(f"{name} by device", metric.by_device, "device"))
        tables.append(_errors(f"{name} by model", metric.by_model, "model"))
    tables.append(_worst(rows, validation))
    reasons = Counter(row.reason for row in validation.rows if row.reason is not None)
    if reasons:
        lines = tuple((str(count), reason) for reason, count in reasons.most_common())
        tables.append(Table("Rows without a prediction", ("rows", "reason"), lines, left=0))
    order = validation.ordering
    sentences = [f"{len(rows)} rows, {len(rows) - validation.unpredictable} of them predicted."]
    if order.share is not None:
        sentences.append(f"The order of devices by TPOT is kept in {percent(order.share)} of {order.pairs} pairs.")
    return View("Validation", sentences, tables)


def _errors(title: str, errors: dict[str, ErrorSummary], what: str) -> Table:
    rows = tuple(
        (name, str(e.count), percent(e.median_abs_error), percent(e.p90_abs_error), percent(e.bias))
        for name, e in errors.items()
    )
    return Table(title, (what, "rows", "median error", "p90 error", "bias"), rows)


def _worst(rows: Sequence[Measurement], validation: Validation) -> Table:
    by_index = {row.index: row for row in rows}
    lines = []
    for worst in validation.worst:
        row = by_index[worst.index]
        cells = (figure(worst.measured), figure(worst.predicted), percent(worst.error))
        lines.append((str(worst.index + 2), row.device, row.model, worst.metric, *cells))
    headers = ("line", "device", "model", "metric", "measured", "predicted", "error")
    return Table("Worst rows", headers, tuple(lines), left=4)

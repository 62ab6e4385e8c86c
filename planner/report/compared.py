"""Two plans side by side as a document that a person reads: sections for page and Markdown, a view for a terminal."""

from __future__ import annotations

from dataclasses import replace

from planner.report import compared_tables as tables
from planner.report.chart_compared import comparison_charts
from planner.report.compared_words import verdicts
from planner.report.sections import Report, Section
from planner.report.tables import Table
from planner.report.vega import Chart
from planner.report.views import View, foot
from planner.schema.comparison import Comparison

TITLE = "Two plans side by side"
# Sections and tables that a terminal does without.
_ONLY_ON_PAPER = ("Reproduce", tables.CONFLICTS)


def comparison_view(comparison: Comparison) -> View:
    """Lay out a comparison for a terminal: the verdicts, then the tables."""
    answer, *rest = (section for section in _sections(comparison) if section.title not in _ONLY_ON_PAPER)
    shown = [table for section in (answer, *rest) for table in section.tables if table.title not in _ONLY_ON_PAPER]
    warnings = _warnings(comparison)
    return View(TITLE, list(answer.sentences), shown, warnings=warnings, foot=foot(comparison.provenance))


def comparison_report(comparison: Comparison) -> Report:
    """Lay out a comparison: what changed in words, the question, fleet, designs, service, limits, and the stress."""
    lead = " against ".join(f"{name}: {side.file}" for name, side in tables.sides(comparison))
    sections = tuple(map(_without_a_title_twice, _sections(comparison)))
    return Report(TITLE, lead, sections, foot(comparison.provenance), _warnings(comparison))


def _sections(comparison: Comparison) -> tuple[Section, ...]:
    charts = {chart.name: chart for chart in comparison_charts(comparison)}
    sections = (
        Section("What changed", tuple(verdicts(comparison)), tables=(tables.plans(comparison),)),
        Section("What is asked", tables=_some(tables.question(comparison))),
        _fleet(comparison, charts),
        Section("Service", tables=tuple(tables.service(comparison)) if _deployed(comparison) else ()),
        Section("Headroom", charts=_take(charts, "headroom"), tables=_some(tables.headroom(comparison))),
        Section(
            "One server lost",
            _uncounted(comparison),
            _take(charts, "server-lost"),
            _some(tables.servers_lost(comparison)),
        ),
        Section(
            "Demand grown",
            tables=_some(
                tables.growth_as_bought(comparison), tables.growth_anew(comparison), tables.conflicts(comparison)
            ),
        ),
        _reproduce(comparison),
    )
    return tuple(s for s in sections if s.sentences or s.charts or s.tables or s.code)


def _without_a_title_twice(section: Section) -> Section:
    """Leave out the title of a table that is the title of its section."""
    shown = (replace(table, title="") if table.title == section.title else table for table in section.tables)
    return replace(section, tables=tuple(shown))


def _warnings(comparison: Comparison) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*comparison.a.plan.warnings, *comparison.b.plan.warnings)))


def without_charts(report: Report) -> Report:
    """Leave the figures out, for Markdown that stands alone."""
    return replace(report, sections=tuple(replace(section, charts=()) for section in report.sections))


def _some(*found: Table | None) -> tuple[Table, ...]:
    return tuple(table for table in found if table is not None)


def _take(charts: dict[str, Chart], name: str) -> tuple[Chart, ...]:
    return (charts[name],) if name in charts else ()


def _deployed(comparison: Comparison) -> bool:
    return bool(comparison.a.plan.deployments or comparison.b.plan.deployments)


def _fleet(comparison: Comparison, charts: dict[str, Chart]) -> Section:
    if not _deployed(comparison):
        return Section("Fleet and power")
    shown = (tables.totals(comparison), *_some(tables.fleet(comparison)), *tables.placements(comparison))
    return Section("Fleet and power", charts=_take(charts, "power"), tables=shown)


def _uncounted(comparison: Comparison) -> tuple[str, ...]:
    """Say why servers of a plan are not lost."""
    return tuple(
        f"Of {name} no server is lost: {reason}."
        for name, side in tables.sides(comparison)
        for reason in dict.fromkeys(lost.reason for lost in side.servers_lost)
        if reason is not None
    )


def _reproduce(comparison: Comparison) -> Section:
    commands = [side.plan.provenance.command for _, side in tables.sides(comparison)]
    commands.append(comparison.provenance.command)
    digests = tuple((name, digest) for name, digest in comparison.provenance.catalogs.items())
    files = Table("Files", ("file", "SHA-256"), digests, left=2)
    sentence = f"phaseplan {comparison.provenance.version}; the commands of A, of B, and of this page."
    return Section(
        "Reproduce", (sentence,), tables=_some(files if digests else None), code=tuple(filter(None, commands))
    )

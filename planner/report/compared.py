"""Two plans side by side as a document that a person reads: sections for page and Markdown, a view for a terminal."""

from __future__ import annotations

from dataclasses import replace

from planner.report import compared_tables as tables
from planner.report.chart_compared import comparison_charts
from planner.report.compared_words import is_same_plan, verdicts
from planner.report.numbers import figure
from planner.report.sections import Report, Section
from planner.report.sentences import conflict_sentence
from planner.report.tables import Table
from planner.report.vega import Chart
from planner.report.views import View, foot
from planner.schema.comparison import Comparison, Side

TITLE = "Two plans side by side"


def comparison_view(comparison: Comparison) -> View:
    """Lay out a comparison for a terminal: the verdicts, then the tables."""
    report = comparison_report(comparison)
    answer, *rest = report.sections
    shown = [table for section in (answer, *rest) for table in section.tables if section.title != "Reproduce"]
    return View(TITLE, list(answer.sentences), shown, warnings=report.warnings, foot=report.foot)


def comparison_report(comparison: Comparison) -> Report:
    """Lay out a comparison: what changed in words, the question, fleet, designs, service, limits, and the stress."""
    charts = {chart.name: chart for chart in comparison_charts(comparison)}
    sections = (
        Section("What changed", tuple(verdicts(comparison)), tables=(tables.plans(comparison),)),
        Section("The question", tables=_some(None if is_same_plan(comparison) else tables.question(comparison))),
        _fleet(comparison, charts),
        Section("What users get", tables=tuple(tables.service(comparison)) if _deployed(comparison) else ()),
        Section("Headroom", charts=_take(charts, "headroom"), tables=_some(tables.headroom(comparison))),
        Section(
            "One server lost",
            _uncounted(comparison),
            _take(charts, "server-lost"),
            _some(tables.servers_lost(comparison)),
        ),
        Section(
            "Demand grown",
            tables=_some(tables.growth_as_bought(comparison), tables.growth_anew(comparison)),
            items=_conflicts(comparison),
        ),
        _reproduce(comparison),
    )
    full = tuple(s for s in sections if s.sentences or s.charts or s.tables or s.items or s.code)
    lead = " against ".join(f"{name}: {side.file}" for name, side in tables.sides(comparison))
    warnings = dict.fromkeys((*comparison.a.plan.warnings, *comparison.b.plan.warnings))
    return Report(TITLE, lead, full, foot(comparison.provenance), tuple(warnings))


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
        f"{name}: {reason}."
        for name, side in tables.sides(comparison)
        for reason in dict.fromkeys(lost.reason for lost in side.servers_lost)
        if reason is not None
    )


def _conflicts(comparison: Comparison) -> tuple[str, ...]:
    """Say of every growth without a plan what is nearest to each limit in conflict."""
    return tuple(
        f"{name}, {figure(100 * step.growth)} % more: {conflict_sentence(conflict, _several(side))}."
        for name, side in tables.sides(comparison)
        if side.growth is not None
        for step in side.growth.steps
        for conflict in step.anew.infeasibility
    )


def _several(side: Side) -> bool:
    return len({one.workload for one in side.plan.deployments}) > 1


def _reproduce(comparison: Comparison) -> Section:
    commands = [side.plan.provenance.command for _, side in tables.sides(comparison)]
    commands.append(comparison.provenance.command)
    digests = tuple((name, digest) for name, digest in comparison.provenance.catalogs.items())
    files = Table("Files", ("file", "SHA-256"), digests, left=2)
    sentence = f"phaseplan {comparison.provenance.version}; the commands of A, of B, and of this page."
    return Section(
        "Reproduce", (sentence,), tables=_some(files if digests else None), code=tuple(filter(None, commands))
    )

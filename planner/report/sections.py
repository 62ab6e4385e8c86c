"""A report as sections: what stands in it and in which order, the same for the web page and for Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.report import tables
from planner.report.cards import entry_table, sources_table
from planner.report.chart_front import plan_energy
from planner.report.chart_ways import way_words
from planner.report.charts import charts_of
from planner.report.front import MOST_ROWS, front_sentences, points_table, shown_rows, trials_table
from planner.report.numbers import figure
from planner.report.others import cases_tables, robustness_sentences
from planner.report.sentences import answer, as_sentence, why_none
from planner.report.tables import Table
from planner.report.vega import Chart
from planner.schema.catalog import Entry
from planner.schema.review import Review
from planner.schema.scenario import Scenario
from planner.words import PHASES

_KNOBS_HELD = (
    "The exact front above holds the knobs at the scenario's own values, and is proven for those; the search varies"
    " them, so that its points may lie beyond."
)


@dataclass(frozen=True)
class Section:
    """A heading, sentences, tables, figures, a list, and lines of code, in this order."""

    title: str
    sentences: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    items: tuple[str, ...] = ()
    code: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """A title, what it is about, and its sections; ``keys``: dotted keys stand in it, which may be broken anywhere."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    foot: str
    warnings: tuple[str, ...] = field(default=())
    keys: bool = False

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All figures, in the order of the page."""
        return tuple(chart for section in self.sections for chart in section.charts)


def report_of(scenario: Scenario, review: Review) -> Report:
    """Lay out a review."""
    charts = {chart.name: chart for chart in charts_of(review)}
    sections = [
        _answer(review),
        _front(review, charts),
        _search(review, charts),
        _limits(review),
        _range(review),
        _fleet(review, charts),
        _curves(review, charts),
        Section("Roofline", charts=_take(charts, "roofline")),
        Section("Assumptions in force", items=_assumptions(review)),
        *_sources(scenario, review),
        _reproduce(review),
    ]
    held = (section for section in sections if section is not None)
    full = tuple(s for s in held if s.sentences or s.charts or s.tables or s.items or s.code)
    version = review.provenance.version
    warnings = review.plan.warnings if review.plan is not None else review.front.warnings
    return Report(f"Capacity plan for {scenario.name}", scenario.description, full, f"phaseplan {version}", warnings)


def _range(review: Review) -> Section | None:
    """Show what the cases of acceptance make of the plan, where the scenario has a range."""
    plan = review.plan
    if plan is None or plan.robustness is None:
        return None
    sentences = tuple(map(as_sentence, robustness_sentences(plan)))
    return Section("Over a range of acceptance", sentences, tables=tuple(cases_tables(plan)))


def _take(charts: dict[str, Chart], *names: str) -> tuple[Chart, ...]:
    """Give the figures whose name is one of these, or begins with it and a dash."""
    return tuple(chart for key, chart in charts.items() for name in names if key == name or key.startswith(f"{name}-"))


def _answer(review: Review) -> Section:
    plan = review.plan
    if plan is None:
        sentence = (
            "Nothing bounds the question: no budget, inventory or demand is given. So there is no one plan; the front"
            " shows what is possible."
        )
        return Section("The answer", (sentence, *front_sentences(review.front)))
    if plan.status == "infeasible":
        return Section("The answer", tuple(why_none(plan)))
    if plan.status == "no_incumbent":
        return Section("The answer", ("The time limit was reached before any plan was found.",))
    parts = [tables.service(plan), *tables.placements(plan), tables.pools(plan)]
    return Section("The answer", tuple(answer(plan)), tables=tuple(table for table in parts if table is not None))


def _front(review: Review, charts: dict[str, Chart]) -> Section:
    front = review.front
    if not front.points:
        return Section("What is possible", ("No design meets the limits at all.",))
    sentences = list(front_sentences(front)) if review.plan is not None else []
    at = plan_energy(review)
    if at is not None:
        sentences.append(f"The plan: {figure(at[0])} tok/s per user at {figure(at[1])} J per output token.")
    if not any(way.front for way in review.ways):
        sentences.append("The fronts of the usual ways to deploy are not drawn: choices are coupled here.")
    table = points_table(front, shown_rows(front, MOST_ROWS))
    return Section("What is possible", tuple(sentences), _take(charts, "front"), (table,))


def _search(review: Review, charts: dict[str, Chart]) -> Section | None:
    front = review.searched
    if front is None:
        return None
    if not front.points:
        return Section("The front by search", ("No trial found a design within the limits.",), _take(charts, "search"))
    parts = [points_table(front, shown_rows(front, MOST_ROWS)), trials_table(front, shown_rows(front, MOST_ROWS))]
    shown = tuple(table for table in parts if table is not None)
    knobs = front.search is not None and front.search.exact_hypervolume is None
    beside = (_KNOBS_HELD,) if knobs and review.front.points else ()
    return Section("The front by search", (*beside, *front_sentences(front)), _take(charts, "search"), shown)


def _limits(review: Review) -> Section | None:
    plan = review.plan
    if plan is None or not plan.deployments:
        return None
    parts = [tables.limits(plan), tables.baselines(plan)]
    return Section("What binds, and what more would buy", tables=tuple(table for table in parts if table is not None))


def _fleet(review: Review, charts: dict[str, Chart]) -> Section | None:
    plan = review.plan
    if plan is None or not plan.deployments:
        return None
    parts = (tables.fleet(plan), tables.racks(plan))
    shown = tuple(table for table in parts if table is not None)
    slots = ("Devices are not summed: the catalog counts request slots.",) if tables.counts_are_slots(plan) else ()
    return Section("Fleet and power", slots, _take(charts, "power"), shown)


def _curves(review: Review, charts: dict[str, Chart]) -> Section:
    names = ("interactivity", "draft-speed", "throughput-per-kw", "energy", "ttft", "tokens-per-step")
    curved = [way for way in review.ways if way.curve is not None]
    if not curved:
        return Section("Over the draft length", ("Nothing is proposed: there is no draft length to vary.",))
    sentence = (
        f"One design of {review.workload} for each way to deploy, its options as they are, at every draft length;"
        " length 0 is plain decode. The peak of each curve is named."
    )
    rows = []
    for way in curved:
        assert way.curve is not None
        longest = way.curve.points[-1]
        places = (longest.placements[phase] for phase in PHASES)
        words = (f"{p.device}:tp{p.tensor_parallel}:b{p.batch_size}" if p is not None else "–" for p in places)
        rows.append((way_words(way), *words))
    headers = ("way", *(phase.replace("_", " ") for phase in PHASES))
    table = Table("Designs drawn", headers, tuple(rows), left=5)
    return Section("Over the draft length", (sentence,), _take(charts, *names), (table,))


def _assumptions(review: Review) -> tuple[str, ...]:
    plan = review.plan.assumptions if review.plan is not None else ()
    return tuple(dict.fromkeys([*plan, *review.front.assumptions]))


def _entries(scenario: Scenario, review: Review) -> dict[tuple[str, str], Entry]:
    """Give the catalog entries that the report rests on, by group and name."""
    catalog = scenario.catalog
    devices = {device for way in review.ways for device in way.devices.values()}
    deployments = [one for point in review.front.points for one in (point.deployment, *point.others)]
    deployments += list(review.plan.deployments) if review.plan is not None else []
    devices |= {place.device for one in deployments for place in one.placements.values() if place is not None}
    drafters = (catalog.proposers[name].model for name in scenario.proposers)
    models = dict.fromkeys(model for model in (scenario.target, *drafters) if model is not None)
    found: dict[tuple[str, str], Entry] = {
        ("devices", name): entry for name, entry in catalog.devices.items() if name in devices
    }
    found |= {("models", name): catalog.models[name] for name in models}
    found |= {("proposers", name): catalog.proposers[name] for name in scenario.proposers}
    if scenario.transfers is not None:
        names = (scenario.transfers.link, *scenario.transfers.pairs.values())
        found |= {("links", name): catalog.links[name] for name in names if name is not None}
    return found


def _sources(scenario: Scenario, review: Review) -> list[Section]:
    entries = _entries(scenario, review)
    shown = [entry_table(name, group, entry) for (group, name), entry in entries.items()]
    known = tuple(table for table in shown if table.rows)
    sentence = (
        "Every number of the catalog that the report rests on. Confidence: read (in the source), derived (computed from"
        " it), recalled, assumed."
    )
    sources = sources_table(scenario.catalog, list(entries.values()))
    return [
        Section("Sources", (sentence,), tables=(sources,) if sources.rows else ()),
        Section("Numbers and their confidence", tables=known),
    ]


def _reproduce(review: Review) -> Section:
    provenance = review.provenance
    digests = tuple((name, digest) for name, digest in provenance.catalogs.items())
    files = Table("Files", ("file", "SHA-256"), digests, left=2)
    found_by = [f"front by {review.front.provenance.solver}"]
    found_by += [f"plan by {provenance.solver}"] if provenance.solver else []
    sentence = f"phaseplan {provenance.version}; {', '.join(found_by)}. points.csv has the command of every point."
    code = (provenance.command,) if provenance.command else ()
    return Section("Reproduce", (sentence,), tables=(files,) if digests else (), code=code)

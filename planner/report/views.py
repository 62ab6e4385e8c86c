"""A document as blocks: headings, sentences, tables and lists, in the order that a person reads them."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.report import tables
from planner.report.others import (
    alternatives_sentences,
    alternatives_table,
    cases_tables,
    nominal_sentence,
    robustness_sentences,
)
from planner.report.sentences import (
    answer,
    as_sentence,
    drafting_sentence,
    placement_sentence,
    service_sentence,
    why_none,
)
from planner.report.tables import Table
from planner.schema import documents as doc


@dataclass(frozen=True)
class View:
    """What a person reads; ``items`` are listed below the sentences."""

    title: str
    sentences: list[str]
    tables: list[Table] = field(default_factory=list)
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    foot: str = ""
    items: tuple[str, ...] = ()


def plan_view(plan: doc.Plan) -> View:
    """Lay out a plan: the answer in words, placements, limits, baselines, assumptions."""
    end = foot(plan.provenance)
    title = f"Plan for {plan.scenario}: {plan.status.replace('_', ' ')}"
    if plan.status == "infeasible":
        return View(title, [*why_none(plan), *nominal_sentence(plan)], [], plan.assumptions, plan.warnings, end)
    if plan.status == "no_incumbent":
        sentence = "The time limit was reached before any plan was found; give more time with --time-limit-s."
        return View(title, [sentence], [], plan.assumptions, plan.warnings, end)
    parts = [
        tables.service(plan),
        *tables.placements(plan),
        tables.pools(plan),
        tables.fleet(plan),
        tables.racks(plan),
        tables.limits(plan),
        *cases_tables(plan),
        alternatives_table(plan),
        tables.baselines(plan),
    ]
    shown = [table for table in parts if table is not None]
    more = [*robustness_sentences(plan), *alternatives_sentences(plan)]
    return View(title, [*answer(plan), *map(as_sentence, more)], shown, plan.assumptions, plan.warnings, end)


def evaluation_view(evaluation: doc.Evaluation) -> View:
    """Lay out the evaluation of a given design."""
    sentences = [
        as_sentence(text)
        for text in (placement_sentence(evaluation), drafting_sentence(evaluation), service_sentence(evaluation))
    ]
    shown = [tables.evaluation_figures(evaluation), tables.evaluation_placements(evaluation)]
    title = f"Evaluation for {evaluation.scenario}, {evaluation.workload}"
    return View(title, sentences, shown, evaluation.assumptions, evaluation.warnings, foot(evaluation.provenance))


def foot(provenance: doc.Provenance) -> str:
    """Say what made a document."""
    solver = f", {provenance.solver}" if provenance.solver else ""
    return f"phaseplan {provenance.version}{solver}"

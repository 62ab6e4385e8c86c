"""The recipe of a comparison: what changed, then what each plan bears."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from planner.comparison import changes
from planner.comparison.growth import growth_of
from planner.comparison.loss import servers_lost
from planner.schema import documents as doc
from planner.schema.comparison import Comparison, Side
from planner.schema.scenario import Scenario
from planner.solve import Settings, provenance


@dataclass(frozen=True)
class Planned:
    """A plan, the scenario that it answers, and the name of the file that it came from."""

    file: str
    plan: doc.Plan
    scenario: Scenario


def compare(a: Planned, b: Planned, settings: Settings | None = None) -> Comparison:
    """Set two plans side by side, and put each under stress.

    Parameters
    ----------
    a, b
        Plans that pass the check of their scenarios.
    settings
        How grown demand is planned anew; ``time_limit_s`` is for each time.
    """
    settings = settings or Settings()
    start = time.perf_counter()
    plans = a.plan, b.plan
    workloads = {**a.scenario.workloads, **b.scenario.workloads}
    sides = [_side(one, settings) for one in (a, b)]
    return Comparison(
        a=sides[0],
        b=sides[1],
        question=changes.question_changes(a.scenario, b.scenario),
        fleet=changes.fleet_changes(*plans),
        drafting=changes.drafting_changes(*plans),
        placements=changes.placement_changes(*plans),
        totals=changes.totals_change(*plans),
        service=changes.service_changes(*plans, workloads),
        headroom=changes.headroom_changes(*plans, (a.scenario, b.scenario)),
        provenance=provenance(settings, start, None),
    )


def _side(planned: Planned, settings: Settings) -> Side:
    return Side(
        file=planned.file,
        plan=planned.plan,
        servers_lost=servers_lost(planned.plan, planned.scenario),
        growth=growth_of(planned.plan, planned.scenario, replace(settings, explain=False)),
    )

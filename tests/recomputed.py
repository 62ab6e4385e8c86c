"""Solutions and their documents, recomputed by the loops' own arithmetic."""

from __future__ import annotations

from collections import Counter

import fleet_oracles as oracles
import oracles as loops
import pytest

from planner.assemble import (
    deploy,
    deployment_document,
    fill_budgets,
    fleet_documents,
    limit_row,
    limit_values,
    memory_rows,
    objective_document,
    objective_value,
    pool_documents,
    totals_document,
)
from planner.options import cost_table
from planner.payoff import payoffs
from planner.question import CLOSED_GAP, Solution
from planner.schema import documents as doc
from planner.schema.scenario import Scenario
from planner.solve import Settings, provenance

RELATIVE = 1e-6


def tables_of(scenario: Scenario) -> dict:
    return {name: cost_table(scenario, name) for name in scenario.workloads}


def near(value: float) -> object:
    return pytest.approx(value, rel=RELATIVE, abs=1e-9)


def assert_optimal(scenario: Scenario, best: oracles.Best | None, found: Solution) -> None:
    if best is None:
        assert (found.status, found.designs, found.value) == ("infeasible", (), None)
        return
    assert found.status == "optimal"
    assert found.value == near(best.value)
    assert found.gap <= CLOSED_GAP
    assert_holds(scenario, found, best.value)


def assert_one_optimal(scenario: Scenario, best: loops.Best, found: Solution) -> None:
    """As ``assert_optimal`` for one workload with private pools, whatever its layouts."""
    if not best.feasible:
        assert (found.status, found.designs, found.value) == ("infeasible", (), None)
        return
    assert found.status == "optimal"
    assert found.value == near(best.value)
    assert found.gap <= CLOSED_GAP
    ((design, rate),) = found.designs
    point = loops.point_of(scenario, design)
    assert loops.serves(scenario, point)
    assert loops.affordable(scenario, point, rate * (1 - RELATIVE))
    assert loops.figure(scenario, point, rate, scenario.objective) == near(best.value)
    asked = loops.question_rate(scenario)
    assert rate == (pytest.approx(asked, rel=RELATIVE) if asked is not None else near(best.rate_rps))


def assert_holds(scenario: Scenario, found: Solution, value: float) -> None:
    """The designs at their rates have the value and meet every limit, by the loops' arithmetic."""
    crew = oracles.Crew(scenario, [oracles.own(scenario, design) for design, _ in found.designs])
    rates = [rate for _, rate in found.designs]
    n = crew.serving(rates)
    assert crew.figure(scenario.objective, rates, n) == near(value)
    assert min(crew.margins(rates, n), default=0.0) >= -RELATIVE
    assert all(oracles.keeps_promises(scenario.workloads[one.workload].limits, one) for one in crew.designs)
    served = Counter()
    for one, rate in zip(crew.designs, rates, strict=True):
        served[one.workload] += rate
    assert max(Counter(one.workload for one in crew.designs).values()) <= scenario.max_shares
    asked = oracles.asked_rates(scenario)
    if asked is not None:
        assert dict(served) == pytest.approx(asked, rel=RELATIVE)
        return
    scale = sum(served.values()) / sum(workload.mix for workload in scenario.workloads.values())
    for name, workload in scenario.workloads.items():
        assert served[name] == pytest.approx(scale * workload.mix, rel=RELATIVE)
        assert served[name] >= (workload.limits.demand_rps or 0.0) * (1 - RELATIVE)


def plan_of(scenario: Scenario, tables: dict, solution: Solution) -> doc.Plan:
    """The document of a solution, without what only solving again can say."""
    deployed = fill_budgets(deploy(scenario, solution.designs, tables, solution.racks), tables)
    rows = (limit_row(limit, value, limit.is_met_exactly(value)) for limit, value in limit_values(deployed))
    bound, value = solution.best_bound, objective_value(deployed)
    return doc.Plan(
        status=solution.status,
        scenario=scenario.name,
        objective=objective_document(scenario, value, bound, abs(value - bound) / max(abs(value), 1e-12)),
        deployments=tuple(deployment_document(deployed, index) for index in range(len(deployed.servings))),
        pools=pool_documents(deployed),
        fleet=fleet_documents(deployed),
        totals=totals_document(deployed),
        limits=(
            *(row.replace(binding=row.slack <= RELATIVE * max(row.bound, RELATIVE)) for row in rows),
            *memory_rows(deployed),
        ),
        baselines=(),
        payoffs=payoffs(deployed, tables),
        infeasibility=(),
        assumptions=(),
        warnings=(),
        provenance=provenance(Settings(), 0.0, None),
    )

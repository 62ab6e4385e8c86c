"""Plans whose limits hold over a range of acceptance, and what that costs against a plan for the catalog's own.

Designs, rates and replicas are chosen before the acceptance is known, so every case must be served by the same fleet.
In all that a plan is judged by, fewer tokens per step are worse: interactivity falls, and busy time, held sequences and
energy per request rise. So the plan for the least tokens per step of all cases is the best plan for the range: no
design that breaks a limit there holds the range, and one that keeps it there keeps it in every case. Two questions are
refused, where a better case can break what a worse one keeps.
"""

from __future__ import annotations

import numpy as np

from planner.assemble import deploy, deployment_document, design_summary, fill_budgets, objective_value
from planner.cases import case_documents
from planner.errors import InputError
from planner.measure import device_figure
from planner.optimise import optimise
from planner.options import CostTable, cost_table
from planner.question import loss, share_of
from planner.rates import require_answerable
from planner.schema import documents as doc
from planner.schema.scenario import Scenario
from planner.words import STEP_PHASES

Tables = dict[str, CostTable]


def require_one_worst_case(scenario: Scenario, tables: Tables) -> None:
    """Refuse a range of acceptance where more tokens per step could break what fewer keep.

    Raises
    ------
    InputError
        With batches that must be filled (replicas that have less to do fill fewer), or with average power where a
        device works below its hot idle power.
    """
    if not scenario.acceptance_range:
        return
    if scenario.servers.min_batch_fill > 0:
        raise InputError(
            "servers.min_batch_fill: replicas that fill their batches at low acceptance may not at a higher one;"
            " leave it out beside an acceptance range"
        )
    limited = scenario.limits.power_budget_kw is not None or scenario.objective == "power"
    if scenario.power_basis == "average" and limited:
        cold = sorted(_below_idle(scenario, tables))
        if cold:
            raise InputError(
                f"power_basis average: {', '.join(cold)} works below its idle_power_w, so that better acceptance could"
                " raise its power; mend the catalog, or choose another --power-basis beside an acceptance range"
            )


def _below_idle(scenario: Scenario, tables: Tables) -> set[str]:
    found = set()
    for table in tables.values():
        for phase in STEP_PHASES:
            costs = table.phases[phase]
            idle_j = device_figure(scenario, table, phase, "idle_power_w") * costs.latency_s / costs.batch_sizes
            below = costs.available & (costs.energy_j < idle_j * (1 - 1e-9)) & table.runs(phase)
            found |= {costs.options[o].device for o in np.flatnonzero(below.any(axis=1))}
    return found


def robustness_of(
    scenario: Scenario, value: float | None, cases: tuple[doc.AcceptanceCaseResult, ...], seconds: float | None
) -> doc.Robustness:
    """Set a plan for a range beside the best plan for the catalog's own acceptance.

    Parameters
    ----------
    scenario
        With its range.
    value, cases
        The objective of the plan for the range and what each case makes of it; null and empty where there is none.
    seconds
        How long the solver may take for the other plan.
    """
    nominal = _nominal(scenario, seconds)
    price = None
    if value is not None and nominal is not None and nominal.objective_value is not None:
        price = loss(scenario.objective, nominal.objective_value, value)
    return doc.Robustness(
        cases=cases,
        nominal=nominal,
        price=price,
        price_share=None if price is None or nominal is None else share_of(price, nominal.objective_value),
    )


def _nominal(scenario: Scenario, seconds: float | None) -> doc.NominalPlan | None:
    """Find the best plan for the catalog's own acceptance, and what the cases make of it; null where none is proven."""
    own = scenario.replace(acceptance_range=())
    require_answerable(own)
    tables = {name: cost_table(own, name) for name in own.workloads}
    solution = optimise(own, tables, time_limit_s=seconds)
    if solution.status != "optimal":
        return None
    deployed = fill_budgets(deploy(own, solution.designs, tables, solution.racks), tables)
    return doc.NominalPlan(
        objective_value=objective_value(deployed),
        designs=tuple(design_summary(deployment_document(deployed, index)) for index in range(len(deployed.servings))),
        cases=case_documents(deployed, scenario.acceptance_range),
    )

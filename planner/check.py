"""Recompute a plan from its scenario, without any solver, and name everything that does not hold."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from planner.assemble import (
    NO_TOTALS,
    deploy,
    deployment_document,
    design_of,
    fleet_documents,
    limit_row,
    limit_values,
    memory_rows,
    objective_document,
    objective_value,
    pool_documents,
    totals_document,
)
from planner.cases import case_documents
from planner.evaluate import Design, request_metrics
from planner.fleet import (
    COUNT_TOLERANCE,
    Deployed,
    PoolUse,
    Racked,
    device_counts,
    devices_per_unit,
    serving_replicas,
    shared_sequences,
)
from planner.limits import TOLERANCE
from planner.options import CostTable, Option, models_of, speculations_of
from planner.payoff import payoffs
from planner.rates import fixed_rates
from planner.schema import documents as doc
from planner.schema.scenario import Scenario
from planner.words import DRAFT_PHASES, MAXIMIZED, PHASES, STEP_PHASES, Phase


def check(plan: doc.Plan, scenario: Scenario, tables: dict[str, CostTable] | None = None) -> list[str]:
    """List every violation of a plan: a broken limit, an impossible design, a figure that does not recompute.

    ``tables``: the costs of every workload, if they are at hand; they are made from the scenario, not by a solver.

    Returns
    -------
    list of str
        Empty if the plan holds.
    """
    if not plan.deployments:
        return _empty_problems(plan)
    served = list(dict.fromkeys(deployment.workload for deployment in plan.deployments))
    if served != list(scenario.workloads):
        return [f"deployments serve {', '.join(served)}; they must serve {', '.join(scenario.workloads)} in this order"]
    try:
        pools = {(m.deployment, m.phase): pool.models for pool in plan.pools for m in pool.phases}
        sets = pools if scenario.shared_pools else {}
        designs = [_design(scenario, deployment, index, sets) for index, deployment in enumerate(plan.deployments)]
        impossible = [problem for design, _ in designs for problem in _impossible_options(scenario, design)]
        if impossible:
            return impossible
        deployed = deploy(scenario, designs, racks=_racks(plan))
    except (KeyError, ValueError, IndexError) as error:
        return [f"a deployment cannot run: {error}"]
    return [
        *_not_on_offer(deployed),
        *_wrong_rates(deployed),
        *_broken_limits(deployed),
        *_too_many_shares(deployed),
        *_badly_housed(deployed),
        *_unfilled_batches(deployed),
        *_pool_problems(plan, deployed),
        *_figure_problems(plan, deployed),
        *_payoff_problems(plan, deployed, tables),
        *_limit_problems(plan, deployed),
        *_objective_problems(plan, deployed),
        *_case_problems(plan, deployed),
    ]


def _empty_problems(plan: doc.Plan) -> list[str]:
    found = []
    if plan.status not in ("infeasible", "no_incumbent"):
        found.append("the plan has no deployment")
    if plan.pools or plan.fleet or plan.limits or plan.baselines or plan.totals != NO_TOTALS:
        found.append("nothing is deployed, and yet the plan has figures")
    if plan.objective.value is not None:
        found.append(f"objective.value: {plan.objective.value}, and nothing is deployed")
    return found


def _not_on_offer(deployed: Deployed) -> list[str]:
    """Proposers that the scenario does not name, and draft lengths beyond its caps."""
    found = []
    for serving in deployed.servings:
        s = serving.design.speculation
        if s not in speculations_of(deployed.scenario, serving.design.workload):
            what = f"draft length {s.draft_length} of proposer {s.proposer}, verify tokens {s.verify_tokens}"
            found.append(f"{what}, layout {s.layout} is not on offer")
    return found


def _wrong_rates(deployed: Deployed) -> list[str]:
    """Rates that are not the ones asked for, where the question fixes them."""
    rates = fixed_rates(deployed.scenario)
    if rates is None:
        return []
    served = dict.fromkeys(rates, 0.0)
    for serving in deployed.servings:
        served[serving.design.workload] += serving.rate_rps
    return [
        f"{name}: {served[name]:g} requests/s, {rate:g} are asked for"
        for name, rate in rates.items()
        if not _close(served[name], rate)
    ]


def _racks(plan: doc.Plan) -> Racked:
    return {(rack, row.device): units for row in plan.fleet for rack, units in (row.racks or {}).items()}


def _design(
    scenario: Scenario, deployment: doc.Deployment, index: int, pools: dict[tuple[int, Phase], tuple[str, ...]]
) -> tuple[Design, float]:
    """Read a deployment back, with the model sets of its pools."""
    if deployment.draft_length == 0 and any(deployment.placements[phase] is not None for phase in DRAFT_PHASES):
        raise ValueError("a draft phase is placed at draft length 0")
    models = {phase: pools[index, phase] for phase in PHASES if (index, phase) in pools}
    return design_of(scenario, deployment, models), deployment.metrics.request_rate_rps


def _broken_limits(deployed: Deployed) -> list[str]:
    found = []
    for limit, value in limit_values(deployed):
        if value is None:
            found.append(f"{limit.name}: the plan has no value for it")
        elif limit.is_violated(value):
            found.append(f"{limit.name}: {value:.9g} {limit.unit} breaks the bound {limit.bound:.9g}")
    return found


def _impossible_options(scenario: Scenario, design: Design) -> list[str]:
    """Batches that do not fit into memory, and costs that are not known."""
    found, metrics = [], request_metrics(scenario, design)
    for phase in PHASES:
        use, option = metrics.phases[phase], design.options[phase]
        if use is None or option is None:
            continue
        if option.models:
            found += _wrong_model_set(scenario, design, phase, option)
        if use.sequences < option.batch_size:
            found.append(f"memory: {phase} on {option} holds {use.sequences:g} sequences")
        if not math.isfinite(use.busy_s + use.energy_j):
            found.append(f"{phase} on {option} has no known cost")
    return found


def _wrong_model_set(scenario: Scenario, design: Design, phase: Phase, option: Option) -> list[str]:
    """Name a shared pool without the phase's model, or whose weights leave no room for one batch of it."""
    own = models_of(scenario, phase, design.speculation)
    unknown = [name for name in option.models if name not in scenario.catalog.models]
    if not set(own) <= set(option.models) or unknown:
        return [f"{phase} runs {'+'.join(own)}, which is not in the pool of {'+'.join(option.models)}"]
    if shared_sequences(scenario, design, phase, option, option.models) < option.batch_size * (1 - TOLERANCE):
        return [f"memory: {phase} on {option} does not hold its batch beside {'+'.join(option.models)}"]
    return []


def _too_many_shares(deployed: Deployed) -> list[str]:
    most = deployed.scenario.max_shares
    counts = Counter(serving.design.workload for serving in deployed.servings)
    return [f"{name}: {count} designs, at most {most}" for name, count in counts.items() if count > most]


def _badly_housed(deployed: Deployed) -> list[str]:
    """Devices that stand in no rack, or in one that does not take their type."""
    scenario = deployed.scenario
    racks = scenario.servers.racks
    found = []
    for name, count in device_counts(scenario, deployed.pools).items() if racks else ():
        housed = sum(units for (_, device), units in deployed.racks.items() if device == name)
        if housed * devices_per_unit(scenario, name) < count.had * (1 - TOLERANCE):
            found.append(f"racks: {name} has {count.had:g} devices, of which some stand in no rack")
    for rack, device in deployed.racks:
        if rack not in racks or device not in (racks[rack].devices or (device,)):
            found.append(f"racks: {rack} does not take {device}")
    return found


def _unfilled_batches(deployed: Deployed) -> list[str]:
    fill = deployed.scenario.servers.min_batch_fill
    return [
        f"min_batch_fill: {pool.name} is filled to {pool.busy / serving_replicas(deployed, pool):.3g}"
        for pool in deployed.pools
        if any(member.phase in STEP_PHASES for member in pool.members)
        and pool.busy < fill * serving_replicas(deployed, pool) * (1 - TOLERANCE)
    ]


def _pool_problems(plan: doc.Plan, deployed: Deployed) -> list[str]:
    if len(plan.pools) != len(deployed.pools):
        return [f"the plan has {len(plan.pools)} pools, its designs need {len(deployed.pools)}"]
    found = []
    for written, needed in zip(plan.pools, deployed.pools, strict=True):
        found += _pool_problem(written, needed, deployed.scenario.counts == "integer")
    return found


def _pool_problem(written: doc.Pool, needed: PoolUse, integer: bool) -> list[str]:
    found = []
    if (written.device, written.tensor_parallel) != (needed.device, needed.tensor_parallel):
        found.append(f"pool {written.name}: its devices are not those of its phase")
    if written.replicas - written.spare_replicas < needed.need * (1 - TOLERANCE):
        found.append(f"pool {written.name}: {written.replicas:g} replicas, {needed.need:g} needed")
    if not _close(written.replicas, needed.replicas):
        found.append(f"pool {written.name}: {written.replicas:g} replicas are not the least, {needed.replicas:g}")
    if integer and abs(written.replicas - round(written.replicas)) > COUNT_TOLERANCE:
        found.append(f"pool {written.name}: {written.replicas:g} replicas are not whole")
    if not _close(written.devices, written.replicas * written.tensor_parallel):
        found.append(f"pool {written.name}: devices are not replicas × tensor_parallel")
    return found


def _figure_problems(plan: doc.Plan, deployed: Deployed) -> list[str]:
    written: dict[str, Any] = plan.model_dump(include={"deployments", "pools", "fleet", "totals"})
    computed = {
        "deployments": [deployment_document(deployed, index).model_dump() for index in range(len(plan.deployments))],
        "pools": [pool.model_dump() for pool in pool_documents(deployed)],
        "fleet": [row.model_dump() for row in fleet_documents(deployed)],
        "totals": totals_document(deployed).model_dump(),
    }
    return [problem for key, figures in computed.items() for problem in _differences(key, written[key], figures)]


def _payoff_problems(plan: doc.Plan, deployed: Deployed, tables: dict[str, CostTable] | None) -> list[str]:
    written, computed = plan.payoffs, payoffs(deployed, tables)
    return _differences("payoffs", [one.model_dump() for one in written], [one.model_dump() for one in computed])


def _limit_problems(plan: doc.Plan, deployed: Deployed) -> list[str]:
    """Rows of limits whose bound, value or slack does not recompute; what moving a limit buys needs a solver."""
    expected = [
        *(limit_row(limit, value, limit.is_met_exactly(value)) for limit, value in limit_values(deployed)),
        *memory_rows(deployed),
    ]
    if len(plan.limits) != len(expected):
        return [f"the plan has {len(plan.limits)} rows of limits, {len(expected)} are in force"]
    found = []
    for index, (row, other) in enumerate(zip(plan.limits, expected, strict=True)):
        # The slack is a small difference: rounding of the bound's size is not an error in it.
        same_slack = _near(row.slack, other.slack, abs(other.bound))
        # A limit with something left may bind all the same, which only solving again can tell.
        unknown = row.name != "memory" and not other.binding
        changes = {
            "slack": row.slack if same_slack else other.slack,
            "binding": row.binding if unknown else other.binding,
        }
        left_out = {"marginal_value", "marginal_delta"}
        found += _differences(
            f"limits.{index}", row.model_dump(exclude=left_out), other.replace(**changes).model_dump(exclude=left_out)
        )
    return found


def _case_problems(plan: doc.Plan, deployed: Deployed) -> list[str]:
    """Limits that a case of acceptance breaks, rates that it does not let the replicas carry, and wrong figures."""
    if not deployed.scenario.acceptance_range:
        return [] if plan.robustness is None else ["the plan has a range of acceptance, its scenario has none"]
    computed, found = case_documents(deployed), []
    for one in computed:
        if one.violates is None or one.carried_share is None or one.carried_share < 1.0 - TOLERANCE:
            found.append(f"at acceptance {one.case} the replicas do not carry the rates")
        found += [f"at acceptance {one.case} {name} does not hold" for name in one.violates or ()]
    written = () if plan.robustness is None else plan.robustness.cases
    pairs = [case.model_dump() for case in written], [case.model_dump() for case in computed]
    return [*found, *(_differences("robustness.cases", *pairs) if written else ())]


def _near(a: float | None, b: float | None, size: float) -> bool:
    return a == b if a is None or b is None else abs(a - b) <= TOLERANCE * size


def _objective_problems(plan: doc.Plan, deployed: Deployed) -> list[str]:
    value, written = objective_value(deployed), plan.objective
    expected = objective_document(deployed.scenario, value, written.best_bound, written.gap)
    found = _differences("objective", written.model_dump(), expected.model_dump())
    if plan.scenario != deployed.scenario.name:
        found.append(f"the plan is for {plan.scenario}, not for {deployed.scenario.name}")
    if plan.status not in ("optimal", "feasible"):
        found.append(f"the plan calls itself {plan.status}, and yet has deployments")
    if value is None or written.best_bound is None or written.gap is None:
        return [*found, "the plan calls itself optimal without a bound"] if plan.status == "optimal" else found
    beyond = value - written.best_bound if written.name in MAXIMIZED else written.best_bound - value
    if beyond > TOLERANCE * abs(value):
        found.append(f"objective.best_bound: {written.best_bound:.9g} is beaten by the value {value:.9g}")
    gap = abs(value - written.best_bound) / max(abs(value), 1e-12)
    if abs(gap - written.gap) > TOLERANCE:
        found.append(f"objective.gap: {written.gap:g}, computed {gap:g}")
    if plan.status == "optimal" and gap > TOLERANCE:
        found.append(f"the plan calls itself optimal with a gap of {gap:g}")
    return found


def _differences(key: str, written: Any, computed: Any) -> list[str]:  # noqa: ANN401
    """Compare two documents leaf by leaf."""
    if isinstance(written, dict) and isinstance(computed, dict):
        return [
            problem
            for name in {**written, **computed}
            for problem in _differences(f"{key}.{name}", written.get(name), computed.get(name))
        ]
    if isinstance(written, (tuple, list)) and isinstance(computed, (tuple, list)) and len(written) == len(computed):
        return [
            problem
            for index, pair in enumerate(zip(written, computed, strict=True))
            for problem in _differences(f"{key}.{index}", *pair)
        ]
    same = (
        _close(written, computed) if isinstance(written, float) and isinstance(computed, float) else written == computed
    )
    return [] if same else [f"{key}: {written}, computed {computed}"]


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-12)

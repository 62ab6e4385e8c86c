"""What each case of acceptance makes of a plan: the same designs, rates and replicas, other tokens per step."""

from __future__ import annotations

from dataclasses import replace

from planner.assemble import deploy, limit_values, power_document
from planner.fleet import Deployed, serving_replicas
from planner.limits import TOLERANCE, Limit
from planner.schema import documents as doc
from planner.schema.scenario import AcceptanceCase
from planner.tokens import cases_of


def in_case(deployed: Deployed, case: AcceptanceCase) -> Deployed | None:
    """Give a deployment at one case of acceptance, its replicas as they are; null where the curve does not reach.

    The replicas may then be too few: see ``carried_share``.
    """
    scenario = deployed.scenario.replace(acceptance_range=(case,))
    try:
        again = deploy(scenario, [(serving.design, serving.rate_rps) for serving in deployed.servings])
    except IndexError:
        return None
    pairs = zip(again.pools, deployed.pools, strict=True)
    return replace(again, pools=tuple(replace(new, replicas=old.replicas) for new, old in pairs), racks=deployed.racks)


def carried_share(deployed: Deployed) -> float:
    """Share of the rates that the replicas at work carry and hold, spares left out: below 1 they are too few."""
    return min(serving_replicas(deployed, pool) / pool.need for pool in deployed.pools)


def violated(deployed: Deployed, share: float) -> tuple[Limit, ...]:
    """List the limits that a deployment breaks; a demand where its replicas carry less than all of it."""
    short = share < 1.0 - TOLERANCE
    return tuple(
        limit
        for limit, value in limit_values(deployed)
        if value is None or limit.is_violated(value) or (short and limit.name == "demand")
    )


def case_document(deployed: Deployed, case: AcceptanceCase) -> doc.AcceptanceCaseResult:
    """Write what a deployment is at one case."""
    there = in_case(deployed, case)
    if there is None:
        return doc.AcceptanceCaseResult(case=case, services=(), power_w=None, carried_share=None, violates=None)
    share = carried_share(there)
    services = tuple(
        doc.CaseService(
            workload=serving.design.workload,
            tokens_per_step=serving.metrics.tokens_per_step,
            interactivity_tps=serving.metrics.interactivity_tps,
            ttft_s=serving.metrics.ttft_s,
            energy_j_per_token=serving.metrics.energy_j / there.scenario.workloads[serving.design.workload].osl_tokens,
        )
        for serving in there.servings
    )
    return doc.AcceptanceCaseResult(
        case=case,
        services=services,
        power_w=power_document(there),
        carried_share=share,
        violates=tuple(dict.fromkeys(limit.name for limit in violated(there, share))),
    )


def case_documents(deployed: Deployed, cases: tuple[AcceptanceCase, ...] = ()) -> tuple[doc.AcceptanceCaseResult, ...]:
    """Write what a deployment is at every case of its scenario, or at those given."""
    return tuple(case_document(deployed, case) for case in cases or cases_of(deployed.scenario))

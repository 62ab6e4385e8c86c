"""What stands beside a plan: plans with other placements, and what a range of acceptance does to it."""

from __future__ import annotations

from collections.abc import Sequence

from planner.report.numbers import LIMIT_WORDS, figure, in_unit, percent
from planner.report.sentences import listed, phase_words
from planner.report.tables import Table
from planner.schema import documents as doc
from planner.words import MAXIMIZED, PHASES


def alternatives_sentences(plan: doc.Plan) -> list[str]:
    """Say what the next best placement gives up, and where there are fewer than were asked for."""
    found = plan.alternatives
    if found is None:
        return []
    if not found.plans:
        return ["no other placement meets the limits" if found.proven else "the time ended before any alternative"]
    one = found.plans[0]
    gives = f"gives up {given_up(plan, one)}" if one.loss > 0 else "is as good"
    text = f"the next best placement ({elsewhere(plan, one.deployments)}) {gives}"
    if len(found.plans) < found.asked:
        text += "; there are no more" if found.proven else "; the time ended before more were found"
    return [text]


def given_up(plan: doc.Plan, other: doc.Alternative) -> str:
    """Say how much of the objective an alternative gives up."""
    return f"{in_unit(other.loss, plan.objective.unit)} ({percent(other.loss_share)})"


def elsewhere(plan: doc.Plan, others: Sequence[doc.Deployment]) -> str:
    """Say which phases are elsewhere than in the plan, and where."""
    found = []
    for mine, other in zip(plan.deployments, others, strict=True):
        moved: dict[str, list[str]] = {}
        for phase in PHASES:
            here, there = mine.placements[phase], other.placements[phase]
            if (here and here.device) != (there and there.device):
                moved.setdefault(there.device if there else "nothing", []).append(phase_words(phase))
        words = "; ".join(f"{listed(phases)} on {device}" for device, phases in moved.items())
        if words:
            found.append(f"{mine.workload}: {words}" if len(plan.deployments) > 1 else words)
    return "; ".join(found).replace("on nothing", "left out")


def alternatives_table(plan: doc.Plan) -> Table | None:
    """Set the plan beside those with other placements."""
    found = plan.alternatives
    if found is None or not found.plans:
        return None
    basis = _basis(plan)
    rows = [_row("1", plan, plan.objective.value, plan.deployments, plan.totals, basis, "this plan")]
    for rank, one in enumerate(found.plans, start=2):
        where = elsewhere(plan, one.deployments)
        rows.append(_row(str(rank), plan, one.objective_value, one.deployments, one.totals, basis, where))
    shown = ("tok/s",) if plan.objective.name == "throughput" else (plan.objective.name, "tok/s")
    headers = ("", *shown, "D", "per user", "TTFT", "kW", "elsewhere")
    note = f"Best first, each with another placement; kW is {basis} power."
    return Table("Alternatives", headers, tuple(rows), note=note)


def _basis(plan: doc.Plan) -> str:
    """Choose the power that is shown: the budget's basis, else provisioned where it is known."""
    named = [row.basis for row in plan.limits if row.name == "power_budget" and row.basis and not row.rack]
    known = [basis for basis in ("provisioned", "forward") if plan.totals.power_w.model_dump()[basis] is not None]
    return named[0] if named else known[0]


def _row(
    rank: str,
    plan: doc.Plan,
    value: float | None,
    deployments: Sequence[doc.Deployment],
    totals: doc.Totals,
    basis: str,
    where: str,
) -> tuple[str, ...]:
    watts = totals.power_w.model_dump()[basis]
    own = () if plan.objective.name == "throughput" else (in_unit(value, plan.objective.unit),)
    return (
        rank,
        *own,
        figure(totals.throughput_tps),
        "/".join(dict.fromkeys(str(deployment.draft_length) for deployment in deployments)),
        figure(min(deployment.metrics.interactivity_tps for deployment in deployments)),
        in_unit(max(deployment.metrics.ttft_s for deployment in deployments), "s"),
        figure(None if watts is None else watts * 1e-3),
        where,
    )


# ------------------------------------------------------------------------------------------------- robustness


def case_words(case: float | str) -> str:
    """Write a case of acceptance.

    >>> case_words(0.9), case_words("code")
    ('× 0.9', 'code')
    """
    return case if isinstance(case, str) else f"× {case:g}"


def robustness_sentences(plan: doc.Plan) -> list[str]:
    """Say over which range the limits hold, what that costs, and what the plan without it would break."""
    found = plan.robustness
    if found is None or not found.cases:
        return []
    over = listed([case_words(one.case) for one in found.cases])
    texts = [f"holds at acceptance {over}; the figures are those of the worst case"]
    if found.nominal is None:
        return [*texts, "no plan for the catalog's own acceptance is proven, so the price is not known"]
    if found.price is not None:
        texts.append(_price(plan, found))
    broken = [f"at {case_words(one.case)} it {_breaks(one)}" for one in found.nominal.cases if not _holds(one)]
    holds = "the plan for the catalog's own acceptance holds over the range too"
    texts.append(f"the plan for the catalog's own acceptance does not hold: {'; '.join(broken)}" if broken else holds)
    return texts


def _price(plan: doc.Plan, found: doc.Robustness) -> str:
    assert found.price is not None  # the caller knows it
    if found.price == 0:
        return "that costs nothing: the best plan for the catalog's own acceptance is no better"
    more = "less" if plan.objective.name in MAXIMIZED else "more"
    where = "" if found.price > 0 else ", since every case is better than the catalog's own"
    more = more if found.price > 0 else {"less": "more", "more": "less"}[more]
    amount = f"{in_unit(abs(found.price), plan.objective.unit)} ({percent(abs(found.price_share or 0.0))})"
    return f"the price is {amount} {more} than the best plan for the catalog's own acceptance{where}"


def _holds(one: doc.AcceptanceCaseResult) -> bool:
    return one.violates == () and (one.carried_share or 0.0) >= 1.0 - 1e-6


def _breaks(one: doc.AcceptanceCaseResult) -> str:
    if one.violates is None or one.carried_share is None:
        return "has a draft length that the curve does not cover"
    parts = [f"breaks the {listed([LIMIT_WORDS[name] for name in one.violates])}"] if one.violates else []
    if one.carried_share < 1.0 - 1e-6:
        parts.append(f"carries {percent(one.carried_share)} of its rate")
    return " and ".join(parts)


def cases_tables(plan: doc.Plan) -> list[Table]:
    """Show what every case makes of the plan; of the one for the catalog's own acceptance where it does not hold."""
    found = plan.robustness
    if found is None or not found.cases:
        return []
    tables = [_cases("Over the range of acceptance", found.cases)]
    if found.nominal is not None and not all(map(_holds, found.nominal.cases)):
        tables.append(_cases("The plan for the catalog's own acceptance", found.nominal.cases))
    return tables


def _cases(title: str, cases: Sequence[doc.AcceptanceCaseResult]) -> Table:
    rows = []
    for one in cases:
        if one.carried_share is None or one.power_w is None:
            rows.append((case_words(one.case), *("–",) * 5, _breaks(one)))
            continue
        users = [service.interactivity_tps for service in one.services]
        tokens = "/".join(dict.fromkeys(figure(service.tokens_per_step, 3) for service in one.services))
        energy = max(service.energy_j_per_token for service in one.services)
        cells = (tokens, figure(min(users)), figure(energy), in_unit(one.power_w.forward, "W"))
        carried = "all" if one.carried_share >= 1.0 - 1e-6 else percent(one.carried_share)
        rows.append(
            (case_words(one.case), *cells, carried, ", ".join(LIMIT_WORDS[name] for name in one.violates or ()))
        )
    headers = ("case", "tok/step", "per user", "J/token", "forward", "carries", "breaks")
    return Table(title, headers, tuple(rows), note="Same designs, request rate and replicas in every case.")


def nominal_sentence(plan: doc.Plan) -> list[str]:
    """Say, where no plan holds over the range, whether one exists for the catalog's own acceptance."""
    found = plan.robustness
    if found is None or found.cases or found.nominal is None:
        return []
    value = in_unit(found.nominal.objective_value, plan.objective.unit)
    return [f"Without the range of acceptance a plan exists, with {plan.objective.name} {value}."]

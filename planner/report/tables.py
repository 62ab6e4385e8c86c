"""The tables of a plan, as titles, headers and cells of text; terminal and Markdown draw the same."""

from __future__ import annotations

from dataclasses import dataclass

from planner.report.numbers import figure, in_unit, percent
from planner.report.sentences import limit_name, marginal_words, phase_words
from planner.schema import documents as doc
from planner.words import PHASES


@dataclass(frozen=True)
class Table:
    """Headers and rows of text; ``left`` columns are aligned left, and the last where it holds words."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    note: str = ""

    def is_left(self, index: int) -> bool:
        """Whether a column is aligned left, the others right."""
        last = index == len(self.headers) - 1
        return index < self.left or (last and any(any(map(str.isalpha, row[-1])) for row in self.rows))


def counts_are_slots(plan: doc.Plan) -> bool:
    """Whether the catalog counts request slots, not devices."""
    return any(row.devices is None for row in plan.fleet)


def placements(plan: doc.Plan) -> Table:
    """Which phase on which device type, how many, how busy, and its share of the energy."""
    slots = counts_are_slots(plan)
    several = len(plan.deployments) > 1
    pools = {(m.deployment, m.phase): pool for pool in plan.pools for m in pool.phases}
    rows = []
    for index, deployment in enumerate(plan.deployments):
        for phase in PHASES:
            place = deployment.placements[phase]
            if place is None:
                continue
            pool = pools[index, phase]
            rows.append(
                (
                    (f"{deployment.workload}: " if several else "") + phase_words(phase),
                    place.device,
                    str(place.tensor_parallel),
                    str(place.batch_size),
                    *((figure(pool.replicas),) if slots else (figure(pool.replicas), figure(pool.devices))),
                    percent(place.utilization),
                    percent(deployment.metrics.energy_share[phase]),
                )
            )
    counted = ("slots",) if slots else ("replicas", "devices")
    headers = ("phase", "device", "tp", "batch", *counted, "busy", "energy")
    note = "Slots are requests in service at once, by phase; they do not add up to devices." if slots else ""
    return Table("Placements", headers, tuple(rows), left=2, note=note)


def fleet(plan: doc.Plan) -> Table | None:
    """Devices to have, by type; nothing where the catalog counts request slots."""
    if not plan.fleet or counts_are_slots(plan):
        return None
    rows = tuple(
        (
            row.device,
            figure(row.devices),
            "–" if row.available is None else str(row.available),
            in_unit(row.provisioned_w, "W"),
            figure(row.usd_per_hour),
        )
        for row in plan.fleet
    )
    return Table("Fleet", ("device", "devices", "available", "provisioned", "USD/h"), rows)


def limits(plan: doc.Plan) -> Table:
    """Which limits bind, and what more of each would buy."""
    several = len({d.workload for d in plan.deployments}) > 1
    rows = []
    for row in plan.limits:
        rows.append(
            (
                limit_name(row, several),
                in_unit(row.bound, row.unit),
                in_unit(row.value, row.unit),
                {True: "yes", False: "no", None: "?"}[row.binding],
                marginal_words(row, plan.objective.unit),
            )
        )
    note = "A limit binds if dropping it would give a better plan." if rows else "No limit is set."
    return Table("Limits", ("limit", "bound", "plan has", "binds", "moved"), tuple(rows), note=note)


def baselines(plan: doc.Plan) -> Table | None:
    """Compare the usual ways to deploy with the plan."""
    if not plan.baselines:
        return None
    totals = plan.totals
    worst = min(deployment.metrics.interactivity_tps for deployment in plan.deployments)
    ttft = max(deployment.metrics.ttft_s for deployment in plan.deployments)
    rows = [
        ("this plan", figure(totals.throughput_tps), figure(worst), in_unit(ttft, "s"), figure(totals.tps_per_kw), "")
    ]
    rows += [
        (
            row.name,
            figure(row.throughput_tps),
            figure(row.interactivity_tps),
            in_unit(row.ttft_s, "s"),
            figure(row.tps_per_kw),
            ", ".join(row.violates),
        )
        for row in plan.baselines
    ]
    headers = ("way", "tok/s", "per user", "TTFT", "per kW", "cannot meet")
    note = "A way that cannot meet a limit shows the best interactivity that it reaches."
    return Table("Baselines", headers, tuple(rows), note=note if any(row.violates for row in plan.baselines) else "")


def evaluation_figures(evaluation: doc.Evaluation) -> Table:
    """Write the metrics of one given design."""
    m = evaluation.metrics
    watts = evaluation.power_w.model_dump()
    rows = [
        ("tokens per step", figure(m.tokens_per_step), ""),
        ("step time", in_unit(m.step_time_s, "s"), ""),
        ("interactivity", figure(m.interactivity_tps), "tok/s per user"),
        ("TPOT", in_unit(m.tpot_s, "s"), ""),
        ("TTFT, unloaded", in_unit(m.ttft_s, "s"), ""),
        ("request rate", figure(m.request_rate_rps), "requests/s"),
        ("throughput", figure(m.throughput_tps), "output tok/s"),
        ("energy per request", figure(m.energy_j_per_request), "J"),
        ("energy per token", figure(m.energy_j_per_token), "J"),
        ("throughput per kW", figure(m.tps_per_kw), "tok/s per kW of forward power"),
        *((f"power, {basis}", in_unit(value, "W"), "") for basis, value in watts.items()),
    ]
    return Table("Metrics", ("metric", "value", "unit"), tuple(rows))


def evaluation_placements(evaluation: doc.Evaluation) -> Table:
    """Write where each phase of one given design runs."""
    rows = []
    for phase in PHASES:
        place = evaluation.placements[phase]
        if place is not None:
            cells = (place.device, str(place.tensor_parallel), str(place.batch_size), figure(place.replicas))
            rows.append((phase_words(phase), *cells, percent(evaluation.metrics.energy_share[phase])))
    return Table("Placements", ("phase", "device", "tp", "batch", "replicas", "energy"), tuple(rows), left=2)

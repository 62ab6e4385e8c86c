"""The tables of a plan, as titles, headers and cells of text; terminal and Markdown draw the same."""

from __future__ import annotations

from dataclasses import dataclass

from planner.report.numbers import LIMIT_WORDS, figure, in_unit, percent
from planner.report.sentences import limit_name, marginal_words, phase_words
from planner.schema import documents as doc
from planner.words import PHASES


@dataclass(frozen=True)
class Table:
    """Headers and rows of text; ``left`` columns are aligned left, and the ``last`` ones where they hold words.

    The first ``keys`` columns hold dotted keys, which may be broken after a dot.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    note: str = ""
    last: int = 1
    keys: int = 0

    def is_left(self, index: int) -> bool:
        """Whether a column is aligned left, the others right."""
        last = index >= len(self.headers) - self.last
        return index < self.left or (last and any(any(map(str.isalpha, row[index])) for row in self.rows))


def counts_are_slots(plan: doc.Plan) -> bool:
    """Whether the catalog counts request slots, not devices."""
    return any(row.devices is None for row in plan.fleet)


def placements(plan: doc.Plan) -> list[Table]:
    """Which phase on which device type, how many, how busy, and its share of the energy; a table per deployment."""
    return [_placement_table(plan, index) for index in range(len(plan.deployments))]


def _placement_table(plan: doc.Plan, index: int) -> Table:
    slots, deployment = counts_are_slots(plan), plan.deployments[index]
    pools = {member.phase: pool for pool in plan.pools for member in pool.phases if member.deployment == index}
    rows = []
    for phase in PHASES:
        place = deployment.placements[phase]
        if place is not None:
            pool = pools[phase]
            cells = (phase_words(phase), place.device, str(place.tensor_parallel), str(place.batch_size))
            counts = (figure(pool.replicas),) if slots else (figure(pool.replicas), figure(pool.devices))
            energy = percent(deployment.metrics.energy_share[phase])
            rows.append((*cells, *counts, percent(place.utilization), energy))
    counted = ("slots",) if slots else ("replicas", "devices")
    headers = ("phase", "device", "tp", "batch", *counted, "busy", "energy")
    title = "Placements" if len(plan.deployments) == 1 else f"Placements: {deployment_name(plan, index)}"
    note = "Slots are requests in service at once, by phase; they do not add up to devices." if slots else ""
    return Table(title, headers, tuple(rows), left=2, note=note)


def deployment_name(plan: doc.Plan, index: int) -> str:
    """Name a deployment by its workload, numbered where the workload has several."""
    name = plan.deployments[index].workload
    mine = [position for position, other in enumerate(plan.deployments) if other.workload == name]
    return name if len(mine) == 1 else f"{name}, share {mine.index(index) + 1}"


def service(plan: doc.Plan) -> Table | None:
    """Say what each deployment's users see; nothing where there is one, which the sentences describe."""
    if len(plan.deployments) == 1:
        return None
    rows = []
    for index, deployment in enumerate(plan.deployments):
        m = deployment.metrics
        rows.append(
            (
                deployment_name(plan, index),
                percent(deployment.share),
                str(deployment.draft_length),
                figure(m.interactivity_tps),
                in_unit(m.ttft_s, "s"),
                figure(m.request_rate_rps),
                figure(m.throughput_tps),
                figure(m.tps_per_kw),
            )
        )
    headers = ("deployment", "share", "D", "per user", "TTFT", "requests/s", "tok/s", "per kW")
    return Table("Service", headers, tuple(rows), note="Share of the workload's requests; D is the draft length.")


def pools(plan: doc.Plan) -> Table | None:
    """Pools that serve several phases; nothing where every pool serves one."""
    if all(len(pool.phases) == 1 for pool in plan.pools):
        return None
    rows = []
    for pool in plan.pools:
        served = dict.fromkeys((deployment_name(plan, m.deployment), phase_words(m.phase)) for m in pool.phases)
        several = len(plan.deployments) > 1
        words = ", ".join(f"{name}: {phase}" if several else phase for name, phase in served)
        rows.append((pool.name, figure(pool.replicas), figure(pool.devices), percent(pool.utilization), words))
    return Table("Pools", ("pool", "replicas", "devices", "busy", "serves"), tuple(rows))


def fleet(plan: doc.Plan) -> Table | None:
    """Devices to have, by type; nothing where the catalog counts request slots."""
    if not plan.fleet or counts_are_slots(plan):
        return None
    by_node = any(row.nodes is not None for row in plan.fleet)
    stocked = any(row.owned is not None for row in plan.fleet)
    rows = tuple(
        (
            row.device,
            *((figure(row.nodes),) if by_node else ()),
            figure(row.devices),
            *((figure(row.owned), figure(row.bought), figure(row.available)) if stocked else ()),
            in_unit(row.provisioned_w, "W"),
            figure(row.usd_per_hour),
        )
        for row in plan.fleet
    )
    stock = ("owned", "to buy", "available") if stocked else ()
    headers = ("device", *(("nodes",) if by_node else ()), "devices", *stock, "provisioned", "USD/h")
    return Table("Fleet", headers, rows)


def racks(plan: doc.Plan) -> Table | None:
    """Say what stands in each rack; nothing where the scenario names none."""
    limits = {row.rack: row for row in plan.limits if row.rack is not None}
    if not limits:
        return None
    rows = []
    for rack, limit in limits.items():
        inside = ((row.device, (row.racks or {}).get(rack, 0.0), row.nodes is not None) for row in plan.fleet)
        words = ", ".join(f"{figure(n)} {'nodes' if nodes else 'devices'} {name}" for name, n, nodes in inside if n)
        rows.append((rack, in_unit(limit.value, "W"), in_unit(limit.bound, "W"), words or "empty"))
    return Table("Racks", ("rack", "provisioned", "limit", "holds"), tuple(rows))


def limits(plan: doc.Plan) -> Table:
    """Which limits bind, and what more of each would buy; memory only where it sizes a pool."""
    several = len({d.workload for d in plan.deployments}) > 1
    rows = []
    for row in plan.limits:
        if row.name == "memory" and not row.binding:
            continue
        rows.append(
            (
                limit_name(row, several),
                in_unit(row.bound, row.unit),
                in_unit(row.value, row.unit),
                {True: "yes", False: "no", None: "?"}[row.binding],
                marginal_words(row, plan.objective.unit),
            )
        )
    note = "A limit binds if nothing of it is left, or if dropping it would give a better plan."
    note = note if rows else "No limit is set."
    return Table("Limits", ("limit", "bound", "plan has", "binds", "moved"), tuple(rows), note=note)


def baselines(plan: doc.Plan) -> Table | None:
    """Compare the usual ways to deploy with the plan: its objective where no other column shows it, and its service."""
    if not plan.baselines:
        return None
    goal, totals = plan.objective, plan.totals
    shown = goal.name in ("throughput", "interactivity")
    unit, scale = ("kW", 1e-3) if goal.name == "power" else (goal.unit, 1.0)

    def row(name: str, value: float | None, *cells: str) -> tuple[str, ...]:
        objective = () if shown else (figure(None if value is None else value * scale),)
        return (name, *objective, *cells)

    worst = min(deployment.metrics.interactivity_tps for deployment in plan.deployments)
    ttft = max(deployment.metrics.ttft_s for deployment in plan.deployments)
    own = (figure(totals.throughput_tps), figure(worst), in_unit(ttft, "s"), figure(totals.tps_per_kw), "")
    rows = [row("this plan", goal.value, *own)]
    for way in plan.baselines:
        service = (figure(way.interactivity_tps), in_unit(way.ttft_s, "s"), figure(way.tps_per_kw))
        rows.append(
            row(
                way.name,
                way.objective_value,
                figure(way.throughput_tps),
                *service,
                ", ".join(LIMIT_WORDS[name] for name in way.violates),
            )
        )
    headers = ("way", *(() if shown else (unit,)), "tok/s", "per user", "TTFT", "per kW", "cannot meet")
    note = "A way that cannot meet a limit shows the best interactivity that it reaches."
    return Table("Baselines", headers, tuple(rows), note=note if any(way.violates for way in plan.baselines) else "")


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

"""The usual ways to deploy, each with its front and one design to draw curves of."""

from __future__ import annotations

from dataclasses import dataclass

from planner.assemble import design_of
from planner.evaluate import Design
from planner.front.recipe import exact_front
from planner.review.curves import Commands, curve_of, with_draft_speed
from planner.schema import documents as doc
from planner.schema.front import Front, FrontPoint
from planner.schema.review import Speed, Way, WayName, WayPoint
from planner.schema.scenario import Scenario
from planner.whatif import Pinned, tables_of
from planner.words import Phase

FASTER = (0.5, 0.2)


@dataclass(frozen=True)
class Drawn:
    """A way to deploy with the design that its curve is of; null where nothing is proposed."""

    name: WayName
    design: Design | None
    front: tuple[WayPoint, ...]
    is_plan: bool = False

    @property
    def devices(self) -> dict[Phase, str]:
        """The device type of each phase that runs."""
        if self.design is None:
            return {}
        return {phase: option.device for phase, option in self.design.options.items() if option is not None}


def drawn_ways(
    scenario: Scenario, workload: str, ways: list[Pinned], plan: doc.Plan | None, fronts: bool
) -> list[Drawn]:
    """Choose the design of each way, and put the plan's own beside them.

    The design is taken from the way's front of a large fleet: the one of least energy that keeps what the workload's
    users are promised, else the fastest; without a promise the knee. Where a way has the devices of the plan, it is
    the plan's design. ``fronts``: whether the ways' fronts are comparable with the scenario's own.
    """
    planned = (
        [design_of(scenario, one) for one in plan.deployments if one.workload == workload] if plan is not None else []
    )
    own = Drawn("this_plan", planned[0], (), is_plan=True) if planned else None
    found = [_drawn(scenario, workload, way, fronts) for way in ways]
    if own is None:
        return found
    same = [way.name for way in found if way.design is not None and way.devices == own.devices]
    named = [Drawn(way.name, own.design, way.front, is_plan=True) if way.name in same[:1] else way for way in found]
    return named if same or own.design is None or own.design.speculation.proposer is None else [*named, own]


def _drawn(scenario: Scenario, workload: str, way: Pinned, fronts: bool) -> Drawn:
    whole = exact_front(without_floors(way.scenario), tables=tables_of(way)) if fronts else None
    points = tuple(_way_point(point) for point in whole.points) if whole is not None else ()
    if not way.speculates:
        return Drawn(way.name, None, points)
    best = _to_draw(scenario, workload, _large_fleet_of(way, workload))
    return Drawn(way.name, None if best is None else design_of(scenario, best.deployment), points)


def _way_point(point: FrontPoint) -> WayPoint:
    return WayPoint(
        interactivity_tps=point.interactivity_tps,
        energy_j_per_token=point.energy_j_per_token,
        draft_length=point.deployment.draft_length,
    )


def without_floors(scenario: Scenario) -> Scenario:
    """Give the scenario without interactivity floors: what a lower one would give is what a front is looked at for."""
    workloads = {
        name: workload.replace(limits=workload.limits.replace(interactivity_floor_tps=None))
        for name, workload in scenario.workloads.items()
    }
    return scenario.replace(workloads=workloads)


def _large_fleet_of(way: Pinned, workload: str) -> Front:
    """Give the front of one workload of a way, in a large fleet of private pools, where something is proposed.

    Within the TTFT ceiling, unless nothing keeps to it.
    """
    request = way.scenario.workloads[workload]
    limits = request.limits.replace(interactivity_floor_tps=None, demand_rps=None)
    for kept in (limits, limits.replace(ttft_ceiling_ms=None)):
        alone = way.scenario.replace(workloads={workload: request.replace(limits=kept)}, shared_pools=False)
        front = exact_front(alone, tables=tables_of(Pinned(way.name, alone, way.speculates)))
        if front.points:
            break
    return front


def _to_draw(scenario: Scenario, workload: str, front: Front) -> FrontPoint | None:
    floor = scenario.workloads[workload].limits.interactivity_floor_tps
    if not front.points:
        return None
    if floor is None:
        return front.points[len(front.points) // 2 if front.knee is None else front.knee]
    return next((point for point in front.points if point.interactivity_tps >= floor), front.points[-1])


def way_document(scenario: Scenario, way: Drawn, commands: Commands) -> Way:
    """Write a way with its curve."""
    curve = None if way.design is None else curve_of(scenario, way.design, commands)
    return Way(name=way.name, is_plan=way.is_plan, devices=way.devices, front=way.front, curve=curve)


def speed_documents(scenario: Scenario, way: Drawn, commands: Commands) -> tuple[Speed, ...]:
    """Write the curve of a way at other speeds of its drafter; none where the roofline costs the drafter."""
    if way.design is None:
        return ()
    found = []
    for ms in scenario.report.draft_ms_per_token or _usual_speeds(scenario, way.design):
        faster = with_draft_speed(scenario, way.design, ms)
        if faster is not None:
            changed, setting = faster
            curve = curve_of(changed, way.design, commands, setting)
            found.append(Speed(draft_ms_per_token=ms, way=way.name, curve=curve))
    return tuple(found)


def _usual_speeds(scenario: Scenario, design: Design) -> tuple[float, ...]:
    """Half and a fifth of the drafter's own time per token, at the design's draft length."""
    from planner.options import cost_table

    table = cost_table(scenario, design.workload, [design.speculation])
    costs, option = table.phases["draft_decode"], design.options["draft_decode"]
    if option is None:
        return ()
    whole_s = float(costs.latency_s[costs.options.index(option.bare), 0])
    own_ms = whole_s * 1e3 / design.speculation.draft_length
    return tuple(float(f"{own_ms * factor:.3g}") for factor in FASTER)

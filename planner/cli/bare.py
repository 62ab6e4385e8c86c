"""Bare ``plan``: the best plan for a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.cli import EXITS
from planner.cli.common import (
    command_line,
    deliver,
    interruptible,
    load,
    place_overrides,
    progress,
    require_output,
    tell_warnings,
)
from planner.read.load import Loaded
from planner.read.overrides import Override, parse_assignments
from planner.read.yaml_tree import Mark
from planner.report.views import plan_view
from planner.schema.scenario import Scenario
from planner.solve import Settings, solve

_FIELDS = {
    "budget_kw": "limits.power_budget_kw",
    "budget_usd_per_hour": "limits.cost_budget_usd_per_hour",
    "objective": "objective",
    "counts": "counts",
    "power_basis": "power_basis",
    "max_draft_length": "max_draft_length",
    "acceptance_range": "acceptance_range",
}
_SERVICE = {
    "min_tps": "interactivity_floor_tps",
    "max_ttft_ms": "ttft_ceiling_ms",
    "demand_rps": "demand_rps",
}


def answer(
    scenario: str,
    sets: tuple[str, ...],
    as_json: bool,
    output: str | None,
    places: tuple[str, ...],
    time_limit_s: float | None,
    plain: bool,
    alternatives: int,
    **flags: Any,  # noqa: ANN401
) -> int:
    """Solve, print, and give the exit code."""
    require_output(output)
    with progress() as tick:
        loaded = load_asked(scenario, sets, places, flags)
        settings = Settings(time_limit_s, loaded.digests, command_line(), tick, plain=plain, alternatives=alternatives)
        plan = interruptible(lambda: solve(loaded.scenario, settings))
    tell_warnings(plan.warnings)
    deliver(plan, plan_view(plan), "plan", as_json, output)
    return EXITS.get(plan.status, 0)


def load_asked(scenario: str, sets: tuple[str, ...], places: tuple[str, ...], flags: dict[str, Any]) -> Loaded:
    """Read a scenario with ``--set``, places and the flags of a question applied."""
    loaded = load(scenario, sets, [*place_overrides(places), *_overrides(flags)])
    return replace(loaded, scenario=with_service_flags(loaded.scenario, **_service(flags)))


def _overrides(flags: dict[str, Any]) -> list[Override]:
    return [
        (key, flags[name], Mark(f"--{name.replace('_', '-')} {_text(flags[name])}"))
        for name, key in _FIELDS.items()
        if flags.get(name) is not None
    ]


def _text(value: Any) -> str:  # noqa: ANN401
    return (
        ",".join(f"{one:g}" if isinstance(one, float) else one for one in value)
        if isinstance(value, list)
        else str(value)
    )


def keys_asked(
    scenario: Scenario, sets: Sequence[str], places: Sequence[str], flags: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """List the dotted keys that ``--set``, places and flags fix, with the flag of each."""
    found = [(key, str(mark)) for key, _, mark in [*parse_assignments(sets), *place_overrides(places)]]
    found += [(key, str(mark)) for key, _, mark in _overrides(dict(flags))]
    for name, field in _SERVICE.items():
        if flags.get(name) is not None:
            flag = f"--{name.replace('_', '-')} {flags[name]:g}"
            found += [(f"workloads.{workload}.limits.{field}", flag) for workload in scenario.workloads]
    return found


def _service(flags: dict[str, Any]) -> dict[str, float | None]:
    return {name: flags[name] for name in _SERVICE}


def with_service_flags(
    scenario: Scenario, min_tps: float | None, max_ttft_ms: float | None, demand_rps: float | None
) -> Scenario:
    """Set the limits of every workload; the demand is a total, split by mix."""
    total = sum(workload.mix for workload in scenario.workloads.values())
    workloads = {}
    for name, workload in scenario.workloads.items():
        changes = {
            "interactivity_floor_tps": min_tps,
            "ttft_ceiling_ms": max_ttft_ms,
            "demand_rps": None if demand_rps is None else demand_rps * workload.mix / total,
        }
        given = {key: value for key, value in changes.items() if value is not None}
        workloads[name] = workload.replace(limits=workload.limits.replace(**given))
    return scenario.replace(workloads=workloads)

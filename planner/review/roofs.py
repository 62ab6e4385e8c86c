"""Roofs of the device types, and the phases of designs under them.

With data sheets and model shapes: FLOP per byte of one pass against FLOP/s of one device, under the sheet's peak and
bandwidth. Without: tokens of one pass against tokens/s of a replica; for each model a slope through its phase of most
passes/s (memory: a pass takes as long, however few its tokens) up to the rate of its fastest phase (compute).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from planner.derived import precision_of
from planner.evaluate import Design
from planner.options import CostTable, cost_table, model_of
from planner.roofline import counts
from planner.roofline.hardware import hardware
from planner.schema.review import Roof, RoofAxes, RoofMark, RoofPoint, WayName
from planner.schema.scenario import Scenario
from planner.words import PHASES, Phase


@dataclass(frozen=True)
class _Work:
    """One phase of a design: operations' passes, tokens per pass, and seconds per operation."""

    way: WayName
    phase: Phase
    device: str
    degree: int
    batch: int
    model: str
    draft_length: int
    tokens: float
    passes: float
    latency_s: float
    option: str


def _hosted_s(scenario: Scenario, table: CostTable, row: int, design: Design) -> float:
    """Time that a step of the replicas that verify spends on other than verification."""
    batch, steps = table.phases["target_verify"].options[row].batch_size, float(table.steps[0])
    proposer = design.speculation.proposer
    host_s = 0.0 if proposer is None else scenario.catalog.proposers[proposer].host_time_ms * 1e-3
    return host_s + sum(float(part.busy_s[row, 0]) * batch / steps for part in table.hosted.values())


def roofs_of(scenario: Scenario, designs: Sequence[tuple[WayName, Design]]) -> tuple[RoofAxes, tuple[Roof, ...]]:
    """Give the roofs of all device types that some designs use, with every phase marked once per device."""
    works = [work for way, design in designs for work in _works(scenario, way, design)]
    unique = list({(work.phase, work.option, work.model): work for work in reversed(works)}.values())[::-1]
    if not unique:
        return "tokens", ()
    if all(_is_described(scenario, work) for work in unique):
        marks = {work: _flop_mark(scenario, work) for work in unique}
        span, names = _span(list(marks.values())), dict.fromkeys(work.device for work in unique)
        return "flop", tuple(_flop_roof(scenario, name, marks, span) for name in names)
    span, pairs = _span([_token_mark(work) for work in unique]), dict.fromkeys((w.device, w.model) for w in unique)
    return "tokens", tuple(_token_roof(device, model, unique, span) for device, model in pairs)


def _is_described(scenario: Scenario, work: _Work) -> bool:
    catalog = scenario.catalog
    return catalog.devices[work.device].data_sheet is not None and catalog.models[work.model].shape is not None


def _works(scenario: Scenario, way: WayName, design: Design) -> Iterator[_Work]:
    table: CostTable = cost_table(scenario, design.workload, [design.speculation])
    length, request = design.speculation.draft_length, scenario.workloads[design.workload]
    prompt = float(request.isl_tokens - request.cached_prefix_tokens)
    tokens: dict[Phase, tuple[float, float]] = {
        "target_prefill": (prompt, 1.0),
        "target_verify": (float(design.speculation.verify_tokens), 1.0),
        "draft_prefill": (prompt, 1.0),
        "draft_decode": (1.0, float(length)),
    }
    for phase in PHASES:
        option, model = design.options[phase], model_of(scenario, phase, design.speculation.proposer)
        if option is None or model is None:
            continue
        costs = table.phases[phase]
        row = costs.options.index(option.bare)
        latency = float(costs.latency_s[row, 0])
        if phase == "target_verify":
            latency -= _hosted_s(scenario, table, row, design)
        each, passes = tokens[phase]
        yield _Work(
            way,
            phase,
            option.device,
            option.tensor_parallel,
            option.batch_size,
            model,
            length,
            each * option.batch_size,
            passes,
            latency,
            str(option),
        )


# ------------------------------------------------------------------------------------------------- in tokens


def _token_roof(device: str, model: str, works: Sequence[_Work], span: tuple[float, float]) -> Roof:
    mine = [work for work in works if (work.device, work.model) == (device, model)]
    marks = tuple(_token_mark(work) for work in mine)
    slope = max(mark.y / mark.x for mark in marks)
    return Roof(device=device, model=model, roof=_lines(slope, max(mark.y for mark in marks), span), marks=marks)


def _token_mark(work: _Work) -> RoofMark:
    return _mark(work, work.tokens, work.tokens * work.passes / work.latency_s)


def _mark(work: _Work, x: float, y: float) -> RoofMark:
    return RoofMark(phase=work.phase, way=work.way, draft_length=work.draft_length, option=work.option, x=x, y=y)


def _lines(slope: float, peak: float, span: tuple[float, float]) -> tuple[RoofPoint, ...]:
    """Write a roof as its start, its ridge and its end."""
    ridge = peak / slope
    ends = (min(span[0], ridge / 2.0), ridge, max(span[1], 2.0 * ridge))
    return tuple(RoofPoint(x=x, y=min(slope * x, peak)) for x in ends)


def _span(marks: Sequence[RoofMark]) -> tuple[float, float]:
    return min(mark.x for mark in marks) / 2.0, max(mark.x for mark in marks) * 2.0


# --------------------------------------------------------------------------------------------------- in FLOP


def _flop_roof(scenario: Scenario, device: str, marks: dict[_Work, RoofMark], span: tuple[float, float]) -> Roof:
    mine = tuple(mark for work, mark in marks.items() if work.device == device)
    shape = scenario.catalog.models[scenario.target].shape
    assert shape is not None  # the caller asked
    precision = precision_of(scenario, scenario.target)
    hw = hardware(scenario.catalog.devices[device], precision, counts.body_precision(shape, precision))
    lines = _lines(float(hw.bandwidth_byte_per_s), float(hw.peak_flop_per_s), span)
    return Roof(device=device, model=None, roof=lines, marks=mine)


def _flop_mark(scenario: Scenario, work: _Work) -> RoofMark:
    """FLOP and bytes of one pass: weights once for all its tokens, the cached context once per request."""
    shape, request = scenario.catalog.models[work.model].shape, next(iter(scenario.workloads.values()))
    assert shape is not None  # the caller asked
    precision = precision_of(scenario, work.model)
    prefill = work.phase.endswith("prefill")
    context = request.cached_prefix_tokens if prefill else request.isl_tokens + request.osl_tokens / 2.0
    attended = context + (work.tokens / work.batch) / 2.0 if prefill else context
    flop = float(
        counts.linear_flop(shape, work.tokens) + counts.attention_flop(shape, work.tokens, attended, not prefill)
    )
    moved = float(
        counts.weight_bytes_read(shape, precision, np.array(work.tokens)) + work.batch * counts.kv_bytes(shape, context)
    )
    return _mark(work, flop / moved, work.passes * flop / (work.latency_s * work.degree))

"""Options that the catalog does not characterize: phases costed by the roofline, from data sheets and model shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from planner.errors import InputError
from planner.roofline import counts
from planner.roofline.hardware import Hardware, hardware
from planner.roofline.memory import degree_problem, devices_for, kv_degree, resident_sequences, sequence_bytes
from planner.roofline.passes import Pass, draft_decode, heads_draft, prefill, verify
from planner.schema.hardware import ParallelHeads, Precision, Shape
from planner.schema.scenario import Scenario, Workload
from planner.words import Phase

Floats = NDArray[np.float64]

# Degrees and batch sizes that are looked at where the scenario names none.
DEGREES = (1, 2, 4, 8)
BATCH_SIZES = (1, 8, 32, 128)


@dataclass(frozen=True)
class Derived:
    """Options of one device type for one phase of a model.

    Attributes
    ----------
    degrees, batch_sizes
        (O,) of each option.
    latency_s, energy_j
        (O, S) of one operation; energy per request in the batch.
    sequences
        (O,) that a replica holds.
    assumed
        What the costs rest on that is assumed or recalled.
    """

    degrees: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    latency_s: Floats
    energy_j: Floats
    sequences: Floats
    assumed: tuple[str, ...]


def precision_of(scenario: Scenario, model: str) -> Precision:
    """Give the precision that a model is served in: the scenario's, else the one that it was published in."""
    shape = scenario.catalog.models[model].shape
    native = shape.native_precision if shape is not None else "bf16"
    return scenario.precisions.get(model, native)


def weight_bytes_of(scenario: Scenario, model: str) -> float:
    """Bytes of a model's weights at the precision that it is served in."""
    entry = scenario.catalog.models[model]
    if entry.heads is not None:
        return entry.heads.count * counts.heads_parameters(entry.heads) * counts.BF16_BYTES
    assert entry.shape is not None  # the caller asked for it
    return counts.weight_bytes(entry.shape, precision_of(scenario, model))


def sequence_bytes_of(scenario: Scenario, device: str, model: str, tokens: int, degree: int) -> float:
    """Bytes that one sequence of ``tokens`` keeps in a replica of ``degree`` devices, copies included."""
    shape, sheet = scenario.catalog.models[model].shape, scenario.catalog.devices[device].data_sheet
    if shape is None:
        return 0.0
    copies = 1.0 if sheet is not None and sheet.weights_in_sram else degree / float(kv_degree(shape, degree))
    return float(sequence_bytes(shape, tokens)) * copies


def derive(
    scenario: Scenario,
    workload: str,
    phase: Phase,
    device: str,
    model: str,
    tokens: Floats,
    nodes: Floats | None = None,
) -> Derived | None:
    """Cost a phase of a model on a device type at every degree and batch size on offer.

    Parameters
    ----------
    scenario, workload, phase, device, model
        What runs where. Times are for a context of ISL + OSL/2, memory for ISL + OSL.
    tokens
        (S,) verify tokens or draft lengths; prefill takes the workload's uncached prompt.
    nodes
        (S,) drafted tokens where they are more than the draft length, as in a tree.

    Returns
    -------
    Derived or None
        None where no degree can hold and split the model.

    Raises
    ------
    InputError
        If the data sheet lacks a figure that the precision needs, naming it.
    """
    entries = (scenario.catalog.devices[device], scenario.catalog.models[model])
    request, offered = scenario.workloads[workload], scenario.candidates
    key = (
        *map(id, entries),
        *(device, phase, precision_of(scenario, model)),
        *(request.isl_tokens, request.osl_tokens, request.cached_prefix_tokens),
        *(offered.tensor_parallel, offered.batch_sizes, tokens.tobytes(), None if nodes is None else nodes.tobytes()),
    )
    if key in _KNOWN:
        return _KNOWN[key][1]
    found = _derived(scenario, request, phase, device, model, tokens, nodes)
    while len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.pop(next(iter(_KNOWN)))
    _KNOWN[key] = entries, found  # the entries are kept too, so that no other gets their identity
    return found


# What was derived before, by everything that it follows from: questions around a plan cost the same phases many times.
_KNOWN: dict[tuple[object, ...], tuple[tuple[object, ...], Derived | None]] = {}
_MOST_KNOWN = 2048


def _derived(
    scenario: Scenario,
    request: Workload,
    phase: Phase,
    device: str,
    model: str,
    tokens: Floats,
    nodes: Floats | None,
) -> Derived | None:
    catalog = scenario.catalog
    shape, heads = catalog.models[model].shape, catalog.models[model].heads
    precision = precision_of(scenario, model)
    try:
        hw = hardware(
            catalog.devices[device], precision, None if shape is None else counts.body_precision(shape, precision)
        )
    except InputError as error:
        hint = "give it, or leave the device out of candidates.devices"
        raise InputError(*(f"catalog.devices.{device}: {problem} ({hint})" for problem in error.problems)) from None
    if shape is None:
        assert heads is not None  # the caller asked for it
        return _parallel_heads(scenario, hw, heads, tokens) if phase == "draft_decode" else None
    pairs = _pairs(scenario, hw, shape, precision, request)
    if not pairs:
        return None
    degrees, batches = (np.array(column, dtype=float)[:, None] for column in zip(*pairs, strict=True))
    wide = None if nodes is None else nodes[None, :]
    cost = _cost(phase, hw, shape, precision, request, degrees, batches, tokens[None, :], wide)
    held = resident_sequences(hw, shape, precision, request.isl_tokens + request.osl_tokens, degrees)
    return _options(pairs, cost, np.broadcast_to(held, (len(pairs), 1))[:, 0], len(tokens))


def _options(pairs: list[tuple[int, int]], cost: Pass, sequences: Floats, speculations: int) -> Derived:
    """Give the options of degree and batch with their costs, for every speculation."""
    size = (len(pairs), speculations)
    return Derived(
        tuple(degree for degree, _ in pairs),
        tuple(batch for _, batch in pairs),
        np.broadcast_to(cost.latency_s, size),
        np.broadcast_to(cost.energy_j, size),
        sequences,
        cost.assumed,
    )


def _parallel_heads(scenario: Scenario, hw: Hardware, heads: ParallelHeads, tokens: Floats) -> Derived | None:
    """Cost parallel heads at every degree and batch; they keep no KV cache and are bounded by the target's memory."""
    batches = scenario.candidates.batch_sizes or BATCH_SIZES
    degrees = [d for d in scenario.candidates.tensor_parallel or DEGREES if d <= int(hw.max_degree)]
    pairs = list(product(degrees, batches))
    if not pairs:
        return None
    rows = [np.array(column, dtype=float)[:, None] for column in zip(*pairs, strict=True)]
    cost = heads_draft(hw, heads, tokens[None, :], rows[1], rows[0])
    return _options(pairs, cost, np.full(len(pairs), np.inf), len(tokens))


def assumed_of(scenario: Scenario, device: str, models: Iterable[str]) -> list[str]:
    """List what the roofline takes for granted of a device: defaults for what its data sheet does not state."""
    found: dict[str, None] = {}
    for model in models:
        entry, shape = scenario.catalog.devices[device], scenario.catalog.models[model].shape
        if shape is not None and entry.data_sheet is not None:
            precision = precision_of(scenario, model)
            names = hardware(entry, precision, counts.body_precision(shape, precision)).assumed
            found |= dict.fromkeys(name.replace(" (", " ").rstrip(")") for name in names)
    return list(found)


def _pairs(
    scenario: Scenario, hw: Hardware, shape: Shape, precision: Precision, request: Workload
) -> list[tuple[int, int]]:
    """List degree and batch size of every option; a replica of SRAM chips has as many as weights and KV need."""
    batches = scenario.candidates.batch_sizes or BATCH_SIZES
    if bool(hw.pipelined > 0.0):
        context = request.isl_tokens + request.osl_tokens
        return [(int(devices_for(hw, shape, precision, batch, context)), batch) for batch in batches]
    degrees = [d for d in scenario.candidates.tensor_parallel or DEGREES if degree_problem(hw, shape, d) is None]
    return list(product(degrees, batches))


def _cost(
    phase: Phase,
    hw: Hardware,
    shape: Shape,
    precision: Precision,
    request: Workload,
    degrees: Floats,
    batches: Floats,
    tokens: Floats,
    nodes: Floats | None,
) -> Pass:
    context = request.isl_tokens + request.osl_tokens / 2.0
    if phase == "target_verify":
        return verify(hw, shape, precision, batches, context, degrees, tokens)
    if phase == "draft_decode":
        return draft_decode(hw, shape, precision, tokens, batches, context, degrees, nodes=nodes)
    uncached = request.isl_tokens - request.cached_prefix_tokens
    return prefill(hw, shape, precision, uncached, degrees, batches, request.cached_prefix_tokens)

"""One phase of one option: a device, a model, a degree and a batch, checked and costed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.errors import InputError
from planner.roofline.counts import body_precision
from planner.roofline.hardware import Hardware, hardware
from planner.roofline.memory import degree_problem, devices_for, resident_sequences
from planner.roofline.passes import Pass, draft_decode, prefill, verify
from planner.schema.catalog import Device, Model
from planner.schema.hardware import Precision, Shape
from planner.words import Phase


def shape_of(model: Model) -> tuple[Shape, tuple[str, ...]]:
    """Give a model's shape, and whether it is recalled or assumed.

    Raises
    ------
    InputError
        If the catalog states none.
    """
    if model.shape is None:
        raise InputError("the model has no shape: the roofline cannot cost it")
    sure = model.confidence.get("shape", "read")
    return model.shape, (f"shape ({sure})",) if sure in ("assumed", "recalled") else ()


def replica_degree(
    hw: Hardware, shape: Shape, precision: Precision, batch: int, context: int, degree: int | None, kv_byte: float = 2.0
) -> int:
    """Check a degree, or choose it: one device, or the chips that an SRAM replica needs.

    Raises
    ------
    InputError
        If the model cannot be split that way, or weights and the batch's KV cache do not fit.
    """
    needed = int(devices_for(hw, shape, precision, batch, context, kv_byte))
    chosen = degree if degree is not None else needed if bool(hw.pipelined > 0.0) else 1
    if (problem := degree_problem(hw, shape, chosen)) is not None:
        raise InputError(problem)
    held = float(resident_sequences(hw, shape, precision, context, chosen, kv_byte))
    if held < batch:
        raise InputError(
            f"{chosen} device(s) hold {held:.0f} sequences of {context} tokens beside the weights, not {batch}"
        )
    return chosen


def profile(
    device: Device,
    model: Model,
    phase: Phase,
    precision: Precision = "bf16",
    *,
    degree: int | None = None,
    batch: int = 1,
    context: int = 2048,
    draft_length: int = 0,
    kv_byte: float = 2.0,
) -> Pass:
    """Cost one operation of a phase.

    ``context``: cached tokens per request (verify, draft) or prompt tokens (prefill). target_verify checks
    ``draft_length`` + 1 tokens per request, draft_decode proposes ``draft_length``.

    Raises
    ------
    InputError
        If data sheet or shape is missing, the degree is impossible, or the batch does not fit into memory.
    """
    shape, assumed = shape_of(model)
    hw = hardware(device, precision, body_precision(shape, precision))
    chosen = replica_degree(hw, shape, precision, batch, context, degree, kv_byte)
    if phase == "target_verify":
        cost = verify(hw, shape, precision, batch, context, chosen, draft_length + 1, kv_byte=kv_byte)
    elif phase == "draft_decode":
        cost = draft_decode(hw, shape, precision, draft_length, batch, context, chosen, kv_byte=kv_byte)
    else:
        cost = prefill(hw, shape, precision, context, chosen, batch)
    return replace(cost, assumed=cost.assumed + assumed)


def as_json(cost: Pass) -> dict[str, Any]:
    """Give the cost of one option as the document that ``--json`` prints."""
    return {
        "schema_version": 1,
        "latency_s": float(cost.latency_s),
        "energy_j": float(cost.energy_j),
        "power_w": float(cost.power_w),
        "bound": str(cost.bound),
        "terms": {name: float(term) for name, term in cost.terms_s.items()},
        "assumed": list(cost.assumed),
    }

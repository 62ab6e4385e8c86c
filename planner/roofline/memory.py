"""What fits: sequences per replica, and chips per replica where the weights live in on-chip memory."""

from __future__ import annotations

import numpy as np

from planner.roofline import counts
from planner.roofline.arrays import Array, Values, array
from planner.roofline.hardware import Hardware
from planner.schema.hardware import Precision, Shape


def kv_degree(shape: Shape, degree: Values, data_parallel_attention: bool = False) -> Array:
    """Devices over which the KV cache is split: at most the KV heads; MLA's latent vector is on every device.

    With data-parallel attention each device holds whole requests instead.
    """
    degree = array(degree)
    if data_parallel_attention:
        return degree
    return np.minimum(degree, 1.0 if shape.latent is not None else float(shape.kv_heads))


def sequence_bytes(shape: Shape, context: Values, kv_byte: float = 2.0) -> Array:
    """Bytes that one sequence of ``context`` tokens keeps: KV cache and recurrent state, not counting copies."""
    return array(counts.kv_bytes(shape, context, kv_byte) + counts.state_bytes(shape))


def resident_sequences(
    hw: Hardware,
    shape: Shape,
    precision: Precision,
    context: Values,
    degree: Values,
    kv_byte: float = 2.0,
    split: Values | None = None,
) -> Array:
    """Sequences R that a replica holds: ⌊(usable memory − weights) / bytes per sequence⌋, at least 0.

    ``split``: devices over which one sequence's cache is divided (`kv_degree` unless given); the rest hold copies.
    """
    degree = array(degree)
    split = kv_degree(shape, degree) if split is None else split
    copies = np.where(hw.pipelined > 0.0, 1.0, degree / split)
    room = degree * hw.memory_byte - counts.weight_bytes(shape, precision)
    return array(np.maximum(np.floor(room / (sequence_bytes(shape, context, kv_byte) * copies)), 0.0))


def devices_for(
    hw: Hardware, shape: Shape, precision: Precision, batch: Values, context: Values, kv_byte: float = 2.0
) -> Array:
    """Fewest devices whose memory holds the weights and the KV cache of a batch: the chips of an SRAM replica."""
    needed = counts.weight_bytes(shape, precision) + batch * sequence_bytes(shape, context, kv_byte)
    return array(np.ceil(needed / hw.memory_byte))


def degree_problem(hw: Hardware, shape: Shape, degree: int) -> str | None:
    """Say why a model cannot be split over ``degree`` devices of one type; None if it can."""
    if degree == 1 or bool(hw.pipelined > 0.0):
        return None
    if degree > int(hw.max_degree):
        return f"{degree} devices exceed the {int(hw.max_degree)} that share a tensor-parallel link"
    if shape.heads % degree:
        return f"{degree} devices do not divide the {shape.heads} attention heads"
    return None

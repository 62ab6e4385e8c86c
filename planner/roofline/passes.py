"""Time and energy of one pass of a model over a batch, from a device's constants and a model's shape.

All functions are pure numpy and broadcast: give the hardware, the tensor-parallel degree, the batch, the verify tokens
and the context axes that do not collide, and the result has the joint shape. One utilization number does not describe
a device: each term has its own measured share of peak or bandwidth and its own floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.roofline import counts
from planner.roofline.hardware import Hardware
from planner.roofline.power import board_power_w
from planner.schema.hardware import Precision, Shape

Array = NDArray[np.float64]

# Launches per layer. Dense: qkv, output, gate-up, down. Mixture of experts: qkv, output, router, and the two grouped
# products with their permutations. Recurrent layers: in and out projection and the scan.
DENSE_LAUNCHES = 4.0
EXPERT_LAUNCHES = 7.0
RECURRENT_LAUNCHES = 3.0
ALL_REDUCES_PER_LAYER = 2.0
ACTIVATION_BYTES = 2.0
# Grouped expert products read their weights at this share of the rate of dense products (docs/hardware.md).
EXPERT_STREAM = 0.6

BOUNDS = ("memory", "compute", "launch", "communication")


@dataclass(frozen=True)
class Pass:
    """One pass of a replica: ``latency_s`` is the sum of ``terms_s``; ``energy_j`` is per request in the batch."""

    latency_s: Array
    terms_s: Mapping[str, Array]
    energy_j: Array
    power_w: Array
    assumed: tuple[str, ...]

    @property
    def bound(self) -> NDArray[np.str_]:
        """What the largest term is bound by: memory, compute, launch or communication."""
        groups = (
            np.maximum(self.terms_s["weights"], self.terms_s["kv"]),
            np.maximum(self.terms_s["compute"], self.terms_s["attention"]),
            self.terms_s["launch"] + self.terms_s["overhead"],
            self.terms_s["communication"],
        )
        return np.asarray(BOUNDS)[np.argmax(np.stack(np.broadcast_arrays(*groups)), axis=0)]


def kv_degree(shape: Shape, degree: ArrayLike, data_parallel_attention: bool = False) -> Array:
    """Devices over which the KV cache is split: at most the KV heads; MLA's latent vector is on every device.

    With data-parallel attention each device holds whole requests instead.
    """
    degree = np.asarray(degree, dtype=np.float64)
    if data_parallel_attention:
        return degree
    return np.minimum(degree, 1.0 if shape.latent is not None else float(shape.kv_heads))


def weights_time_s(hw: Hardware, shape: Shape, precision: Precision, rows: ArrayLike, degree: ArrayLike) -> Array:
    """Time to read the weights that ``rows`` tokens need: bytes / (degree · stream share · bandwidth)."""
    rate = degree * hw.stream_fraction * hw.bandwidth_byte_per_s
    routed = counts.routed_bytes(shape, precision) * counts.distinct_expert_share(shape, rows)
    return np.asarray((counts.body_bytes(shape, precision) + routed / EXPERT_STREAM) / rate)


def compute_time_s(hw: Hardware, shape: Shape, rows: ArrayLike, degree: ArrayLike) -> Array:
    """Time of the matrix products at the peak that large products reach: FLOP / (degree · share · peak)."""
    return np.asarray(counts.linear_flop(shape, rows) / (degree * hw.gemm_fraction * hw.peak_flop_per_s))


def kv_time_s(
    hw: Hardware, shape: Shape, batch: ArrayLike, context: ArrayLike, split: ArrayLike, kv_byte: float = 2.0
) -> Array:
    """Time to read every request's KV cache once (and its recurrent state twice: read and write)."""
    cache = counts.kv_bytes(shape, context, kv_byte) + 2.0 * counts.state_bytes(shape)
    return np.asarray(batch * cache / (split * hw.kv_stream_fraction * hw.bandwidth_byte_per_s))


def attention_time_s(
    hw: Hardware, shape: Shape, queries: ArrayLike, context: ArrayLike, degree: ArrayLike, absorbed: bool
) -> Array:
    """Time of the attention products of ``queries`` tokens: FLOP / (degree · share · bf16 peak)."""
    flop = counts.attention_flop(shape, queries, context, absorbed)
    return np.asarray(flop / (degree * hw.prefill_attention_fraction * hw.attention_peak_flop_per_s))


def launch_time_s(hw: Hardware, shape: Shape) -> Array:
    """Floors of the kernels of all layers: what a pass costs when there is nothing to read or compute."""
    dense = counts.dense_layers(shape) * DENSE_LAUNCHES
    expert = counts.expert_layers(shape) * EXPERT_LAUNCHES
    recurrent = shape.recurrence.layers * RECURRENT_LAUNCHES if shape.recurrence else 0.0
    return np.asarray((dense + expert + recurrent) * hw.kernel_floor_s + shape.layers * hw.attention_floor_s)


def communication_time_s(hw: Hardware, shape: Shape, rows: ArrayLike, degree: ArrayLike) -> Array:
    """Two ring all-reduces per layer of the activations, or one hop per device in a pipeline of SRAM chips."""
    degree = np.asarray(degree, dtype=np.float64)
    message = np.asarray(rows, dtype=np.float64) * shape.hidden * ACTIVATION_BYTES
    transfer = 2.0 * (degree - 1.0) / degree * message / hw.link_byte_per_s
    layers = counts.dense_layers(shape) + counts.expert_layers(shape)
    reduces = ALL_REDUCES_PER_LAYER * layers * (hw.all_reduce_latency_s + transfer)
    hops = (degree - 1.0) * hw.hop_latency_s + message / hw.link_byte_per_s
    return np.where(degree > 1.0, np.where(hw.pipelined > 0.0, hops, reduces), 0.0)

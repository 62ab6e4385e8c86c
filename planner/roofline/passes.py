"""Time and energy of one pass of a model over a batch, from a device's constants and a model's shape.

All functions are pure numpy and broadcast: give the hardware, the tensor-parallel degree, the batch, the verify tokens
and the context axes that do not collide, and the result has the joint shape. One utilization number does not describe
a device: each term has its own measured share of peak or bandwidth and its own floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.roofline import counts
from planner.roofline.arrays import Array, Values, array
from planner.roofline.hardware import Hardware
from planner.roofline.memory import kv_degree
from planner.roofline.power import energy_j_per_request, replica_power_w, tdp_share
from planner.schema.hardware import ParallelHeads, Precision, Shape

# Kernel floors per layer that remain when a step runs as one captured graph. A dense layer has four matrix kernels, an
# expert layer adds routing, permutation and grouped products, MLA its low-rank projections (docs/hardware.md).
DENSE_LAUNCHES = 3.1
EXPERT_LAUNCHES = 7.5
LATENT_LAUNCHES = 4.8
RECURRENT_LAUNCHES = 3.1
HEADS_LAUNCHES = 2.0
ALL_REDUCES_PER_LAYER = 2.0
ACTIVATION_BYTES = 2.0
# Grouped expert products against dense ones: share of the rate of reading weights, share of the rate of computing.
EXPERT_STREAM = 0.66
EXPERT_GEMM = 0.42
# What a step costs on the host and in sampling, per pass and per sequence, where the engine is not named.
STEP_OVERHEAD_S = 0.2e-3
SEQUENCE_OVERHEAD_S = 15e-6

BOUNDS = ("memory", "compute", "launch", "communication")


@dataclass(frozen=True)
class Pass:
    """One operation of a replica.

    ``latency_s`` = max(weights, compute) + max(kv, attention) + launch + communication + overhead of ``terms_s``.
    ``energy_j`` is per request in the batch, ``power_w`` of all devices of the replica.
    """

    latency_s: Array
    terms_s: Mapping[str, Array]
    energy_j: Array
    power_w: Array
    assumed: tuple[str, ...]

    @property
    def bound(self) -> NDArray[np.str_]:
        """Name what the largest term is bound by: memory, compute, launch or communication."""
        groups = (
            np.maximum(self.terms_s["weights"], self.terms_s["kv"]),
            np.maximum(self.terms_s["compute"], self.terms_s["attention"]),
            self.terms_s["launch"] + self.terms_s["overhead"],
            self.terms_s["communication"],
        )
        largest = np.argmax(np.stack(np.broadcast_arrays(*groups)), axis=0)
        return np.asarray(np.take(BOUNDS, largest), dtype=np.str_)


def stream_degree(hw: Hardware, degree: Values) -> Array:
    """Devices that work on a pass at once: all of a tensor-parallel group, one stage of a pipeline of SRAM chips."""
    return np.where(hw.pipelined > 0.0, 1.0, array(degree))


def weights_time_s(
    hw: Hardware,
    shape: Shape,
    precision: Precision,
    rows: Values,
    degree: Values,
    expert_stream: float = EXPERT_STREAM,
) -> Array:
    """Time to read the weights that ``rows`` tokens need: bytes / (degree · stream share · bandwidth)."""
    rate = stream_degree(hw, degree) * hw.stream_fraction * hw.bandwidth_byte_per_s
    routed = counts.routed_bytes(shape, precision) * counts.distinct_expert_share(shape, rows)
    return array((counts.body_bytes(shape, precision) + routed / expert_stream) / rate)


def compute_time_s(hw: Hardware, shape: Shape, rows: Values, degree: Values) -> Array:
    """Time of the matrix products at the peak that large products reach: FLOP / (degree · share · peak)."""
    routed = counts.routed_flop(shape, rows)
    flop = counts.linear_flop(shape, rows) + routed * (1.0 / EXPERT_GEMM - 1.0)
    return array(flop / (stream_degree(hw, degree) * hw.gemm_fraction * hw.peak_flop_per_s))


def kv_time_s(hw: Hardware, shape: Shape, batch: Values, context: Values, split: Values, kv_byte: float = 2.0) -> Array:
    """Time to read every request's KV cache once (and its recurrent state twice: read and write)."""
    cache = counts.kv_bytes(shape, context, kv_byte) + 2.0 * counts.state_bytes(shape)
    rate = stream_degree(hw, split) * hw.kv_stream_fraction * hw.bandwidth_byte_per_s
    return array(batch * cache / rate)


def attention_time_s(
    hw: Hardware, shape: Shape, queries: Values, context: Values, degree: Values, absorbed: bool
) -> Array:
    """Time of the attention products of ``queries`` tokens: FLOP / (degree · share · bf16 peak)."""
    flop = counts.attention_flop(shape, queries, context, absorbed)
    rate = stream_degree(hw, degree) * hw.prefill_attention_fraction * hw.attention_peak_flop_per_s
    return array(flop / rate)


def launch_time_s(hw: Hardware, shape: Shape) -> Array:
    """Floors of the kernels of all layers: what a pass costs when there is nothing to read or compute."""
    floors = counts.dense_layers(shape) * DENSE_LAUNCHES + counts.expert_layers(shape) * EXPERT_LAUNCHES
    floors += shape.layers * LATENT_LAUNCHES if shape.latent is not None else 0.0
    floors += shape.recurrence.layers * RECURRENT_LAUNCHES if shape.recurrence is not None else 0.0
    return array(floors * hw.kernel_floor_s + shape.layers * hw.attention_floor_s)


def communication_time_s(hw: Hardware, shape: Shape, rows: Values, degree: Values) -> Array:
    """Two all-reduces per layer of the activations, or one hop per device in a pipeline of SRAM chips.

    An all-reduce costs a latency per doubling of the group and 2(g − 1)/g of the message over the link.
    """
    degree = array(degree)
    message = array(rows) * shape.hidden * ACTIVATION_BYTES
    transfer = 2.0 * (degree - 1.0) / degree * message / hw.link_byte_per_s
    layers = counts.dense_layers(shape) + counts.expert_layers(shape)
    latency = hw.all_reduce_latency_s * np.log2(degree)
    reduces = ALL_REDUCES_PER_LAYER * layers * (latency + transfer)
    hops = (degree - 1.0) * hw.hop_latency_s + message / hw.link_byte_per_s
    return np.where(degree > 1.0, np.where(hw.pipelined > 0.0, hops, reduces), 0.0)


def _pass(hw: Hardware, terms: dict[str, Array], batch: Values, degree: Values, passes: Values = 1.0) -> Pass:
    """Add the terms up: the slower of reading and computing, twice, then launches, communication and overhead."""
    matrices = np.maximum(terms["weights"], terms["compute"])
    attention = np.maximum(terms["kv"], terms["attention"])
    one = matrices + attention + terms["launch"] + terms["communication"] + terms["overhead"]
    memory_share = (terms["weights"] + terms["kv"]) / one
    compute_share = (terms["compute"] + terms["attention"]) / one
    power = replica_power_w(hw, tdp_share(hw, memory_share, compute_share, batch), degree)
    latency = array(passes * one)
    return Pass(
        latency_s=latency,
        terms_s={name: array(passes * term) for name, term in terms.items()},
        energy_j=energy_j_per_request(power, latency, batch),
        power_w=power,
        assumed=hw.assumed,
    )


def verify(
    hw: Hardware,
    shape: Shape,
    precision: Precision,
    batch: Values,
    context: Values,
    degree: Values = 1,
    verify_tokens: Values = 1,
    *,
    kv_byte: float = 2.0,
    data_parallel_attention: bool = False,
    expert_stream: float = EXPERT_STREAM,
    step_overhead_s: float = STEP_OVERHEAD_S,
    sequence_overhead_s: float = SEQUENCE_OVERHEAD_S,
) -> Pass:
    """Cost one pass that checks ``verify_tokens`` positions of every request; one token is a plain decode step.

    Weights are read once for all rows and each request's KV cache once per step, whatever the draft length.
    """
    batch, degree = array(batch), array(degree)
    rows = batch * verify_tokens
    split = kv_degree(shape, degree, data_parallel_attention)
    terms = {
        "weights": weights_time_s(hw, shape, precision, rows, degree, expert_stream),
        "compute": compute_time_s(hw, shape, rows, degree),
        "kv": kv_time_s(hw, shape, batch, context, split, kv_byte),
        "attention": attention_time_s(hw, shape, rows, context, degree, absorbed=True),
        "launch": launch_time_s(hw, shape),
        "communication": communication_time_s(hw, shape, rows, degree),
        "overhead": array(step_overhead_s + sequence_overhead_s * batch),
    }
    return _pass(hw, terms, batch, degree)


def prefill(
    hw: Hardware,
    shape: Shape,
    precision: Precision,
    tokens: Values,
    degree: Values = 1,
    batch: Values = 1,
    cached_tokens: Values = 0,
    *,
    expert_stream: float = EXPERT_STREAM,
    step_overhead_s: float = 0.0,
) -> Pass:
    """Cost the prefill of ``batch`` prompts of ``tokens`` uncached tokens each; attention is causal."""
    batch, degree = array(batch), array(degree)
    tokens = array(tokens)
    rows = batch * tokens
    context = array(cached_tokens) + tokens / 2.0
    terms = {
        "weights": weights_time_s(hw, shape, precision, rows, degree, expert_stream),
        "compute": compute_time_s(hw, shape, rows, degree),
        "kv": kv_time_s(hw, shape, batch, cached_tokens, kv_degree(shape, degree)),
        "attention": attention_time_s(hw, shape, rows, context, degree, absorbed=False),
        "launch": launch_time_s(hw, shape),
        "communication": communication_time_s(hw, shape, rows, degree),
        "overhead": array(step_overhead_s),
    }
    return _pass(hw, terms, batch, degree)


def draft_decode(
    hw: Hardware,
    shape: Shape,
    precision: Precision,
    draft_length: Values,
    batch: Values,
    context: Values,
    degree: Values = 1,
    *,
    nodes: Values | None = None,
    kv_byte: float = 2.0,
    step_overhead_s: float = STEP_OVERHEAD_S,
) -> Pass:
    """Cost a whole draft of ``draft_length`` tokens: one pass per token, or one per block for a block drafter.

    An EAGLE-3 head is one layer with a reduced output vocabulary; its shape says so, and the passes are the same.
    A tree of ``nodes`` is drafted level by level: ``draft_length`` passes over its mean width.
    """
    batch, degree = array(batch), array(degree)
    draft_length = array(draft_length)
    block = float(shape.block_size or 1)
    width = 1.0 if nodes is None else array(nodes) / np.maximum(draft_length, 1.0)
    rows = batch * width * np.minimum(block, np.maximum(draft_length, 1.0))
    terms = {
        "weights": weights_time_s(hw, shape, precision, rows, degree),
        "compute": compute_time_s(hw, shape, rows, degree),
        "kv": kv_time_s(hw, shape, batch, context, kv_degree(shape, degree), kv_byte),
        "attention": attention_time_s(hw, shape, rows, context, degree, absorbed=True),
        "launch": launch_time_s(hw, shape),
        "communication": communication_time_s(hw, shape, rows, degree),
        "overhead": array(step_overhead_s),
    }
    return _pass(hw, terms, batch, degree, np.ceil(draft_length / block))


def heads_draft(hw: Hardware, heads: ParallelHeads, draft_length: Values, batch: Values, degree: Values = 1) -> Pass:
    """Cost a draft by ``draft_length`` parallel heads: one pass over their weights, part of the verify step.

    Each head is a residual block and an output head; they are kept in bf16 and cost two kernels in all.
    """
    batch, degree = array(batch), array(degree)
    weights = array(draft_length) * counts.heads_parameters(heads)
    rate = stream_degree(hw, degree) * hw.stream_fraction * hw.bandwidth_byte_per_s
    flop = stream_degree(hw, degree) * hw.gemm_fraction * hw.peak_flop_per_s
    none = np.zeros(np.broadcast_shapes(weights.shape, batch.shape, degree.shape))
    terms = {
        "weights": weights * counts.BF16_BYTES / rate,
        "compute": 2.0 * weights * batch / flop,
        "kv": none,
        "attention": none,
        "launch": HEADS_LAUNCHES * hw.kernel_floor_s + none,
        "communication": none,
        "overhead": none,
    }
    return _pass(hw, terms, batch, degree)

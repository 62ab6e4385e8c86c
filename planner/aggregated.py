"""Aggregated serving: prefill and decode of many requests share the devices, and prefill slows decode down.

A closed loop of ``concurrency`` requests. While one request decodes its OSL tokens, every other request of the batch
is prefilled once, so each token waits for its share of those prefills:

    TPOT = t_decode(b) + φ · b · t_prefill / OSL
    TTFT = t₀ + (κ + β · b) · t_prefill

φ is 1 when prefills stop decoding and nothing else happens; chunked prefill that shares the weight reads lowers it,
padding and rescheduling raise it. κ prompts are prefilled together with a new one, and a share β of the batch is still
waiting when it arrives. b/OSL requests start per step: above one, their prompts share a pass and its launches. The
constants belong to families of engines, never to a model or a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.roofline.arrays import Array, Values, array
from planner.roofline.hardware import Hardware
from planner.roofline.memory import kv_degree, resident_sequences
from planner.roofline.passes import Pass, prefill, verify
from planner.roofline.power import replica_power_w, tdp_share
from planner.schema.hardware import Precision, Shape

# Sequences that engines batch at most, where a measurement states no concurrency.
LARGEST_BATCH = 2048


@dataclass(frozen=True)
class Engine:
    """Constants of a family of serving engines.

    ``interference`` is φ, ``cohort`` κ, ``waiting`` β, ``first_token_s`` t₀. ``kv_byte_quantized``: bytes of a KV
    element beside 8-bit and 4-bit weights. ``reserves_output``: a request is admitted only when its whole output fits.
    """

    name: str
    interference: float
    step_overhead_s: float
    sequence_overhead_s: float
    expert_stream: float
    first_token_s: float
    cohort: float
    waiting: float
    kv_byte_quantized: float
    reserves_output: bool

    def kv_byte(self, precision: Precision) -> float:
        """Bytes of one element of the KV cache."""
        return 2.0 if precision == "bf16" else self.kv_byte_quantized


# Fitted on the InferenceX dump and ML.ENERGY v3 (docs/hardware.md); "unnamed" on the rows that name no engine.
UNNAMED = Engine("unnamed", 1.2, 0.2e-3, 15e-6, 0.66, 58e-3, 1.05, 0.10, 1.0, False)
ENGINES = (
    Engine("vllm", 0.97, 0.75e-3, 46e-6, 0.60, 8e-3, 2.6, 0.09, 2.0, False),
    Engine("trtllm", 1.17, 0.2e-3, 14e-6, 1.0, 91e-3, 2.8, 0.082, 1.0, True),
    Engine("sglang", 0.65, 0.2e-3, 22e-6, 1.0, 95e-3, 1.95, 0.39, 2.0, False),
    UNNAMED,
)


def engine_named(framework: str) -> Engine:
    """Find the family of a framework's name and version.

    >>> engine_named("vllm 0.12.0").name, engine_named("TensorRT-LLM").name, engine_named("").name
    ('vllm', 'trtllm', 'unnamed')
    """
    name = framework.lower().replace("-", "").replace("tensorrtllm", "trtllm").replace("tensorrt", "trtllm")
    return next((engine for engine in ENGINES if name.startswith(engine.name)), UNNAMED)


@dataclass(frozen=True)
class Serving:
    """What a closed loop of requests sees on one replica; ``batch`` requests run, the others wait for memory."""

    tpot_s: Array
    ttft_s: Array
    throughput_tps: Array
    power_w: Array
    energy_j_per_token: Array
    batch: Array
    resident: Array
    assumed: tuple[str, ...]


def token_time_s(step_s: Values, prompt_s: Values, batch: Values, osl: Values, engine: Engine) -> Array:
    """Mean time per output token: the decode step and the share of the other requests' prefills.

    >>> round(float(token_time_s(0.010, 0.050, 16, 1000, UNNAMED)), 5)
    0.01096
    """
    return array(step_s + engine.interference * np.multiply(batch, prompt_s) / array(osl))


def first_token_time_s(prompt_s: Values, batch: Values, engine: Engine) -> Array:
    """Time to first token of a request that finds memory free."""
    return array(engine.first_token_s + (engine.cohort + engine.waiting * array(batch)) * prompt_s)


def request_rate_rps(
    batch: Array, ttft_s: Array, prompt_s: Array, tpot_s: Array, osl: Array, saturated: NDArray[np.bool_]
) -> Array:
    """Give the requests per second of a closed loop: by Little's law, batch / time in the system.

    Where more requests wait for memory than run, a slot is refilled at once and only its own prefill delays it.
    """
    before_first = np.where(saturated, prompt_s, ttft_s)
    return array(batch / (before_first + (osl - 1.0) * tpot_s))


def _divide(numerator: Array, denominator: Array) -> Array:
    """Divide, with infinity where a replica that serves nothing would divide by zero."""
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    return array(np.divide(numerator, denominator, out=np.full(shape, np.inf), where=denominator > 0.0))


@dataclass(frozen=True)
class _Load:
    """What one replica runs: ``batch`` requests at once, of ``offered``, of ``resident`` that memory holds."""

    isl: Array
    osl: Array
    degree: Array
    offered: Array
    resident: Array
    data_parallel_attention: bool

    @property
    def batch(self) -> Array:
        return array(np.minimum(self.offered, self.resident))

    @property
    def running(self) -> Array:
        """The batch that is costed: at least one request, so that nothing divides by zero."""
        return array(np.maximum(self.batch, 1.0))

    @property
    def prompts_per_step(self) -> Array:
        return array(np.maximum(self.running / self.osl, 1.0))


def _load(
    hw: Hardware,
    shape: Shape,
    precision: Precision,
    lengths: tuple[Array, Array],
    offered: Array,
    degree: Array,
    engine: Engine,
    data_parallel_attention: bool,
) -> _Load:
    """Cap the offered requests by memory: at the mean context, or at the longest where the engine reserves it."""
    isl, osl = lengths
    kept = isl + osl if engine.reserves_output else isl + osl / 2.0
    split = kv_degree(shape, degree, data_parallel_attention)
    resident = resident_sequences(hw, shape, precision, kept, degree, engine.kv_byte(precision), split)
    return _Load(isl, osl, degree, offered, resident, data_parallel_attention)


def _decode_step(hw: Hardware, shape: Shape, precision: Precision, load: _Load, engine: Engine) -> Pass:
    return verify(
        hw,
        shape,
        precision,
        load.running,
        load.isl + load.osl / 2.0,
        load.degree,
        kv_byte=engine.kv_byte(precision),
        data_parallel_attention=load.data_parallel_attention,
        expert_stream=engine.expert_stream,
        step_overhead_s=engine.step_overhead_s,
        sequence_overhead_s=engine.sequence_overhead_s,
    )


def _board_power_w(hw: Hardware, step: Pass, prompts: Pass, tpot_s: Array, load: _Load) -> Array:
    """Power of a replica from the shares of a token's time that memory and matrix units are busy."""
    prefills = load.running / load.osl / load.prompts_per_step
    memory = (step.terms_s["weights"] + step.terms_s["kv"]) / tpot_s
    step_compute = step.terms_s["compute"] + step.terms_s["attention"]
    compute = (step_compute + prefills * (prompts.terms_s["compute"] + prompts.terms_s["attention"])) / tpot_s
    return replica_power_w(hw, tdp_share(hw, memory, compute, load.running), load.degree)


def serve(
    hw: Hardware,
    shape: Shape,
    precision: Precision,
    isl: Values,
    osl: Values,
    concurrency: Values | None,
    degree: Values = 1,
    engine: Engine = UNNAMED,
    *,
    data_parallel_attention: bool = False,
) -> Serving:
    """Predict aggregated serving of one replica of ``degree`` devices.

    ``concurrency`` is capped by the KV memory, at the mean context ISL + OSL/2 since running requests are of all ages;
    None is as many as fit, up to `LARGEST_BATCH`. A replica that holds no sequence yields a batch and a throughput
    of 0. All arguments broadcast.
    """
    lengths, unlimited = (array(isl), array(osl)), concurrency is None
    offered = array(LARGEST_BATCH if concurrency is None else concurrency)
    load = _load(hw, shape, precision, lengths, offered, array(degree), engine, data_parallel_attention)
    step = _decode_step(hw, shape, precision, load, engine)
    expert_stream, packed = engine.expert_stream, load.prompts_per_step
    prompt_s = prefill(hw, shape, precision, load.isl, load.degree, expert_stream=expert_stream).latency_s
    prompts = prefill(hw, shape, precision, load.isl, load.degree, packed, expert_stream=expert_stream)
    tpot = token_time_s(step.latency_s, prompts.latency_s / packed, load.running, load.osl, engine)
    ttft = first_token_time_s(prompt_s, load.running, engine)
    saturated = np.logical_or(unlimited, offered > load.resident)
    rate = request_rate_rps(load.batch, ttft, prompt_s, tpot, load.osl, saturated)
    waiting = np.zeros_like(load.batch) if unlimited else np.maximum(offered - load.batch, 0.0)
    queue = np.where(waiting > 0.0, _divide(waiting, rate), 0.0)
    power, throughput = _board_power_w(hw, step, prompts, tpot, load), rate * load.osl
    energy = _divide(power, throughput)
    return Serving(tpot, ttft + queue, throughput, power, energy, load.batch, load.resident, hw.assumed)

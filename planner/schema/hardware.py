"""Data sheets of devices and shapes of models, as published or measured, with the unit in every key.

A number has one home: device memory, idle power and provisioned power are fields of ``Device``; the data sheet holds
what the roofline needs beyond them. A field that nobody published stays null, and the roofline then uses a default
that it reports as assumed.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from planner.schema.base import Count, Document, Name, NonNegative, Positive, PositiveFraction

Precision = Literal["bf16", "fp8", "fp4", "int8", "int4"]
DeviceKind = Literal["gpu", "tpu", "asic"]
Size = Annotated[int, Field(ge=1, le=10_000_000_000)]
SizeOrZero = Annotated[int, Field(ge=0, le=100_000_000)]


class Kernels(Document):
    """Measured matrix kernels of one precision: time = floor + max(bytes/(stream·bandwidth), FLOP/(gemm·peak)).

    ``gemm_fraction``: share of the dense peak that large matrix products reach. ``stream_fraction``: share of the
    memory bandwidth that a product with few rows reaches. ``floor_us``: time of the smallest kernel.
    """

    gemm_fraction: PositiveFraction | None = None
    stream_fraction: PositiveFraction | None = None
    floor_us: NonNegative | None = None


class AttentionKernels(Document):
    """Measured attention kernels: share of bandwidth reading KV, share of bf16 peak in prefill, smallest time."""

    kv_stream_fraction: PositiveFraction | None = None
    prefill_fraction: PositiveFraction | None = None
    floor_us: NonNegative | None = None


class TensorParallelLink(Document):
    """The fabric between the devices of one replica, per device and direction."""

    bandwidth_gb_per_s: Positive
    all_reduce_latency_us: NonNegative | None = None
    domain_devices: Count = 1


class Host(Document):
    """The server around the devices."""

    devices: Count
    nameplate_kw: Positive | None = None
    idle_kw: NonNegative | None = None
    all_in_kw_per_device: Positive | None = None


class DataSheet(Document):
    """What the maker states (dense peaks, never sparse) and what was measured on the device.

    ``tensor_parallel_capable`` is false for cards that share only PCIe. ``weights_in_sram``: the device computes from
    on-chip memory, so the chips of a replica follow from the memory that the model needs, in a pipeline whose hops
    cost ``hop_latency_us`` each. ``memory_power_share``: share of TDP that a serving board adds while it reads memory.
    """

    kind: DeviceKind = "gpu"
    year: Annotated[int, Field(ge=2000, le=2100)] | None = None
    availability: str = ""
    memory_type: str = ""
    bf16_tflops: Positive | None = None
    fp8_tflops: Positive | None = None
    fp4_tflops: Positive | None = None
    int8_tops: Positive | None = None
    memory_bandwidth_tb_per_s: Positive
    sram_gb: Positive | None = None
    weights_in_sram: bool = False
    hop_latency_us: NonNegative | None = None
    tdp_w: Positive | None = None
    tensor_parallel_capable: bool = True
    link: TensorParallelLink | None = None
    host: Host | None = None
    kernels: dict[Precision, Kernels] = Field(default={})
    attention: AttentionKernels = AttentionKernels()
    memory_power_share: PositiveFraction | None = None

    @model_validator(mode="after")
    def _computes_something(self) -> Self:
        if all(peak is None for peak in (self.bf16_tflops, self.fp8_tflops, self.fp4_tflops, self.int8_tops)):
            raise PydanticCustomError(
                "peak", "a data sheet needs at least one dense peak (bf16_tflops, fp8_tflops, …)", {}
            )
        return self


class LatentAttention(Document):
    """Multi-head latent attention: one compressed KV vector per token, shared by all heads."""

    kv_rank: Size
    query_rank: Size
    nope_head_dim: Size
    rope_head_dim: Size
    value_head_dim: Size


class Experts(Document):
    """Mixture of experts in the feed-forward layers.

    ``first_dense_layers`` keep the dense feed-forward; of the rest, every ``every``-th layer holds experts.
    """

    count: Size
    per_token: Size
    hidden: Size
    shared: SizeOrZero = 0
    first_dense_layers: SizeOrZero = 0
    every: Size = 1


class Recurrence(Document):
    """Layers that carry a state instead of a KV cache (Mamba, linear attention)."""

    layers: Size
    parameters_per_layer: Size
    state_bytes_per_layer: Size


class Shape(Document):
    """Shape of a decoder-only transformer, as its published configuration states it.

    ``layers`` counts attention layers, ``ffn_layers`` feed-forward layers where it differs. ``full_attention_layers``:
    layers without the ``sliding_window``. ``head_input`` widens the attention input (EAGLE-3 reads 2 hidden vectors);
    ``fused_inputs`` hidden vectors of the target are projected to one per verified token. ``draft_vocabulary`` is
    the reduced output vocabulary of a draft head. ``aliases``: further names of the same shape.
    """

    hidden: Size
    layers: Size
    heads: Size
    kv_heads: Size
    head_dim: Size
    ffn: SizeOrZero = 0
    ffn_layers: SizeOrZero | None = None
    gated_ffn: bool = True
    vocabulary: Size
    draft_vocabulary: Size | None = None
    tied_embeddings: bool = False
    embeddings_shared_with_target: bool = False
    attention_input: Size = 1
    fused_inputs: SizeOrZero = 0
    sliding_window: Size | None = None
    full_attention_layers: SizeOrZero | None = None
    latent: LatentAttention | None = None
    experts: Experts | None = None
    recurrence: Recurrence | None = None
    block_size: Size | None = None
    native_precision: Precision = "bf16"
    aliases: Annotated[tuple[Name, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.heads % self.kv_heads:
            raise PydanticCustomError("heads", "heads must be a multiple of kv_heads", {})
        if (self.full_attention_layers is None) != (self.sliding_window is None):
            raise PydanticCustomError("window", "sliding_window and full_attention_layers go together", {})
        if (self.full_attention_layers or 0) > self.layers:
            raise PydanticCustomError("window", "full_attention_layers exceeds layers", {})
        if self.experts is not None and self.experts.per_token > self.experts.count:
            raise PydanticCustomError("experts", "experts.per_token exceeds experts.count", {})
        if self.ffn == 0 and (self.experts is None or self.experts.first_dense_layers or self.experts.every > 1):
            raise PydanticCustomError("ffn", "ffn is needed for the dense feed-forward layers", {})
        return self


class ParallelHeads(Document):
    """Decoding heads on the target's last hidden state: each a residual block and an output head of its own."""

    count: Size
    hidden: Size
    vocabulary: Size

"""Parameters, bytes and FLOP of a model, counted from its shape.

Parameters are those of the matrices; norms and biases (below 0.1 %) are left out. Every function of rows or context
broadcasts over arrays.
"""

from __future__ import annotations

import numpy as np

from planner.roofline.arrays import Array, Values, array
from planner.schema.hardware import ParallelHeads, Precision, Shape

# Tokens of one batch choose alike: rows touch as many experts as rows^ROUTING_SKEW independent tokens would.
ROUTING_SKEW = 0.8
# Block-scaled formats carry one 8-bit scale per 16 (NVFP4), 32 (MXFP4) or 128 (int4 groups, 16-bit) weights.
WEIGHT_BYTES: dict[Precision, float] = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5625, "int4": 0.515625}
BF16_BYTES = 2.0


def attention_parameters(shape: Shape) -> float:
    """Parameters of the attention projections of one layer.

    >>> from planner.schema.hardware import Shape
    >>> attention_parameters(Shape(hidden=4096, layers=32, heads=32, kv_heads=8, head_dim=128, ffn=14336,
    ...                            vocabulary=128256))
    41943040.0
    """
    if shape.latent is not None:
        mla = shape.latent
        query = shape.hidden * mla.query_rank + mla.query_rank * shape.heads * (mla.nope_head_dim + mla.rope_head_dim)
        compress = shape.hidden * (mla.kv_rank + mla.rope_head_dim)
        expand = mla.kv_rank * shape.heads * (mla.nope_head_dim + mla.value_head_dim)
        return float(query + compress + expand + shape.heads * mla.value_head_dim * shape.hidden)
    query = shape.heads * shape.head_dim
    key_value = 2 * shape.kv_heads * shape.head_dim
    return float(shape.attention_input * shape.hidden * (query + key_value) + query * shape.hidden)


def feed_forward_parameters(hidden: int, inner: int, gated: bool = True) -> float:
    """Parameters of one feed-forward block: gate, up and down, or up and down only."""
    return float((3 if gated else 2) * hidden * inner)


def expert_layers(shape: Shape) -> int:
    """Layers that hold routed experts."""
    if shape.experts is None:
        return 0
    return (shape.layers - shape.experts.first_dense_layers) // shape.experts.every


def dense_layers(shape: Shape) -> int:
    """Layers with a dense feed-forward block."""
    return (shape.ffn_layers if shape.ffn_layers is not None else shape.layers) - expert_layers(shape)


def expert_parameters(shape: Shape) -> float:
    """Parameters of one routed expert of one layer."""
    return feed_forward_parameters(shape.hidden, shape.experts.hidden) if shape.experts else 0.0


def body_parameters(shape: Shape) -> float:
    """Parameters outside the routed experts, the embedding and the output head: every token passes them."""
    attention = shape.layers * attention_parameters(shape)
    dense = dense_layers(shape) * feed_forward_parameters(shape.hidden, shape.ffn, shape.gated_ffn)
    recurrent = shape.recurrence.layers * shape.recurrence.parameters_per_layer if shape.recurrence else 0
    fusion = shape.fused_inputs * shape.hidden**2
    if shape.experts is None:
        return attention + dense + recurrent + fusion
    router = shape.hidden * shape.experts.count
    shared = shape.experts.shared * expert_parameters(shape)
    return attention + dense + recurrent + fusion + expert_layers(shape) * (router + shared)


def head_parameters(shape: Shape) -> float:
    """Parameters of the output head (of the reduced vocabulary where a draft head has one)."""
    return float(shape.hidden * (shape.draft_vocabulary or shape.vocabulary))


def embedding_parameters(shape: Shape) -> float:
    """Parameters of the input embedding; 0 where it is shared with the output head or the target."""
    shared = shape.tied_embeddings or shape.embeddings_shared_with_target
    return 0.0 if shared else float(shape.hidden * shape.vocabulary)


def routed_parameters(shape: Shape) -> float:
    """Parameters of all routed experts of all layers."""
    return expert_layers(shape) * shape.experts.count * expert_parameters(shape) if shape.experts else 0.0


def parameters(shape: Shape) -> float:
    """All parameters.

    >>> from planner.schema.hardware import Shape
    >>> round(parameters(Shape(hidden=4096, layers=32, heads=32, kv_heads=8, head_dim=128, ffn=14336,
    ...                        vocabulary=128256)) / 1e9, 2)
    8.03
    """
    return body_parameters(shape) + routed_parameters(shape) + head_parameters(shape) + embedding_parameters(shape)


def active_routed_parameters(shape: Shape) -> float:
    """Parameters of the routed experts that one token multiplies."""
    return expert_layers(shape) * shape.experts.per_token * expert_parameters(shape) if shape.experts else 0.0


def active_parameters(shape: Shape) -> float:
    """Parameters that one token multiplies: body, its experts and the output head."""
    return body_parameters(shape) + active_routed_parameters(shape) + head_parameters(shape)


def distinct_expert_share(shape: Shape, rows: Values) -> Array:
    """Give the expected share of a layer's routed experts that ``rows`` tokens touch: 1 − (1 − k/n)^(rows^skew).

    With skew 1 every token would choose evenly and independently; measured steps read fewer experts (docs/hardware.md).
    """
    rows = array(rows)
    if shape.experts is None:
        return np.zeros_like(rows)
    miss = 1.0 - shape.experts.per_token / shape.experts.count
    return array(1.0 - miss ** (rows**ROUTING_SKEW))


def body_precision(shape: Shape, precision: Precision) -> Precision:
    """Format outside the routed experts: 4-bit checkpoints of MoE models quantise the experts only."""
    if shape.experts is not None and precision in ("fp4", "int4"):
        return "fp8" if shape.native_precision == "fp8" else "bf16"
    return precision


def body_bytes(shape: Shape, precision: Precision) -> float:
    """Bytes of the weights that every pass reads: body and output head (kept in bf16)."""
    body = body_parameters(shape) * WEIGHT_BYTES[body_precision(shape, precision)]
    return body + head_parameters(shape) * BF16_BYTES


def routed_bytes(shape: Shape, precision: Precision) -> float:
    """Bytes of all routed experts."""
    return routed_parameters(shape) * WEIGHT_BYTES[precision]


def weight_bytes_read(shape: Shape, precision: Precision, rows: Values) -> Array:
    """Bytes of weights read in one pass over ``rows`` tokens, over all devices of a replica."""
    return body_bytes(shape, precision) + routed_bytes(shape, precision) * distinct_expert_share(shape, rows)


def weight_bytes(shape: Shape, precision: Precision) -> float:
    """Bytes of all weights held in memory."""
    embedding = embedding_parameters(shape) * BF16_BYTES
    return body_bytes(shape, precision) + routed_bytes(shape, precision) + embedding


def heads_parameters(heads: ParallelHeads) -> float:
    """Parameters of one parallel head: a residual block and an output head.

    >>> heads_parameters(ParallelHeads(count=5, hidden=4096, vocabulary=32000))
    147849216.0
    """
    return float(heads.hidden**2 + heads.hidden * heads.vocabulary)


def kv_bytes_per_token_and_layer(shape: Shape, kv_byte: float = BF16_BYTES) -> float:
    """Bytes of KV cache that one token adds in one layer; MLA keeps one latent vector for all heads."""
    if shape.latent is not None:
        return (shape.latent.kv_rank + shape.latent.rope_head_dim) * kv_byte
    return 2.0 * shape.kv_heads * shape.head_dim * kv_byte


def layer_contexts(shape: Shape, context: Values) -> Array:
    """Sum the cached positions over the layers: a sliding-window layer keeps at most its window."""
    context = array(context)
    if shape.sliding_window is None or shape.full_attention_layers is None:
        return shape.layers * context
    windowed = shape.layers - shape.full_attention_layers
    return array(shape.full_attention_layers * context + windowed * np.minimum(context, float(shape.sliding_window)))


def kv_bytes(shape: Shape, context: Values, kv_byte: float = BF16_BYTES) -> Array:
    """Bytes of KV cache of one sequence of ``context`` tokens, all layers, not counting copies."""
    return layer_contexts(shape, context) * kv_bytes_per_token_and_layer(shape, kv_byte)


def state_bytes(shape: Shape) -> float:
    """Bytes of the recurrent state of one sequence."""
    return float(shape.recurrence.layers * shape.recurrence.state_bytes_per_layer) if shape.recurrence else 0.0


def linear_flop(shape: Shape, rows: Values) -> Array:
    """FLOP of the matrix products of ``rows`` tokens: two per active parameter."""
    return 2.0 * active_parameters(shape) * array(rows)


def routed_flop(shape: Shape, rows: Values) -> Array:
    """FLOP of the routed experts alone for ``rows`` tokens."""
    return 2.0 * active_routed_parameters(shape) * array(rows)


def attention_width(shape: Shape, absorbed: bool) -> float:
    """Multiply-adds per head of one query against one cached position: scores and values.

    ``absorbed``: MLA in decode works on the latent vector itself (kv rank + rope for scores, kv rank for values).
    """
    if shape.latent is None:
        return 2.0 * shape.head_dim
    mla = shape.latent
    if absorbed:
        return 2.0 * mla.kv_rank + mla.rope_head_dim
    return float(mla.nope_head_dim + mla.rope_head_dim + mla.value_head_dim)


def attention_flop(shape: Shape, queries: Values, context: Values, absorbed: bool = True) -> Array:
    """FLOP of ``queries`` tokens that each attend ``context`` cached positions, all layers and heads."""
    per_position = 2.0 * shape.heads * attention_width(shape, absorbed)
    return per_position * array(queries) * layer_contexts(shape, context)

"""The roofline against hand arithmetic, scalar loops, published points, and its own monotonicity."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hardware_examples import ROUND_DEVICE, ROUND_SHAPE, catalog, shape_of
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner.roofline import (
    counts,
    degree_problem,
    devices_for,
    draft_decode,
    hardware,
    host_factor,
    kv_degree,
    passes,
    prefill,
    resident_sequences,
    stack,
    verify,
)
from planner.schema.hardware import Experts, LatentAttention, Shape

ROUND = hardware(ROUND_DEVICE, "bf16")
BARE = {"step_overhead_s": 0.0, "sequence_overhead_s": 0.0}
PLAIN = {"hidden": 1000, "layers": 2, "vocabulary": 10_000}
MOE = Shape(**PLAIN, heads=10, kv_heads=10, head_dim=100, experts=Experts(count=16, per_token=2, hidden=500))
MLA = LatentAttention(kv_rank=64, query_rank=128, nope_head_dim=64, rope_head_dim=32, value_head_dim=64)
LATENT = Shape(**PLAIN, heads=8, kv_heads=8, head_dim=96, ffn=4000, latent=MLA)
SHAPES = [ROUND_SHAPE, MOE, LATENT, shape_of("gpt-oss-20b"), shape_of("nvidia-nemotron-nano-9b-v2")]

# ---------------------------------------------------------------------------------------------- counts by hand


def test_parameters_of_the_round_shape() -> None:
    # Body: 2 · (4·10⁶ + 12·10⁶) = 32·10⁶; head and embedding 10⁷ each.
    assert counts.body_parameters(ROUND_SHAPE) == 32e6
    assert counts.head_parameters(ROUND_SHAPE) == counts.embedding_parameters(ROUND_SHAPE) == 10e6
    assert counts.parameters(ROUND_SHAPE) == 52e6
    assert counts.active_parameters(ROUND_SHAPE) == 42e6


def test_experts_are_counted_apart() -> None:
    # One expert: 3·1000·500 = 1.5·10⁶; 16 of them in 2 layers; a router of 16,000 per layer.
    assert counts.routed_parameters(MOE) == 48e6
    assert counts.active_routed_parameters(MOE) == 6e6
    assert counts.body_parameters(MOE) == 2 * (4e6 + 16e3)


def test_latent_attention_keeps_one_vector() -> None:
    assert counts.kv_bytes_per_token_and_layer(LATENT) == (64 + 32) * 2
    assert float(counts.kv_bytes(LATENT, 1000)) == 2 * 1000 * 96 * 2


def test_sliding_window_bounds_the_cache() -> None:
    shape = ROUND_SHAPE.replace(sliding_window=128, full_attention_layers=1)
    assert float(counts.layer_contexts(shape, 100)) == 200
    assert float(counts.layer_contexts(shape, 1000)) == 1000 + 128


@pytest.mark.parametrize(
    ("name", "billions"),
    [  # total parameters as the model cards state them
        ("llama-3.1-8b", 8.03),
        ("llama-3.1-70b", 70.55),
        ("llama-3.1-405b", 405.85),
        ("qwen3-32b", 32.76),
        ("qwen3-235b-a22b", 235.09),
        ("gpt-oss-120b", 116.83),
        ("deepseek-v3-r1", 671.0),
        ("kimi-k2", 1026.0),
        ("mixtral-8x7b", 46.7),
        ("gemma-3-12b-it", 11.8),
        ("nvidia-nemotron-nano-9b-v2", 8.9),
    ],
)
def test_parameters_of_published_models(name: str, billions: float) -> None:
    assert counts.parameters(shape_of(name)) / 1e9 == pytest.approx(billions, rel=0.01)


def test_four_bit_mixtures_keep_the_rest_wide() -> None:
    assert counts.body_precision(shape_of("gpt-oss-120b"), "fp4") == "bf16"
    assert counts.body_precision(shape_of("deepseek-v3-r1"), "fp4") == "fp8"
    assert counts.body_precision(shape_of("llama-3.1-70b"), "fp4") == "fp4"


# ---------------------------------------------------------------------------------------------- passes by hand


def test_decode_step_of_one_request_reads_all_weights_once() -> None:
    step = verify(ROUND, ROUND_SHAPE, "bf16", 1, 500, **BARE)
    # 42·10⁶ weights of 2 bytes at 1 TB/s; KV of 2 layers · 500 tokens · 2·1000 elements · 2 bytes.
    assert float(step.terms_s["weights"]) == pytest.approx(84e-6)
    assert float(step.terms_s["kv"]) == pytest.approx(4e-6)
    assert float(step.latency_s) == pytest.approx(88e-6)
    assert str(step.bound) == "memory"


def test_large_batch_is_bound_by_compute() -> None:
    step = verify(ROUND, ROUND_SHAPE, "bf16", 1000, 10, **BARE)
    assert float(step.terms_s["compute"]) == pytest.approx(2 * 42e6 * 1000 / 100e12)
    assert str(step.bound) == "compute"


def test_kv_is_read_once_per_step_whatever_the_draft_length() -> None:
    steps = verify(ROUND, ROUND_SHAPE, "bf16", 8, 2000, 1, np.arange(1.0, 17.0))
    assert np.ptp(np.broadcast_to(steps.terms_s["kv"], (16,))) == 0


def test_all_reduces_of_two_devices() -> None:
    # 2 per layer, 2 layers; a message of 100·1000·2 bytes crosses the link 2·(1/2) times.
    time_s = passes.communication_time_s(ROUND, ROUND_SHAPE, 100, 2)
    assert float(time_s) == pytest.approx(2 * 2 * 200_000 / 100e9)
    assert float(passes.communication_time_s(ROUND, ROUND_SHAPE, 100, 1)) == 0.0


def test_kv_splits_over_kv_heads_at_most() -> None:
    grouped = ROUND_SHAPE.replace(kv_heads=2)
    assert list(kv_degree(grouped, np.array([1.0, 2.0, 8.0]))) == [1, 2, 2]
    assert float(kv_degree(LATENT, 8)) == 1
    assert float(kv_degree(LATENT, 8, data_parallel_attention=True)) == 8


def test_draft_is_one_pass_per_token_or_one_per_block() -> None:
    one, five = (draft_decode(ROUND, ROUND_SHAPE, "bf16", length, 4, 100) for length in (1, 5))
    assert float(five.latency_s) == pytest.approx(5 * float(one.latency_s))
    block = ROUND_SHAPE.replace(block_size=16)
    lengths = draft_decode(ROUND, block, "bf16", np.array([0.0, 1.0, 16.0, 17.0]), 4, 100).latency_s
    assert lengths[0] == 0.0
    assert lengths[1] <= lengths[2] < lengths[3]


def test_eagle3_head_is_far_cheaper_than_its_target() -> None:
    hw = hardware(catalog().devices["h100-sxm"], "bf16")
    head = draft_decode(hw, shape_of("eagle3-llama-3.1-8b"), "bf16", 1, 1, 2048)
    target = verify(hw, shape_of("llama-3.1-8b"), "bf16", 1, 2048)
    assert float(head.latency_s) < 0.12 * float(target.latency_s)


def test_memory_fit_by_hand() -> None:
    # (100 GB − 52·10⁶·2 bytes) / (2 layers · 1000 tokens · 2·1000·2 bytes = 8 MB)
    assert float(resident_sequences(ROUND, ROUND_SHAPE, "bf16", 1000, 1)) == math.floor((100e9 - 104e6) / 8e6)
    assert float(resident_sequences(ROUND, shape_of("llama-3.1-70b"), "bf16", 1000, 1)) == 0
    # MLA's cache is on both devices: a second device adds room for weights, not a second share of each sequence.
    one, two = (float(resident_sequences(ROUND, LATENT, "bf16", 1000, degree)) for degree in (1, 2))
    assert two == pytest.approx(one, rel=0.01)


def test_sram_chips_follow_from_memory() -> None:
    hw = hardware(catalog().devices["groq-lpu-v1"], "int8")
    shape = shape_of("llama-3.1-70b")
    chips = devices_for(hw, shape, "int8", 1, 4096)
    assert 300 < float(chips) < 576  # a 70B model is reported on 576 chips, TechPowerUp 2024-02
    assert float(devices_for(hw, shape, "int8", 64, 4096)) > float(chips)
    step = verify(hw, shape, "int8", 1, 4096, chips)
    assert float(step.terms_s["communication"]) == pytest.approx((float(chips) - 1) * 1e-6, rel=0.01)
    assert any("hop_latency_us" in name for name in step.assumed)


def test_degrees_that_cannot_be() -> None:
    devices, llama = catalog().devices, shape_of("llama-3.1-70b")
    assert degree_problem(hardware(devices["h100-sxm"], "bf16"), llama, 8) is None
    assert "exceed" in str(degree_problem(hardware(devices["h100-sxm"], "bf16"), llama, 16))
    assert "exceed" in str(degree_problem(hardware(devices["h100-pcie"], "bf16"), llama, 2))
    assert "divide" in str(degree_problem(hardware(devices["h100-sxm"], "bf16"), shape_of("qwen2.5-7b"), 8))


def test_what_is_missing_is_named() -> None:
    with pytest.raises(InputError, match="data_sheet"):
        hardware(ROUND_DEVICE.replace(data_sheet=None), "bf16")
    with pytest.raises(InputError, match="memory_gb"):
        hardware(ROUND_DEVICE.replace(memory_gb=None), "bf16")
    with pytest.raises(InputError, match="no peak for bf16"):
        hardware(catalog().devices["vr200-nvl72"], "bf16")


def test_unmeasured_devices_say_so_and_measured_ones_do_not() -> None:
    assert not any("kernels" in name for name in hardware(catalog().devices["h100-sxm"], "bf16").assumed)
    assert "data_sheet.kernels.bf16.gemm_fraction (assumed)" in hardware(catalog().devices["mi300x"], "bf16").assumed


# ------------------------------------------------------------------------------------------------------- power


def test_power_regimes_of_a_serving_board() -> None:
    # ML.ENERGY v3: about .64 of TDP at batch ≤ 8, .75 at 32-64, .85 at 128-256; large prefill .95-.98.
    hw, shape = hardware(catalog().devices["h100-sxm"], "bf16"), shape_of("llama-3.1-8b")
    share = verify(hw, shape, "bf16", np.array([8.0, 48.0, 192.0]), 500).power_w / 700
    assert share == pytest.approx([0.64, 0.75, 0.85], abs=0.10)  # their 10th to 90th percentile
    assert 0.85 <= float(prefill(hw, shape, "bf16", 8192).power_w) / 700 <= 0.98


def test_energy_is_shared_by_the_batch() -> None:
    step = verify(ROUND, ROUND_SHAPE, "bf16", 16, 500)
    assert float(step.energy_j) == pytest.approx(float(step.power_w * step.latency_s) / 16)


def test_host_factor_from_the_nameplate_or_assumed() -> None:
    assert host_factor(catalog().devices["h100-sxm"]) == (pytest.approx(10_200 / 5_600), ())
    assert host_factor(ROUND_DEVICE) == (1.4, ("host_factor",))


# ------------------------------------------------------------------------------------------ vectorised = scalar


def _cost(phase: str, hw, degree, batch, length):
    if phase == "verify":
        return verify(hw, shape_of("qwen3-30b-a3b"), "bf16", batch, 1500, degree, length + 1)
    if phase == "draft":
        return draft_decode(hw, shape_of("qwen3-0.6b"), "bf16", length, batch, 1500, degree)
    return prefill(hw, shape_of("deepseek-v3-r1"), "bf16", 100 * (length + 1), degree, batch)


@pytest.mark.parametrize("phase", ["verify", "draft", "prefill"])
def test_the_grid_equals_scalar_loops(phase: str) -> None:
    singles = [hardware(catalog().devices[name], "bf16") for name in ("h100-sxm", "mi300x", "tpu-v6e")]
    degrees, batches, lengths = np.array([1.0, 2, 8]), np.array([1.0, 32]), np.array([0.0, 1, 7])
    hw = stack(singles).reshape(3, 1, 1, 1)
    grid = _cost(phase, hw, degrees.reshape(1, 3, 1, 1), batches.reshape(2, 1), lengths)
    latency, energy = (np.broadcast_to(values, (3, 3, 2, 3)) for values in (grid.latency_s, grid.energy_j))
    for d, g, b, n in itertools.product(range(3), range(3), range(2), range(3)):
        one = _cost(phase, singles[d], float(degrees[g]), float(batches[b]), float(lengths[n]))
        assert latency[d, g, b, n] == pytest.approx(float(one.latency_s), rel=1e-12)
        assert energy[d, g, b, n] == pytest.approx(float(one.energy_j), rel=1e-12)


# -------------------------------------------------------------------------------------------------- properties

shapes = st.sampled_from(SHAPES)
device_names = st.sampled_from(["h100-sxm", "b200-sxm", "a100-80g-sxm", "mi300x", "gaudi3"])


@settings(deadline=None)
@given(shapes, device_names, st.integers(1, 512), st.integers(1, 32), st.integers(1, 100_000))
def test_more_work_never_takes_less_time(shape: Shape, name: str, batch: int, tokens: int, context: int) -> None:
    hw = hardware(catalog().devices[name], "bf16")
    base = float(verify(hw, shape, "bf16", batch, context, 1, tokens).latency_s)
    assert float(verify(hw, shape, "bf16", batch + 1, context, 1, tokens).latency_s) >= base
    assert float(verify(hw, shape, "bf16", batch, context, 1, tokens + 1).latency_s) >= base
    assert float(verify(hw, shape, "bf16", batch, context + 1, 1, tokens).latency_s) >= base


@settings(deadline=None)
@given(shapes, st.integers(1, 256), st.integers(1, 16), st.floats(1.01, 4))
def test_a_faster_memory_or_peak_never_slows_a_pass(shape: Shape, batch: int, tokens: int, factor: float) -> None:
    sheet = ROUND_DEVICE.data_sheet
    base = float(verify(ROUND, shape, "bf16", batch, 2000, 1, tokens).latency_s)
    for key in ("memory_bandwidth_tb_per_s", "bf16_tflops"):
        faster = ROUND_DEVICE.replace(data_sheet=sheet.replace(**{key: factor * getattr(sheet, key)}))
        assert float(verify(hardware(faster, "bf16"), shape, "bf16", batch, 2000, 1, tokens).latency_s) <= base


@settings(deadline=None)
@given(st.sampled_from([MOE, shape_of("gpt-oss-20b"), shape_of("deepseek-v3-r1")]), st.integers(1, 5000))
def test_experts_read_grow_with_rows_and_never_exceed_all(shape: Shape, rows: int) -> None:
    share = counts.distinct_expert_share(shape, np.array([rows, rows + 1], dtype=float))
    chosen = shape.experts.per_token / shape.experts.count
    assert chosen - 1e-12 <= share[0] <= share[1] <= 1.0


@settings(deadline=None)
@given(shapes, device_names, st.integers(1, 4096))
def test_power_lies_between_idle_and_tdp(shape: Shape, name: str, batch: int) -> None:
    hw = hardware(catalog().devices[name], "bf16")
    power = float(verify(hw, shape, "bf16", batch, 1000).power_w)
    assert float(hw.idle_w) <= power <= float(hw.tdp_w)


@settings(deadline=None)
@given(shapes, st.integers(1, 100_000), st.integers(1, 4))
def test_resident_sequences_fall_with_context_and_rise_with_devices(shape: Shape, context: int, degree: int) -> None:
    hw = hardware(catalog().devices["h200-sxm"], "bf16")
    here = float(resident_sequences(hw, shape, "bf16", context, degree))
    assert float(resident_sequences(hw, shape, "bf16", context + 1, degree)) <= here
    assert float(resident_sequences(hw, shape, "bf16", context, 2 * degree)) >= here


# -------------------------------------------------------------------------------------------- published points


@pytest.mark.parametrize(
    ("device", "degree", "model", "batch", "context", "verify_tokens", "measured_ms"),
    [
        # MagicDec, arXiv 2408.11049, tables 1, 2 and 3c, bf16: decode step and verify of D+1 tokens
        ("h100-sxm", 4, "llama-3.1-8b", 32, 32_000, 1, 17.32),
        ("h100-sxm", 4, "llama-3.1-8b", 32, 32_000, 4, 18.30),
        ("h100-sxm", 4, "llama-2-7b", 64, 8_000, 1, 26.17),
        ("h100-sxm", 4, "llama-2-7b", 64, 8_000, 5, 27.90),
        ("h100-sxm", 8, "llama-3.1-8b", 64, 64_000, 7, 28.80),
        ("a100-80g-sxm", 8, "llama-3.1-8b", 128, 16_000, 1, 28.00),
        ("a100-80g-sxm", 8, "llama-3.1-8b", 128, 16_000, 3, 34.82),
    ],
)
def test_verify_against_published_steps(device, degree, model, batch, context, verify_tokens, measured_ms) -> None:
    hw = hardware(catalog().devices[device], "bf16")
    step = verify(hw, shape_of(model), "bf16", batch, context, degree, verify_tokens)
    assert 1e3 * float(step.latency_s) == pytest.approx(measured_ms, rel=0.35)


@pytest.mark.parametrize(
    ("device", "degree", "model", "precision", "tokens", "measured_ms"),
    [  # TensorRT-LLM performance.md v0.5: prefill alone, batch 1
        ("h100-sxm", 1, "llama-2-7b", "fp8", 2048, 36),
        ("a100-80g-sxm", 1, "llama-2-7b", "bf16", 2048, 133),
        ("a100-80g-sxm", 4, "llama-2-70b", "bf16", 2048, 377),
        ("l40s", 1, "llama-2-7b", "fp8", 2048, 73),
    ],
)
def test_prefill_against_published_points(device, degree, model, precision, tokens, measured_ms) -> None:
    prompt = prefill(hardware(catalog().devices[device], precision), shape_of(model), precision, tokens, degree)
    assert 1e3 * float(prompt.latency_s) == pytest.approx(measured_ms, rel=0.30)

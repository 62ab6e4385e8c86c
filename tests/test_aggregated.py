"""Aggregated serving against hand arithmetic, Little's law, published rows and its own monotonicity."""

from __future__ import annotations

import numpy as np
import pytest
from hardware_examples import ROUND_DEVICE, ROUND_SHAPE, catalog, shape_of
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.aggregated import (
    ENGINES,
    LARGEST_BATCH,
    UNNAMED,
    Engine,
    engine_named,
    first_token_time_s,
    serve,
    token_time_s,
)
from planner.roofline import body_precision, hardware, prefill, verify

ROUND = hardware(ROUND_DEVICE, "bf16")
IDEAL = Engine("ideal", 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 2.0, False)


def test_token_time_by_hand() -> None:
    # A step of 10 ms; 16 requests of 50 ms prefill in the time of 1000 tokens.
    assert float(token_time_s(0.010, 0.050, 16, 1000, IDEAL)) == pytest.approx(0.010 + 16 * 0.050 / 1000)


def test_first_token_time_by_hand() -> None:
    # 58 ms, one and a bit prompts of 50 ms, and a tenth of 16 more.
    assert float(first_token_time_s(0.050, 16, UNNAMED)) == pytest.approx(0.058 + (1.05 + 1.6) * 0.050)


def test_one_request_alone_is_its_prefill_and_its_steps() -> None:
    served = serve(ROUND, ROUND_SHAPE, "bf16", 1000, 200, 1, engine=IDEAL)
    step = verify(ROUND, ROUND_SHAPE, "bf16", 1, 1100, step_overhead_s=0.0, sequence_overhead_s=0.0).latency_s
    prompt = prefill(ROUND, ROUND_SHAPE, "bf16", 1000).latency_s
    assert float(served.ttft_s) == pytest.approx(float(prompt))
    assert float(served.tpot_s) == pytest.approx(float(step + prompt / 200))
    assert float(served.throughput_tps) == pytest.approx(200 / float(served.ttft_s + 199 * served.tpot_s))
    assert float(served.energy_j_per_token) == pytest.approx(float(served.power_w / served.throughput_tps))


def test_memory_caps_the_batch_and_the_rest_waits() -> None:
    hw, shape = hardware(catalog().devices["h200-sxm"], "fp8"), shape_of("llama-3.1-70b")
    served = serve(hw, shape, "fp8", 1024, 8192, np.array([16.0, 64.0, 512.0]))
    assert served.batch[0] == 16
    assert served.batch[2] == float(served.resident) < 512
    assert served.tpot_s[2] == pytest.approx(float(serve(hw, shape, "fp8", 1024, 8192, served.batch[2]).tpot_s))
    # By Little's law 512 requests that finish at the rate of the resident ones are in the system for this long.
    rate = served.throughput_tps[2] / 8192
    assert served.ttft_s[2] > (512 - served.batch[2]) / rate


def test_a_model_that_does_not_fit_serves_nothing() -> None:
    served = serve(hardware(catalog().devices["l4"], "bf16"), shape_of("llama-3.1-70b"), "bf16", 100, 100, 4)
    assert float(served.batch) == 0
    assert float(served.throughput_tps) == 0
    assert float(served.energy_j_per_token) == np.inf


def test_unlimited_load_fills_memory_or_the_largest_batch() -> None:
    hw = hardware(catalog().devices["b200-sxm"], "fp4")
    assert float(serve(hw, shape_of("llama-3.1-8b"), "fp4", 128, 128, None).batch) == LARGEST_BATCH
    long = serve(hw, shape_of("llama-3.1-70b"), "fp4", 32_000, 1_000, None)
    assert float(long.batch) == float(long.resident)


@pytest.mark.parametrize(
    ("framework", "name"),
    [
        ("vllm 0.12.0", "vllm"),
        ("vLLM", "vllm"),
        ("trtllm 1.2.0rc6", "trtllm"),
        ("TensorRT-LLM", "trtllm"),
        ("TensorRT 10.11; CUDA 12.9", "trtllm"),
        ("sglang 0.5.9", "sglang"),
        ("atom", "unnamed"),
        ("", "unnamed"),
    ],
)
def test_engines_are_found_by_family(framework: str, name: str) -> None:
    assert engine_named(framework).name == name


@pytest.mark.parametrize(
    ("device", "degree", "model", "precision", "engine", "isl", "osl", "concurrency", "tpot_ms", "ttft_ms"),
    [  # InferenceX result dump 2026-03/04 as shipped with aiconfigurator-core 0.12.0 (Apache-2.0)
        ("h100-sxm", 1, "llama-3.1-8b", "bf16", "trtllm", 2048, 128, 64, 33.62, 327),
        ("h100-sxm", 2, "qwen3-32b", "bf16", "vllm", 1024, 1024, 32, 20.06, 237),
        ("h100-sxm", 4, "qwen3-32b", "bf16", "vllm", 4096, 512, 64, 34.90, 905),
        ("h100-sxm", 2, "llama-3.1-70b", "fp8", "", 1024, 1024, 16, 19.74, 253),
        ("h200-sxm", 4, "llama-3.1-70b", "fp8", "", 1024, 8192, 64, 13.70, 282),
        ("b200-sxm", 1, "llama-3.1-70b", "fp4", "", 1024, 8192, 32, 17.14, 161),
        ("b200-sxm", 8, "llama-3.1-70b", "fp4", "", 8192, 1024, 64, 17.73, 598),
        ("h200-sxm", 8, "deepseek-v3-r1", "fp8", "sglang", 1024, 8192, 64, 30.61, 420),
        ("h100-sxm", 4, "gpt-oss-120b", "fp4", "vllm", 1024, 8192, 32, 7.09, 83),
    ],
)
def test_published_rows(device, degree, model, precision, engine, isl, osl, concurrency, tpot_ms, ttft_ms) -> None:
    shape = shape_of(model)
    hw = hardware(catalog().devices[device], precision, body_precision(shape, precision))
    served = serve(hw, shape, precision, isl, osl, concurrency, degree, engine_named(engine))
    assert 1e3 * float(served.tpot_s) == pytest.approx(tpot_ms, rel=0.30)
    assert ttft_ms / 3 < 1e3 * float(served.ttft_s) < 3 * ttft_ms


engines = st.sampled_from(ENGINES)
models = st.sampled_from(["llama-3.1-8b", "qwen3-30b-a3b", "gpt-oss-20b"])


@settings(deadline=None)
@given(engines, models, st.integers(1, 500), st.integers(1, 20_000), st.integers(2, 4_000))
def test_more_load_never_speeds_a_user_up(engine: Engine, model: str, load: int, isl: int, osl: int) -> None:
    hw = hardware(catalog().devices["h100-sxm"], "bf16")
    few, many = (serve(hw, shape_of(model), "bf16", isl, osl, c, engine=engine) for c in (load, load + 1))
    assert float(many.tpot_s) >= float(few.tpot_s)
    assert float(many.ttft_s) >= float(few.ttft_s)
    assert float(many.batch) >= float(few.batch)


@settings(deadline=None)
@given(engines, models, st.integers(1, 300), st.integers(1, 20_000), st.integers(2, 4_000))
def test_longer_prompts_never_speed_anything_up(engine: Engine, model: str, load: int, isl: int, osl: int) -> None:
    hw = hardware(catalog().devices["b200-sxm"], "bf16")
    short, long = (serve(hw, shape_of(model), "bf16", length, osl, load, engine=engine) for length in (isl, 2 * isl))
    assert float(long.ttft_s) >= float(short.ttft_s)
    assert float(long.throughput_tps) <= float(short.throughput_tps) * (1 + 1e-9)


def test_serving_is_vectorised() -> None:
    hw, load = hardware(catalog().devices["h100-sxm"], "fp8"), np.array([1.0, 16, 256, 4096])
    grid = serve(hw, shape_of("qwen3-32b"), "fp8", 1000, 500, load, np.array([[1.0], [2], [4]]))
    for i, degree in enumerate((1, 2, 4)):
        for j, concurrency in enumerate(load):
            one = serve(hw, shape_of("qwen3-32b"), "fp8", 1000, 500, concurrency, degree)
            assert grid.ttft_s[i, j] == pytest.approx(float(one.ttft_s), rel=1e-12)
            assert grid.power_w[i, j] == pytest.approx(float(one.power_w), rel=1e-12)

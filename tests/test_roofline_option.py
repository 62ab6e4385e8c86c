"""One option, checked and costed: what is refused, what is chosen, what the document holds."""

from __future__ import annotations

import json

import pytest
from hardware_examples import ROUND_DEVICE, catalog, shape_of

from planner.errors import InputError
from planner.roofline import BOUNDS, hardware, prefill, verify
from planner.roofline.option import as_json, profile
from planner.schema.catalog import Model

DEVICES, MODELS = catalog().devices, catalog().models


def test_phases_are_the_passes() -> None:
    device, model = DEVICES["h100-sxm"], MODELS["llama-3.1-70b"]
    hw, shape = hardware(device, "bf16"), shape_of("llama-3.1-70b")
    check = profile(device, model, "target_verify", degree=4, batch=32, context=2048, draft_length=4)
    assert float(check.latency_s) == float(verify(hw, shape, "bf16", 32, 2048, 4, 5).latency_s)
    prompt = profile(device, model, "target_prefill", degree=4, context=2048)
    assert float(prompt.latency_s) == float(prefill(hw, shape, "bf16", 2048, 4).latency_s)
    assert float(profile(device, MODELS["llama-3.2-1b"], "draft_decode", draft_length=0).latency_s) == 0.0


def test_the_document() -> None:
    document = as_json(profile(DEVICES["mi300x"], MODELS["gemma-3-12b-it"], "target_verify", batch=8))
    assert set(document) == {"schema_version", "latency_s", "energy_j", "power_w", "bound", "terms", "assumed"}
    assert document["bound"] in BOUNDS
    assert "shape (recalled)" in document["assumed"]
    assert json.loads(json.dumps(document)) == document


def test_an_sram_replica_takes_the_chips_that_it_needs() -> None:
    lpu, model = DEVICES["groq-lpu-v1"], MODELS["llama-3.1-8b"]
    one = profile(lpu, model, "target_verify", "int8", context=1024)
    many = profile(lpu, model, "target_verify", "int8", batch=32, context=1024)
    assert float(many.power_w) > float(one.power_w)
    with pytest.raises(InputError, match="hold 0 sequences"):
        profile(lpu, model, "target_verify", "int8", degree=8, context=1024)


@pytest.mark.parametrize(
    ("device", "model", "options", "message"),
    [
        ("h100-sxm", "llama-3.1-70b", {}, "1 device.s. hold 0 sequences"),
        ("h100-sxm", "llama-3.1-8b", {"batch": 4096}, "not 4096"),
        ("h100-sxm", "llama-3.1-8b", {"degree": 16}, "exceed the 8"),
        ("l40s", "llama-3.1-8b", {"degree": 2}, "exceed the 1"),
        ("h100-sxm", "qwen2.5-7b", {"degree": 8}, "do not divide the 28"),
    ],
)
def test_impossible_options_are_refused(device: str, model: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        profile(DEVICES[device], MODELS[model], "target_verify", **options)


def test_a_model_without_a_shape_is_refused() -> None:
    with pytest.raises(InputError, match="no shape"):
        profile(ROUND_DEVICE, Model(), "target_verify")

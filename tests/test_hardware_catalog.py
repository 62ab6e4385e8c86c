"""The committed device and model catalogs: breadth, and a source and a confidence for every number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hardware_examples import ROOT, catalog
from pydantic import ValidationError

from planner.errors import InputError
from planner.roofline import counts, hardware
from planner.schema.hardware import DataSheet, Experts, Shape

WANTED_MODELS = {
    *("llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "llama-3.3-70b", "llama-3.2-1b", "llama-3.2-3b"),
    *("qwen3-0.6b", "qwen3-1.7b", "qwen3-4b", "qwen3-8b", "qwen3-14b", "qwen3-32b"),
    *("qwen3-30b-a3b", "qwen3-235b-a22b", "gpt-oss-20b", "gpt-oss-120b", "deepseek-v3-r1", "kimi-k2", "mixtral-8x7b"),
    *("eagle3-llama-3.1-8b", "eagle3-llama-3.1-70b", "eagle3-qwen3-8b", "eagle3-gpt-oss-120b", "eagle3-deepseek-v3"),
}


def _leaves(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


def _raw(name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / "catalogs" / f"{name}.yaml").read_text())


def test_breadth() -> None:
    devices, models = catalog().devices, catalog().models
    assert len(devices) >= 20
    assert len({device.maker for device in devices.values()}) >= 7
    assert len(models) >= 25
    assert set(models) >= WANTED_MODELS


@pytest.mark.parametrize("name", sorted(_raw("devices")["devices"]))
def test_every_number_of_a_device_has_a_source_and_a_confidence(name: str) -> None:
    entry = _raw("devices")["devices"][name]
    assert entry["source"]
    numbers = {"price" if path.startswith("price.") else path for path in _leaves(entry, "")} - {"data_sheet.year"}
    assert numbers <= set(entry["confidence"]), numbers - set(entry["confidence"])


@pytest.mark.parametrize("name", sorted(_raw("models")["models"]))
def test_model_entries_agree_with_their_shapes(name: str) -> None:
    model = catalog().models[name]
    assert model.source
    assert {"weights_gb", "kv_bytes_per_token"} < set(model.confidence)
    shape = model.shape
    if shape is None:
        assert {"heads"} < set(model.confidence)
        return  # counted in test_proposer_catalog
    assert "shape" in model.confidence
    weights = counts.weight_bytes(shape, shape.native_precision)
    assert model.weights_gb == pytest.approx(weights / 1e9, rel=1e-3)
    assert model.kv_bytes_per_token == counts.kv_bytes_per_token_and_layer(shape) * shape.layers


def test_sources_are_dated_and_used() -> None:
    for part in ("devices", "models"):
        raw = _raw(part)
        used = {entry["source"] for entry in raw[part].values()}
        used |= {source for entry in raw[part].values() for source in entry.get("sources", {}).values()}
        assert used == set(raw["sources"])
        assert all(source["date"] for source in raw["sources"].values())


def test_prices_say_what_they_mean_and_when() -> None:
    priced = [device.price for device in catalog().devices.values() if device.price is not None]
    assert len(priced) >= 15
    assert all(price.basis and price.date for price in priced)


def test_confidence_keys_are_fields_that_exist() -> None:
    for name, entry in _raw("devices")["devices"].items():
        for key in entry["confidence"]:
            value: Any = entry
            for part in key.split("."):
                assert part in value, f"{name}: {key}"
                value = value[part]


def test_cards_without_a_link_are_not_tensor_parallel() -> None:
    for name in ("h100-pcie", "l4", "l40s", "rtx-pro-6000", "qaic100-ultra", "furiosa-rngd"):
        assert float(hardware(catalog().devices[name], "fp8").max_degree) == 1


UNCOSTED = {"groq-lp30": "tdp_w", "sn50": "tdp_w", "tt-galaxy-blackhole": "tdp_w", "vr200-nvl72": "no peak for fp8"}


@pytest.mark.parametrize("name", sorted(set(_raw("devices")["devices"]) - set(UNCOSTED)))
def test_devices_can_be_costed(name: str) -> None:
    assert float(hardware(catalog().devices[name], "fp8").bandwidth_byte_per_s) > 0


@pytest.mark.parametrize("name", sorted(UNCOSTED))
def test_devices_that_cannot_be_costed_say_what_is_missing(name: str) -> None:
    with pytest.raises(InputError, match=UNCOSTED[name]):
        hardware(catalog().devices[name], "fp8")


def test_recalled_numbers_are_named_by_what_rests_on_them() -> None:
    assert "data_sheet.tdp_w (recalled)" in hardware(catalog().devices["l40"], "bf16").assumed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bf16_tflops": None}, "at least one dense peak"),
        ({"bf16_tflops": float("inf")}, "finite"),
        ({"memory_bandwidth_tb_per_s": -1.0}, "greater than or equal to 0.000000001"),
        ({"kernels": {"bf16": {"gemm_fraction": 1.5}}}, "less than or equal to 1"),
        ({"bandwidth": 3.0}, "Extra inputs"),
    ],
)
def test_bad_data_sheets_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        DataSheet.model_validate({"bf16_tflops": 100.0, "memory_bandwidth_tb_per_s": 1.0, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kv_heads": 3}, "multiple of kv_heads"),
        ({"sliding_window": 128}, "go together"),
        ({"sliding_window": 128, "full_attention_layers": 3}, "exceeds layers"),
        ({"experts": Experts(count=4, per_token=8, hidden=10)}, "exceeds experts.count"),
        ({"ffn": 0}, "ffn is needed"),
        ({"layers": 0}, "greater than or equal to 1"),
    ],
)
def test_bad_shapes_are_refused(changes: dict[str, Any], message: str) -> None:
    good = {"hidden": 100, "layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 25, "ffn": 400, "vocabulary": 1000}
    with pytest.raises(ValidationError, match=message):
        Shape.model_validate({**good, **changes})

"""Devices and models for the hardware tests: the committed catalogs, and small ones that a hand can check."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from planner.schema.catalog import Catalog, Device
from planner.schema.hardware import Shape

ROOT = Path(__file__).resolve().parent.parent


@cache
def catalog() -> Catalog:
    """The device and model catalogs as one."""
    devices, models = (
        yaml.safe_load((ROOT / "catalogs" / f"{name}.yaml").read_text()) for name in ("devices", "models")
    )
    return Catalog.model_validate(
        {
            "schema_version": 1,
            "sources": devices["sources"] | models["sources"],
            "devices": devices["devices"],
            "models": models["models"],
        }
    )


def shape_of(name: str) -> Shape:
    shape = catalog().models[name].shape
    assert shape is not None
    return shape


# Round numbers: 100 TFLOP/s and 1 TB/s reached in full, no floors, a link of 100 GB/s without latency.
ROUND_DEVICE = Device.model_validate(
    {
        "memory_gb": 100.0,
        "idle_power_w": 50.0,
        "data_sheet": {
            "bf16_tflops": 100.0,
            "memory_bandwidth_tb_per_s": 1.0,
            "tdp_w": 500.0,
            "memory_power_share": 0.4,
            "kernels": {"bf16": {"gemm_fraction": 1.0, "stream_fraction": 1.0, "floor_us": 0.0}},
            "attention": {"kv_stream_fraction": 1.0, "prefill_fraction": 1.0, "floor_us": 0.0},
            "link": {"bandwidth_gb_per_s": 100.0, "all_reduce_latency_us": 0.0, "domain_devices": 8},
        },
    }
)
# Two layers; per layer 4·1000² attention and 3·1000·4000 feed-forward parameters, a vocabulary of 10,000.
ROUND_SHAPE = Shape(hidden=1000, layers=2, heads=10, kv_heads=10, head_dim=100, ffn=4000, vocabulary=10_000)

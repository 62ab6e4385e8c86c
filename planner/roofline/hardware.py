"""The constants of a device that the formulas need, in SI units, one array entry per device.

What the data sheet does not state is filled with a default, and the name of the field goes into ``assumed``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from planner.errors import InputError
from planner.schema.catalog import Device
from planner.schema.hardware import DataSheet, Precision

Array = NDArray[np.float64]

# Peaks to compute with, in order of preference: a device without the format computes with unpacked weights.
PEAKS: dict[Precision, tuple[str, ...]] = {
    "bf16": ("bf16_tflops",),
    "fp8": ("fp8_tflops", "bf16_tflops", "int8_tops"),
    "int8": ("int8_tops", "bf16_tflops"),
    "fp4": ("fp4_tflops", "bf16_tflops"),
    "int4": ("bf16_tflops", "int8_tops"),
}
FORMAT: dict[str, Precision] = {"bf16_tflops": "bf16", "fp8_tflops": "fp8", "fp4_tflops": "fp4", "int8_tops": "int8"}

# Defaults are medians over the nine devices with measured kernels (docs/hardware.md).
DEFAULT_GEMM = {"bf16": 0.75, "fp8": 0.53, "fp4": 0.43, "int8": 0.53, "int4": 0.60}
DEFAULT_STREAM = {"bf16": 0.80, "fp8": 0.71, "fp4": 0.53, "int8": 0.71, "int4": 0.70}
DEFAULT_FLOOR_US = {"bf16": 3.0, "fp8": 6.3, "fp4": 6.6, "int8": 6.3, "int4": 6.3}
DEFAULT_KV_STREAM = 0.82
DEFAULT_PREFILL_ATTENTION = 0.54
DEFAULT_ATTENTION_FLOOR_US = 8.7
DEFAULT_IDLE_FRACTION = 0.12
DEFAULT_HOP_LATENCY_US = 1.0
PROVISIONED_PER_TDP = 1.4


@dataclass(frozen=True)
class Hardware:
    """Constants of one precision on one or more device types; every array has one shape, that of the devices."""

    peak_flop_per_s: Array
    attention_peak_flop_per_s: Array
    bandwidth_byte_per_s: Array
    gemm_fraction: Array
    stream_fraction: Array
    kernel_floor_s: Array
    kv_stream_fraction: Array
    prefill_attention_fraction: Array
    attention_floor_s: Array
    link_byte_per_s: Array
    all_reduce_latency_s: Array
    hop_latency_s: Array
    pipelined: Array
    max_degree: Array
    memory_byte: Array
    tdp_w: Array
    idle_w: Array
    assumed: tuple[str, ...] = ()

    def reshape(self, *shape: int) -> Hardware:
        """Give the devices further axes, so that degrees, batches and draft lengths broadcast beside them."""
        arrays = {name: getattr(self, name).reshape(shape) for name in _ARRAYS}
        return Hardware(**arrays, assumed=self.assumed)


_ARRAYS = tuple(field.name for field in fields(Hardware) if field.name != "assumed")


def stack(devices: Sequence[Hardware]) -> Hardware:
    """Put several device types on one leading axis."""
    arrays = {name: np.stack([getattr(device, name) for device in devices]) for name in _ARRAYS}
    return Hardware(**arrays, assumed=tuple(dict.fromkeys(name for device in devices for name in device.assumed)))


class _Reader:
    """Reads values, falls back to defaults and remembers which."""

    def __init__(self) -> None:
        self.assumed: list[str] = []

    def value(self, given: float | None, default: float, name: str) -> float:
        if given is None:
            self.assumed.append(name)
            return default
        return given


def data_sheet_of(device: Device, name: str = "device") -> DataSheet:
    """Give a device's data sheet.

    Raises
    ------
    InputError
        If the device has none.
    """
    if device.data_sheet is None:
        raise InputError(f"{name} has no data_sheet: the roofline cannot cost it")
    return device.data_sheet


def _peak(sheet: DataSheet, precision: Precision) -> tuple[float, Precision]:
    for field in PEAKS[precision]:
        tera = getattr(sheet, field)
        if tera is not None:
            return tera * 1e12, FORMAT[field]
    raise InputError(f"the device states no peak for {precision} ({', '.join(PEAKS[precision])})")


def hardware(device: Device, precision: Precision) -> Hardware:
    """Collect the constants of a device at a weight precision, as arrays of shape ().

    Raises
    ------
    InputError
        If the device has no data sheet, memory or peak for the precision.
    """
    sheet = data_sheet_of(device)
    if device.memory_gb is None:
        raise InputError("the device states no memory_gb")
    peak, compute_format = _peak(sheet, precision)
    attention_peak = _peak(sheet, "bf16")[0] if sheet.bf16_tflops else peak
    read = _Reader()
    compute, weights = sheet.kernels.get(compute_format), sheet.kernels.get(precision) or sheet.kernels.get(compute_format)
    sram, link = sheet.weights_in_sram, sheet.link
    tdp = read.value(sheet.tdp_w, 700.0, "tdp_w")
    degree = link.domain_devices if link is not None and sheet.tensor_parallel_capable else 1
    gemm = read.value(compute.gemm_fraction if compute else None, DEFAULT_GEMM[compute_format], "gemm_fraction")
    stream = read.value(weights.stream_fraction if weights else None, DEFAULT_STREAM[precision], "stream_fraction")
    floor = read.value(weights.floor_us if weights else None, DEFAULT_FLOOR_US[precision], "floor_us")
    all_reduce = link.all_reduce_latency_us if link is not None else None
    values = {
        "peak_flop_per_s": peak,
        "attention_peak_flop_per_s": attention_peak,
        "bandwidth_byte_per_s": sheet.memory_bandwidth_tb_per_s * 1e12,
        "gemm_fraction": gemm,
        "stream_fraction": stream,
        "kernel_floor_s": floor * 1e-6,
        "kv_stream_fraction": read.value(sheet.attention.kv_stream_fraction, DEFAULT_KV_STREAM, "kv_stream_fraction"),
        "prefill_attention_fraction": read.value(
            sheet.attention.prefill_fraction, DEFAULT_PREFILL_ATTENTION, "prefill_fraction"
        ),
        "attention_floor_s": 1e-6
        * read.value(sheet.attention.floor_us, DEFAULT_ATTENTION_FLOOR_US, "attention.floor_us"),
        "link_byte_per_s": (link.bandwidth_gb_per_s if link is not None else 32.0) * 1e9,
        "all_reduce_latency_s": 1e-6 * (all_reduce if all_reduce is not None else DEFAULT_ALL_REDUCE_US),
        "hop_latency_s": 1e-6 * (read.value(sheet.hop_latency_us, DEFAULT_HOP_LATENCY_US, "hop_latency_us") if sram else 0.0),
        "pipelined": float(sram),
        "max_degree": float(degree),
        "memory_byte": max(device.memory_gb - device.reserve_gb, 0.0) * 1e9,
        "tdp_w": tdp,
        "idle_w": read.value(device.idle_power_w, DEFAULT_IDLE_FRACTION * tdp, "idle_power_w"),
    }
    return Hardware(**{name: np.asarray(value, dtype=np.float64) for name, value in values.items()}, assumed=tuple(read.assumed))


DEFAULT_ALL_REDUCE_US = 10.0

"""The constants of a device that the formulas need, in SI units, one array entry per device.

What the data sheet does not state is filled with a default, and the name of the field goes into ``assumed``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from planner.errors import InputError
from planner.roofline.arrays import Array, array
from planner.schema.catalog import Device
from planner.schema.hardware import DataSheet, Kernels, Precision

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
DEFAULT_LINK_GB_PER_S = 32.0
DEFAULT_KV_STREAM = 0.82
DEFAULT_PREFILL_ATTENTION = 0.54
DEFAULT_ATTENTION_FLOOR_US = 8.7
# Latency of an all-reduce per doubling of the group, fitted on 2 to 8 devices (docs/hardware.md).
DEFAULT_ALL_REDUCE_US = 6.4
DEFAULT_IDLE_FRACTION = 0.12
DEFAULT_MEMORY_POWER_SHARE = 0.43
DEFAULT_HOP_LATENCY_US = 1.0


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
    memory_power_share: Array
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
    """Reads fields of a device, fills gaps with defaults and lists what is assumed or recalled."""

    def __init__(self, device: Device) -> None:
        self.confidence = device.confidence
        self.assumed: list[str] = []

    def __call__(self, field: str, given: float | None, default: float | None = None) -> float:
        """Give the value of a field, or its default.

        Raises
        ------
        InputError
            If there is neither.
        """
        if given is None and default is None:
            raise InputError(f"the device states no {field}")
        sure = "assumed" if given is None else self.confidence.get(field, "read")
        if sure in ("assumed", "recalled"):
            self.assumed.append(f"{field} ({sure})")
        return default if given is None else given  # type: ignore[return-value]


def _peak(sheet: DataSheet, precision: Precision) -> tuple[str, float]:
    for field in PEAKS[precision]:
        tera = getattr(sheet, field)
        if tera is not None:
            return field, float(tera)
    raise InputError(f"the device states no peak for {precision} (it needs one of {', '.join(PEAKS[precision])})")


def _kernel_constants(read: _Reader, sheet: DataSheet, precision: Precision, body: Precision) -> dict[str, float]:
    """Give shares and floors of the matrix kernels; computing, reading weights and launching may differ in format."""
    peak_field, peak = _peak(sheet, precision)
    compute_format = FORMAT[peak_field]
    stored = precision if precision in sheet.kernels else compute_format
    launched = body if body in sheet.kernels else FORMAT[_peak(sheet, body)[0]]
    compute, weights, launches = (sheet.kernels.get(key, Kernels()) for key in (compute_format, stored, launched))
    key = "data_sheet.kernels."
    return {
        "peak_flop_per_s": 1e12 * read(f"data_sheet.{peak_field}", peak),
        "gemm_fraction": read(
            f"{key}{compute_format}.gemm_fraction", compute.gemm_fraction, DEFAULT_GEMM[compute_format]
        ),
        "stream_fraction": read(f"{key}{stored}.stream_fraction", weights.stream_fraction, DEFAULT_STREAM[stored]),
        "kernel_floor_s": 1e-6 * read(f"{key}{launched}.floor_us", launches.floor_us, DEFAULT_FLOOR_US[launched]),
    }


def _attention_constants(read: _Reader, sheet: DataSheet, precision: Precision) -> dict[str, float]:
    kernels, key = sheet.attention, "data_sheet.attention."
    peak = sheet.bf16_tflops if sheet.bf16_tflops is not None else _peak(sheet, precision)[1]
    return {
        "attention_peak_flop_per_s": 1e12 * peak,
        "kv_stream_fraction": read(f"{key}kv_stream_fraction", kernels.kv_stream_fraction, DEFAULT_KV_STREAM),
        "prefill_attention_fraction": read(
            f"{key}prefill_fraction", kernels.prefill_fraction, DEFAULT_PREFILL_ATTENTION
        ),
        "attention_floor_s": 1e-6 * read(f"{key}floor_us", kernels.floor_us, DEFAULT_ATTENTION_FLOOR_US),
    }


def _link_constants(read: _Reader, sheet: DataSheet) -> dict[str, float]:
    link, key = sheet.link, "data_sheet.link."
    shared = link is not None and sheet.tensor_parallel_capable and link.domain_devices > 1
    constants = {"max_degree": 1.0, "link_byte_per_s": 1e9 * DEFAULT_LINK_GB_PER_S, "all_reduce_latency_s": 0.0}
    if link is not None:
        constants["link_byte_per_s"] = 1e9 * read(f"{key}bandwidth_gb_per_s", link.bandwidth_gb_per_s)
        latency = link.all_reduce_latency_us
        default = DEFAULT_ALL_REDUCE_US
        constants["all_reduce_latency_s"] = 1e-6 * (
            read(f"{key}all_reduce_latency_us", latency, default) if shared else latency or default
        )
    if link is not None and shared:
        constants["max_degree"] = read(f"{key}domain_devices", float(link.domain_devices))
    hop = (
        read("data_sheet.hop_latency_us", sheet.hop_latency_us, DEFAULT_HOP_LATENCY_US) if sheet.weights_in_sram else 0
    )
    return constants | {"hop_latency_s": 1e-6 * hop, "pipelined": float(sheet.weights_in_sram)}


def _board_constants(read: _Reader, device: Device, sheet: DataSheet) -> dict[str, float]:
    tdp = read("data_sheet.tdp_w", sheet.tdp_w)
    memory = read("memory_gb", device.memory_gb) - read("reserve_gb", device.reserve_gb)
    return {
        "bandwidth_byte_per_s": 1e12 * read("data_sheet.memory_bandwidth_tb_per_s", sheet.memory_bandwidth_tb_per_s),
        "memory_byte": 1e9 * max(memory, 0.0),
        "tdp_w": tdp,
        "idle_w": read("idle_power_w", device.idle_power_w, DEFAULT_IDLE_FRACTION * tdp),
        "memory_power_share": read(
            "data_sheet.memory_power_share", sheet.memory_power_share, DEFAULT_MEMORY_POWER_SHARE
        ),
    }


def hardware(device: Device, precision: Precision, body: Precision | None = None) -> Hardware:
    """Collect the constants of a device at a weight precision, as arrays of shape ().

    ``body``: format of the weights outside routed experts where it differs (`counts.body_precision`); most launches
    of a layer are of that format, so it sets the kernel floor.

    Raises
    ------
    InputError
        If the device has no data sheet, memory, TDP or peak for the precision.
    """
    sheet = device.data_sheet
    if sheet is None:
        raise InputError("the device has no data_sheet: the roofline cannot cost it")
    read = _Reader(device)
    values = _kernel_constants(read, sheet, precision, body or precision)
    values |= _attention_constants(read, sheet, precision)
    values |= _link_constants(read, sheet)
    values |= _board_constants(read, device, sheet)
    arrays = {name: array(value) for name, value in values.items()}
    return Hardware(**arrays, assumed=tuple(dict.fromkeys(read.assumed)))

"""Roofline profiles: latency, energy and memory of a pass, from a device's data sheet and a model's shape."""

from __future__ import annotations

from planner.roofline.counts import body_precision, kv_bytes, parameters, weight_bytes
from planner.roofline.hardware import Hardware, hardware, stack
from planner.roofline.memory import degree_problem, devices_for, kv_degree, resident_sequences
from planner.roofline.option import profile
from planner.roofline.passes import BOUNDS, Pass, draft_decode, prefill, verify
from planner.roofline.power import host_factor

__all__ = [
    "BOUNDS",
    "Hardware",
    "Pass",
    "body_precision",
    "degree_problem",
    "devices_for",
    "draft_decode",
    "hardware",
    "host_factor",
    "kv_bytes",
    "kv_degree",
    "parameters",
    "prefill",
    "profile",
    "resident_sequences",
    "stack",
    "verify",
    "weight_bytes",
]

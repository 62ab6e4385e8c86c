"""How many sequences a replica holds."""

from __future__ import annotations

import math

from planner.schema.catalog import Device, Model
from planner.schema.scenario import Workload

_GB = 1e9


def kv_bytes_per_sequence(model: Model, workload: Workload) -> float | None:
    """KV bytes that one sequence holds at its longest, ISL + OSL tokens; null where the model's is not known."""
    if model.kv_bytes_per_token is None:
        return None
    return (workload.isl_tokens + workload.osl_tokens) * model.kv_bytes_per_token


def sequences_per_replica(device: Device, model: Model, workload: Workload, tensor_parallel: int) -> float:
    """R = ⌊(usable memory − weights − reserve) / KV bytes per sequence⌋; infinite where memory is not described.

    Parameters
    ----------
    device, model, workload
        Memory and reserve are per device, weights per replica.
    tensor_parallel
        Devices per replica.

    >>> from planner.schema.catalog import Device, Model
    >>> chat = Workload(isl_tokens=3000, osl_tokens=1000)
    >>> sequences_per_replica(Device(memory_gb=80.0), Model(weights_gb=16.0, kv_bytes_per_token=131072.0), chat, 1)
    122.0
    """
    kv_bytes = kv_bytes_per_sequence(model, workload)
    if device.memory_gb is None or model.weights_gb is None or kv_bytes is None:
        return math.inf
    free = (device.memory_gb - device.reserve_gb) * tensor_parallel * _GB - model.weights_gb * _GB
    if free < 0:
        return 0.0
    return math.inf if kv_bytes == 0 else float(math.floor(free / kv_bytes))

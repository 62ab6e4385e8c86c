"""What fits into a replica's memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.schema.catalog import Device, Model
from planner.schema.scenario import Workload

_GB = 1e9


def kv_bytes_per_sequence(model: Model, workload: Workload) -> float | None:
    """KV bytes that one sequence holds at its longest, ISL + OSL tokens; null where the model's is not known."""
    if model.kv_bytes_per_token is None:
        return None
    return (workload.isl_tokens + workload.osl_tokens) * model.kv_bytes_per_token


def free_bytes(device: Device, models: Sequence[Model], tensor_parallel: int) -> float:
    """Bytes that a replica has for KV: usable memory − reserve − weights of all its models.

    Infinite where the device's memory or a model's weights or KV are not described; zero where the weights do not fit.
    """
    if device.memory_gb is None or any(m.weights_gb is None or m.kv_bytes_per_token is None for m in models):
        return math.inf
    weights = sum(model.weights_gb or 0.0 for model in models)
    return max(0.0, ((device.memory_gb - device.reserve_gb) * tensor_parallel - weights) * _GB)


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
    free, kv_bytes = free_bytes(device, [model], tensor_parallel), kv_bytes_per_sequence(model, workload)
    if math.isinf(free) or kv_bytes is None:
        return math.inf
    if kv_bytes == 0:
        return math.inf if free > 0 else 0.0
    return float(math.floor(free / kv_bytes))

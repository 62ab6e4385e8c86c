"""What fits into a replica's memory: one rule for private pools, shared pools and drafters beside the target."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.schema.scenario import Scenario

_GB = 1e9


def is_derived(scenario: Scenario, device: str, model: str) -> bool:
    """Whether the roofline costs a model on a device type: it has a data sheet and no profile of the model."""
    entry, what = scenario.catalog.devices[device], scenario.catalog.models[model]
    shaped = what.shape is not None or what.heads is not None
    return entry.data_sheet is not None and shaped and model not in entry.profiles


def weight_bytes(scenario: Scenario, device: str, model: str) -> float | None:
    """Bytes of a model's weights on a device type, at the precision that is served; null where not known."""
    if is_derived(scenario, device, model):
        from planner.derived import weight_bytes_of  # the roofline is loaded where a catalog needs it

        return weight_bytes_of(scenario, model)
    weights = scenario.catalog.models[model].weights_gb
    return None if weights is None else weights * _GB


def kv_bytes_per_sequence(
    scenario: Scenario, workload: str, device: str, model: str, tensor_parallel: int
) -> float | None:
    """Bytes that one sequence of a model holds at its longest, ISL + OSL tokens, in a replica; null where not known.

    Copies count: a cache is split over at most the KV heads.
    """
    request = scenario.workloads[workload]
    tokens = request.isl_tokens + request.osl_tokens
    if is_derived(scenario, device, model):
        from planner.derived import sequence_bytes_of  # the roofline is loaded where a catalog needs it

        return sequence_bytes_of(scenario, device, model, tokens, tensor_parallel)
    per_token = scenario.catalog.models[model].kv_bytes_per_token
    return None if per_token is None else tokens * per_token


def prompt_kv_bytes(scenario: Scenario, workload: str, device: str, model: str) -> float:
    """Bytes of KV that a prompt leaves of a model, not counting copies; zero where it is not known."""
    tokens = scenario.workloads[workload].isl_tokens
    if is_derived(scenario, device, model):
        from planner.derived import sequence_bytes_of  # the roofline is loaded where a catalog needs it

        return sequence_bytes_of(scenario, device, model, tokens, 1)
    return tokens * (scenario.catalog.models[model].kv_bytes_per_token or 0.0)


def free_bytes(scenario: Scenario, device: str, models: Sequence[str], tensor_parallel: int) -> float:
    """Bytes that a replica has for KV: usable memory − reserve − weights of all its models.

    Infinite where the device's memory or a model's weights are not described; zero where the weights do not fit.
    """
    entry = scenario.catalog.devices[device]
    weights = [weight_bytes(scenario, device, model) for model in models]
    if entry.memory_gb is None or any(weight is None for weight in weights):
        return math.inf
    return max(0.0, (entry.memory_gb - entry.reserve_gb) * tensor_parallel * _GB - sum(w or 0.0 for w in weights))


def sequence_bytes(
    scenario: Scenario, workload: str, device: str, models: Sequence[str], tensor_parallel: int
) -> float | None:
    """Bytes that one sequence holds at its longest in a replica, of several models; null where one is not known."""
    sizes = [kv_bytes_per_sequence(scenario, workload, device, model, tensor_parallel) for model in models]
    return None if any(size is None for size in sizes) else sum(size or 0.0 for size in sizes)


def sequences_per_replica(
    scenario: Scenario, workload: str, device: str, models: Sequence[str], tensor_parallel: int
) -> float:
    """R = ⌊(usable memory − weights − reserve) / KV bytes per sequence⌋; infinite where memory is not described.

    Parameters
    ----------
    scenario, workload, device
        Memory and reserve are per device, weights per replica.
    models
        Models that each sequence uses: one, or the target with a drafter on the same replicas.
    tensor_parallel
        Devices per replica.
    """
    free = free_bytes(scenario, device, models, tensor_parallel)
    total = sequence_bytes(scenario, workload, device, models, tensor_parallel)
    if math.isinf(free) or total is None:
        return math.inf
    if total == 0:
        return math.inf if free > 0 else 0.0
    return float(math.floor(free / total))

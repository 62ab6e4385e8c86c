"""Predict what a measurement measured, or say why that cannot be done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.aggregated import Engine, Serving, engine_named, serve
from planner.errors import InputError, nearest
from planner.roofline import Hardware, body_precision, degree_problem, hardware
from planner.schema.catalog import Catalog, Model
from planner.schema.hardware import Precision, Shape
from planner.schema.validation import Measurement, Prediction

PRECISIONS: dict[str, Precision] = {
    "": "bf16",
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp16": "bf16",
    "float16": "bf16",
    "fp16/bf16": "bf16",
    "bf16/fp16": "bf16",
    "fp8": "fp8",
    "fp4": "fp4",
    "nvfp4": "fp4",
    "mxfp4": "fp4",
    "int4": "int4",
    "int8": "int8",
}


class _Unpredictable(Exception):  # noqa: N818
    """A row that the model does not cover; the message is the reason."""


@dataclass(frozen=True)
class Layout:
    """How devices form replicas: tensor-parallel degree, replicas, whole requests per device or split heads."""

    degree: int
    replicas: float = 1.0
    data_parallel_attention: bool = False


def precision_named(text: str) -> Precision:
    """Read a precision as the sources write it; nothing stated means bf16.

    Raises
    ------
    InputError
        If it is no known format.
    """
    word = text.lower().split(",")[0].strip()
    if word not in PRECISIONS:
        raise InputError(f"there is no precision '{text}' ({nearest(word, [name for name in PRECISIONS if name])})")
    return PRECISIONS[word]


def model_named(name: str, models: Mapping[str, Model]) -> tuple[str, Model]:
    """Find a model by its name or one of its shape's aliases.

    Raises
    ------
    InputError
        If there is none.
    """
    if name in models:
        return name, models[name]
    for key, model in models.items():
        if model.shape is not None and name in model.shape.aliases:
            return key, model
    raise InputError(f"there is no model '{name}' ({nearest(name, models)})")


def _stated_parallelism(text: str) -> tuple[int, bool] | None:
    """Read ``TP4`` or ``DEP8`` as (devices per replica, data-parallel attention); other notations state nothing.

    >>> _stated_parallelism("TP4"), _stated_parallelism("DEP8"), _stated_parallelism("TP1 EP8 DP1")
    ((4, False), (8, True), None)
    """
    match = re.fullmatch(r"(TP|DEP)(\d+)", text.strip())
    return (int(match[2]), match[1] == "DEP") if match else None


def devices_of(row: Measurement) -> float | None:
    """Give the devices of a row: as counted, else as many as its parallelism names."""
    stated = _stated_parallelism(row.parallelism)
    return row.n_devices if row.n_devices is not None else float(stated[0]) if stated else None


def _devices(row: Measurement) -> int:
    count = devices_of(row)
    if count is None:
        raise _Unpredictable("n_devices is missing")
    if count < 1 or count != int(count):
        raise _Unpredictable(f"n_devices is {count:g}, not a whole number of devices")
    return int(count)


def layout(row: Measurement, hw: Hardware) -> Layout | None:
    """Give the layout that a row states or implies; None where the load is unlimited and every layout is possible.

    A dump that multiplies the tensor and the expert degree (n_devices = expert_parallel²) counts each device more than
    once: one replica is ``expert_parallel`` devices. Devices beyond the link's domain form further replicas.
    """
    devices, stated = _devices(row), _stated_parallelism(row.parallelism)
    if stated is not None:
        return Layout(stated[0], devices / stated[0], stated[1])
    expert, attention = row.expert_parallel or 1.0, row.attention_data_parallel or 1.0
    if expert > 1 and devices == expert**2:
        return Layout(int(expert), 1.0 if attention < devices else 1.0 / expert, attention == devices)
    if row.concurrency is None:
        return None
    degree = devices if bool(hw.pipelined > 0) else min(devices, int(hw.max_degree))
    if degree < devices and int(hw.max_degree) == 1:
        raise _Unpredictable("the device shares no tensor-parallel link with others")
    return Layout(degree, devices / degree, attention == devices > 1)


def _serve(row: Measurement, hw: Hardware, shape: Shape, precision: Precision, plan: Layout, engine: Engine) -> Serving:
    problem = degree_problem(hw, shape, plan.degree)
    if problem is not None and not plan.data_parallel_attention:
        raise _Unpredictable(problem)
    concurrency = None if row.concurrency is None else row.concurrency / plan.replicas
    serving = serve(
        hw,
        shape,
        precision,
        float(row.isl or 0.0),
        float(row.osl or 0.0),
        concurrency,
        plan.degree,
        engine,
        data_parallel_attention=plan.data_parallel_attention,
    )
    if serving.batch < 1:
        raise _Unpredictable(f"weights and one sequence do not fit into {plan.degree} device(s)")
    return serving


def _fastest(
    row: Measurement, hw: Hardware, shape: Shape, precision: Precision, engine: Engine
) -> tuple[Layout, Serving]:
    """Take the layout with the highest throughput: what an unlimited load is served with."""
    devices, found = _devices(row), []
    for degree in (2**power for power in range(10)):
        if devices % degree == 0 and degree_problem(hw, shape, degree) is None:
            plan = Layout(degree, devices / degree)
            try:
                found.append((plan, _serve(row, hw, shape, precision, plan, engine)))
            except _Unpredictable:
                continue
    if not found:
        raise _Unpredictable(f"weights and one sequence do not fit into any split of {devices} device(s)")
    return max(found, key=lambda pair: float(pair[1].throughput_tps) * pair[0].replicas)


def _check_lengths(row: Measurement) -> None:
    missing = [name for name in ("isl", "osl") if getattr(row, name) is None]
    if missing:
        raise _Unpredictable(f"{' and '.join(missing)} missing")
    if (row.osl or 0.0) < 1 or (row.isl or 0.0) < 1:
        raise _Unpredictable("isl and osl must be at least 1")
    if row.concurrency is not None and row.concurrency <= 0:
        raise _Unpredictable("concurrency must be above 0")


def _columns(serving: Serving, plan: Layout) -> dict[str, float]:
    values = {
        "tpot_ms": 1e3 * serving.tpot_s,
        "ttft_ms": 1e3 * serving.ttft_s,
        "out_tok_s": plan.replicas * serving.throughput_tps,
        "power_w": plan.replicas * serving.power_w,
        "j_per_out_tok": serving.energy_j_per_token,
    }
    return {name: float(value) for name, value in values.items() if np.isfinite(value)}


def _assumed(hw: Hardware, model: Model, name: str, row: Measurement) -> tuple[str, ...]:
    sure = model.confidence.get("shape", "read")
    shape = (f"models.{name}.shape ({sure})",) if sure in ("assumed", "recalled") else ()
    precision = () if row.precision else ("precision bf16 (assumed)",)
    load = () if row.concurrency is not None else ("concurrency: as many as fit (assumed)",)
    return hw.assumed + shape + precision + load


def _predict(row: Measurement, catalog: Catalog) -> Prediction:
    if row.device not in catalog.devices:
        raise _Unpredictable(f"there is no device '{row.device}' ({nearest(row.device, catalog.devices)})")
    name, model = model_named(row.model, catalog.models)
    precision, shape = precision_named(row.precision), model.shape
    if shape is None:
        raise _Unpredictable(f"model '{name}' has no shape")
    _check_lengths(row)
    hw = hardware(catalog.devices[row.device], precision, body_precision(shape, precision))
    engine = engine_named(row.framework)
    plan = layout(row, hw)
    if plan is None:
        plan, serving = _fastest(row, hw, shape, precision, engine)
    else:
        serving = _serve(row, hw, shape, precision, plan, engine)
    predicted = _columns(serving, plan)
    return Prediction(index=row.index, predicted=predicted, reason=None, assumed=_assumed(hw, model, name, row))


def predict(row: Measurement, catalog: Catalog) -> Prediction:
    """Predict one measured row by aggregated serving; a row that is not covered carries the reason instead."""
    try:
        return _predict(row, catalog)
    except (_Unpredictable, InputError) as error:
        return Prediction(index=row.index, predicted={}, reason=str(error))

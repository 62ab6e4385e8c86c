"""How far predictions are from measurements: by metric, device and model, and whether devices keep their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from planner.schema.catalog import Catalog
from planner.schema.validation import (
    METRICS,
    ErrorSummary,
    Measurement,
    MetricSummary,
    Ordering,
    Prediction,
    Validation,
    Worst,
)
from planner.validate.predict import devices_of, predict

WORST_ROWS = 10


def measured_value(row: Measurement, metric: str) -> float | None:
    """Give a row's measured value; throughput per device counts for all devices, power at the wall for none."""
    if metric in ("power_w", "j_per_out_tok") and "wall" in row.power_scope.lower():
        return None
    value, devices = getattr(row, metric), devices_of(row)
    if metric == "out_tok_s" and value is None and row.out_tok_s_per_device is not None and devices is not None:
        value = row.out_tok_s_per_device * devices
    return None if value is None or value <= 0 else float(value)


def error_summary(errors: Sequence[float]) -> ErrorSummary:
    """Summarise relative errors: median and 90th percentile of their size, median of their sign.

    >>> error_summary([0.1, -0.2, 0.3]).median_abs_error
    0.2
    """
    values = np.asarray(errors, dtype=np.float64)
    return ErrorSummary(
        count=len(errors),
        median_abs_error=float(np.median(np.abs(values))),
        p90_abs_error=float(np.quantile(np.abs(values), 0.9)),
        bias=float(np.median(values)),
    )


Pair = tuple[Measurement, float, float]


def _pairs(rows: Sequence[Measurement], predictions: Sequence[Prediction], metric: str) -> list[Pair]:
    found = []
    for row, prediction in zip(rows, predictions, strict=True):
        measured, predicted = measured_value(row, metric), prediction.predicted.get(metric)
        if measured is not None and predicted is not None:
            found.append((row, measured, predicted))
    return found


def points(rows: Sequence[Measurement], validation: Validation) -> dict[str, list[tuple[str, float, float]]]:
    """Give (device, measured, predicted) of every row by metric, to draw."""
    found = {metric: _pairs(rows, validation.rows, metric) for metric in METRICS}
    return {metric: [(row.device, one, other) for row, one, other in some] for metric, some in found.items() if some}


def _grouped(pairs: Iterable[Pair], key: Callable[[Measurement], str]) -> dict[str, ErrorSummary]:
    groups: dict[str, list[float]] = defaultdict(list)
    for row, measured, predicted in pairs:
        groups[key(row)].append(predicted / measured - 1.0)
    return {name: error_summary(groups[name]) for name in sorted(groups)}


def _metric_summary(pairs: Sequence[Pair]) -> MetricSummary:
    return MetricSummary(
        all=error_summary([predicted / measured - 1.0 for _, measured, predicted in pairs]),
        by_device=_grouped(pairs, lambda row: row.device),
        by_model=_grouped(pairs, lambda row: row.model),
    )


def _one_digit(value: float | None) -> str:
    return "" if value is None else f"{value:.0e}"


def _load(row: Measurement) -> tuple[object, ...]:
    """Give what two rows must share to compare their devices: lengths to one digit, as sources round them."""
    concurrency = None if row.concurrency is None else round(row.concurrency)
    words = (row.model, row.precision, row.n_devices, concurrency)
    return (*words, _one_digit(row.isl), _one_digit(row.osl), row.framework.split(" ")[0])


def ordering(pairs: Sequence[Pair]) -> Ordering:
    """Count the pairs of device types under one load whose order by TPOT the prediction keeps.

    Rows of a device under one load are taken together by their median.
    """
    loads: dict[tuple[object, ...], dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for row, measured, predicted in pairs:
        loads[_load(row)][row.device].append((measured, predicted))
    agreeing = total = 0
    for devices in loads.values():
        medians = [np.median(np.asarray(values), axis=0) for values in devices.values()]
        for one, other in combinations(medians, 2):
            total += 1
            agreeing += int((one[0] - other[0]) * (one[1] - other[1]) > 0)
    return Ordering(pairs=total, agreeing=agreeing, share=agreeing / total if total else None)


def _worst(pairs: Mapping[str, Sequence[Pair]]) -> tuple[Worst, ...]:
    rows = [
        Worst(index=row.index, metric=metric, measured=measured, predicted=value, error=value / measured - 1.0)
        for metric, found in pairs.items()
        for row, measured, value in found
    ]
    return tuple(sorted(rows, key=lambda row: -abs(np.log(row.predicted / row.measured)))[:WORST_ROWS])


def validate(rows: Sequence[Measurement], catalog: Catalog) -> Validation:
    """Predict every measured row with the devices and models of a catalog and compare."""
    predictions = tuple(predict(row, catalog) for row in rows)
    pairs = {metric: _pairs(rows, predictions, metric) for metric in METRICS}
    return Validation(
        rows=predictions,
        metrics={metric: _metric_summary(found) for metric, found in pairs.items() if found},
        ordering=ordering(pairs["tpot_ms"]),
        worst=_worst(pairs),
        unpredictable=sum(prediction.reason is not None for prediction in predictions),
    )


def as_json(validation: Validation) -> dict[str, Any]:
    """Give a validation as the document that ``--json`` prints."""
    dump = validation.model_dump(mode="json")
    summary = {name: dump[name] for name in ("metrics", "ordering", "worst", "unpredictable")}
    return {"schema_version": 1, "rows": dump["rows"], "summary": {**summary.pop("metrics"), **summary}}

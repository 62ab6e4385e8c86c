"""Compares predictions of aggregated serving with measurements."""

from __future__ import annotations

from planner.validate.figure import drawn, figure
from planner.validate.measurements import METRICS, Measurement, measurements, read_measurements
from planner.validate.predict import Prediction, predict
from planner.validate.summary import ErrorSummary, Validation, as_json, validate

__all__ = [
    "METRICS",
    "ErrorSummary",
    "Measurement",
    "Prediction",
    "Validation",
    "as_json",
    "drawn",
    "figure",
    "measurements",
    "predict",
    "read_measurements",
    "validate",
]

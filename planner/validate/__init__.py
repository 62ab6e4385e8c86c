"""Compares predictions of aggregated serving with measurements."""

from __future__ import annotations

from planner.validate.predict import predict
from planner.validate.summary import as_json, points, validate

__all__ = ["as_json", "points", "predict", "validate"]

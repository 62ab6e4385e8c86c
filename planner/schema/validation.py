"""Measurements of serving, predictions for them, and how far the two are apart."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.schema.base import Document

METRICS = ("tpot_ms", "ttft_ms", "out_tok_s", "power_w", "j_per_out_tok")


class Measurement(Document):
    """One measured row: what was run, and what was measured of it. A missing cell is null.

    ``power_w`` and ``j_per_out_tok`` are of the device boards; rows whose ``power_scope`` says wall are not compared.
    """

    index: Annotated[int, Field(ge=0)]
    device: str
    model: str
    precision: str = ""
    framework: str = ""
    parallelism: str = ""
    power_scope: str = ""
    n_devices: float | None = None
    isl: float | None = None
    osl: float | None = None
    concurrency: float | None = None
    attention_data_parallel: float | None = None
    expert_parallel: float | None = None
    out_tok_s_per_device: float | None = None
    tpot_ms: float | None = None
    ttft_ms: float | None = None
    out_tok_s: float | None = None
    power_w: float | None = None
    j_per_out_tok: float | None = None


class Prediction(Document):
    """Prediction of one row in the columns of the file, or the reason why there is none."""

    index: int
    predicted: dict[str, float]
    reason: str | None
    assumed: tuple[str, ...] = ()


class ErrorSummary(Document):
    """Relative errors (predicted/measured − 1) of a group of rows."""

    count: int
    median_abs_error: float
    p90_abs_error: float
    bias: float


class MetricSummary(Document):
    """Errors of one metric over all rows, by device and by model."""

    all: ErrorSummary
    by_device: dict[str, ErrorSummary]
    by_model: dict[str, ErrorSummary]


class Ordering(Document):
    """Pairs of device types under one load: how many the prediction orders as the measurement does."""

    pairs: int
    agreeing: int
    share: float | None


class Worst(Document):
    """A row far from its prediction."""

    index: int
    metric: str
    measured: float
    predicted: float
    error: float


class Validation(Document):
    """Predictions of all rows and what they say about the model. Rows without a prediction carry a reason."""

    rows: tuple[Prediction, ...]
    metrics: dict[str, MetricSummary]
    ordering: Ordering
    worst: tuple[Worst, ...]
    unpredictable: int

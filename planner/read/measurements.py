"""Read CSV files of serving measurements."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from planner.errors import InputError, nearest
from planner.schema.validation import METRICS, Measurement

NUMBERS = (
    *METRICS,
    "n_devices",
    "isl",
    "osl",
    "concurrency",
    "out_tok_s_per_device",
    "attention_data_parallel",
    "expert_parallel",
)
WORDS = ("device", "model", "precision", "framework", "parallelism", "power_scope")
REQUIRED = ("device", "model")
LARGEST_FILE_BYTES = 50_000_000
MOST_PROBLEMS = 20


def _number(text: str, where: str, problems: list[str]) -> float | None:
    try:
        value = float(text)
    except ValueError:
        problems.append(f"{where}: '{text[:40]}' is not a number")
        return None
    if not math.isfinite(value) or value < 0 or value > 1e18:
        problems.append(f"{where}: {text[:40]} is out of range: it must be finite and not negative")
        return None
    return value


def _measurement(index: int, row: Mapping[str, str], where: str, problems: list[str]) -> Measurement | None:
    words = {name: (row.get(name) or "").strip() for name in WORDS}
    problems += [f"{where}: {name} is empty" for name in REQUIRED if not words[name]]
    cells = {name: (row.get(name) or "").strip() for name in NUMBERS}
    numbers = {name: _number(text, f"{where}: {name}", problems) for name, text in cells.items() if text}
    if not all(words[name] for name in REQUIRED):
        return None
    return Measurement.model_validate({"index": index, **words, **numbers})


def measurements(rows: Iterable[Mapping[str, str]], name: str = "row", first_line: int = 2) -> tuple[Measurement, ...]:
    """Turn parsed CSV rows into measurements; columns that are not known are ignored.

    Raises
    ------
    InputError
        With up to `MOST_PROBLEMS` located problems: cells that are no number, negative, NaN or infinite, empty names.
    """
    problems: list[str] = []
    read = []
    for index, row in enumerate(rows):
        where = f"{name}:{index + first_line}"
        if None in row or None in row.values():
            problems.append(f"{where}: the row has another number of cells than the header")
        elif (measurement := _measurement(index, row, where, problems)) is not None:
            read.append(measurement)
        if len(problems) > MOST_PROBLEMS:
            raise InputError(*problems[:MOST_PROBLEMS], f"{name}: and more")
    if problems:
        raise InputError(*problems)
    return tuple(read)


def _header_problems(header: list[str], name: str) -> list[str]:
    missing = [
        f"{name}:1: column '{column}' is missing ({nearest(column, header)})"
        for column in REQUIRED
        if column not in header
    ]
    twice = sorted({column for column in header if header.count(column) > 1 and column in (*WORDS, *NUMBERS)})
    measured = {*METRICS, "out_tok_s_per_device"} & set(header)
    nothing = [] if measured else [f"{name}:1: no measured column (one of {', '.join(METRICS)})"]
    return missing + [f"{name}:1: column '{column}' appears twice" for column in twice] + nothing


def read_measurements(path: Path) -> tuple[Measurement, ...]:
    """Read a CSV file of measurements.

    Raises
    ------
    InputError
        If the file cannot be read, is empty, enormous or not UTF-8 text, misses a column, or holds a bad cell.
    """
    name = path.name
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise InputError(f"{name}: larger than {LARGEST_FILE_BYTES // 1_000_000} MB")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not UTF-8 text (byte {error.start})") from error
    try:
        lines = csv.DictReader(text.splitlines(), strict=True)
        header = list(lines.fieldnames or [])
        if not header:
            raise InputError(f"{name}: the file is empty")
        if problems := _header_problems(header, name):
            raise InputError(*problems)
        read = measurements(list(lines), name)
    except csv.Error as error:
        raise InputError(f"{name}: not a CSV file: {error}") from error
    if not read:
        raise InputError(f"{name}: no rows below the header")
    return read

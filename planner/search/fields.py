"""The fields that knobs set: as ``planner.fields``, with a mistake told as one of a knob."""

from __future__ import annotations

from typing import Any

from planner import fields
from planner.errors import InputError
from planner.fields import Step, value_at
from planner.schema.scenario import Scenario

__all__ = ["Step", "changed", "path_of", "value_at"]


def path_of(scenario: Scenario, key: str) -> tuple[Step, ...]:
    """Split a dotted key along the names that exist.

    Raises
    ------
    InputError
        Naming the part that does not exist, and the nearest ones.
    """
    try:
        return fields.path_of(scenario, key)
    except InputError as error:
        raise InputError(*(f"knobs: {problem}" for problem in error.problems)) from error


def changed(scenario: Scenario, path: tuple[Step, ...], value: Any) -> Scenario:  # noqa: ANN401
    """Give the scenario with another value at the end of a path.

    Raises
    ------
    InputError
        If a document does not take the value.
    """
    try:
        return fields.changed(scenario, path, value)
    except InputError as error:
        raise InputError(*(f"knobs: {problem}" for problem in error.problems)) from error

"""Read and change one field of a frozen document by its dotted key, the one that ``--set`` takes."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from planner.errors import InputError, nearest
from planner.schema.base import Document
from planner.schema.scenario import Scenario

Step = str | int


def path_of(scenario: Scenario, key: str) -> tuple[Step, ...]:
    """Split a dotted key along the names that exist; of several the longest, since a name may hold dots.

    Raises
    ------
    InputError
        Naming the part that does not exist, and the nearest ones.
    """
    node: Any = scenario
    path: list[Step] = []
    parts = key.split(".")
    while parts:
        names = _names(node)
        for end in range(len(parts), 0, -1):
            if (name := names.get(".".join(parts[:end]), None)) is not None:
                break
        else:
            at = ".".join(map(str, [*path, parts[0]]))
            raise InputError(f"{at}: there is no such key ({nearest(parts[0], names)})")
        path.append(name)
        node, parts = value_at(node, name), parts[end:]
    return tuple(path)


def _names(node: Any) -> dict[str, Step]:  # noqa: ANN401
    """Give the steps from a node by the text that a dotted key writes for them."""
    if isinstance(node, Document):
        return {name: name for name in type(node).model_fields}
    if isinstance(node, dict):
        return {str(name): name for name in node}
    return {str(index): index for index in range(len(node))} if isinstance(node, tuple) else {}


def value_at(node: Any, *path: Step) -> Any:  # noqa: ANN401
    """Give the value at the end of a path."""
    for step in path:
        node = getattr(node, str(step)) if isinstance(node, Document) else node[step]
    return node


def changed(scenario: Scenario, path: tuple[Step, ...], value: Any) -> Scenario:  # noqa: ANN401
    """Give the scenario with another value at the end of a path; every document on the way is validated.

    Raises
    ------
    InputError
        If a document does not take the value.
    """
    try:
        found: Scenario = _changed(scenario, path, value)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        raise InputError(f"{'.'.join(map(str, path))} = {value!r}: {detail['msg']}") from error
    return found


def _changed(node: Any, path: tuple[Step, ...], value: Any) -> Any:  # noqa: ANN401
    if not path:
        return value
    step, rest = path[0], path[1:]
    inner = _changed(value_at(node, step), rest, value)
    if isinstance(node, Document):
        return node.replace(**{str(step): inner})
    if isinstance(node, dict):
        return {**node, step: inner}
    return (*node[: int(step)], inner, *node[int(step) + 1 :])

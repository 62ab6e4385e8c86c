"""Turn pydantic's errors into lines that name the file, the line, the dotted key and the nearest valid names."""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from planner.errors import nearest
from planner.read.yaml_tree import Mark, Path, Problem, Tree, dotted, shortened

_EXPECTED = {
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "text",
    "finite_number": "a finite number",
}
_LOOKED_AT = 1000
_MISSING = {"missing": "the key is missing", "union_tag_not_found": "the key 'kind' is missing"}
_NUMBER_OR_MAPPING = frozenset({"LatencyForm", "EnergyForm"})
_BOUNDS = {
    "greater_than": "above",
    "greater_than_equal": "at least",
    "less_than": "below",
    "less_than_equal": "at most",
}


def problems_of(error: ValidationError, tree: Tree, model: type[BaseModel], dangling: Sequence[str]) -> list[Problem]:
    """Give every problem of a validation at the place where the wrong value was given.

    Parameters
    ----------
    error, tree, model
        What pydantic says of a tree's data as a model.
    dangling
        ``key: text`` of every name that nothing has, found in the data whatever else is wrong with it.
    """
    details = error.errors(include_url=False)
    inner = {detail["loc"][:-1] for detail in details}
    found = []
    for detail in details[:_LOOKED_AT]:
        # Names are looked up elsewhere; a list of bad items is not blamed for being short of good ones.
        if detail["type"] == "dangling" or (detail["type"] == "too_short" and detail["loc"] in inner):
            continue
        tag = ("kind",) if detail["type"] == "union_tag_invalid" else ()
        found.append(_at(tree, _real_path(detail["loc"] + tag, tree), _message(dict(detail), model)))
    for line in dangling:
        key, _, text = line.partition(": ")
        found.append(_at(tree, _split(tree, key), text))
    return [problem for problem in found if not problem.mark.broken]


def _at(tree: Tree, path: Path, text: str) -> Problem:
    mark = tree.mark(path) or Mark("")
    key = dotted(path[mark.root :])
    return Problem(mark, f"{key + ': ' if key else ''}{text}")


def _split(tree: Tree, key: str) -> Path:
    """Split a dotted key that a validator wrote, along the names that exist."""
    parts = key.split(".")
    path: Path = ()
    while parts:
        for end in range(len(parts), 0, -1):
            joined = ".".join(parts[:end])
            candidates = [(*path, joined), *([(*path, int(joined))] if joined.isdecimal() else [])]
            found = next((candidate for candidate in candidates if candidate in tree.marks), None)
            if found is not None:
                path, parts = found, parts[end:]
                break
        else:
            return (*path, *parts)
    return path


def _real_path(loc: tuple[Any, ...], tree: Tree) -> Path:
    """Drop what pydantic adds to a location (tags of unions, marks of keys) and the data does not have."""
    path: Path = ()
    for index, part in enumerate(loc):
        last = index == len(loc) - 1
        if part == "[key]":
            continue
        node = _at_path(tree.data, path)
        if (*path, part) in tree.marks or (isinstance(node, dict) and (last or node.get("kind") != part)):
            path = (*path, part)
    return path


def _at_path(node: Any, path: Path) -> Any:  # noqa: ANN401
    for part in path:
        inside = part in node if isinstance(node, dict) else isinstance(node, list) and isinstance(part, int)
        node = node[part] if inside else None
    return node


def _message(detail: dict[str, Any], model: type[BaseModel]) -> str:
    kind, given, context = detail["type"], detail.get("input"), detail.get("ctx") or {}
    loc = tuple(part for part in detail["loc"] if part != "[key]")
    if kind == "extra_forbidden":
        return f"unknown key ({nearest(str(loc[-1]), keys_at(model, loc[:-1]))})"
    if kind in _MISSING:
        return _MISSING[kind]
    if kind in ("literal_error", "union_tag_invalid"):
        return _not_valid(context.get("tag", given), str(context.get("expected") or context.get("expected_tags", "")))
    if kind == "string_pattern_mismatch":
        return f"{in_yaml(given)} is no name: letters, digits and . _ + -, starting with a letter or digit, at most 64"
    if kind == "too_short":
        return f"at least {context['min_length']} is needed, got none"
    if kind == "too_long":
        return f"at most {context['max_length']} can be given, got {len(given)}"  # type: ignore[arg-type]
    if kind in _EXPECTED:
        number = "a number or " if context.get("class_name") in _NUMBER_OR_MAPPING else ""
        return f"{number}{_EXPECTED[kind]} is expected, got {in_yaml(given)}"
    if kind in _BOUNDS:
        (bound,) = context.values()
        return (
            f"must be {_BOUNDS[kind]} {bound if isinstance(bound, int) else format(bound, 'g')}, got {in_yaml(given)}"
        )
    return str(detail["msg"])


def _not_valid(given: Any, expected: str) -> str:  # noqa: ANN401
    valid = [choice.strip(" '") for choice in expected.replace(" or ", ",").split(",")]
    if str(given) in valid:
        return f"{valid[0]} is expected, got {in_yaml(given)}"
    return f"{in_yaml(given)} is not valid ({nearest(str(given), [name for name in valid if name])})"


def in_yaml(value: Any) -> str:  # noqa: ANN401
    """Write a value as a YAML file would, so that a quoted number does not look like a number."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("inf", ".inf").replace("nan", ".nan")
    return f"'{shortened(value)}'" if isinstance(value, str) else shortened(str(value))


def keys_at(model: type[BaseModel], loc: tuple[Any, ...]) -> list[str]:
    """List the keys that are valid at a location of a document model."""
    keys: list[str] = []
    for kind in _kinds(model, loc):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys += kind.model_fields
        elif get_origin(kind) is dict and get_origin(get_args(kind)[0]) is Literal:
            keys += get_args(get_args(kind)[0])
    return sorted(set(keys))


def takes_a_mapping(model: type[BaseModel], loc: tuple[Any, ...]) -> bool:
    """Whether the value at a location of a document model may be a mapping."""
    return any(
        get_origin(kind) is dict or (isinstance(kind, type) and issubclass(kind, BaseModel))
        for kind in _kinds(model, loc)
    )


def _kinds(annotation: Any, loc: tuple[Any, ...]) -> Iterator[Any]:  # noqa: ANN401
    """Give what the value at a location may be: a document model, a ``dict[...]``, a plain type."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _kinds(get_args(annotation)[0], loc)
    elif origin in (Union, types.UnionType):
        members = get_args(annotation)
        tagged = [member for member in members if loc and loc[0] in _tags(member)]
        for member in tagged or members:
            yield from _kinds(member, loc[1:] if tagged else loc)
    elif not loc:
        yield annotation
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if loc[0] in annotation.model_fields:
            yield from _kinds(annotation.model_fields[loc[0]].annotation, loc[1:])
    elif origin in (dict, tuple):
        yield from _kinds(get_args(annotation)[origin is dict], loc[1:])


def _tags(member: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """Give the kinds that select a member of a union; pydantic puts the kind into a location."""
    kind = getattr(member, "model_fields", {}).get("kind")
    return get_args(kind.annotation) if kind is not None else ()

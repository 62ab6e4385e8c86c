"""Turn pydantic's errors into lines that name the file, the line, the dotted key and the nearest valid names."""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from planner.errors import InputError, nearest
from planner.read.yaml_tree import Path, Tree, dotted

_EXPECTED = {
    "model_type": "a mapping",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "text",
    "finite_number": "a finite number",
}


def located(error: ValidationError, tree: Tree, model: type[BaseModel]) -> InputError:
    """Say every problem of a validation at the place where the wrong value was given."""
    problems: list[str] = []
    for detail in error.errors(include_url=False):
        lines = (detail.get("ctx") or {}).get("lines")
        if lines is not None:
            prefix = _real_path(detail["loc"], tree)
            for line in lines:
                key, _, text = line.partition(": ")
                problems.append(_at(tree, (*prefix, *_split(tree, prefix, key)), text))
        else:
            tag = ("kind",) if detail["type"] == "union_tag_invalid" else ()
            path = _real_path(detail["loc"] + tag, tree)
            problems.append(_at(tree, path, _message(dict(detail), model)))
    return InputError(*dict.fromkeys(problems))


def _at(tree: Tree, path: Path, text: str) -> str:
    mark = tree.mark(path)
    shown = path[mark.root :] if mark is not None and mark.line is not None else path
    key = dotted(shown)
    return f"{mark}: {key + ': ' if key else ''}{text}"


def _split(tree: Tree, prefix: Path, key: str) -> Path:
    """Split a dotted key that a validator wrote, along the names that exist."""
    parts, path = key.split("."), prefix
    while parts:
        for end in range(len(parts), 0, -1):
            joined = ".".join(parts[:end])
            candidates = [(*path, joined), *([(*path, int(joined))] if joined.isdecimal() else [])]
            found = next((candidate for candidate in candidates if candidate in tree.marks), None)
            if found is not None:
                path, parts = found, parts[end:]
                break
        else:
            return (*path[len(prefix) :], *parts)
    return path[len(prefix) :]


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
    if kind == "missing":
        return "the key is missing"
    if kind in ("literal_error", "union_tag_invalid"):
        choices = str(context.get("expected") or context.get("expected_tags", ""))
        valid = [choice.strip(" '") for choice in choices.replace(" or ", ",").split(",")]
        shown = context.get("tag", given)
        return f"'{_short(shown)}' is not valid ({nearest(str(shown), [name for name in valid if name])})"
    if kind == "union_tag_not_found":
        return "the key 'kind' is missing"
    if kind == "string_pattern_mismatch":
        return f"'{_short(given)}' is no name: letters, digits and . _ + -, starting with a letter or digit, at most 64"
    if kind in _EXPECTED:
        return f"{_EXPECTED[kind]} is expected, got {_short(given)}"
    text = str(detail["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    if detail["type"] in ("dangling", "place", "option_key", "tokens_per_step", "form", "prefix"):
        return text
    return f"{text}, got {_short(given)}"


def _short(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None:
        return "null"
    text = str(value)
    return text if len(text) <= 40 else text[:37] + "..."


def keys_at(annotation: Any, loc: tuple[Any, ...]) -> list[str]:  # noqa: ANN401
    """List the keys that are valid at a location of a document model."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return keys_at(get_args(annotation)[0], loc)
    if origin in (Union, types.UnionType):
        return _keys_of_union(annotation, loc)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not loc:
            return list(annotation.model_fields)
        fields = annotation.model_fields
        return keys_at(fields[loc[0]].annotation, loc[1:]) if loc[0] in fields else []
    if origin is dict:
        key, value = get_args(annotation)
        if not loc:
            return [str(name) for name in get_args(key)] if get_origin(key) is Literal else []
        return keys_at(value, loc[1:])
    if origin is tuple:
        return keys_at(get_args(annotation)[0], loc[1:]) if loc else []
    return []


def _keys_of_union(annotation: Any, loc: tuple[Any, ...]) -> list[str]:  # noqa: ANN401
    members = [member for member in get_args(annotation) if member is not type(None)]
    for member in members:
        tag = getattr(member, "model_fields", {}).get("kind")
        if tag is not None and loc and loc[0] in get_args(tag.annotation):
            return keys_at(member, loc[1:])
    return sorted({key for member in members for key in keys_at(member, loc)})

"""Set one dotted key of a tree: ``--set``, a scenario's ``overrides`` and every flag go through here."""

from __future__ import annotations

from typing import Any

from planner.errors import InputError, nearest
from planner.read.locate import keys_at
from planner.read.yaml_tree import Mark, Path, Tree, dotted, parse
from planner.schema.scenario import Scenario


def set_key(tree: Tree, key: str, value: Any, mark: Mark) -> None:  # noqa: ANN401
    """Set the value at a dotted key, in place. Mappings on the way are made where they are missing.

    A name may itself hold dots (``llama-3.1-8b``): the longest run of parts that exists is taken.

    Raises
    ------
    InputError
        If the key goes through a plain value, an entry or a list position that does not exist.
    """
    parts = key.split(".")
    if not all(parts):
        raise InputError(f"{mark}: '{key}' is no dotted key")
    path: Path = ()
    node = tree.data
    while True:
        node_key, parts = _step(node, parts, path, mark)
        if parts and isinstance(node, dict) and node.get(node_key) is None:
            _is_field(path, str(node_key), list(map(str, node)), mark)
            node[node_key] = {}
        path = (*path, node_key)
        if not parts:
            break
        node = node[node_key]
    node[node_key] = value
    tree.graft(path, Tree(value, {(): mark}))


def _is_field(path: Path, key: str, entries: list[str], mark: Mark) -> None:
    """Refuse to make an entry of a collection by the way: a missing name is a slip of the pen."""
    fields = keys_at(Scenario, path)
    if key not in fields:
        raise InputError(f"{mark}: {dotted((*path, key))}: there is no such key ({nearest(key, fields or entries)})")


def _step(node: Any, parts: list[str], path: Path, mark: Mark) -> tuple[str | int, list[str]]:  # noqa: ANN401
    """Take as many parts as name one existing key, else one part for a new key."""
    if isinstance(node, dict):
        names = {str(name): name for name in node}
        for end in range(len(parts), 0, -1):
            name = ".".join(parts[:end])
            if name in names:
                return names[name], parts[end:]
        return parts[0], parts[1:]
    if isinstance(node, list):
        if parts[0].isdecimal() and int(parts[0]) < len(node):
            return int(parts[0]), parts[1:]
        positions = [str(index) for index in range(len(node))]
        raise InputError(f"{mark}: {dotted(path)} has no position '{parts[0]}' ({nearest(parts[0], positions)})")
    what = "null" if node is None else f"the plain value {node!r}"
    raise InputError(f"{mark}: {dotted(path)} is {what} and has no key '{parts[0]}'")


def parse_assignment(text: str, flag: str = "--set") -> tuple[str, Any, Mark]:
    """Read ``dotted.key=value``, the value as YAML.

    Raises
    ------
    InputError
        If there is no ``=``, no key, or the value is not valid YAML.
    """
    key, equals, value = text.partition("=")
    mark = Mark(f"{flag} {text}")
    if not equals or not key.strip():
        raise InputError(f"{mark}: write dotted.key=value")
    if not value.strip():
        return key.strip(), None, mark
    return key.strip(), parse(value, str(mark)).data, mark

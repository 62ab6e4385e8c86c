"""Set one dotted key of a tree: ``--set``, a scenario's ``overrides`` and every flag go through here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.errors import InputError, nearest
from planner.read.locate import keys_at, takes_a_mapping
from planner.read.yaml_tree import Mark, Path, Problem, Tree, dotted, parse, raise_all
from planner.schema.scenario import Scenario

Override = tuple[str, Any, Mark]


def set_key(tree: Tree, key: str, value: Any, mark: Mark) -> None:  # noqa: ANN401
    """Set the value at a dotted key, in place. Mappings on the way are made where they are missing.

    A name may itself hold dots (``llama-3.1-8b``): the longest run of parts that exists is taken. A key that goes
    through a plain value, or an entry or list position that does not exist, is a problem of the tree.
    """
    parts = key.split(".")
    path: Path = ()
    node = tree.data
    problem = None if all(parts) else f"'{key}' is no dotted key"
    while problem is None:
        problem = _why_not(node, parts, path)
        if problem is not None:
            break
        node_key, parts = _step(node, parts)
        path = (*path, node_key)
        if not parts:
            node[node_key] = value
            tree.graft(path, {(): mark})
            return
        if (above := tree.mark(path)) is not None and above.broken:
            return  # said already
        if isinstance(node, dict) and node.get(node_key) is None:
            node[node_key] = {}
            tree.marks[path] = mark
        node = node[node_key]
    tree.problems.append(Problem(mark, problem))


def _step(node: Any, parts: list[str]) -> tuple[str | int, list[str]]:  # noqa: ANN401
    """Take as many parts as name one existing key, else one part for a new key: a number among numbers."""
    if isinstance(node, list):
        return int(parts[0]), parts[1:]
    names = {str(name): name for name in node}
    for end in range(len(parts), 0, -1):
        name = ".".join(parts[:end])
        if name in names:
            return names[name], parts[end:]
    numbered = parts[0].isdecimal() and any(isinstance(name, int) for name in node)
    return int(parts[0]) if numbered else parts[0], parts[1:]


def _why_not(node: Any, parts: list[str], path: Path) -> str | None:  # noqa: ANN401
    """Say why a key cannot be followed one step further; null where it can."""
    if isinstance(node, list):
        if parts[0].isdecimal() and int(parts[0]) < len(node):
            return None
        positions = [str(index) for index in range(len(node))]
        return f"{dotted(path)} has no position '{parts[0]}' ({nearest(parts[0], positions)})"
    if not isinstance(node, dict):
        return f"{dotted(path)} is {'null' if node is None else repr(node)} and has no key '{parts[0]}'"
    key, rest = _step(node, parts)
    if not rest or node.get(key) is not None:
        return None
    # An entry of a collection is not made by the way: a missing name is a slip of the pen.
    fields = keys_at(Scenario, path)
    if key not in fields:
        return f"{dotted((*path, key))}: there is no such key ({nearest(str(key), fields or list(map(str, node)))})"
    if not takes_a_mapping(Scenario, (*path, key)):
        return f"{dotted((*path, key))} takes a plain value and has no key '{rest[0]}'"
    return None


def set_all(tree: Tree, overrides: Sequence[Override]) -> None:
    """Set several keys, in order."""
    for key, value, mark in overrides:
        set_key(tree, key, value, mark)


def parse_assignments(texts: Sequence[str], flag: str = "--set") -> list[Override]:
    """Read ``dotted.key=value`` several times, each value as YAML.

    Raises
    ------
    InputError
        For every text that has no ``=``, no key, or no valid YAML.
    """
    found: list[Override] = []
    problems: list[Problem] = []
    for text in texts:
        key, equals, value = text.partition("=")
        mark = Mark(f"{flag} {text}")
        if not equals or not key.strip():
            problems.append(Problem(mark, "write dotted.key=value"))
            continue
        try:
            tree = parse(value, str(mark), lined=False) if value.strip() else Tree(None)
        except InputError as error:
            problems += [Problem(mark, line.removeprefix(f"{mark}: ")) for line in error.problems]
            continue
        problems += tree.problems
        found.append((key.strip(), tree.data, mark))
    raise_all(problems)
    return found

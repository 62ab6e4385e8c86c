"""Parse YAML (core schema of YAML 1.2) into plain data that remembers on which line each key stands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from planner.errors import InputError

MAX_BYTES = 8_000_000
MAX_DEPTH = 60

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Mark:
    """Where a value was given: a file and line, or a flag; ``root`` is how much of a path stands above the file."""

    origin: str
    line: int | None = None
    root: int = 0

    def __str__(self) -> str:
        """Give ``file:line``, or the flag as it was typed."""
        return self.origin if self.line is None else f"{self.origin}:{self.line}"


@dataclass
class Tree:
    """Plain data with the mark of every path in it."""

    data: Any
    marks: dict[Path, Mark] = field(default_factory=dict)

    def mark(self, path: Path) -> Mark | None:
        """Find the mark of a path, or of the nearest thing above it."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.marks:
                return self.marks[path[:end]]
        return None

    def graft(self, path: Path, tree: Tree) -> None:
        """Hang another tree's marks below a path."""
        for below in [key for key in self.marks if key[: len(path)] == path]:
            del self.marks[below]
        for below, mark in tree.marks.items():
            self.marks[path + below] = Mark(mark.origin, mark.line, mark.root + len(path))


def _loader() -> Any:  # noqa: ANN401
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class CoreLoader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}

    for tag, pattern, first in (
        ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
        ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
        ("int", r"^[-+]?[0-9]+$", list("-+0123456789")),
        (
            "float",
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
            list("-+.0123456789"),
        ),
    ):
        CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)
    return CoreLoader


def _scalar(tag: str, text: str) -> Any:  # noqa: ANN401
    kind = tag.rpartition(":")[2]
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int":
        return int(text)
    if kind == "float":
        return float(
            text.replace(".inf", "inf")
            .replace(".Inf", "inf")
            .replace(".INF", "inf")
            .replace(".NaN", "nan")
            .replace(".nan", "nan")
            .replace(".NAN", "nan")
        )
    return text


class _Walk:
    """Turns composed nodes into data, and collects every problem on the way."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.marks: dict[Path, Mark] = {}
        self.problems: list[str] = []
        self.seen: set[int] = set()

    def _problem(self, node: yaml.Node, path: Path, text: str) -> None:
        key = dotted(path)
        self.problems.append(f"{self.origin}:{node.start_mark.line + 1}: {key + ': ' if key else ''}{text}")

    def value(self, node: yaml.Node, path: Path) -> Any:  # noqa: ANN401
        if id(node) in self.seen:
            self._problem(node, path, "aliases (*name) are not supported; write the value out")
            return None
        self.seen.add(id(node))
        self.marks.setdefault(path, Mark(self.origin, node.start_mark.line + 1))
        if len(path) > MAX_DEPTH:
            self._problem(node, path[:3], f"nested deeper than {MAX_DEPTH} levels")
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _scalar(self, node: yaml.Node, path: Path) -> Any:  # noqa: ANN401
        if not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
            self._problem(node, path, f"tag {node.tag} is not supported")
            return None
        try:
            return _scalar(node.tag, node.value)
        except ValueError:
            self._problem(node, path, f"'{node.value[:40]}' cannot be read as a number")
            return None

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[Any, Any]:
        data: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem(key_node, path, "a key must be a plain word or a number")
                continue
            whole = key_node.tag.endswith(":int") and len(key_node.value) < 20
            key: str | int = int(key_node.value) if whole else key_node.value
            below = (*path, key)
            if key in data:
                first = self.marks[below].line
                self._problem(key_node, below, f"the key stands twice (first on line {first})")
                continue
            self.marks[below] = Mark(self.origin, key_node.start_mark.line + 1)
            data[key] = self.value(value_node, below)
        return data


def dotted(path: Path) -> str:
    """Write a path as a dotted key.

    >>> dotted(("devices", "gpu", 3))
    'devices.gpu.3'
    """
    return ".".join(str(part) for part in path)


def parse(text: str, origin: str) -> Tree:
    """Parse one YAML document.

    Raises
    ------
    InputError
        With every duplicate key, alias, foreign tag or syntax error, each with its line.
    """
    try:
        node = yaml.compose(text, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"{origin}:{line}: not valid YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, RecursionError) as error:
        first = str(error).splitlines()[0] if str(error) else "nested too deeply"
        raise InputError(f"{origin}:1: not valid YAML: {first}") from None
    if node is None:
        raise InputError(f"{origin}:1: the file is empty")
    walk = _Walk(origin)
    data = walk.value(node, ())
    if walk.problems:
        raise InputError(*walk.problems)
    return Tree(data, walk.marks)


def parse_file(path: str, shown: str | None = None) -> tuple[Tree, bytes]:
    """Read and parse a file; give its tree and its bytes.

    Raises
    ------
    InputError
        If the file cannot be read, is larger than ``MAX_BYTES``, is not UTF-8, or is not valid YAML.
    """
    origin = shown or path
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{origin}: cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise InputError(f"{origin}: larger than {MAX_BYTES // 1_000_000} MB; no catalog or scenario needs that")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{origin}:{line}: not UTF-8 text") from None
    return parse(text, origin), raw

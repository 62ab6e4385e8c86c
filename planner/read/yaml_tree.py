"""Parse YAML (core schema of YAML 1.2) into plain data that remembers on which line each key stands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from planner.errors import InputError

MAX_BYTES = 8_000_000
MAX_DEPTH = 60
MAX_SHOWN = 50

Path = tuple[str | int, ...]

_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "map", "seq"))
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Mark:
    """Where a value was given: a file and line, or a flag.

    ``root`` is how much of a path stands above the file. What is ``broken`` has a problem already, so that the value
    that stands in for it is blamed for nothing more.
    """

    origin: str
    line: int | None = None
    root: int = 0
    broken: bool = False

    def __str__(self) -> str:
        """Give ``file:line``, or the flag as it was typed."""
        return self.origin if self.line is None else f"{self.origin}:{self.line}"


@dataclass(frozen=True)
class Problem:
    """What is wrong, and where."""

    mark: Mark
    text: str

    def __str__(self) -> str:
        """Write the problem as one line."""
        return f"{self.mark}: {self.text}".replace("\n", "\\n")


@dataclass
class Tree:
    """Plain data with the mark of every path in it, and the problems found so far."""

    data: Any
    marks: dict[Path, Mark] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def mark(self, path: Path) -> Mark | None:
        """Find the mark of a path, or of the nearest thing above it."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.marks:
                return self.marks[path[:end]]
        return None

    def below(self, path: Path) -> dict[Path, Mark]:
        """Give the marks at and below a path, by what follows the path."""
        return {key[len(path) :]: mark for key, mark in self.marks.items() if key[: len(path)] == path}

    def graft(self, path: Path, marks: dict[Path, Mark], own_file: bool = False) -> None:
        """Hang marks below a path. Keys of a file of its own are shown without what stands above that file."""
        for below in [key for key in self.marks if key[: len(path)] == path]:
            del self.marks[below]
        for below, mark in marks.items():
            self.marks[path + below] = replace(mark, root=mark.root + len(path)) if own_file else mark

    def blame(self, path: Path, text: str) -> None:
        """Record a problem with the value at a path, so that its value is blamed for nothing more."""
        mark = self.mark(path) or Mark("")
        key = dotted(path[mark.root :])
        self.problems.append(Problem(mark, f"{key + ': ' if key else ''}{text}"))
        self.marks[path] = replace(mark, broken=True)


def raise_all(problems: Iterable[Problem]) -> None:
    """Raise every problem there is, each once: file by file in the order they were met, and by line within a file.

    Of very many only the first are shown, with how many more there are.

    Raises
    ------
    InputError
        If there is any.
    """
    found = list(dict.fromkeys(problems))
    origins = list(dict.fromkeys(problem.mark.origin for problem in found))
    found.sort(key=lambda problem: (origins.index(problem.mark.origin), problem.mark.line or 0))
    lines = list(dict.fromkeys(map(str, found)))
    if lines:
        more = [f"and at least {len(lines) - MAX_SHOWN} more problems"] if len(lines) > MAX_SHOWN else []
        raise InputError(*lines[:MAX_SHOWN], *more)


# The core schema of YAML 1.2 without octal and hexadecimal numbers: pattern, and the characters that may begin it.
_CORE = {
    "null": (r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    "bool": (r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    "int": (r"^[-+]?[0-9]+$", list("-+0123456789")),
    "float": (
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        list("-+.0123456789"),
    ),
}


def _loader() -> Any:  # noqa: ANN401
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class CoreLoader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}

    for kind, (pattern, first) in _CORE.items():
        CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(pattern), first)
    return CoreLoader


def _scalar(kind: str, text: str) -> Any:  # noqa: ANN401
    if kind == "str":
        return text
    if kind not in _CORE or not re.match(_CORE[kind][0], text):
        raise ValueError(f"'{shortened(text)}' is not written as {kind}")
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    return int(text) if kind == "int" else float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


class _Walk:
    """Turns composed nodes into data, and collects every problem on the way."""

    def __init__(self, origin: str, lined: bool) -> None:
        self.origin = origin
        self.lined = lined
        self.tree = Tree(None)
        self.seen: set[int] = set()

    def _mark(self, node: yaml.Node) -> Mark:
        return Mark(self.origin, node.start_mark.line + 1 if self.lined else None)

    def value(self, node: yaml.Node, path: Path) -> Any:  # noqa: ANN401
        if id(node) in self.seen:
            # The node stands where its anchor does: the line of the alias is that of the key above it.
            self.tree.blame(_key_above(path), "aliases (*name) are not supported; write the value out")
            return None
        self.seen.add(id(node))
        self.tree.marks.setdefault(path, self._mark(node))
        if len(path) > MAX_DEPTH:
            self.tree.blame(path[:3], f"nested deeper than {MAX_DEPTH} levels")
            return None
        if node.tag not in _PLAIN_TAGS:
            self.tree.blame(path, f"the tag {node.tag.replace('tag:yaml.org,2002:', '!!')} is not supported")
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _scalar(self, node: yaml.Node, path: Path) -> Any:  # noqa: ANN401
        try:
            return _scalar(node.tag.rpartition(":")[2], node.value)
        except ValueError as error:  # int() has a limit of its own: 4300 digits
            long = str(error).startswith("Exceeds")
            self.tree.blame(path, "the number has too many digits" if long else str(error))
            return None

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[Any, Any]:
        data: dict[Any, Any] = {}
        firsts: dict[str, Mark] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag not in _PLAIN_TAGS:
                where = dotted(path) + ": " if path else ""
                self.tree.problems.append(Problem(self._mark(key_node), f"{where}a key must be a plain word"))
                continue
            whole = key_node.tag.endswith(":int") and re.match(r"^[-+]?[0-9]{1,18}$", key_node.value)
            key: str | int = int(key_node.value) if whole else key_node.value
            below = (*path, key)
            if str(key) in firsts:
                first = f" (first on line {firsts[str(key)].line})" if self.lined else ""
                self.tree.problems.append(
                    Problem(self._mark(key_node), f"{dotted(below)}: the key stands twice{first}")
                )
                continue
            self.tree.marks[below] = firsts[str(key)] = self._mark(key_node)
            data[key] = self.value(value_node, below)
        return data


def _key_above(path: Path) -> Path:
    """Cut the positions in lists from the end of a path."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    return path


def shortened(text: str) -> str:
    """Cut a text to what a message can hold."""
    return text if len(text) <= 40 else text[:37] + "..."


def dotted(path: Path) -> str:
    """Write a path as a dotted key.

    >>> dotted(("devices", "gpu", 3))
    'devices.gpu.3'
    """
    return ".".join(str(part) for part in path)


def parse(text: str, origin: str, lined: bool = True) -> Tree:
    """Parse one YAML document. Duplicate keys, aliases, foreign tags and the like stand in the tree's problems.

    Parameters
    ----------
    text, origin
        The document, and the file or flag that it comes from.
    lined
        Whether its lines mean anything to a reader: not those of a flag.

    Raises
    ------
    InputError
        If the text has no parts that could be looked at: a syntax error, or nothing at all.
    """

    def broken(line: int, problem: str) -> InputError:
        return InputError(f"{Mark(origin, line if lined else None)}: {problem}")

    strange = _UNPRINTABLE.search(text)
    if strange is not None:
        line = text.count("\n", 0, strange.start()) + 1
        raise broken(line, f"not valid YAML: the control character U+{ord(strange[0]):04X}")
    try:
        node = yaml.compose(text, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise broken(line, f"not valid YAML: {_syntax(error, text, line)}") from None
    except (yaml.YAMLError, RecursionError):
        raise broken(1, "not valid YAML: nested too deeply") from None
    if node is None:
        raise broken(1, "the file is empty" if lined else "there is no value")
    walk = _Walk(origin, lined)
    walk.tree.data = walk.value(node, ())
    return walk.tree


def _syntax(error: yaml.MarkedYAMLError, text: str, line: int) -> str:
    """Say a syntax error with what a person is likely to have done."""
    lines = text.splitlines()
    indentation = re.match(r"\s*", lines[line - 1]) if line <= len(lines) else None
    if indentation is not None and "\t" in indentation[0]:
        return "a tab in the indentation; use spaces"
    if error.problem == "but found another document":
        return "a second document begins; a file holds one"
    begun = f" {error.context}" if error.context and error.context.startswith("while") else ""
    return f"{error.problem or error.context}{begun}"


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
    except (OSError, ValueError) as error:
        raise InputError(f"{origin}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(raw) > MAX_BYTES:
        raise InputError(f"{origin}: larger than {MAX_BYTES // 1_000_000} MB; no catalog or scenario needs that")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{origin}:{line}: not UTF-8 text") from None
    return parse(text, origin), raw

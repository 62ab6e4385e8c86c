"""Find catalogs and scenarios: bundled ones by name wherever the command runs, others by path."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Literal

from planner.errors import InputError, nearest

Kind = Literal["catalog", "scenario"]


def folder(kind: Kind) -> Path:
    """Give the folder of the bundled files: inside the package (wheel), else beside it (repository).

    Raises
    ------
    InputError
        If neither exists.
    """
    package = Path(__file__).resolve().parents[1]
    for parent in (package, package.parent):
        if (parent / f"{kind}s").is_dir():
            return parent / f"{kind}s"
    raise InputError(f"the bundled {kind}s are missing; install phaseplan again")


def names(kind: Kind) -> list[str]:
    """List the bundled catalogs or scenarios by name."""
    return sorted(path.stem for path in folder(kind).glob("*.yaml"))


def find(kind: Kind, name_or_path: str, beside: Path | None = None) -> tuple[Path, str]:
    """Find a file by bundled name or by path (relative to ``beside`` where given); give it and how to show it.

    Raises
    ------
    InputError
        If there is none, with the nearest bundled names, or the nearest YAML files of the folder.
    """
    if not name_or_path.strip():
        raise InputError(f"the name of the {kind} is empty ({nearest('', names(kind))})")
    if is_path(name_or_path):
        path = (beside or Path()) / name_or_path
        if not path.exists():
            raise InputError(f"there is no file '{path}'{_files_like(path)}")
        return path, str(path)
    bundled = folder(kind) / f"{name_or_path}.yaml"
    if bundled.is_file():
        return bundled, f"{kind}s/{bundled.name}"
    if beside is not None and (beside / f"{name_or_path}.yaml").is_file():
        path = beside / f"{name_or_path}.yaml"
        return path, str(path)
    raise InputError(f"there is no {kind} '{name_or_path}' ({nearest(name_or_path, names(kind))})")


def _files_like(path: Path) -> str:
    """Name the YAML files beside a missing one that have nearly its name."""
    beside = sorted(other.name for other in path.parent.glob("*.y*ml"))
    close = difflib.get_close_matches(path.name, beside, n=3)
    return f" (nearest: {', '.join(close)})" if close else ""


def is_path(text: str) -> bool:
    """Tell a path from a bundled name.

    >>> is_path("reference"), is_path("my/scenario"), is_path("mine.yaml")
    (False, True, True)
    """
    return "/" in text or "\\" in text or text.endswith((".yaml", ".yml"))

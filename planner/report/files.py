"""Write files whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from planner.errors import InputError


def write_all(folder: Path, files: Mapping[str, str | bytes]) -> list[Path]:
    """Write several files into a folder, made if missing: each to a temporary file first, all renamed at the end.

    Raises
    ------
    InputError
        If the folder cannot be made or a file not be written; then every file is as it was before.
    """
    staged: list[tuple[Path, Path]] = []
    before: list[tuple[Path, bytes | None]] = []
    try:
        for place in dict.fromkeys([folder, *((folder / name).parent for name in files)]):
            place.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            raw = content.encode() if isinstance(content, str) else content
            staged.append((_temporary(folder / name, raw), folder / name))
        for temporary, target in staged:
            before.append((target, target.read_bytes() if target.is_file() else None))
            os.replace(temporary, target)
    except BaseException as error:
        _put_back(before)
        if not isinstance(error, OSError):
            raise
        why = "it is not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise InputError(f"--output {folder}: cannot be written: {why}") from None
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
    return [target for _, target in staged]


def require_writable(folder: Path) -> None:
    """Refuse a folder that cannot be made or written, before any work is done for it.

    Raises
    ------
    InputError
        Saying why.
    """
    standing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not standing.is_dir():
        why = "it is not a folder" if standing == folder else f"{standing} is not a folder"
        raise InputError(f"--output {folder}: cannot be written: {why}")
    if not os.access(standing, os.W_OK | os.X_OK):
        raise InputError(f"--output {folder}: cannot be written: Permission denied")


def _temporary(target: Path, content: bytes) -> Path:
    """Write the content beside its target, with the permissions of a new file."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        temporary.chmod(0o666 & ~_umask())
    except BaseException:
        temporary.unlink()
        raise
    return temporary


def _put_back(before: Iterable[tuple[Path, bytes | None]]) -> None:
    """Undo what was renamed already, as far as that is possible."""
    for target, content in before:
        with contextlib.suppress(OSError):
            if content is None:
                target.unlink()
            else:
                os.replace(_temporary(target, content), target)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

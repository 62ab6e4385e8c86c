"""Write files whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from planner.errors import InputError


def write_all(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write several files into a folder, made if missing: each to a temporary file first, all renamed at the end.

    Raises
    ------
    InputError
        If the folder cannot be made or written; nothing is left behind.
    """
    waiting: list[tuple[str, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            handle, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=folder)
            waiting.append((temporary, folder / name))
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(content)
            os.chmod(temporary, 0o666 & ~_umask())
        written = []
        while waiting:
            os.replace(*waiting[0])
            written.append(waiting.pop(0)[1])
        return written
    except OSError as error:
        raise InputError(f"--output {folder}: cannot be written: {error.strerror}") from None
    finally:
        for temporary, _ in waiting:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""Write the committed samples, and the outputs shown in the documentation, again: ``python reports/regenerate.py``.

A test calls ``stale`` and fails when a committed file differs from what the commands print now.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import tempfile
from pathlib import Path

from planner.cli import run

ROOT = Path(__file__).resolve().parents[1]
MAIN_JOB = "plan --budget-kw 50 --min-tps 100"
SAMPLES = {"reference": MAIN_JOB}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_SHOWN = re.compile(r"<!-- output: (plan .*?) -->\n```text\n(.*?)```\n", re.DOTALL)
_VERSIONS = re.compile(r"phaseplan [\d.]+(, HiGHS \S+ through PuLP [\d.]+\w*|, exact structure)?")


def output_of(command: str, width: int = 80) -> str:
    """Run a command from the repository's folder and give what it prints, versions of other programs left out."""
    before, here = os.environ.get("COLUMNS"), Path.cwd()
    os.environ["COLUMNS"] = str(width)
    os.chdir(ROOT)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            run(shlex.split(command)[1:])
    finally:
        os.chdir(here)
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return "\n".join(line.rstrip() for line in _without_versions(out.getvalue()).splitlines()) + "\n"


def _without_versions(text: str) -> str:
    return _VERSIONS.sub("phaseplan", text)


def fresh() -> dict[Path, str]:
    """Give what every generated file and every page should hold."""
    files = {page: _SHOWN.sub(_shown, page.read_text(encoding="utf-8")) for page in PAGES}
    for name, command in SAMPLES.items():
        files[ROOT / "reports" / f"{name}.txt"] = f"$ {command}\n\n{output_of(command)}"
        files[ROOT / "reports" / f"{name}.md"] = _markdown_of(command)
    return files


def _shown(match: re.Match[str]) -> str:
    command = match[1]
    return f"<!-- output: {command} -->\n```text\n$ {command}\n\n{output_of(command)}```\n"


def _markdown_of(command: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        output_of(f"{command} --output {shlex.quote(folder)}")
        return _without_versions((Path(folder) / "plan.md").read_text(encoding="utf-8"))


def stale() -> list[str]:
    """List the committed files that differ from what the commands print now."""
    return [
        str(path.relative_to(ROOT))
        for path, text in fresh().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]


if __name__ == "__main__":
    for path, text in fresh().items():
        path.write_text(text, encoding="utf-8")

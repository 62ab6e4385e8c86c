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
# Whole reports, by folder: the published study and its two variants, and one on real device types.
REPORTS = {
    "reference": "plan report --scenario reference --budget-kw 50 --min-tps 100",
    "reference-slow-prefill": "plan report --scenario reference-slow-prefill",
    "reference-high-energy-prefill": "plan report --scenario reference-high-energy-prefill",
    "llama-70b-chat": "plan report --scenario docs/examples/llama-70b.yaml",
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_SHOWN = re.compile(r"<!-- output: (plan .*?) -->\n```text\n(.*?)```\n", re.DOTALL)
_DRAWING = re.compile(r"<svg.*?</svg>", re.DOTALL)
_LABEL = re.compile(r'aria-label="([^"]*)"')
_VERSIONS = re.compile(r"phaseplan [\d.]+(, HiGHS \S+ through PuLP [\d.]+\w*|, exact structure)?")


def output_of(command: str, width: int = 80, folder: Path = ROOT) -> str:
    """Run a command from a folder and give what it prints, versions of other programs left out."""
    before, here = os.environ.get("COLUMNS"), Path.cwd()
    os.environ["COLUMNS"] = str(width)
    os.chdir(folder)
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


def fresh_reports() -> dict[Path, str]:
    """Give what every file of every report should hold."""
    files = {}
    for name, command in REPORTS.items():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "docs").symlink_to(ROOT / "docs")
            output_of(f"{command} --output reports/{name}", folder=Path(folder))
            for path in sorted((Path(folder) / "reports" / name).rglob("*.*")):
                files[ROOT / path.relative_to(folder)] = _without_versions(path.read_text(encoding="utf-8"))
    return files


def told(path: Path, text: str) -> str:
    """Give what a file says: of a figure its labels, of a page all but the figures. Drawings differ with fonts."""
    if path.suffix == ".svg":
        return "\n".join(_LABEL.findall(text))
    return _DRAWING.sub("", text) if path.suffix == ".html" else text


def everything() -> dict[Path, str]:
    """Give what every generated file and page should hold."""
    return {**fresh(), **fresh_reports()}


def stale() -> list[str]:
    """List the committed files that differ from what the commands print now, and those that no command writes."""
    files = everything()
    found = [
        str(path.relative_to(ROOT))
        for path, text in files.items()
        if not path.is_file() or told(path, path.read_text(encoding="utf-8")) != told(path, text)
    ]
    left = [path for name in REPORTS for path in (ROOT / "reports" / name).rglob("*.*") if path not in files]
    return found + [str(path.relative_to(ROOT)) for path in left]


if __name__ == "__main__":
    for path, text in everything().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

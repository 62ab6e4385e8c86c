"""Write the committed samples, and the outputs shown in the documentation, again: ``python reports/regenerate.py``.

A test calls ``stale`` and fails when a committed file differs from what the commands print now.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from planner.cli import run

ROOT = Path(__file__).resolve().parents[1]
MAIN_JOB = "plan --budget-kw 50 --min-tps 100"
SAMPLES = {"llama-70b-chat": MAIN_JOB, "reference": "plan --scenario reference --budget-kw 50 --min-tps 100"}
# Whole reports, by folder: the published study and its two variants, and the main job on real device types.
REPORTS = {
    "reference": "plan report --scenario reference --budget-kw 50 --min-tps 100",
    "reference-slow-prefill": "plan report --scenario reference-slow-prefill",
    "reference-high-energy-prefill": "plan report --scenario reference-high-energy-prefill",
    "llama-70b-chat": "plan report --budget-kw 50 --min-tps 100",
}
# Plans that a documented review sets side by side, by the folder that holds each.
REVIEWED = {
    "before": "plan --budget-kw 50 --min-tps 100",
    "after": "plan --budget-kw 60 --min-tps 100",
    "slower": "plan --scenario reference --budget-kw 50 --min-tps 100",
    "faster": "plan --scenario reference --budget-kw 60 --min-tps 120",
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# Tables in docs/scenarios.md: the command of every row.
SCENARIOS = ("llama-70b-chat", "deepseek-mtp", "code-completion", "long-context-rag", "chat-and-completion")
_CHAT = "plan --scenario llama-70b-chat"
WAYS = {
    "target and draft model": f"{_CHAT} --set proposers=[llama-3.1-8b-drafts]",
    "Medusa": f"{_CHAT} --set precisions={{}} --set target=vicuna-7b-v1.3 --set proposers=[vicuna-7b-medusa-2]"
    " --min-tps 250",
    "EAGLE-3": f"{_CHAT} --set proposers=[llama-3.3-70b-eagle3]",
    "MTP": "plan --scenario deepseek-mtp",
    "n-gram": "plan --scenario code-completion --set proposers=[ngram]",
    "tree": f"{_CHAT} --set precisions={{}} --set target=llama-7b --set proposers=[llama-7b-tree-w3]"
    " --max-draft-length 8",
    "DSpark": f"{_CHAT} --set precisions={{}} --set target=qwen3-8b --set proposers=[qwen3-8b-dspark]"
    " --max-draft-length 7",
    "prefill and decode apart, plain": f"{_CHAT} --set proposers=[] --set layouts=[disaggregated]",
    "aggregated, plain": f"{_CHAT} --set proposers=[] --set layouts=[aggregated]",
}
BATCHES = (1, 8, 32, 64, 128, 256, 512)
_SWEEP = (
    "--set layouts=[disaggregated] --set candidates.batch_sizes=[1,8,32,64,128,256,512]"
    " --counts fractional --min-tps 1 --place target_verify=h200-sxm:"
)
SWEEPS = {
    "dense": f"{_CHAT} --set proposers=[llama-3.3-70b-eagle3] {_SWEEP}tp4:b",
    "mixture": f"plan --scenario deepseek-mtp {_SWEEP}tp8:b",
}

_TABLE = re.compile(r"<!-- table: (\w+) -->\n.*?<!-- end -->\n", re.DOTALL)
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
    files = {page: _TABLE.sub(_table, _SHOWN.sub(_shown, page.read_text(encoding="utf-8"))) for page in PAGES}
    for name, command in SAMPLES.items():
        files[ROOT / "reports" / f"{name}.txt"] = f"$ {command}\n\n{output_of(command)}"
        files[ROOT / "reports" / f"{name}.md"] = _markdown_of(command)
    return files


def _shown(match: re.Match[str]) -> str:
    command = match[1]
    output = _review_of(command) if command.startswith("plan review ") else output_of(command)
    return f"<!-- output: {command} -->\n```text\n$ {command}\n\n{output}```\n"


def _review_of(command: str) -> str:
    """Run a review where the plans that it names have just been made."""
    with tempfile.TemporaryDirectory() as folder:
        for name, made_by in REVIEWED.items():
            if f"{name}/plan.json" in command.split():
                output_of(f"{made_by} --output {name}", folder=Path(folder))
        return output_of(command, folder=Path(folder))


def _table(match: re.Match[str]) -> str:
    rows = "\n".join(f"| {' | '.join(cells)} |" for cells in TABLES[match[1]]())
    return f"<!-- table: {match[1]} -->\n{rows}\n<!-- end -->\n"


def plan_of(command: str) -> dict[str, Any]:
    """Run a command and give its document."""
    found: dict[str, Any] = json.loads(output_of(f"{command} --json"))
    return found


def places_of(deployment: dict[str, Any]) -> str:
    """Say what runs where: device type, degree and batch size of each phase that has any."""
    words = {"target_prefill": "prefill", "target_verify": "verify", "draft_prefill": "draft prefill"}
    places = {words.get(p, "draft"): place for p, place in deployment["placements"].items() if place is not None}
    at = {p: f"{x['device']} tp{x['tensor_parallel']} b{x['batch_size']}" for p, x in places.items()}
    together: dict[str, list[str]] = {}
    for phase, place in at.items():
        together.setdefault(place, []).append(phase)
    return "; ".join(f"{', '.join(phases)}: {place}" for place, phases in together.items())


def _scenarios_table() -> Iterator[tuple[str, ...]]:
    yield "scenario", "workload", "drafts", "D", "E", "tok/s per user", "TTFT, ms", "tok/s", "kW", "plain tok/s"
    yield ("---",) * 10
    for name in SCENARIOS:
        plan = plan_of(f"plan --scenario {name}")
        power = f"{plan['totals']['power_w']['provisioned'] / 1e3:.1f}"
        for number, deployment in enumerate(plan["deployments"]):
            metrics = deployment["metrics"]
            yield (
                f"`{name}`",
                deployment["workload"],
                deployment["proposer"] or "–",
                str(deployment["draft_length"]),
                f"{metrics['tokens_per_step']:.2f}",
                f"{metrics['interactivity_tps']:.1f}",
                f"{1e3 * metrics['ttft_s']:.0f}",
                f"{metrics['throughput_tps']:,.0f}",
                power if number == 0 else "",
                plain_of(plan) if number == 0 else "",
            )


def plain_of(plan: dict[str, Any]) -> str:
    """Give the throughput of the best plan without speculation."""
    (plain,) = (way["throughput_tps"] for way in plan["baselines"] if way["name"] == "no_speculation")
    return "none" if plain is None else f"{plain:,.0f}"


def _ways_table() -> Iterator[tuple[str, ...]]:
    yield "way", "answer", "D", "E", "tok/s per user", "tok/s", "plain tok/s", "command"
    yield ("---",) * 8
    for way, command in WAYS.items():
        plan = plan_of(command)
        (deployment,) = plan["deployments"]
        metrics = deployment["metrics"]
        yield (
            way,
            places_of(deployment),
            str(deployment["draft_length"]),
            f"{metrics['tokens_per_step']:.2f}",
            f"{metrics['interactivity_tps']:.1f}",
            f"{metrics['throughput_tps']:,.0f}",
            plain_of(plan),
            f"`{command}`",
        )


def _batches_table() -> Iterator[tuple[str, ...]]:
    yield "batch", *(f"{kind}, {what}" for kind in SWEEPS for what in ("D", "tok/s per user", "gain", "J/token"))
    yield ("---",) * (1 + 4 * len(SWEEPS))
    for batch in BATCHES:
        cells = [str(batch)]
        for command in SWEEPS.values():
            length, gain, metrics = swept(command, batch)
            figures = (f"{metrics['interactivity_tps']:.1f}", f"{gain:.2f}", f"{metrics['energy_j_per_token']:.3g}")
            cells += [str(length), *figures]
        yield tuple(cells)


def swept(command: str, batch: int) -> tuple[int, float, dict[str, float]]:
    """Give draft length, throughput over that without speculation, and metrics of the best plan at a batch size."""
    plan = plan_of(f"{command}{batch}")
    (deployment,) = plan["deployments"]
    (plain,) = (way["throughput_tps"] for way in plan["baselines"] if way["name"] == "no_speculation")
    return deployment["draft_length"], plan["objective"]["value"] / plain, deployment["metrics"]


TABLES: dict[str, Callable[[], Iterator[tuple[str, ...]]]] = {
    "scenarios": _scenarios_table,
    "ways": _ways_table,
    "batches": _batches_table,
}


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

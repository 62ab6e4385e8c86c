"""Broken input: every file and flag here ends with exit code 2 and exactly the message of its golden file.

Nothing goes to standard output, nothing is written, and no traceback is shown. Rewrite the messages with
``pytest tests/test_broken.py --update-golden`` and read the difference.
"""

import re
import shlex
from pathlib import Path

import pytest
from commands import run

from planner.cli import EXIT_BAD_INPUT

FILES = Path(__file__).parent / "data" / "broken"
GOLDEN = Path(__file__).parent / "golden" / "broken"

ALL_ON_GPU = " ".join(
    f"--place {phase}=gpu" for phase in ("target_prefill", "target_verify", "draft_prefill", "draft_decode")
)

# Flags that are refused before anything is solved, and questions that cannot be asked.
FLAGS = {
    "budget-nan": "--budget-kw nan",
    "budget-inf": "--budget-kw inf",
    "budget-zero": "--budget-kw 0",
    "budget-minus-zero": "--budget-kw -0.0",
    "budget-negative": "--budget-kw -1",
    "budget-text": "--budget-kw abc",
    "budget-with-unit": "--budget-kw 50kW",
    "budget-empty": "--budget-kw ''",
    "budget-underscore": "--budget-kw 1_000",
    "budget-hexadecimal": "--budget-kw 0x32",
    "budget-comma": "--budget-kw 50,5",
    "budget-overflow": "--budget-kw 1e999",
    "budget-too-large": "--budget-kw 1e19",
    "budget-foreign-digits": "--budget-kw ５０",
    "budget-without-value": "--budget-kw",
    "floor-negative": "--budget-kw 50 --min-tps -100",
    "ceiling-text": "--budget-kw 50 --max-ttft-ms soon",
    "demand-inf": "--demand-rps inf",
    "time-limit-zero": "--budget-kw 50 --time-limit-s 0",
    "draft-length-fraction": "--budget-kw 50 --max-draft-length 1.5",
    "draft-length-negative": "--budget-kw 50 --max-draft-length -1",
    "draft-length-too-large": "--budget-kw 50 --max-draft-length 4097",
    "objective-unknown": "--budget-kw 50 --objective tps",
    "counts-unknown": "--budget-kw 50 --counts whole",
    "basis-unknown": "--budget-kw 50 --power-basis tdp",
    "option-unknown": "--bugdet-kw 50",
    "command-unknown": "evalute --draft-length 5",
    "command-not-alike": "solve",
    "command-of-catalog-unknown": "catalog shw",
    "command-after-options": "--budget-kw 50 extra",
    "option-before-command": "--budget-kw 50 --json evaluate --draft-length 5",
    "argument-too-many": "scenario show reference reference",
    "document-unknown": "schema plans",
    "shell-unknown": "completion tcsh",
    "scenario-unknown": "--scenario refrence --budget-kw 50",
    "scenario-not-alike": "--scenario zzz --budget-kw 50",
    "scenario-empty": "--scenario '' --budget-kw 50",
    "scenario-no-file": "--scenario nowhere/mine.yaml --budget-kw 50",
    "scenario-folder": "--scenario ./ --budget-kw 50",
    "scenario-shown-unknown": "scenario show refrence",
    "catalog-unknown": "catalog show refrence",
    "entry-unknown": "catalog show acelerator",
    "set-without-value": "--set foo --budget-kw 50",
    "set-without-key": "--set =3 --budget-kw 50",
    "set-unknown-key": "--set budget_kw=3 --budget-kw 50",
    "set-unknown-entry": "--set catalog.devices.gpuu.idle_power_w=80 --budget-kw 50",
    "set-unknown-field": "--set catalog.devices.gpu.idle_power_kw=80 --budget-kw 50",
    "set-unknown-option": "--set catalog.devices.gpu.profiles.target.target_verify.b8.latency_ms=9 --budget-kw 50",
    "set-empty-part": "--set catalog..gpu=3 --budget-kw 50",
    "set-through-number": "--set catalog.devices.gpu.profiles.drafter.draft_prefill.b1.latency_ms.floor=9",
    "set-through-default": "--set objective.name=power --budget-kw 50",
    "set-through-list": "--set proposers.0.kind=eagle3 --budget-kw 50",
    "set-beyond-list": "--set proposers.7=drafter --budget-kw 50",
    "set-null": "--set pue= --budget-kw 50",
    "set-nan": "--set pue=.nan --budget-kw 50",
    "set-overflow": "--set pue=1e999 --budget-kw 50",
    "set-quoted-number": "--set pue='\"1.2\"' --budget-kw 50",
    "set-old-yaml-bool": "--set pue=on --budget-kw 50",
    "set-out-of-range": "--set max_utilization=1.2 --budget-kw 50",
    "set-broken-yaml": "--set 'pue=[1' --budget-kw 50",
    "set-alias": "--set 'pue=*a' --budget-kw 50",
    "set-foreign-tag": "--set 'description=!!python/object/apply:os.system [\"echo taken\"]' --budget-kw 50",
    "set-duplicate-key": "--set 'limits={power_budget_kw: 1, power_budget_kw: 2}'",
    "set-dangling-device": "--set limits.inventory.gpuu=5 --budget-kw 50",
    "set-catalog": "--set catalog=reference --budget-kw 50",
    "set-extends": "--set extends=reference --budget-kw 50",
    "set-on-a-whole-catalog": "catalog show reference --set catalog.devices.gpu.idle_power_w=80",
    "set-several": "--set foo=1 --set pue=0 --set a..b=1 --set proposers.9=x --set max_draft_length=x --budget-kw 50",
    "place-without-device": "--place draft_decode --budget-kw 50",
    "place-empty-device": "--place draft_decode= --budget-kw 50",
    "place-unknown-phase": "--place draft=gpu --budget-kw 50",
    "place-unknown-device": "--place draft_decode=gpuu --budget-kw 50",
    "place-bad-degree": "--place draft_decode=gpu:tp0 --budget-kw 50",
    "place-bad-batch": "--place draft_decode=gpu:tp1:b0 --budget-kw 50",
    "place-wrong-order": "--place draft_decode=gpu:b1:tp1 --budget-kw 50",
    "place-twice": "--place draft_decode=gpu --place draft_decode=accelerator --budget-kw 50",
    "place-several": "--place draft=gpu --place x --place draft_decode=gpu --place draft_decode=gpu --budget-kw 50",
    "place-no-profile": "--place target_verify=accelerator --budget-kw 50",
    "place-no-such-batch": "--place target_verify=gpu:b8 --budget-kw 50",
    "nothing-can-run": "--set candidates.devices=[accelerator] --budget-kw 50",
    "no-bound": "",
    "no-bound-but-a-floor": "--min-tps 100",
    "power-without-demand": "--objective power",
    "cost-without-demand": "--objective cost",
    "cost-without-prices": "--objective cost --demand-rps 5",
    "cost-budget-without-prices": "--budget-usd-per-hour 5",
    "provisioned-without-figures": "--budget-kw 50 --power-basis provisioned",
    "average-without-figures": "--budget-kw 50 --power-basis average",
    "pareto-method-unknown": "pareto --method exakt",
    "pareto-provisioned-without-figures": "pareto --power-basis provisioned",
    "pareto-nothing-can-run": "pareto --set candidates.devices=[accelerator]",
    "pareto-objective": "pareto --objective energy",
    "pareto-reference-negative": "pareto --set 'front={reference_point: {energy_j_per_token: -1}}'",
    "pareto-reference-incomplete": "pareto --set 'front={reference_point: {interactivity_tps: 5}}'",
    "report-image-unknown": "report --image jpg",
    "report-workload-unknown": "report --workload chat",
    "report-from-nothing": "report --from no-such-folder-here",
    "report-from-and-a-question": "report --from plans --budget-kw 50 --min-tps 10",
    "report-speeds": "report --set 'report={draft_ms_per_token: [5, -1]}'",
    "evaluate-without-draft-length": "evaluate",
    "evaluate-without-places": "evaluate --draft-length 15",
    "evaluate-without-some-places": "evaluate --draft-length 15 --place target_prefill=gpu --place draft_decode=gpu",
    "evaluate-plain-without-places": "evaluate --draft-length 0 --place draft_decode=gpu",
    "evaluate-draft-length-text": "evaluate --draft-length long",
    "evaluate-draft-length-negative": "evaluate --draft-length -1",
    "evaluate-beyond-request": f"evaluate --draft-length 512 {ALL_ON_GPU}",
    "evaluate-unknown-workload": f"evaluate --draft-length 5 --workload chat {ALL_ON_GPU}",
    "evaluate-unknown-proposer": f"evaluate --draft-length 5 --proposer draftr {ALL_ON_GPU}",
    "evaluate-unknown-proposer-plain": f"evaluate --draft-length 0 --proposer draftr {ALL_ON_GPU}",
    "evaluate-wrong-places": (
        "evaluate --draft-length 5 --place target_prefill=accelerator --place target_verify=gpu:b2"
        " --place draft_prefill=gpu --place draft_decode=gpu:tp2"
    ),
    "output-empty": "--budget-kw 50 --output ''",
    "output-below-nothing": "--budget-kw 50 --output /dev/null/out",
    "output-of-catalog": "catalog list --output /dev/null/out",
    "output-of-schema": "schema plan --output /dev/null/out",
}


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path, monkeypatch):
    """Run in an empty folder, at 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def refused(arguments, capsys):
    """Run the command; give what it says on standard error."""
    code = run(arguments)
    out, err = capsys.readouterr()
    assert code == EXIT_BAD_INPUT
    assert out == ""
    assert "Traceback" not in err
    return err


def broken_files():
    return sorted(path.stem for path in FILES.glob("*.yaml") if path.stem.startswith(("catalog-", "scenario-")))


def reading(name, path):
    """The command that reads a broken file."""
    if name.startswith("catalog-"):
        return ["catalog", "show", path]
    return ["--scenario", path, "--demand-rps", "1"]


@pytest.mark.parametrize("name", broken_files())
def test_broken_file(name, golden, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(FILES)
    err = refused([*reading(name, f"./{name}.yaml"), "--output", str(tmp_path / "out")], capsys)
    golden(f"broken/{name}.txt", err)
    assert list(tmp_path.iterdir()) == []
    for line in err.splitlines():
        assert re.match(r"error: [\w/.-]+\.yaml:\d+: \S", line), "a message names file, line and what is wrong"


@pytest.mark.parametrize("name", FLAGS)
def test_broken_flags(name, golden, capsys, tmp_path):
    golden(f"broken/flags-{name}.txt", refused(shlex.split(FLAGS[name]), capsys))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["catalog", "scenario"])
def test_too_large_a_file(kind, golden, capsys, tmp_path):
    (tmp_path / "large.yaml").write_bytes(b"schema_version: 1\n#" + b"x" * 8_000_000)
    golden(f"broken/large-{kind}.txt", refused(reading(f"{kind}-", "large.yaml"), capsys))


def test_bottomless_nesting(golden, capsys, tmp_path):
    (tmp_path / "deep.yaml").write_text("schema_version: 1\ndescription: " + "[" * 20_000 + "]" * 20_000)
    golden("broken/bottomless.txt", refused(["catalog", "show", "deep.yaml"], capsys))


def test_very_many_problems_are_not_all_shown(golden, capsys, tmp_path):
    (tmp_path / "many.yaml").write_text("schema_version: 1\n" + "".join(f"key_{i}: {i}\n" for i in range(200)))
    golden("broken/very-many.txt", refused(["catalog", "show", "many.yaml"], capsys))


def test_a_file_with_nearly_the_name_is_named(golden, capsys, tmp_path):
    (tmp_path / "my-catalog.yaml").write_text("schema_version: 1\n")
    golden("broken/nearly-the-name.txt", refused(["catalog", "show", "./my-catlog.yaml"], capsys))


def test_output_onto_a_file_leaves_the_file(golden, capsys, tmp_path):
    (tmp_path / "taken").write_text("mine")
    golden("broken/output-onto-file.txt", refused(["--budget-kw", "50", "--output", "taken"], capsys))
    assert (tmp_path / "taken").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_all_problems_of_a_file_are_told_at_once(capsys, monkeypatch):
    """A duplicate key, a foreign tag, an unknown key, a bad value, a dangling name and an alias in one message."""
    monkeypatch.chdir(FILES)
    err = refused(["catalog", "show", "./catalog-everything-at-once.yaml"], capsys)
    for part in ("stands twice", "!watts", "unknown key", "must be at least 0", "there is no model", "aliases"):
        assert part in err
    assert [int(line.split(":")[2]) for line in err.splitlines()] == [5, 6, 7, 9, 11, 14]


def test_no_golden_message_is_left_over():
    cases = {*broken_files(), *(f"flags-{name}" for name in FLAGS)}
    others = {"large-catalog", "large-scenario", "bottomless", "very-many", "nearly-the-name", "output-onto-file"}
    assert {path.stem for path in GOLDEN.glob("*")} == cases | others
    assert len(cases) >= 50

"""The command as a person and as another program meet it: help, exit codes, streams, widths, completion, files."""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from commands import on_reference, run

from planner.cli import EXIT_BAD_INPUT, EXIT_INFEASIBLE, EXIT_INTERRUPTED, EXIT_NO_INCUMBENT
from planner.milp import program
from planner.words import PHASES

MAIN_JOB = ["--budget-kw", "50", "--min-tps", "100"]
TOO_FAST = ["--budget-kw", "50", "--min-tps", "200"]
ON_GPU = [f"--place={phase}=gpu" for phase in PHASES]

# Commands whose text is compared at 80 columns and measured at others.
TEXTS = {
    "evaluate": ["evaluate", *ON_GPU, "--draft-length", "8"],
    "pareto": ["pareto", "--method", "exact"],
    "sensitivity": ["sensitivity", *MAIN_JOB, "--workers", "1"],
    "catalog-list": ["catalog", "list"],
    "catalog-show-reference": ["catalog", "show", "reference"],
    "catalog-show-gpu": ["catalog", "show", "gpu"],
    "catalog-show-drafter": ["catalog", "show", "drafter"],
    "scenario-list": ["scenario", "list"],
    "scenario-show": ["scenario", "show", "reference-slow-prefill"],
}
HELPS = {
    "plan": [],
    "evaluate": ["evaluate"],
    "pareto": ["pareto"],
    "report": ["report"],
    "explain": ["explain"],
    "review": ["review"],
    "sensitivity": ["sensitivity"],
    "profile": ["profile"],
    "validate": ["validate"],
    "catalog": ["catalog"],
    "catalog-list": ["catalog", "list"],
    "catalog-show": ["catalog", "show"],
    "scenario": ["scenario"],
    "scenario-list": ["scenario", "list"],
    "scenario-show": ["scenario", "show"],
    "schema": ["schema"],
    "completion": ["completion"],
}


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def said(capsys, *arguments):
    """Run the command in this process: exit code, standard output, standard error."""
    code = run(list(arguments))
    return code, *capsys.readouterr()


def process(*arguments, **more):
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "planner", *on_reference(arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **more)


def without_runtime(document):
    """A document without what differs from run to run."""
    provenance = {key: value for key, value in document["provenance"].items() if key not in ("runtime_s", "command")}
    return {**document, "provenance": provenance}


def large_scenario(folder, devices):
    """Whole devices of many types under an inventory: hours of work for the solver."""
    batches = {f"b{2**n}": 2**n for n in range(8)}

    def phase(latency, energy, slower, device):
        """Larger batches are slower and cheaper; types differ by a few per cent."""
        odd = 1 + 0.037 * ((device * 7) % 11)
        per = {"per_token": 0.02} if slower else {}
        return {
            key: {
                "latency_ms": {"base": latency * odd * (1 + b / 24), **per} if slower else latency * odd * b**0.9,
                "energy_mj": energy / odd / b**0.5,
            }
            for key, b in batches.items()
        }

    def device(n):
        return {
            "provisioned_power_w": 400 + 97 * (n % 9),
            "memory_gb": 192,
            "profiles": {
                "target": {"target_prefill": phase(120, 2e5, False, n), "target_verify": phase(30, 2e3, True, n)},
                "drafter": {"draft_prefill": phase(15, 2e4, False, n), "draft_decode": phase(2, 200, True, n)},
            },
        }

    catalog = {
        "schema_version": 1,
        "devices": {f"d{n}": device(n) for n in range(devices)},
        "models": {
            "target": {"weights_gb": 140, "kv_bytes_per_token": 160_000},
            "drafter": {"weights_gb": 2, "kv_bytes_per_token": 20_000},
        },
        "proposers": {
            "drafter": {
                "kind": "draft_model",
                "model": "drafter",
                "acceptance": {"target": {"general": {"kind": "geometric", "alpha": 0.8}}},
            }
        },
    }
    scenario = {
        "schema_version": 1,
        "name": "large",
        "catalog": "./catalog.yaml",
        "target": "target",
        "proposers": ["drafter"],
        "max_draft_length": 24,
        "workloads": {"w": {"isl_tokens": 3000, "osl_tokens": 500, "limits": {"interactivity_floor_tps": 20}}},
        "limits": {"power_budget_kw": 60, "inventory": {f"d{n}": 2 + n * 5 % 11 for n in range(devices)}},
    }
    (folder / "catalog.yaml").write_text(json.dumps(catalog))
    (folder / "scenario.yaml").write_text(json.dumps(scenario))
    return str(folder / "scenario.yaml")


# -------------------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("name", HELPS)
def test_help(name, capsys, golden):
    code, out, err = said(capsys, *HELPS[name], "--help")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    golden(f"help/{name}.txt", out)


@pytest.mark.parametrize("name", HELPS)
def test_the_short_form_of_help(name, capsys):
    assert said(capsys, *HELPS[name], "-h") == said(capsys, *HELPS[name], "--help")


def test_every_command_has_its_help_tested():
    from planner.cli.app import plan

    names = set()
    for name in plan.list_commands(None):
        command = plan.get_command(None, name)
        names |= {name, *(f"{name}-{below}" for below in getattr(command, "commands", {}))}
    assert names == set(HELPS) - {"plan"}


def test_version(capsys):
    from planner import __version__

    assert said(capsys, "--version") == (0, f"phaseplan, version {__version__}\n", "")


# -------------------------------------------------------------------------------------------------- exit codes


def test_a_proven_plan_is_0(capsys):
    code, out, err = said(capsys, *MAIN_JOB)
    assert (code, err) == (0, "")
    assert out.startswith("Plan for reference: optimal\n")


def test_bad_input_is_2(capsys):
    assert said(capsys, "--min-tps", "100")[0] == EXIT_BAD_INPUT == 2


def test_infeasible_is_3_and_an_answer(capsys):
    code, out, err = said(capsys, *TOO_FAST)
    assert (code, err) == (EXIT_INFEASIBLE, "")
    assert out.startswith("Plan for reference: infeasible\n")
    assert EXIT_INFEASIBLE == 3


def test_infeasible_as_json_goes_to_standard_output_too(capsys):
    code, out, err = said(capsys, *TOO_FAST, "--json")
    plan = json.loads(out)
    assert (code, err, plan["status"]) == (3, "", "infeasible")
    (conflict, *_) = plan["infeasibility"]
    assert (conflict["limit"], conflict["asked"]) == ("interactivity_floor", 200.0)


def test_the_plain_program_gives_the_same_plan_and_is_named_as_what_found_it(capsys):
    plans = [json.loads(said(capsys, *MAIN_JOB, *plain, "--json")[1]) for plain in ([], ["--plain"])]
    fast, plain = (plan["provenance"]["solver"] for plan in plans)
    assert fast == "exact structure"
    assert plain.startswith("HiGHS ")
    assert plain.endswith(", nothing reduced")
    assert plans[0]["objective"]["value"] == pytest.approx(plans[1]["objective"]["value"], rel=1e-6)
    assert [one["draft_length"] for one in plans[0]["deployments"]] == [
        one["draft_length"] for one in plans[1]["deployments"]
    ]


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_no_plan_within_the_time_is_4(form, capsys, tmp_path):
    scenario = large_scenario(tmp_path, devices=3)
    code, out, err = said(capsys, "--plain", "--scenario", scenario, "--time-limit-s", "1e-6", *form)
    assert (code, err) == (EXIT_NO_INCUMBENT, "")
    assert "no_incumbent" in out.splitlines()[2] if form else out.startswith("Plan for large: no incumbent\n")
    assert EXIT_NO_INCUMBENT == 4


def test_a_plan_that_is_not_proven_is_0_and_says_so(capsys, monkeypatch):
    """The solver as if it had stopped at its time limit, its best plan within 2 % of its bound."""
    proven = program.solve

    def stopped(*arguments, **more):
        outcome = proven(*arguments, **more)
        return replace(outcome, termination="limit", bound=outcome.objective - 0.02 * abs(outcome.objective))

    monkeypatch.setattr(program, "solve", stopped)
    whole = [*MAIN_JOB, "--plain", "--set", "limits.inventory.accelerator=100", "--time-limit-s", "1"]
    code, out, _ = said(capsys, *whole)
    assert code == 0
    assert out.startswith("Plan for reference: feasible\n")
    assert "best found at the time limit" in out
    code, out, _ = said(capsys, *whole, "--json")
    plan = json.loads(out)
    assert (code, plan["status"]) == (0, "feasible")
    assert plan["objective"]["best_bound"] > plan["objective"]["value"]
    assert plan["objective"]["gap"] == pytest.approx(0.02, rel=1e-3)


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [(signal.SIGINT, EXIT_INTERRUPTED, "interrupted"), (signal.SIGTERM, 128 + signal.SIGTERM, "")],
)
def test_an_interrupt_is_heard_while_the_solver_computes(number, code, words, tmp_path):
    script = (
        "import os, sys\nfrom planner.milp import program\nfrom planner.cli import main\nsolve = program.solve\n"
        "def told(*arguments, **more):\n    os.write(2, b'solving\\n')\n    return solve(*arguments, **more)\n"
        "program.solve = told\nmain()\n"
    )
    command = [sys.executable, "-c", script, "--plain", "--scenario", large_scenario(tmp_path, devices=8)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as running:
        assert running.stderr.readline() == "solving\n"
        running.send_signal(number)
        try:
            out, err = running.communicate(timeout=20)
        finally:
            running.kill()
    assert (running.returncode, out, err.strip()) == (code, "", words)
    assert EXIT_INTERRUPTED == 130


# ----------------------------------------------------------------------------------------------------- streams


def test_json_is_one_document_and_nothing_else():
    """In a real process: the solver's banner goes to file descriptor 1 unless it is kept away."""
    done = process(*MAIN_JOB, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    plan = json.loads(done.stdout)
    assert plan["status"] == "optimal"
    assert plan["provenance"]["command"] == "plan --scenario reference --budget-kw 50 --min-tps 100 --json"


@pytest.mark.parametrize("name", TEXTS)
def test_every_command_prints_json(name, capsys):
    code, out, err = said(capsys, *TEXTS[name], "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["schema_version"] == 1


def test_nothing_is_coloured_in_a_pipe():
    environment = {**os.environ, "TERM": "xterm-256color"}
    for arguments in (MAIN_JOB, TEXTS["catalog-show-gpu"], ["--help"], ["evalute"]):
        done = process(*arguments, env=environment)
        assert "\x1b" not in done.stdout + done.stderr
        assert done.stdout + done.stderr


def test_warnings_go_to_standard_error_only(capsys):
    plain = ["evaluate", "--draft-length", "0", *ON_GPU]
    code, out, err = said(capsys, *plain)
    warnings = [f"warning: draft length 0: the place of {phase} is ignored" for phase in PHASES[2:]]
    assert code == 0
    assert err.splitlines() == warnings
    assert "ignored" not in out


def test_warnings_stand_in_the_document_too(capsys):
    _, out, err = said(capsys, "evaluate", "--draft-length", "0", *ON_GPU, "--json")
    assert [f"warning: {text}" for text in json.loads(out)["warnings"]] == err.splitlines()


@pytest.mark.parametrize(
    "arguments", [[*MAIN_JOB, "--json"], MAIN_JOB, ["schema", "plan"], ["catalog", "list"], ["--help"]]
)
def test_a_reader_that_is_gone_is_no_error_to_tell(arguments):
    read, write = os.pipe()
    os.close(read)
    try:
        command = [sys.executable, "-m", "planner", *arguments]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    finally:
        os.close(write)
    assert done.stderr == ""
    assert done.returncode in (1, 128 + signal.SIGPIPE)


def test_progress_is_shown_on_a_terminal_and_never_in_the_answer():
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "planner", *on_reference(MAIN_JOB), "--json"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=follower, text=True, timeout=60)
        shown = os.read(leader, 100_000).decode()
    finally:
        os.close(follower)
        os.close(leader)
    assert json.loads(done.stdout)["status"] == "optimal"
    assert re.search("reading|best plan|baseline", shown)


# ------------------------------------------------------------------------------------------------------ widths


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_at_80_columns(name, capsys, golden):
    code, out, _ = said(capsys, *TEXTS[name])
    assert code == 0
    golden(f"text/{name}.txt", "\n".join(line.rstrip() for line in out.splitlines()) + "\n")


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", [*TEXTS, "plan", "infeasible"])
def test_no_line_is_wider_than_the_terminal(name, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = said(capsys, *{**TEXTS, "plan": MAIN_JOB, "infeasible": TOO_FAST}[name])
    assert max(map(len, out.splitlines())) <= columns
    assert len(out.splitlines()) >= 3


# -------------------------------------------------------------------------------------------------- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell, capsys, tmp_path):
    code, out, err = said(capsys, "completion", shell)
    assert (code, err) == (0, "")
    assert f"_PLAN_COMPLETE={shell}_complete" in out
    if shutil.which(shell):
        (tmp_path / "script").write_text(out)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("plan --scenario ref", {"reference", "reference-slow-prefill", "reference-high-energy-prefill"}),
        ("plan scenario show reference-s", {"reference-slow-prefill"}),
        ("plan catalog show ref", {"reference"}),
        ("plan sc", {"scenario", "schema"}),
        ("plan --objective p", {"power"}),
        ("plan schema e", {"evaluation", "explanation"}),
    ],
)
def test_completion_offers(words, offered):
    count = str(len(words.split()) - 1)
    done = process(env={**os.environ, "_PLAN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": count})
    assert done.stderr == ""
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == offered


@pytest.mark.parametrize(("words", "kind"), [("plan --scenario ./m", "file"), ("plan --output d", "dir")])
def test_completion_leaves_paths_to_the_shell(words, kind):
    done = process(env={**os.environ, "_PLAN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "2"})
    assert done.stdout.startswith(f"{kind},")


# ------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("plan", MAIN_JOB),
        ("evaluation", TEXTS["evaluate"]),
        ("catalogs", ["catalog", "list"]),
        ("scenario", ["scenario", "show"]),
    ],
)
def test_the_files_hold_what_is_printed(name, arguments, capsys, tmp_path):
    code, out, _ = said(capsys, *arguments, "--json", "--output", str(tmp_path / "out"))
    assert code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"{name}.json", f"{name}.md"}
    assert (tmp_path / "out" / f"{name}.json").read_text() == out
    assert (tmp_path / "out" / f"{name}.md").read_text().startswith("# ")


def test_the_files_are_the_same_without_json(capsys, tmp_path):
    said(capsys, *MAIN_JOB, "--output", str(tmp_path))
    _, out, _ = said(capsys, *MAIN_JOB, "--json")
    written = json.loads((tmp_path / "plan.json").read_text())
    assert without_runtime(written) == without_runtime(json.loads(out))


def test_an_infeasible_answer_is_written_too(capsys, tmp_path):
    assert said(capsys, *TOO_FAST, "--output", str(tmp_path))[0] == 3
    assert json.loads((tmp_path / "plan.json").read_text())["status"] == "infeasible"


def test_a_schema_is_written_as_it_is_printed(capsys, tmp_path):
    _, out, _ = said(capsys, "schema", "plan", "--output", str(tmp_path))
    assert (tmp_path / "plan.schema.json").read_text() == out


# ------------------------------------------------------------------------------------- degrees and batch sizes

SEVERAL = (
    "--set=catalog.devices.gpu.profiles.target.target_verify="
    "{b1: {latency_ms: 40, energy_mj: 760}, b8: {latency_ms: 60, energy_mj: 300},"
    " 'tp2:b8': {latency_ms: 45, energy_mj: 350}}"
)


def evaluated(capsys, place, *more):
    places = [f"--place={phase}=gpu" for phase in PHASES if phase != "target_verify"]
    arguments = ["evaluate", "--draft-length", "4", *places, f"--place=target_verify={place}", SEVERAL, *more, "--json"]
    return said(capsys, *arguments)


@pytest.mark.parametrize(
    ("place", "option"), [("gpu:b1", (1, 1)), ("gpu:tp2", (2, 8)), ("gpu:tp1:b8", (1, 8)), ("gpu:tp2:b8", (2, 8))]
)
def test_degree_and_batch_may_be_left_out_where_one_option_is_left(place, option, capsys):
    code, out, _ = evaluated(capsys, place)
    placement = json.loads(out)["placements"]["target_verify"]
    assert code == 0
    assert (placement["tensor_parallel"], placement["batch_size"]) == option


@pytest.mark.parametrize(
    ("place", "options"),
    [
        ("gpu", "gpu:tp1:b1, gpu:tp1:b8, gpu:tp2:b8"),
        ("gpu:b8", "gpu:tp1:b8, gpu:tp2:b8"),
        ("gpu:tp1", "gpu:tp1:b1, gpu:tp1:b8"),
    ],
)
def test_they_must_be_said_where_several_are_left(place, options, capsys):
    code, out, err = evaluated(capsys, place)
    assert (code, out) == (EXIT_BAD_INPUT, "")
    assert err == f"error: --place target_verify={place}: say which of {options}\n"


def test_candidates_of_the_scenario_count(capsys):
    code, out, _ = evaluated(capsys, "gpu", "--set=candidates.batch_sizes=[1]")
    assert code == 0
    assert json.loads(out)["placements"]["target_verify"]["batch_size"] == 1


def test_an_evaluation_is_at_the_demand_else_at_one_request_per_second(capsys):
    arguments = [*TEXTS["evaluate"], "--json"]
    rates = []
    for more in ([], ["--set=workloads.reference.limits.demand_rps=3.5"]):
        rates.append(json.loads(said(capsys, *arguments, *more)[1])["metrics"]["request_rate_rps"])
    assert rates == [1.0, 3.5]


def test_an_evaluation_applies_no_limit(capsys):
    code, out, _ = said(
        capsys, *TEXTS["evaluate"], "--set=workloads.reference.limits.interactivity_floor_tps=500", "--json"
    )
    assert code == 0
    assert json.loads(out)["metrics"]["interactivity_tps"] < 500


ASKED = ("--scenario", "reference", "--budget-kw", "50", "--min-tps", "100")


def test_a_full_disk_behind_standard_output_is_one_message():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "planner", *ASKED], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == EXIT_BAD_INPUT
    assert done.stderr.decode() == "error: the answer cannot be written: No space left on device\n"


def test_a_closed_standard_output_is_one_message():
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m planner {shlex.join(ASKED)} >&-"], stderr=subprocess.PIPE, check=False
    )
    assert done.returncode == EXIT_BAD_INPUT
    assert done.stderr.decode() == "error: the answer cannot be written: standard output is closed\n"


@pytest.mark.parametrize("command", ['plan "abc', "plan --version", "plan --help", "plan --budget-kw 50 more"])
def test_a_plan_of_a_command_that_asks_for_none_is_refused(command, tmp_path):
    with contextlib.redirect_stdout(io.StringIO()):
        assert run([*ASKED, "--output", str(tmp_path)]) == 0
    path = tmp_path / "plan.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["provenance"]["command"] = command
    path.write_text(json.dumps(document), encoding="utf-8")
    assert run(["report", "--from", str(tmp_path), "--output", str(tmp_path / "out")]) == EXIT_BAD_INPUT
    assert not (tmp_path / "out").exists()

"""Searches that are asked for in a wrong way, storages that are none, studies that end early: each said in a line."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planner.cli import run
from planner.errors import without_password
from planner.front.asked import asked_of
from planner.read.load import read_scenario
from planner.schema.scenario import Knob
from planner.search.recipe import searched_front
from planner.search.space import Space
from planner.search.study import How

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"
KNOBS = ["--scenario", str(EXAMPLES / "knobs.yaml")]


def said(capsys, *arguments):
    code = run(["pareto", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def with_knobs(tmp_path, knobs, more=""):
    """The example with other knobs, as a file."""
    text = (EXAMPLES / "knobs.yaml").read_text(encoding="utf-8").partition("knobs:\n")[0]
    text = text.replace("knobs-catalog.yaml", str(EXAMPLES / "knobs-catalog.yaml"))
    path = tmp_path / "asked.yaml"
    path.write_text(f"{text}{more}knobs:\n{knobs}", encoding="utf-8")
    return str(path)


# ------------------------------------------------------------------------- a flag that fixes what a knob varies

FIXED = [
    ("limits.power_budget_kw: {low: 10, high: 60}", ["--budget-kw", "20"]),
    ("workloads.chat.limits.interactivity_floor_tps: {low: 50, high: 90}", ["--min-tps", "90"]),
    ("workloads.chat.limits.demand_rps: {low: 5, high: 9}", ["--demand-rps", "7"]),
    ("max_draft_length: {low: 1, high: 6}", ["--max-draft-length", "1"]),
    ("max_utilization: {low: 0.6, high: 0.8}", ["--set", "max_utilization=0.5"]),
    ("workloads.chat.isl_tokens: {low: 500, high: 900}", ["--set", "workloads.chat={isl_tokens: 600, osl_tokens: 9}"]),
]


@pytest.mark.parametrize(("knob", "flag"), FIXED)
def test_a_flag_must_not_fix_what_a_knob_varies(knob, flag, tmp_path, capsys):
    more = "limits: {power_budget_kw: 40}\n" if "power_budget" in knob else ""
    path = with_knobs(tmp_path, f"  {knob}\n", more)
    code, out, err = said(capsys, "--scenario", path, *flag, "--trials", "4")
    assert (code, out) == (2, "")
    assert f"{flag[0]}" in err
    assert f"the knob '{knob.partition(':')[0]}' varies" in err
    code, _, _ = said(capsys, "--scenario", path, *flag, "--method", "exact")
    assert code in (0, 3)  # which holds the knobs, so the flag is meant


def test_a_report_must_not_fix_it_either(tmp_path, capsys):
    path = with_knobs(tmp_path, "  max_utilization: {low: 0.6, high: 0.8}\n")
    arguments = ["report", "--scenario", path, "--set", "max_utilization=0.5", "--output", str(tmp_path / "r")]
    assert run(arguments) == 2
    assert "the knob 'max_utilization' varies" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


# ------------------------------------------------------------------------------------------------------- knobs

LENIENT = "lossy_acceptance: {lenience: 0.5, rejection_exponent: 0.4}\n"
WRONG = [
    ("max_draft_length: {low: 1, high: 6, step: 0.5}", "", "step must be one"),
    ("power_basis: {choices: [forward, provisioned]}", "", "not for a search to vary"),
    ("counts: {choices: [integer, fractional]}", "", "not for a search to vary"),
    ("limits: {choices: [1, 2]}", "", "no single value"),
    ("workloads.chat.description: {choices: [a, b]}", "", "not for a search to vary"),
    ("max_utilization: {choices: [0.7, 0.7, 0.6]}", "", "stands twice"),
    ("lossy_acceptance.lenience: {low: 0.3, high: 0.9}", LENIENT, "is set by the parameter lenience already"),
    (
        "catalog.proposers.family-tree.tree.branching.0: {low: 1, high: 2}",
        "",
        "is set by the parameter family-tree.children.1 already",
    ),
    (
        "pue: {low: 1, high: 2}\n  k: {low: 0, high: 1, sets: {pue: [[0, 1], [1, 2]]}}",
        "",
        "is set by the knob pue already",
    ),
    ("kk: {low: 0, high: 2, sets: {max_utilization: [[0, 0.7], [1, 1.02], [2, 0.6]]}}", "", "max_utilization = 1.02"),
    ("puee: {low: 1, high: 2}", "", "there is no such key"),
]


@pytest.mark.parametrize(("knob", "more", "message"), WRONG)
def test_a_knob_that_does_not_fit_is_refused_where_it_stands(knob, more, message, tmp_path, capsys):
    more += "proposers: [family, family-tree]\n" if "family-tree" in knob else ""
    path = with_knobs(tmp_path, f"  {knob}\n", more)
    if "family-tree" in knob:
        Path(path).write_text(Path(path).read_text().replace("proposers: [family]\n", "", 1))
    code, out, err = said(capsys, "--scenario", path, "--trials", "5")
    assert (code, out) == (2, "")
    assert message in err
    assert f"{path}:" in err, "file and line"
    assert "knobs" in err


def test_steps_that_do_not_reach_the_end_stop_at_the_last_that_fits(recwarn):
    scenario = read_scenario(str(EXAMPLES / "knobs.yaml")).scenario
    given = {
        "max_utilization": {"low": 0.6, "high": 0.8, "step": 0.07},
        "max_draft_length": {"low": 1, "high": 6, "step": 2},
    }
    scenario = scenario.replace(knobs={name: Knob.model_validate(one) for name, one in given.items()})
    space = Space.of(scenario, asked_of(scenario).tables)
    highs = {one.name: one.high for one in space.parameters}
    assert highs["max_utilization"] == pytest.approx(0.74)
    assert highs["max_draft_length"] == 5
    front = searched_front(scenario, How(trials=12))
    assert front.search.trials == 12
    assert [str(one.message) for one in recwarn if "step" in str(one.message)] == []


# --------------------------------------------------------------------------- values that do not fit together

APART = (
    "  workloads.chat.isl_tokens: {low: 500, high: 3000}\n  workloads.chat.cached_prefix_tokens: {low: 0, high: 2000}\n"
)


def test_values_that_do_not_fit_together_cost_their_trial_only(tmp_path, capsys):
    code, out, _ = said(capsys, "--scenario", with_knobs(tmp_path, APART), "--trials", "40", "--json")
    assert code == 0
    search = json.loads(out)["search"]
    assert search["trials"] == 40
    assert 0 < search["refused"] < 40
    code, out, _ = said(capsys, "--scenario", with_knobs(tmp_path, APART), "--trials", "40")
    assert f"The values of {search['refused']} trials do not fit together" in " ".join(out.split())


def test_what_no_trial_meets_is_named(capsys):
    code, out, _ = said(capsys, *KNOBS, "--demand-rps", "10", "--min-tps", "1000", "--trials", "8")
    assert code == 4
    assert "the nearest one breaks the interactivity floor by" in " ".join(out.split())


def test_the_values_of_knobs_stand_in_the_answer(capsys):
    _, out, _ = said(capsys, *KNOBS, "--trials", "30")
    assert "Sampled" in out
    assert "power_cap" in out
    assert "varied from point to point: drafter_size_b, power_cap, max_utilization" in " ".join(out.split())


def test_only_designs_of_the_exact_front_count_as_such(capsys):
    """A knob that sets several fields has no value at which the scenario stands: its start is no exact design."""
    _, out, _ = said(capsys, *KNOBS, "--trials", "10", "--json")
    assert json.loads(out)["search"]["warm_started"] == 0


# ---------------------------------------------------------------------------------------------------- storages


def a_text(path):
    path.write_text("schema_version: 1\n")
    return f"journal:{path}"


def a_foreign_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("create table studies (id integer)")
    return f"sqlite:///{path}"


@pytest.mark.parametrize(
    "storage",
    [
        lambda path: "sqlite://",
        lambda path: "sqlite:///",
        lambda path: "sqlite:///:memory:",
        lambda path: "postgresql://planner@127.0.0.1:port/postgres",
        lambda path: f"journal:{path.parent}",
        a_text,
        a_foreign_database,
    ],
)
def test_a_storage_that_is_none_is_refused_at_once(storage, tmp_path, capsys):
    url, start = storage(tmp_path / "file"), time.monotonic()
    before = (tmp_path / "file").read_bytes() if (tmp_path / "file").exists() else None
    code, out, err = said(capsys, "--scenario", "reference", "--trials", "6", "--storage", url)
    assert (code, out) == (2, "")
    assert err.startswith("error: --storage ")
    assert len(err.splitlines()) == 1
    assert time.monotonic() - start < 30
    assert before is None or url.startswith("sqlite") or (tmp_path / "file").read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write what is read-only")
@pytest.mark.parametrize("kind", ["sqlite:///", "journal:"])
def test_a_study_that_cannot_be_written_is_refused(kind, tmp_path, capsys):
    path = tmp_path / "study"
    assert said(capsys, "--scenario", "reference", "--trials", "3", "--storage", f"{kind}{path}")[0] == 0
    path.chmod(0o444)
    code, _, err = said(capsys, "--scenario", "reference", "--trials", "6", "--storage", f"{kind}{path}")
    assert code == 2
    assert err.startswith("error: --storage ")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:sEcret@host/db",
        "postgresql://host/db?user=me&password=sEcret",
        "mysql://host/db?passwd=sEcret&x=1",
        "postgresql://host/db?PASSWORD=sEcret",
    ],
)
def test_no_password_is_shown(url, capsys):
    assert "sEcret" not in without_password(url)
    assert "sEcret" not in without_password(f"cannot reach {url}: refused")
    code, _, err = said(capsys, "--trials", "3", "--storage", url.replace("host", "127.0.0.1:1"))
    assert code == 2
    assert "sEcret" not in err


def test_a_study_says_how_it_was_begun(tmp_path, capsys):
    storage = ["--storage", f"journal:{tmp_path / 'study'}", "--scenario", "reference", "--no-warm-start"]
    said(capsys, *storage, "--trials", "5", "--sampler", "tpe", "--json")
    code, out, err = said(capsys, *storage, "--trials", "5", "--sampler", "random", "--seed", "9", "--json")
    assert code == 0
    search = json.loads(out)["search"]
    assert (search["sampler"], search["seed"]) == ("TPE", 0)
    assert "begun by another sampler or seed" in err


# ------------------------------------------------------------------------------------------------------ endings


def test_the_time_limit_bounds_the_exact_front_too(capsys):
    start = time.monotonic()
    code, _, _ = said(capsys, "--scenario", "chat-and-completion", "--time-limit-s", "0.01", "--trials", "300")
    assert code in (0, 4)
    assert time.monotonic() - start < 8  # 2 on an idle machine; without the limit the search takes three times as long


def test_workers_end_with_the_process_that_started_them(tmp_path):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    arguments = [sys.executable, "-m", "planner", "pareto", "--scenario", "llama-70b-chat", "--trials", "100000"]
    started = subprocess.Popen(
        [*arguments, "--workers", "2", "--storage", storage], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: trials_in(tmp_path / "study.db") > 3, 60)
        workers = children_of(started.pid)
        assert len(workers) >= 2
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), 30)


def children_of(pid):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == str(pid):
            found.append(int(stat.parent.name))
    return found


def trials_in(path):
    """How many trials are finished; the file may not be there yet."""
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            return connection.execute("select count(*) from trials where state = 'COMPLETE'").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def wait_for(condition, seconds):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.2)

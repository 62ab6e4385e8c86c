"""Help, completion and mistakes in flags cost no more than click: nothing heavy is loaded for them."""

import cProfile
import json
import os
import subprocess
import sys

import pytest

from planner.cli.bare import load_asked
from planner.solve import solve

HEAVY = {
    "pydantic",
    "pydantic_core",
    "numpy",
    "pulp",
    "highspy",
    "yaml",
    "rich",
    "optuna",
    "moocore",
    "jinja2",
    "vl_convert",
}
SOLVERS = {"pulp", "highspy", "optuna"}
SCRIPT = (
    "import json, sys\nfrom planner.cli import run\ntry:\n    run(sys.argv[1:])\nfinally:\n"
    "    sys.stderr.write('\\n' + json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
)


def loaded(*arguments, **environment):
    """Top-level names of what a run of the command loads, in a process of its own."""
    command = [sys.executable, "-c", SCRIPT, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["evaluate", "--help"],
        ["pareto", "--help"],
        ["report", "--help"],
        ["explain", "--help"],
        ["review", "--help"],
        ["sensitivity", "--help"],
        ["catalog", "show", "--help"],
        ["scenario", "--help"],
        ["schema", "--help"],
        ["completion", "bash"],
        ["--budget-kw", "nan"],
        ["evalute"],
    ],
    ids=" ".join,
)
def test_nothing_heavy_is_loaded(arguments):
    assert loaded(*arguments) & HEAVY == set()


@pytest.mark.parametrize("words", ["plan --scenario ", "plan catalog show ", "plan --objective "])
def test_completion_loads_nothing_heavy(words):
    count = str(len(words.split()))
    assert loaded(_PLAN_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count) & HEAVY == set()


@pytest.mark.parametrize("arguments", [["scenario", "show"], ["catalog", "list"], ["schema", "plan"]], ids=" ".join)
def test_looking_loads_no_solver(arguments):
    found = loaded(*arguments)
    assert found & SOLVERS == set()
    assert "pydantic" in found, "so that the checks above can fail"


def test_the_reference_loads_neither_solver_nor_roofline():
    """The reference separates, and its catalog characterizes every phase."""
    code = "import sys; from planner.cli import run; run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    arguments = ["--scenario", "reference", "--budget-kw", "50", "--min-tps", "100"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120)
    loaded = set(done.stderr.split())
    assert "planner.structure.optimise" in loaded
    assert not {"pulp", "highspy", "planner.milp.program", "planner.derived", "matplotlib"} & loaded


QUESTION = ["--budget-kw", "50", "--min-tps", "100"]
MOST_CALLS = 700_000


def test_the_main_job_loads_no_solver():
    """The default scenario is proven by the structure, links and all."""
    code = "import sys; from planner.cli import run; run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *QUESTION], capture_output=True, text=True, timeout=120)
    assert "proven, no plan under this model is better" in done.stdout
    found = set(done.stderr.split())
    assert "planner.derived" in found
    assert not {"pulp", "highspy", "planner.milp.program", "matplotlib", "jinja2"} & found


def test_the_main_job_takes_few_steps():
    """Calls of functions, whatever the machine does besides: a million are about a second. Times: bench_startup."""
    loaded = load_asked(
        "llama-70b-chat", (), (), {"budget_kw": 50.0, "min_tps": 100.0, "max_ttft_ms": None, "demand_rps": None}
    )
    solve(loaded.scenario)  # what is imported on the way is not counted
    profile = cProfile.Profile()
    plan = profile.runcall(solve, loaded.scenario)
    assert plan.status == "optimal"
    assert sum(entry.callcount for entry in profile.getstats()) < MOST_CALLS

"""Help, completion and mistakes in flags cost no more than click: nothing heavy is loaded for them."""

import json
import os
import subprocess
import sys

import pytest

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

"""How long the command takes to start, and the main job to its answer: ``python tests/benchmarks/bench_startup.py``.

The answer is asserted, the times are only shown: best of five, on an idle machine. Processor time is shown beside wall
time, for machines with other work.
"""

import json
import resource
import subprocess
import sys
import time

ROUNDS = 5
PLAN = [sys.executable, "-m", "planner"]
QUESTION = ["--budget-kw", "50", "--min-tps", "100"]
COMMANDS = {
    "plan --help": [sys.executable, "-m", "planner", "--help"],
    "import pydantic, rich.console": [sys.executable, "-c", "import pydantic, rich.console"],
    "plan --scenario reference --budget-kw 50 --min-tps 100": [*PLAN, "--scenario", "reference", *QUESTION, "--json"],
    "plan --budget-kw 50 --min-tps 100": [*PLAN, *QUESTION, "--json"],
}
HELP, IMPORTS, REFERENCE, MAIN_JOB = COMMANDS


def timed(command: list[str]) -> tuple[float, float, str]:
    """Wall time, processor time and output of one run."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def best_of(command: list[str]) -> tuple[float, float, str]:
    runs = [timed(command) for _ in range(ROUNDS)]
    return min(wall for wall, _, _ in runs), min(busy for _, busy, _ in runs), runs[-1][2]


def main() -> None:
    best = {name: best_of(command) for name, command in COMMANDS.items()}
    for name, throughput, length in ((REFERENCE, 56_374, 7), (MAIN_JOB, 37_724, 2)):
        plan = json.loads(best[name][2])
        (deployment,) = plan["deployments"]
        assert plan["status"] == "optimal"
        assert deployment["draft_length"] == length
        assert abs(plan["objective"]["value"] / throughput - 1) < 1e-3
    for name, (wall, busy, _) in best.items():
        print(f"{name:56} {1e3 * wall:7.0f} ms {1e3 * busy:7.0f} ms of a processor")
    print(f"{'help against the imports':56} {best[HELP][0] / best[IMPORTS][0]:7.2f}")


if __name__ == "__main__":
    main()

"""How long the command takes to start, and the main job to its answer: ``python tests/benchmarks/bench_startup.py``.

The answer is asserted, the times are only shown: best of five, on an idle machine.
"""

import json
import subprocess
import sys
import time

ROUNDS = 5
COMMANDS = {
    "plan --help": [sys.executable, "-m", "planner", "--help"],
    "import pydantic, rich.console": [sys.executable, "-c", "import pydantic, rich.console"],
    "plan --budget-kw 50 --min-tps 100": [
        sys.executable,
        "-m",
        "planner",
        "--budget-kw",
        "50",
        "--min-tps",
        "100",
        "--json",
    ],
}
HELP, IMPORTS, MAIN_JOB = COMMANDS


def timed(command: list[str]) -> tuple[float, str]:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stdout


def best_of(command: list[str]) -> tuple[float, str]:
    runs = [timed(command) for _ in range(ROUNDS)]
    return min(seconds for seconds, _ in runs), runs[-1][1]


def main() -> None:
    best = {name: best_of(command) for name, command in COMMANDS.items()}
    plan = json.loads(best[MAIN_JOB][1])
    (deployment,) = plan["deployments"]
    assert plan["status"] == "optimal"
    assert deployment["draft_length"] == 7
    assert abs(plan["objective"]["value"] / 56_374 - 1) < 1e-3
    for name, (seconds, _) in best.items():
        print(f"{name:36} {1e3 * seconds:7.0f} ms")
    print(f"{'help against the imports':36} {best[HELP][0] / best[IMPORTS][0]:7.2f}")
    print(f"main job: {plan['objective']['value']:,.0f} tok/s at draft length {deployment['draft_length']}")


if __name__ == "__main__":
    main()

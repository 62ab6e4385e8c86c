"""What using the structure first is worth, against the plain program: ``python tests/benchmarks/bench_reduction.py``.

Synthetic catalogs of 2 to 200 device types, 8 batches, drafts of up to 32 tokens, whole replicas; 1, 4 and 16
workloads; one power budget, without and with an inventory of 8 devices per type. Every run is a process of its own, so
that its peak memory is its own. Times are seconds of one core, so that a busy machine changes little; imports are not
in them. The optima of both ways are asserted to be equal wherever the
plain program ends with a proof within the limit; times, ratios and the growth with the number of types are only shown.

``planner`` is everything that ``planner.optimise.optimise`` does: bounds, reduction, and where a program is left every
run of the solver until two agree. ``HiGHS`` and ``CBC`` are the whole program, solved once: that favours them.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

TYPES = (2, 8, 30, 60, 200)
WORKLOADS = (1, 4, 16)
LONGEST = 32
INVENTORY = 8
LIMIT_S = 60.0
# Choices beyond which building the plain program alone would take longer than the limit.
MOST_CHOICES = 70_000
AGREE = 1e-6
MANY_RUNS, FEW_S = 5, 2.0


def clock() -> float:
    """Seconds of one core that this process and what it called have used."""
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


# -------------------------------------------------------------------------------------------------- one run


def by_planner(types: int, workloads: int, inventory: int | None, limit_s: float) -> dict[str, Any]:
    """The answer of the planner, and where its time goes: tables and programs, the solver, all else is reduction."""
    import synthetic

    from planner.milp import large, program, solver
    from planner.optimise import optimise
    from planner.options import cost_table

    scenario = synthetic.question(types, workloads, LONGEST, inventory)
    best: dict[str, Any] = {}
    for _ in range(MANY_RUNS):
        with spent(program, "assemble") as assembling, spent(solver, "_run") as solving:
            start = clock()
            tables = {name: cost_table(scenario, name) for name in scenario.workloads}
            costed = clock() - start
            found = optimise(scenario, tables, time_limit_s=limit_s)
            total = clock() - start
        build = costed + sum(assembling)
        run = {
            "choices": large.choices(scenario, tables),
            "build_s": build,
            "reduce_s": total - build - sum(solving),
            "solve_s": sum(solving),
            "total_s": total,
            "status": found.status,
            "value": found.value,
            "gap": found.gap,
        }
        best = run if not best or total < best["total_s"] else best
        if total > FEW_S:
            break
    return best


def by_program(types: int, workloads: int, inventory: int | None, limit_s: float, cbc: bool) -> dict[str, Any]:
    """The answer of the whole program, solved once."""
    import pulp
    import synthetic

    from planner.milp import program, solver
    from planner.options import cost_table
    from planner.question import question_of

    scenario = synthetic.question(types, workloads, LONGEST, inventory)
    start = clock()
    tables = {name: cost_table(scenario, name) for name in scenario.workloads}
    built = program.assemble(scenario, tables, question_of(scenario))
    built.program.minimize(built.goal.expression)
    middle = clock()
    if cbc:
        made = pulp.PULP_CBC_CMD(msg=False, threads=1, timeLimit=limit_s, gapRel=1e-9, gapAbs=1e-9)
        built.program.problem.solve(made)
        end = clock()
        proven = built.program.problem.sol_status == pulp.LpSolutionOptimal and end - middle < 0.95 * limit_s
        minimized = pulp.value(built.program.problem.objective) if proven else None
    else:
        outcome = solver._run(built.program, solver._TIGHT, limit_s)
        end = clock()
        proven = outcome is not None and outcome.termination == "optimal"
        minimized = outcome.objective if outcome is not None and outcome.has_incumbent else None
    return {
        "build_s": middle - start,
        "solve_s": end - middle,
        "total_s": end - start,
        "status": "optimal" if proven else "stopped",
        "value": None if minimized is None else built.goal.value(minimized),
    }


@contextmanager
def spent(module: Any, name: str) -> Iterator[list[float]]:
    """The seconds of every call of a function."""
    function, times = getattr(module, name), []

    def timed(*arguments: Any, **more: Any) -> Any:
        start = clock()
        try:
            return function(*arguments, **more)
        finally:
            times.append(clock() - start)

    setattr(module, name, timed)
    try:
        yield times
    finally:
        setattr(module, name, function)


WAYS: dict[str, Callable[..., dict[str, Any]]] = {
    "planner": by_planner,
    "HiGHS": lambda *size: by_program(*size, cbc=False),
    "CBC": lambda *size: by_program(*size, cbc=True),
}


def has_cbc() -> bool:
    """Whether PuLP brings CBC: version 3 does."""
    import pulp

    return "PULP_CBC_CMD" in pulp.listSolvers(onlyAvailable=True)


def in_a_process(way: str, types: int, workloads: int, inventory: int | None, limit_s: float) -> dict[str, Any]:
    size = [str(types), str(workloads), str(inventory or 0), str(limit_s)]
    done = subprocess.run([sys.executable, __file__, "--one", way, *size], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def one(way: str, types: str, workloads: str, inventory: str, limit_s: str) -> None:
    found = WAYS[way](int(types), int(workloads), int(inventory) or None, float(limit_s))
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found))


# ------------------------------------------------------------------------------------------------- the table

HEAD = (
    "| inventory | workloads | types | choices | build s | reduce s | solve s | total s | gap | peak MB |"
    " HiGHS s | ratio | peak MB | CBC s | ratio |"
)


def seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"


def against(mine: dict[str, Any], other: dict[str, Any] | None) -> tuple[str, str]:
    """Total of another way and its ratio to mine; a bound on both where it was stopped at the wall clock's limit."""
    if other is None:
        return "–", "–"
    sign = "" if other["status"] == "optimal" else "> "
    total = other["total_s"]
    ratio = total / mine["total_s"]
    shown = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"
    if mine["status"] != "optimal":
        return f"{sign}{seconds(total)}", "–"
    return f"{sign}{seconds(total)}", f"{sign}{shown}"


def row(size: tuple[int, int, int | None], found: dict[str, dict[str, Any]]) -> str:
    types, workloads, inventory = size
    mine, plain = found["planner"], found.get("HiGHS")
    gap = "none" if mine["gap"] is None else "proven" if mine["gap"] <= AGREE else f"{100 * mine['gap']:.1f} %"
    cells = [inventory or "–", workloads, types, f"{mine['choices']:,}"]
    cells += [seconds(mine[key]) for key in ("build_s", "reduce_s", "solve_s", "total_s")]
    cells += [gap, f"{mine['peak_mb']:.0f}", *against(mine, plain)]
    cells += ["–" if plain is None else f"{plain['peak_mb']:.0f}", *against(mine, found.get("CBC"))]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def assert_equal(found: dict[str, dict[str, Any]]) -> None:
    """Where another way has a proof, a proven answer is the same, and a plan is no better."""
    mine = found["planner"]
    for way, other in found.items():
        if other["status"] == "optimal" and mine["value"] is not None:
            assert mine["value"] <= other["value"] * (1 + AGREE), (way, mine, other)
            assert mine["status"] != "optimal" or mine["value"] >= other["value"] * (1 - AGREE), (way, mine, other)


def slope(totals: dict[int, float]) -> float:
    """Exponent of the growth, by least squares of log(seconds) on log(device types), from 8 types on."""
    points = [(math.log(types), math.log(total)) for types, total in totals.items() if types >= 8]
    x, y = (sum(point[axis] for point in points) / len(points) for axis in (0, 1))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="of the wall clock, for every run of every way")
    parser.add_argument("--types", type=int, nargs="+", default=TYPES)
    parser.add_argument("--workloads", type=int, nargs="+", default=WORKLOADS)
    parser.add_argument("--no-plain", action="store_true", help="leave the plain program out")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        one(*asked.one)
        return
    ways = [] if asked.no_plain else ["HiGHS", *(["CBC"] if has_cbc() else [])]
    print(HEAD + "\n|" + "---|" * (HEAD.count("|") - 1), flush=True)
    slopes = []
    for inventory in (None, INVENTORY):
        for workloads in asked.workloads:
            totals = {}
            for types in asked.types:
                size = (types, workloads, inventory)
                found = {"planner": in_a_process("planner", *size, asked.limit_s)}
                if found["planner"]["choices"] <= MOST_CHOICES:
                    found |= {way: in_a_process(way, *size, asked.limit_s) for way in ways}
                assert_equal(found)
                totals[types] = found["planner"]["total_s"]
                print(row(size, found), flush=True)
            if sum(types >= 8 for types in totals) > 1:
                what = f"{workloads} workload(s), {'no inventory' if inventory is None else f'{inventory} per type'}"
                slopes.append(f"{what}: total grows as types^{slope(totals):.2f} from 8 types on")
    print("\n" + "\n".join(slopes))


if __name__ == "__main__":
    main()

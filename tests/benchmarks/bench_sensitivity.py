"""How long every number of the default question takes, and what the shortcuts are worth: the answers must be the same.

Run by hand: ``python tests/benchmarks/bench_sensitivity.py [SAMPLE]``. All numbers are looked at with the shortcuts, by
as many processes as there are cores; every SAMPLE-th of them (20) from scratch as well, by one process.
"""

from __future__ import annotations

import sys
import time

from planner.cli.bare import load_asked
from planner.schema.sensitivity import Number
from planner.sensitivity.answers import Asker
from planner.sensitivity.numbers import numbers_of
from planner.sensitivity.recipe import How, Looking, cores, looked_at
from planner.solve import Settings

QUESTIONS = {
    "plan sensitivity --budget-kw 50 --min-tps 100": {"budget_kw": 50.0, "min_tps": 100.0},
    "plan sensitivity": {"budget_kw": None, "min_tps": None},
}


def compare(one: Number, other: Number) -> None:
    """Assert that two ways to look at a number found the same."""
    for mine, its in ((one.low, other.low), (one.high, other.high)):
        assert (mine.status, mine.value) == (its.status, its.value), one.key
        if mine.objective is not None and its.objective is not None:
            assert abs(mine.objective - its.objective) <= 1e-7 * abs(its.objective), one.key
        assert mine.placement_switches == its.placement_switches, one.key
    assert [(c.side, c.moves) for c in one.crossings] == [(c.side, c.moves) for c in other.crossings], one.key
    for crossing, its_crossing in zip(one.crossings, other.crossings, strict=True):
        assert abs(crossing.value - its_crossing.value) <= 2e-3 * abs(crossing.value), one.key


def main(sample: int) -> None:
    """Time both ways and compare them."""
    for command, limits in QUESTIONS.items():
        scenario = load_asked("llama-70b-chat", (), (), {"max_ttft_ms": None, "demand_rps": None, **limits}).scenario
        start = time.perf_counter()
        found = Looking.of(scenario, How(workers=cores()), Settings()).run(lambda _: None)
        whole_s = time.perf_counter() - start
        print(f"{command}: {len(found.numbers)} numbers in {whole_s:.1f} s by {cores()} processes")
        known = {number.key: number for number in found.numbers}
        some = [number for number in numbers_of(scenario) if number.refused is None][::sample]
        seconds = []
        for shortcuts in (True, False):
            asker, start = Asker(scenario, shortcuts=shortcuts), time.perf_counter()
            for number in some:
                compare(known[number.key], looked_at(asker, number, How()))
            seconds.append(time.perf_counter() - start)
        ratio = seconds[1] / seconds[0]
        print(f"  {len(some)} of them: {seconds[0]:.1f} s, from scratch {seconds[1]:.1f} s, ratio {ratio:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)

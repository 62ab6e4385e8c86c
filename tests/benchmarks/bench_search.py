"""How near a search comes to the exact front, how long it takes, and whether it beats random trials with knobs.

Run ``python tests/benchmarks/bench_search.py``, or through pytest with ``-s -n 0``. Shares and wins are asserted, times
are printed (aim on an idle machine: 300 trials in less than 30 s). ``--all`` compares every sampler.
"""

from __future__ import annotations

import sys
from pathlib import Path

from planner.read.load import read_scenario
from planner.schema.front import Front
from planner.search.recipe import searched_front
from planner.search.study import How
from planner.words import SAMPLERS, SamplerName

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
COMPARED = (
    "reference",
    "reference-slow-prefill",
    "reference-high-energy-prefill",
    "llama-70b-chat",
    "code-completion",
    "long-context-rag",
    "deepseek-mtp",
    "chat-and-completion",
    str(EXAMPLES / "llama-70b.yaml"),
    str(EXAMPLES / "scenario.yaml"),
    str(EXAMPLES / "two-products.yaml"),
)
KNOBS = str(EXAMPLES / "knobs.yaml")
SEEDS, TRIALS, NEEDED = 10, 200, 9


def searched(name: str, how: How) -> Front:
    """The front of a scenario by search."""
    return searched_front(read_scenario(name).scenario, how)


def share_of(name: str, sampler: SamplerName, warm_start: bool) -> float:
    """Search, print, and give the share of the exact hypervolume."""
    front = searched(name, How(sampler=sampler, warm_start=warm_start))
    assert front.search is not None
    share = front.search.share_of_exact
    assert share is not None, "the exact front of a compared scenario is known"
    began = "warm start" if warm_start else "from nothing"
    print(
        f"{Path(name).stem:32} {front.search.sampler:8} {began:13} {100 * share:7.3f} % of the exact hypervolume,"
        f" {front.search.trials} trials in {front.provenance.runtime_s:.1f} s"
    )
    return share


def hypervolume_of(sampler: SamplerName, seed: int) -> float:
    """The hypervolume with knobs, from nothing."""
    front = searched(KNOBS, How(trials=TRIALS, sampler=sampler, seed=seed, warm_start=False))
    return front.hypervolume or 0.0


def wins_of(sampler: SamplerName, random: list[float]) -> int:
    """Print and count the seeds in which a sampler beats random trials."""
    mine = [hypervolume_of(sampler, seed) for seed in range(SEEDS)]
    wins = sum(found > other for found, other in zip(mine, random, strict=True))
    print(f"{sampler:8} {' '.join(f'{value:7.0f}' for value in mine)}  better than random in {wins} of {SEEDS} seeds")
    return wins


def test_300_trials_come_near_the_exact_front() -> None:
    for name in COMPARED:
        assert share_of(name, "auto", warm_start=True) >= 0.99
        assert share_of(name, "auto", warm_start=False) >= 0.97


def test_with_knobs_a_search_beats_random_trials() -> None:
    random = [hypervolume_of("random", seed) for seed in range(SEEDS)]
    assert len(set(random)) == SEEDS
    assert wins_of("auto", random) >= NEEDED


if __name__ == "__main__":
    test_300_trials_come_near_the_exact_front()
    test_with_knobs_a_search_beats_random_trials()
    if "--all" in sys.argv:
        for one in SAMPLERS[1:]:
            for scenario in COMPARED[:-1]:
                share_of(scenario, one, warm_start=False)
            wins_of(one, [hypervolume_of("random", seed) for seed in range(SEEDS)])

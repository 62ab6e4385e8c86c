"""A thousand random questions: the reduced way, the plain program and brute force never differ.

Reduced: by the structure where it answers, else by the program without dominated options, and bounded by columns as if
it were large where the aim allows. Some options of every catalog are beaten by another one, so that there is something
to drop. Each plan is recomputed by the loops' own arithmetic and passes planner's check.
"""

import random
from collections import Counter

import fleet_oracles
import fleet_strategies
import numpy as np
import oracles
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from recomputed import assert_one_optimal, assert_optimal, near, plan_of, tables_of

from planner.check import check
from planner.milp import large
from planner.optimise import optimise
from planner.options import cost_table
from planner.question import question_of
from planner.structure.dominance import dominated, figures_of, undominated
from planner.words import COUNTS, OBJECTIVES, PHASES

ALONE = [(objective, counts) for objective in OBJECTIVES for counts in COUNTS]
ONE_WORKLOAD = 50
FLEETS = {"pairs": 110, "shares": 90, "mixed": 60, "servers": 140, "shared": 100}
BLOCKS = 5


def test_there_are_a_thousand():
    assert len(ALONE) * ONE_WORKLOAD + sum(FLEETS.values()) == 1000


def assert_same(scenario, best, value, assert_optimal=assert_optimal):
    """Reduced, plain and brute force have one optimum, and the reduced plan holds.

    ``value`` is null where brute force finds no plan.
    """
    tables = tables_of(scenario)
    reduced = optimise(scenario, tables)
    plain = optimise(scenario, tables, reduce=False, polish=False)
    assert (plain.method, plain.status) == ("program", "infeasible" if value is None else "optimal")
    assert plain.value == (None if value is None else near(value))
    assert_optimal(scenario, best, reduced)
    if reduced.designs:
        assert check(plan_of(scenario, tables, reduced), scenario) == []
    if reduced.method == "program" and large.is_bounded_by_columns(question_of(scenario)):
        rest = undominated(scenario, tables, question_of(scenario))
        found = large.optimise(scenario, rest, question_of(scenario), time_limit_s=None, polish=True)
        assert_optimal(scenario, best, found)


@pytest.mark.parametrize(("objective", "counts"), ALONE)
def test_one_workload(objective, counts):
    for seed in range(ONE_WORKLOAD):
        scenario = strategies.seeded(f"{objective} {counts} {seed}", objective=objective, counts=counts)
        scenario = strategies.with_worse_options(random.Random(seed), scenario, 4)
        best = oracles.best(scenario)
        assert_same(scenario, best, best.value, assert_one_optimal)


@pytest.mark.parametrize(("kind", "block"), [(kind, block) for kind in FLEETS for block in range(BLOCKS)])
def test_one_fleet(kind, block):
    for seed in range(block, FLEETS[kind], BLOCKS):
        scenario = fleet_strategies.seeded(kind, str(seed))
        if seed % 3 == 0:
            scenario = strategies.with_worse_options(random.Random(seed), scenario, 1)
        best = fleet_oracles.best(scenario)
        assert_same(scenario, best, None if best is None else best.value)


def test_most_single_workloads_need_no_program():
    """Left to it: throughput on average power, where a pass may cost less than the idling that it replaces."""
    methods = Counter()
    for objective, counts in ALONE:
        for seed in range(10):
            scenario = strategies.seeded(f"{objective} {counts} {seed}", objective=objective, counts=counts)
            tells = scenario.objective == "throughput" and scenario.power_basis == "average"
            methods[tells, optimise(scenario, tables_of(scenario)).method] += 1
    assert methods[False, "program"] == 0
    assert methods[False, "structure"] >= 80


# ----------------------------------------------------------------------------------------------------- dominance


@settings(max_examples=40)
@given(rng=st.randoms(use_true_random=False), shared=st.booleans())
def test_what_is_dropped_is_beaten_by_what_is_kept(rng, shared):
    scenario = strategies.with_worse_options(rng, strategies.scenario(rng, shared_pools=shared), 6)
    table = cost_table(scenario, "w")
    for phase in PHASES:
        costs, figures = table.phases[phase], figures_of(scenario, table, phase, True)
        needless = dominated(scenario, table, phase, True)
        kept = costs.available & ~needless
        for o, s in np.argwhere(needless & costs.available):
            same = [
                other
                for other, option in enumerate(costs.options)
                if (option.device, option.tensor_parallel)
                == (costs.options[o].device, costs.options[o].tensor_parallel)
            ]
            assert any(kept[other, s] and all(f[other, s] <= f[o, s] for f in figures) for other in same)


def test_options_are_dropped_where_another_is_as_good():
    dropped = 0
    for seed in range(20):
        scenario = strategies.with_worse_options(random.Random(seed), strategies.seeded(f"dropped {seed}"), 4)
        table = cost_table(scenario, "w")
        dropped += sum(int((dominated(scenario, table, p, True) & table.phases[p].available).sum()) for p in PHASES)
    assert dropped >= 100


def test_a_fuller_batch_is_kept_where_batches_must_be_filled():
    scenario = strategies.with_worse_options(random.Random(1), strategies.seeded("filled 1"), 6)
    servers = scenario.servers.replace(min_batch_fill=0.5)
    filled = scenario.replace(servers=servers)
    tables = tables_of(filled)
    rest = undominated(filled, tables, question_of(filled))["w"]
    for phase in ("target_verify", "draft_decode"):
        before, after = tables["w"].phases[phase], rest.phases[phase]
        assert int(after.available.sum()) == int(before.available.sum())
    plain = undominated(scenario, tables, question_of(scenario))["w"]
    assert large.choices(scenario, {"w": plain}) < large.choices(scenario, {"w": rest})

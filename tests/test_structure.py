"""The exact structure against the program wherever workloads separate, and its parts against plain loops."""

import random

import fleet_oracles as oracles
import fleet_strategies as strategies
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.optimise import optimise
from planner.options import cost_table
from planner.question import Question, question_of
from planner.schema.scenario import FleetLimits, Scenario
from planner.structure.least import Service, Tableau, least, lower_bound, reduced, sliced
from planner.structure.optimise import separates
from planner.structure.staircase import both, staircase
from planner.words import OBJECTIVES

RELATIVE = 1e-6
AGREE = 9
PRESSURES = ("none", "ttft", "memory")
AIMS = (*OBJECTIVES, "rate", "ttft", "any")
few = settings(max_examples=30)


def tables_of(scenario: Scenario) -> dict:
    return {name: cost_table(scenario, name) for name in scenario.workloads}


def asked(aim: str, seed: int) -> tuple[Scenario, Question]:
    """A separable scenario, and a question with the aim; the worst of all workloads, or one of them."""
    rng = random.Random(f"{aim} {seed}")
    objective = aim if aim in OBJECTIVES else "throughput" if aim == "rate" else "interactivity"
    scenario = strategies.separable(rng, objective, PRESSURES[seed % 3])
    if aim in OBJECTIVES:
        return scenario, question_of(scenario)
    name = rng.choice(list(scenario.workloads))
    rates = {key: w.limits.demand_rps or 0.3 * w.mix for key, w in scenario.workloads.items()}
    if aim == "rate":
        return scenario, Question(aim, {key: rate for key, rate in rates.items() if key != name}, name)
    return scenario, Question(aim, rates, name if aim == "ttft" and rng.random() < 0.5 else None)


@pytest.mark.parametrize("aim", AIMS)
def test_structure_and_program_agree(aim):
    for seed in range(AGREE):
        scenario, question = asked(aim, seed)
        assert separates(scenario, question)
        tables = tables_of(scenario)
        mine = optimise(scenario, tables, question)
        other = optimise(scenario, tables, question, reduce=False)
        assert other.method == "program"
        assert (mine.status, bool(mine.designs)) == (other.status, bool(other.designs))
        if mine.designs:
            assert mine.value == pytest.approx(other.value, rel=RELATIVE, abs=1e-9)
            assert mine.gap <= RELATIVE
        if aim in OBJECTIVES and mine.designs:
            assert_holds(scenario, mine.designs, mine.value)


def test_the_structure_answers_all_that_separates():
    """It leaves to the program only average power, where a pass may cost less than the idling that it replaces."""
    methods = {
        (scenario.power_basis == "average", optimise(scenario, tables_of(scenario), question).method)
        for aim in AIMS
        for scenario, question in (asked(aim, seed) for seed in range(6))
    }
    assert (False, "program") not in methods
    assert (True, "structure") in methods


def assert_holds(scenario: Scenario, designs: tuple, value: float) -> None:
    crew = oracles.Crew(scenario, [oracles.own(scenario, design) for design, _ in designs])
    rates = [rate for _, rate in designs]
    n = crew.serving(rates)
    assert crew.figure(scenario.objective, rates, n) == pytest.approx(value, rel=RELATIVE)
    assert min(crew.margins(rates, n), default=0.0) >= -RELATIVE
    assert all(oracles.keeps_promises(scenario.workloads[one.workload].limits, one) for one in crew.designs)


# -------------------------------------------------------------------------------------- the least cost of one workload


def one_workload(rng: random.Random, pressure: str, **fixed: object) -> tuple[Scenario, str]:
    """A question of least power or cost without a budget, and its workload's name."""
    scenario = strategies.separable(rng, rng.choice(["power", "cost"]), pressure, max_draft_length=2, **fixed)
    (name, workload), *_ = scenario.workloads.items()
    return scenario.replace(workloads={name: workload}, limits=FleetLimits()), name


def looped(scenario: Scenario, rate: float, designs: list[oracles.Design]) -> float:
    """The least cost at a rate over all designs."""
    crews = [oracles.Crew(scenario, [one]) for one in designs]
    answers = [oracles.at(crew, [rate], scenario.objective) for crew in crews]
    return min((one.value for one in answers if one is not None), default=np.inf)


@few
@given(rng=st.randoms(use_true_random=False), pressure=st.sampled_from(PRESSURES), factor=st.floats(0.05, 20.0))
def test_the_least_cost_is_that_of_loops(rng, pressure, factor):
    scenario, name = one_workload(rng, pressure)
    rate = scenario.workloads[name].limits.demand_rps * factor
    designs = oracles.designs_of(scenario, name)
    tableau = Tableau.of(scenario, cost_table(scenario, name), scenario.objective)
    service = Service.of(scenario, name)
    found, expected = least(tableau, rate, service), looped(scenario, rate, designs)
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert lower_bound(tableau, rate) <= expected * (1 + 1e-9)
    if np.isfinite(expected):
        assert tableau.cost_of(rate, found) == pytest.approx(expected, rel=1e-9)


@few
@given(
    rng=st.randoms(use_true_random=False),
    pressure=st.sampled_from(PRESSURES),
    factor=st.floats(1.0, 3.0),
    slack=st.floats(0.0, 0.2),
)
def test_what_is_dropped_is_never_part_of_a_design_within_the_cost(rng, pressure, factor, slack):
    no_fill = {"spare_replicas": rng.choice([0, 1])}
    scenario, name = one_workload(rng, pressure, servers=no_fill)
    table, service = cost_table(scenario, name), Service.of(scenario, name)
    tableau = Tableau.of(scenario, table, scenario.objective)
    rate = scenario.workloads[name].limits.demand_rps
    most = least(tableau, rate * factor, service).value * (1 + slack)
    if not np.isfinite(most):
        return
    kept = reduced(tableau, rate, most)
    smaller = Tableau.of(scenario, kept, scenario.objective)
    for at in np.linspace(rate, rate * factor, 5):
        assert least(smaller, at, service).value == least(tableau, at, service).value
    for one in oracles.designs_of(scenario, name):
        answer = oracles.at(oracles.Crew(scenario, [one]), [rate], scenario.objective)
        if answer is not None and answer.value <= most * (1 - 1e-9):
            assert strategies.is_offered(kept, one)


@few
@given(rng=st.randoms(use_true_random=False))
def test_a_prefill_that_is_kept_for_one_speculation_is_kept_for_all_that_may_choose_it(rng):
    """The program has one choice of a prefill for all speculations, or all of a proposer, and reads its cost once."""
    scenario, name = one_workload(rng, "none")
    table = cost_table(scenario, name)
    keep = {phase: np.isfinite(costs.latency_s) for phase, costs in table.phases.items()}
    for phase in ("target_prefill", "draft_prefill"):
        keep[phase] &= np.array(
            [[rng.random() < 0.5 for _ in table.speculations] for _ in keep[phase]], dtype=bool
        ).reshape(keep[phase].shape)
    kept = sliced(table, keep, np.arange(len(table.speculations)))
    proposers = np.array([s.proposer for s in table.speculations])
    every = np.ones(len(proposers), dtype=bool)
    groups = [("target_prefill", every), *(("draft_prefill", proposers == p) for p in scenario.proposers)]
    for phase, group in groups:
        before, after = table.phases[phase], kept.phases[phase]
        for option, latency_s in zip(after.options, after.latency_s, strict=True):
            whole = before.latency_s[before.options.index(option)]
            assert np.array_equal(latency_s[group], whole[group], equal_nan=True)


# ------------------------------------------------------------------------------------------------------ staircases

points = st.lists(st.tuples(st.integers(0, 9), st.one_of(st.integers(0, 9), st.just(np.inf))), max_size=12)


@given(points=points, allowed=st.integers(-1, 10))
def test_a_staircase_gives_the_least_of_all_points_within_the_time(points, allowed):
    time_s, value = (np.array([float(point[i]) for point in points]) for i in (0, 1))
    steps = staircase(time_s, value)
    found, choice = steps.at(np.array([float(allowed)]))
    within = [v for t, v in points if t <= allowed]
    assert found[0] == min(within, default=np.inf)
    if np.isfinite(found[0]):
        assert time_s[choice[0]] <= allowed
        assert value[choice[0]] == found[0]
    assert steps.least == min((v for _, v in points), default=np.inf)
    assert (np.diff(steps.time_s) > 0).all()
    assert (np.diff(steps.value) < 0).all()


@given(one=points, other=points, allowed=st.integers(-1, 20))
def test_two_staircases_add_to_the_least_of_all_pairs_within_the_time(one, other, allowed):
    first, second = (
        staircase(np.array([float(t) for t, _ in some]), np.array([float(v) for _, v in some])) for some in (one, other)
    )
    steps, pairs = both(first, second)
    found, choice = steps.at(np.array([float(allowed)]))
    sums = [(t + u, v + w) for t, v in one for u, w in other if t + u <= allowed]
    assert found[0] == min((v for _, v in sums), default=np.inf)
    if np.isfinite(found[0]):
        a, b = pairs[choice[0]]
        assert one[a][0] + other[b][0] <= allowed
        assert one[a][1] + other[b][1] == found[0]

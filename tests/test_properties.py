"""Properties that every scenario has: monotone in its limits, blind to units, order and dominated devices."""

import math

import oracles
import pytest
import strategies
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from planner.acceptance import tokens_per_step
from planner.check import check
from planner.limits import limits_of, with_bound
from planner.milp.program import Question, optimise
from planner.options import cost_table
from planner.schema.catalog import AcceptanceCurve, Catalog
from planner.schema.scenario import Scenario, Stock
from planner.solve import solve
from planner.words import MAXIMIZED

REL = 1e-6
usual, few = settings(max_examples=15), settings(max_examples=8)


def tables_of(scenario: Scenario) -> dict:
    return {name: cost_table(scenario, name) for name in scenario.workloads}


def optimum(scenario: Scenario, question: Question | None = None) -> float:
    """The optimum, so that more is better; minus infinity if there is no plan."""
    found = optimise(scenario, tables_of(scenario), question, polish=False)
    if found.status == "infeasible":
        return -math.inf
    assert found.status == "optimal"
    return found.value if (question.aim if question else scenario.objective) in MAXIMIZED else -found.value


def no_worse(better: float, worse: float) -> bool:
    return better >= worse - REL * abs(worse) if math.isfinite(worse) else better >= worse


def same(a: float, b: float) -> bool:
    return a == b or a == pytest.approx(b, rel=REL)


# ------------------------------------------------------------------------------------------------------ limits


@usual
@given(scenario=strategies.scenarios(), data=st.data())
def test_a_looser_limit_never_lowers_the_optimum_and_a_stricter_one_never_raises_it(scenario, data):
    limits = [limit for limit in limits_of(scenario) if (limit.name, scenario.objective) not in FIXES_THE_QUESTION]
    assume(limits)
    limit = data.draw(st.sampled_from(limits))
    factor = data.draw(st.floats(1.05, 4.0))
    looser, stricter = (1 / factor, factor) if limit.is_floor else (factor, 1 / factor)
    if limit.name == "inventory":
        up, down = limit.bound + math.ceil(factor), max(0.0, limit.bound - 1)
    else:
        up, down = limit.bound * looser, limit.bound * stricter
    here = optimum(scenario)
    assert no_worse(optimum(with_bound(scenario, limit, up)), here)
    assert no_worse(here, optimum(with_bound(scenario, limit, down)))


# With exact rates a demand is not a limit but part of the question. (Less of it never costs more: see below.)
FIXES_THE_QUESTION = {("demand", objective) for objective in ("power", "cost", "energy", "interactivity")}


@usual
@given(scenario=strategies.scenarios(objective="throughput"))
def test_more_of_every_budget_never_lowers_the_throughput(scenario):
    limits = scenario.limits
    more = limits.replace(
        power_budget_kw=limits.power_budget_kw and limits.power_budget_kw * 1.7,
        cost_budget_usd_per_hour=limits.cost_budget_usd_per_hour and limits.cost_budget_usd_per_hour * 1.7,
        inventory={name: Stock(purchasable=stock.purchasable + 2) for name, stock in limits.inventory.items()},
    )
    assert no_worse(optimum(scenario.replace(limits=more)), optimum(scenario))


@usual
@given(scenario=strategies.scenarios(counts="fractional", objective="throughput", max_draft_length=4))
def test_fractional_throughput_is_proportional_to_the_budgets(scenario):
    limits = scenario.limits
    demand = scenario.workloads["w"].limits.replace(demand_rps=None)
    free = scenario.replace(workloads={"w": scenario.workloads["w"].replace(limits=demand)})
    assume(limits.power_budget_kw or limits.cost_budget_usd_per_hour or limits.inventory)
    more = limits.replace(
        power_budget_kw=limits.power_budget_kw and limits.power_budget_kw * 3,
        cost_budget_usd_per_hour=limits.cost_budget_usd_per_hour and limits.cost_budget_usd_per_hour * 3,
        inventory={name: Stock(purchasable=stock.purchasable * 3) for name, stock in limits.inventory.items()},
    )
    one, three = optimum(free), optimum(free.replace(limits=more))
    assert same(three, 3 * one)


@usual
@given(scenario=strategies.scenarios(), objective=st.sampled_from(["power", "cost"]))
def test_less_demand_never_costs_more(scenario, objective):
    demand = scenario.workloads["w"].limits.demand_rps
    assume(demand is not None)
    # Idle power is saved while a pass runs: with an energy below that, more work could draw less on the average.
    scenario = scenario.replace(objective=objective, power_basis="provisioned")
    less = with_demand(scenario, demand * 0.6)
    assert no_worse(optimum(less), optimum(scenario))


def with_demand(scenario: Scenario, demand: float) -> Scenario:
    workload = scenario.workloads["w"]
    return scenario.replace(workloads={"w": workload.replace(limits=workload.limits.replace(demand_rps=demand))})


@usual
@given(scenario=strategies.scenarios(counts="integer"))
def test_fractional_counts_are_never_worse_than_whole_ones(scenario):
    # With less than a replica at work, the average basis would let an energy below idle power count.
    if scenario.power_basis == "average":
        scenario = scenario.replace(power_basis="forward")
    assert no_worse(optimum(scenario.replace(counts="fractional")), optimum(scenario))


@usual
@given(scenario=strategies.scenarios())
def test_full_utilization_is_never_worse_than_less(scenario):
    assume(scenario.power_basis != "average")
    assert no_worse(optimum(scenario.replace(max_utilization=1.0)), optimum(scenario.replace(max_utilization=0.6)))


@usual
@given(scenario=strategies.scenarios(objective="interactivity", counts="fractional"))
def test_interactivity_is_not_bought_with_money(scenario):
    """With fractional counts and room for every design a budget does not change how fast the fastest is."""
    free = scenario.replace(limits=scenario.limits.replace(power_budget_kw=None, inventory={}))
    free = free.replace(limits=free.limits.replace(cost_budget_usd_per_hour=None))
    rich = free.replace(limits=free.limits.replace(power_budget_kw=1e9, cost_budget_usd_per_hour=1e12))
    assert same(optimum(rich), optimum(free))
    assert no_worse(optimum(free), optimum(scenario))
    assert same(optimum(free), optimum(with_demand(free, 123.0)))


@usual
@given(scenario=strategies.scenarios())
def test_the_design_with_the_best_interactivity_meets_every_lower_floor(scenario):
    rate = oracles.question_rate(scenario)
    assume(rate is not None)
    best = optimum(scenario, Question("interactivity", {"w": rate}))
    assume(math.isfinite(best))
    workload = scenario.workloads["w"]
    for factor, feasible in ((1 - 1e-6, True), (1 + 1e-5, False)):
        floor = workload.limits.replace(interactivity_floor_tps=best * factor)
        asked = scenario.replace(workloads={"w": workload.replace(limits=floor)})
        assert math.isfinite(optimum(asked, Question("any", {"w": rate}))) == feasible


# ------------------------------------------------------------------------------------------------------- units


def scaled(scenario: Scenario, time: float = 1.0, energy: float = 1.0, money: float = 1.0) -> Scenario:
    """The scenario in other units of time, energy and money, with everything that has such a unit scaled."""
    dump = scenario.model_dump(exclude_unset=True)
    catalog = dump["catalog"]
    watt = energy / time
    for device in catalog["devices"].values():
        device["idle_power_w"] *= watt
        device["provisioned_power_w"] *= watt
        device["price"]["usd_per_hour"] *= money / time
        for phases in device["profiles"].values():
            for options in phases.values():
                for profile in options.values():
                    profile["latency_ms"] = times(profile["latency_ms"], time)
                    profile["energy_mj"] = times(profile["energy_mj"], energy)
    for link in catalog["links"].values():
        link["bandwidth_gb_per_s"] /= time
        link["latency_us"] *= time
        link["energy_pj_per_byte"] *= energy
    for proposer in catalog["proposers"].values():
        proposer["host_time_ms"] = proposer.get("host_time_ms", 0.0) * time
    dump["engine"]["first_token_ms"] *= time
    factors = {"interactivity_floor_tps": 1 / time, "ttft_ceiling_ms": time, "demand_rps": 1 / time}
    limits = dump["workloads"]["w"]["limits"]
    dump["workloads"]["w"]["limits"] = {key: value * factors[key] for key, value in limits.items() if value is not None}
    fleet = {"power_budget_kw": watt, "cost_budget_usd_per_hour": money / time}
    given_limits = {key: value for key, value in dump["limits"].items() if value is not None}
    dump["limits"] = {key: value * fleet[key] if key in fleet else value for key, value in given_limits.items()}
    return Scenario.model_validate(dump)


def times(form: dict, factor: float) -> dict:
    return {
        key: {at: each * factor for at, each in value.items()} if key == "table" else value * factor
        for key, value in form.items()
        if value is not None
    }


def unit_of(objective: str, time: float, energy: float, money: float) -> float:
    return {
        "throughput": 1 / time,
        "interactivity": 1 / time,
        "power": energy / time,
        "cost": money / time,
        "energy": energy,
    }[objective]


@usual
@given(scenario=strategies.scenarios(), factor=st.sampled_from([0.01, 0.5, 8.0, 300.0]))
@pytest.mark.parametrize("unit", ["time", "energy", "money"])
def test_units_do_not_matter(unit, scenario, factor):
    # Without a demand energy and interactivity are asked at one request/s, whatever a second is.
    if oracles.question_rate(scenario) is not None and scenario.workloads["w"].limits.demand_rps is None:
        scenario = with_demand(scenario, 1.0)
    units = {"time": 1.0, "energy": 1.0, "money": 1.0} | {unit: factor}
    assert same(optimum(scaled(scenario, **units)), optimum(scenario) * unit_of(scenario.objective, **units))


# -------------------------------------------------------------------------------------------------- the catalog


@usual
@given(scenario=strategies.scenarios(), data=st.data())
def test_the_order_of_devices_and_proposers_does_not_matter(scenario, data):
    devices = data.draw(st.permutations(list(scenario.catalog.devices.items())))
    proposers = tuple(data.draw(st.permutations(list(scenario.proposers))))
    catalog = scenario.catalog.replace(devices=dict(devices))
    assert same(optimum(scenario.replace(catalog=catalog, proposers=proposers)), optimum(scenario))


@usual
@given(scenario=strategies.scenarios(), worse=st.floats(1.0, 3.0))
def test_a_dominated_device_changes_nothing(scenario, worse):
    """A device that is slower, hungrier, dearer and no larger than another is in no better plan."""
    assume("d0" not in scenario.limits.inventory)
    best = scenario.catalog.devices["d0"]
    dump = Catalog(schema_version=1, devices={"d0": best}, models=scenario.catalog.models).model_dump(
        exclude_unset=True
    )
    copy = dump["devices"]["d0"]
    copy["provisioned_power_w"] *= worse
    copy["price"]["usd_per_hour"] *= worse
    for phases in copy["profiles"].values():
        for options in phases.values():
            for profile in options.values():
                profile["latency_ms"] = times(profile["latency_ms"], worse)
                profile["energy_mj"] = times(profile["energy_mj"], worse)
    again = Catalog.model_validate(dump).devices["d0"]
    catalog = scenario.catalog.replace(devices={**scenario.catalog.devices, "again": again})
    # On the average basis less idle power is better, a slower device is not; it is kept apart by its forward energy.
    scenario = scenario.replace(power_basis="forward" if scenario.power_basis == "average" else scenario.power_basis)
    assert same(optimum(scenario.replace(catalog=catalog)), optimum(scenario))


@usual
@given(scenario=strategies.scenarios(), data=st.data())
def test_fewer_choices_never_raise_the_optimum(scenario, data):
    here = optimum(scenario)
    kept = data.draw(st.sets(st.sampled_from(list(scenario.catalog.devices)), min_size=1))
    fewer = scenario.replace(candidates=scenario.candidates.replace(devices=tuple(sorted(kept))))
    assert no_worse(here, optimum(fewer))
    assert no_worse(here, optimum(scenario.replace(proposers=scenario.proposers[:1])))
    assert no_worse(here, optimum(scenario.replace(max_draft_length=scenario.max_draft_length // 2)))


@usual
@given(scenario=strategies.scenarios())
def test_pinning_what_the_plan_chose_changes_nothing(scenario):
    found = optimise(scenario, tables_of(scenario))
    assume(found.designs)
    ((design, _),) = found.designs
    places = {phase: str(option) for phase, option in design.options.items() if option is not None}
    # A pin of a prefill also says at which batch another layout would host it: the layout is part of what was chosen.
    pinned = scenario.replace(places=places, layouts=(design.speculation.layout,))
    assert same(optimum(pinned), found.value if scenario.objective in MAXIMIZED else -found.value)


# ----------------------------------------------------------------------------------------------------- the plans


@few
@given(scenario=strategies.scenarios())
def test_every_plan_passes_its_check_and_says_no_more_than_its_bound(scenario):
    assume(list(oracles.points(scenario)))
    plan = solve(scenario)  # raises if its own check finds anything
    assert check(plan, scenario) == []
    if plan.status == "infeasible":
        assert plan.infeasibility
        return
    assert plan.status == "optimal"
    objective = plan.objective
    assert objective.gap <= REL
    better = 1 if scenario.objective in MAXIMIZED else -1
    assert better * (objective.best_bound - objective.value) >= -1e-12 * abs(objective.value)
    for deployment in plan.deployments:
        metrics = deployment.metrics
        assert 1.0 <= metrics.tokens_per_step <= deployment.draft_length + 1
        assert metrics.interactivity_tps * metrics.tpot_s == pytest.approx(1.0)
        assert sum(share for share in metrics.energy_share.values() if share is not None) == pytest.approx(1.0)
        assert metrics.energy_j_per_token * metrics.tps_per_kw == pytest.approx(1e3)
    for pool in plan.pools:
        assert 0 < pool.utilization <= scenario.max_utilization * (1 + REL)
        if scenario.counts == "integer":
            assert pool.replicas == int(pool.replicas) >= 1
    for baseline in plan.baselines:
        assert baseline.violates or baseline.throughput_tps is not None


@few
@given(scenario=strategies.scenarios())
def test_no_baseline_beats_the_plan(scenario):
    assume(list(oracles.points(scenario)))
    plan = solve(scenario)
    for baseline in plan.baselines:
        if not baseline.violates and scenario.objective == "throughput":
            assert no_worse(plan.objective.value, baseline.throughput_tps)
        if not baseline.violates and scenario.objective == "interactivity":
            assert no_worse(plan.objective.value, baseline.interactivity_tps)
        if not baseline.violates and scenario.objective == "energy":
            assert no_worse(1 / plan.objective.value, baseline.tps_per_kw / 1e3)


# ---------------------------------------------------------------------------------------------------- acceptance


@given(rng=st.randoms(use_true_random=False), length=st.integers(0, 8))
def test_a_step_commits_between_one_and_all_tokens(rng, length):
    curve = TypeAdapter(AcceptanceCurve).validate_python(strategies.acceptance_curve(rng))
    longest = {"positions": lambda: len(curve.probabilities), "table": lambda: max(curve.tokens_per_step)}
    length = min(length, longest.get(curve.kind, lambda: 8)())
    E = float(tokens_per_step(curve, length))
    assert 1.0 <= E <= length + 1
    assert pytest.approx(oracles.expected_tokens(curve, length), rel=1e-12) == E
    if curve.kind != "table" and length:
        assert float(tokens_per_step(curve, length - 1)) - 1e-12 <= E
    assert float(tokens_per_step(curve, 0)) == 1.0

"""Two plans side by side: the stress equals plain loops over losses and rates, the words follow from the figures."""

import itertools
import json
import math
import random
import re
from functools import cache
from pathlib import Path

import fleet_strategies
import jsonschema
import pytest
import strategies
from commands import run
from markdown_it import MarkdownIt
from recomputed import plan_of, tables_of
from tiny import SPLIT, tiny, with_device

from planner.assemble import deploy, objective_value
from planner.check import check
from planner.cli import EXIT_BAD_INPUT
from planner.comparison import changes
from planner.comparison.bought import deployed_of
from planner.comparison.growth import GROWTHS, breaches_of, growth_of, planned_anew
from planner.comparison.loss import servers_lost
from planner.comparison.recipe import Planned, compare
from planner.limits import limits_of, value_of
from planner.optimise import optimise
from planner.question import Solution
from planner.report import chart_compared
from planner.report.compared import TITLE, comparison_report, comparison_view, without_charts
from planner.report.compared_words import per_cent, verdicts
from planner.report.page import drawings_of, html, markdown
from planner.schema.comparison import Comparison
from planner.schema.scenario import Stock
from planner.solve import Settings, solve

RELATIVE = 1e-6
KINDS = ("pairs", "shares", "mixed", "servers", "shared")
MAIN_JOB = ["--budget-kw", "50", "--min-tps", "100"]


# ---------------------------------------------------------------------------------------- questions at random


def with_servers(rng, scenario):
    """Server sizes drawn, where they do not decide what is bought."""
    if scenario.servers.by_node:
        return scenario
    devices = {
        name: device.replace(devices_per_host=rng.choice([None, 1, 2, 3, 5]))
        for name, device in scenario.catalog.devices.items()
    }
    return scenario.replace(catalog=scenario.catalog.replace(devices=devices))


def solved(scenario):
    tables = tables_of(scenario)
    solution = optimise(scenario, tables, polish=False)
    return plan_of(scenario, tables, solution) if solution.designs else None


@cache
def drawn(kind, count=30):
    """Random questions that have a plan, each with it; of the kind "memory" one design at random rates."""
    if kind == "memory":
        return tuple(pressed(random.Random(f"stress memory {number}")) for number in range(count))
    found = []
    for number in itertools.count():
        rng = random.Random(f"stress {kind} {number}")
        if kind == "one":
            scenario = strategies.scenario(rng, tight=0.3)
        else:
            scenario = fleet_strategies.scenario(rng, kind, tight=0.3)
        scenario = with_servers(rng, scenario)
        plan = solved(scenario)
        if plan is not None:
            found.append((scenario, plan))
        if len(found) == count:
            break
    return tuple(found)


def pressed(rng):
    """The hand-made design on little memory: a batch of 2 verifies in 40 ms, and holds its two sequences for longer."""
    rate, spares = rng.uniform(5, 300), rng.choice([0, 0, 1, 2])
    scenario, _ = split_plan(rate, max_utilization=rng.uniform(0.5, 1.0), servers={"spare_replicas": spares})
    little = with_device(scenario, "gpu", memory_gb=rng.choice([12.1, 12.9, 14.1, 16.0]))
    little = with_servers(rng, little)
    if rng.random() < 0.5:
        watts = plan_at(little, rate).totals.power_w.provisioned
        little = little.replace(limits=little.limits.replace(power_budget_kw=watts * rng.uniform(1.0, 1.3) / 1e3))
    return little, plan_at(little, rate)


def sizes(scenario, pool):
    return scenario.catalog.devices[pool.device].devices_per_host or pool.tensor_parallel


# ------------------------------------------------------------------------------------ needs, from the document


def needs(scenario, plan, pool):
    """Replicas that a pool needs for its flow and for its sequences, read back from the plan's own figures.

    Flow: busy share × replicas / max_utilization. Sequences: a row of memory has value v and bound b = v·(S + m)/m
    where m is its need and S what the others leave, replicas that serve less all needs of memory.
    """
    flow = pool.utilization * pool.replicas / scenario.max_utilization
    serving = pool.replicas - pool.spare_replicas
    rows = memory_rows(plan)
    mine = [
        rows[member.deployment, member.phase] for member in pool.phases if (member.deployment, member.phase) in rows
    ]
    if not mine:
        return flow, 0.0
    if any(row.bound - row.value <= 1e-9 * row.value for row in mine):
        return flow, serving
    held = sum(1 / (row.bound / row.value - 1) for row in mine)
    return flow, serving * held / (1 + held)


def memory_rows(plan):
    """Rows of memory by deployment and phase: they stand in the order of the pools and of the phases that decode."""
    rows = [row for row in plan.limits if row.name == "memory"]
    found = {}
    for pool in plan.pools:
        for member in pool.phases:
            wanted = (member.workload, member.phase, pool.device)
            if rows and (rows[0].workload, rows[0].phase, rows[0].device) == wanted:
                found[member.deployment, member.phase] = rows.pop(0)
    assert rows == []
    return found


def whole_left(pool, lost):
    """Whole replicas that are left: every one that lacks a device is gone."""
    return max(0, round(pool.replicas) - math.ceil(lost / pool.tensor_parallel))


def splits(total, rooms):
    """Every way to take devices out of pools, no more than each has."""
    if not rooms:
        yield ()
        return
    for first in range(min(total, rooms[0]) + 1):
        for rest in splits(total - first, rooms[1:]):
            yield (first, *rest)


def kept(scenario, plan, device, lost):
    """What a loss leaves: the least share of any deployment, and the rate of every workload, by plain loops."""
    share = dict.fromkeys(range(len(plan.deployments)), 1.0)
    pools = [pool for pool in plan.pools if pool.device == device]
    for pool, gone in zip(pools, lost, strict=True):
        ratio = whole_left(pool, gone) / max(needs(scenario, plan, pool))
        for member in pool.phases:
            share[member.deployment] = min(share[member.deployment], 1.0 if ratio >= 1 - RELATIVE else ratio)
    rates = dict.fromkeys(scenario.workloads, 0.0)
    for index, deployment in enumerate(plan.deployments):
        rates[deployment.workload] += share[index] * deployment.metrics.request_rate_rps
    return min(share.values()), rates


# -------------------------------------------------------------------------------------------- one server lost


@pytest.mark.parametrize("kind", ["one", "memory", *KINDS])
def test_a_lost_server_leaves_what_the_worst_of_all_losses_leaves(kind):
    looked = 0
    for scenario, plan in drawn(kind):
        if scenario.counts != "integer":
            continue
        for row in servers_lost(plan, scenario):
            pools = [pool for pool in plan.pools if pool.device == row.device]
            known = {sizes(scenario, pool) for pool in pools}
            if len(known) > 1:  # a replica makes a server, and pools differ in theirs
                continue
            (size,) = known
            rooms = [round(pool.devices) for pool in pools]
            ways = [way for way in splits(size, rooms) if sum(way) == min(size, sum(rooms))]
            left = [kept(scenario, plan, row.device, way) for way in ways]
            assert row.devices_lost == size
            assert row.rate_share == pytest.approx(min(share for share, _ in left), rel=RELATIVE, abs=1e-9)
            assert row.serves == (row.rate_share == 1.0) == (row.breach is None)
            for one in row.workloads:
                rate = min(rates[one.workload] for _, rates in left)
                if one.rate_rps is None:
                    assert scenario.shared_pools
                    assert scenario.max_shares > 1
                    continue
                assert one.rate_rps == pytest.approx(rate, rel=RELATIVE, abs=1e-9)
                demand = scenario.workloads[one.workload].limits.demand_rps
                assert one.meets_demand == (None if demand is None else rate >= demand * (1 - RELATIVE))
            looked += 1
    assert looked >= 10 or kind == "mixed", "too few plans with whole counts"


@pytest.mark.parametrize("kind", ["one", "pairs", "mixed", "shared"])
def test_fractional_counts_lose_in_proportion(kind):
    looked = 0
    for scenario, plan in drawn(kind):
        if scenario.counts != "fractional":
            continue
        for row in servers_lost(plan, scenario):
            shares = {
                pool.name: max(0.0, pool.replicas - sizes(scenario, pool) / pool.tensor_parallel)
                / max(needs(scenario, plan, pool))
                for pool in plan.pools
                if pool.device == row.device
            }
            assert row.rate_share == pytest.approx(min(1.0, *shares.values()), rel=1e-5, abs=1e-9)
            assert shares[row.pool] == pytest.approx(min(shares.values()), rel=1e-5, abs=1e-9)
            looked += 1
    assert looked >= 10


@pytest.mark.parametrize("kind", ["one", "memory", *KINDS])
def test_what_breaks_is_what_the_pool_lacks(kind):
    for scenario, plan in drawn(kind):
        for row in servers_lost(plan, scenario):
            (pool,) = [pool for pool in plan.pools if (pool.name, pool.device) == (row.pool, row.device)]
            flow, held = needs(scenario, plan, pool)
            busy = pool.utilization * pool.replicas
            if row.replicas_left:
                assert row.utilization_needed == pytest.approx(busy / row.replicas_left, rel=1e-5)
            else:
                assert row.utilization_needed is None
            if row.breach is not None:
                assert row.breach.needed == pytest.approx(max(flow, held), rel=1e-5)
                assert row.breach.available == row.replicas_left < row.breach.needed
                if abs(flow - held) > 1e-4 * flow:
                    assert row.breach.name == ("memory" if held > flow else "capacity")


def split_plan(rate=20.0, limits=(), fleet=(), **changes):
    """The hand-made design that drafts on another device type, at a rate, with its plan."""
    scenario = tiny({**dict(limits), "demand_rps": rate}, fleet, **{"objective": "power", **changes})
    return scenario, plan_at(scenario, rate)


def plan_at(scenario, rate):
    """The plan of the hand-made design, found by nobody."""
    value = objective_value(deploy(scenario, [(SPLIT, rate)]))
    solution = Solution("optimal", ((SPLIT, rate),), value, value, 0.0, 0.0, "structure")
    return plan_of(scenario, tables_of(scenario), solution)


def pool_of(plan, phase):
    return next(pool for pool in plan.pools if pool.phases[0].phase == phase)


def test_a_server_takes_whole_replicas_of_the_worst_pool_by_hand():
    scenario, plan = split_plan()
    assert check(plan, scenario) == []
    prefill = pool_of(plan, "target_prefill")
    assert (prefill.replicas, prefill.utilization) == (3, pytest.approx(20 * 0.1 / 3))
    on_two = with_device(scenario, "gpu", devices_per_host=2)
    row = next(one for one in servers_lost(plan, on_two) if one.device == "gpu")
    # The drafter's prefill takes 20 ms of one replica: the server takes it, and with it every request.
    assert (row.devices_lost, row.counted_by, row.pool) == (2, "devices_per_host", "draft_prefill")
    assert (row.replicas_before, row.replicas_left, row.rate_share, row.utilization_needed) == (1, 0, 0.0, None)
    assert [(one.rate_rps, one.meets_demand) for one in row.workloads] == [(0.0, False)]


def test_without_a_server_size_a_replica_is_lost():
    scenario, plan = split_plan()
    row = next(one for one in servers_lost(plan, scenario) if one.device == "lpu")
    assert (row.devices_lost, row.counted_by, row.pool) == (1, "replica", "draft_decode")


def test_the_data_sheet_knows_a_server_too(tmp_path):
    _, document = reviewed(tmp_path, "sheets", MAIN_JOB, MAIN_JOB)
    assert {(one["devices_lost"], one["counted_by"]) for one in document["a"]["servers_lost"]} == {
        (8, "data_sheet.host.devices")
    }


def test_a_spare_stands_in():
    scenario, plan = split_plan(servers={"spare_replicas": 1})
    for row in servers_lost(plan, scenario):
        assert row.counted_by == "replica"
        assert (row.serves, row.rate_share, row.breach) == (True, 1.0, None)
        assert [one.meets_demand for one in row.workloads] == [True]
        assert row.replicas_left == row.replicas_before - 1


def test_request_slots_are_not_lost(tmp_path):
    _, document = reviewed(tmp_path, "slots", REFERENCE, REFERENCE)
    assert len(document["a"]["servers_lost"]) == 2
    for row in document["a"]["servers_lost"]:
        assert row["reason"] == "the catalog counts request slots, not devices"
        assert {row[key] for key in ("serves", "rate_share", "pool", "devices_lost", "breach")} == {None}
    assert document["a"]["growth"]["carried"] is None
    assert [step["as_bought"] for step in document["a"]["growth"]["steps"]] == [None] * len(GROWTHS)


def test_memory_breaks_where_it_sizes_a_pool():
    lost = [row.breach.name for scenario, plan in drawn("memory") for row in servers_lost(plan, scenario) if row.breach]
    first = [breaches_of(deployed_of(plan, scenario))[0].name for scenario, plan in drawn("memory")]
    assert {"capacity", "memory"} <= set(lost)
    assert "memory" in first


# --------------------------------------------------------------------------------------------- demand grown


def serves_at(scenario, bought, factor):
    """Whether the designs at grown rates need no more replicas than are bought and break no limit."""
    designs = [(one.design, one.rate_rps * factor) for one in bought.servings]
    grown = deploy(scenario, designs)
    enough = all(new.replicas <= old.replicas * (1 + 1e-7) for new, old in zip(grown.pools, bought.pools, strict=True))
    values = [(limit, value_of(limit, grown)) for limit in limits_of(scenario) if limit.rack is None]
    return enough and not any(limit.is_violated(value) for limit, value in values)


def largest_growth(scenario, bought):
    low, high = 1.0, 2.0
    while serves_at(scenario, bought, high) and high < 1e6:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if serves_at(scenario, bought, middle) else (low, middle)
    return low - 1.0


@pytest.mark.parametrize("kind", ["one", "memory", *KINDS])
def test_the_growth_carried_is_found_by_bisection_too(kind):
    looked = 0
    for scenario, plan in drawn(kind):
        bought = deployed_of(plan, scenario)
        carried = breaches_of(bought)[0].at_growth
        expected = largest_growth(scenario, bought)
        assert carried == pytest.approx(expected, rel=1e-4, abs=3e-6)
        looked += expected > 1e-3
    assert looked >= 5 or kind == "mixed", "too few fleets carry any growth"


@pytest.mark.parametrize("kind", ["one", "memory", *KINDS])
def test_what_breaks_at_a_growth_is_what_the_pool_or_the_budget_has(kind):
    for scenario, plan in drawn(kind)[:15]:
        bought = deployed_of(plan, scenario)
        for breach in breaches_of(bought):
            if breach.name == "power_budget":
                (limit,) = [one for one in limits_of(scenario) if (one.name, one.rack) == ("power_budget", None)]
                assert breach.available == limit.bound
                assert breach.needed == value_of(limit, bought)
                continue
            (pool,) = [one for one in plan.pools if (one.name, one.device) == (breach.pool, breach.device)]
            need = needs(scenario, plan, pool)[breach.name == "memory"]
            serving = pool.replicas - pool.spare_replicas
            assert breach.needed == pytest.approx(need, rel=1e-5)
            assert breach.available == serving
            assert breach.at_growth == pytest.approx(max(0.0, serving / need - 1), rel=1e-4, abs=3e-6)


def test_power_rises_with_the_rate_and_breaks_its_budget():
    scenario, plan = split_plan(power_basis="average")
    watts = plan.totals.power_w
    budget = watts.average + 0.1 * (watts.average - idle_watts(scenario, plan))
    limited = scenario.replace(limits=scenario.limits.replace(power_budget_kw=budget / 1e3))
    growth = growth_of(plan, limited, Settings(explain=False))
    (first,) = [one for one in breaches_of(deployed_of(plan, limited)) if one.name == "power_budget"]
    assert first.at_growth == pytest.approx(0.1, rel=1e-6)
    half = next(step for step in growth.steps if step.growth == 0.5).as_bought
    assert half.power_w.forward == pytest.approx(1.5 * watts.forward)
    assert half.power_w.provisioned == watts.provisioned
    assert half.power_w.average == pytest.approx(watts.average + 5 * (budget - watts.average))
    assert "power_budget" in [one.name for one in half.breaches]


def idle_watts(scenario, plan):
    """Average power of the fleet at no rate at all."""
    devices = scenario.catalog.devices
    idle = sum(pool.devices * devices[pool.device].idle_power_w for pool in plan.pools)
    return scenario.pue * scenario.host_factor * idle


def test_spares_stay_spares_when_demand_grows():
    bare, spared = split_plan(), split_plan(servers={"spare_replicas": 1})
    carried = [breaches_of(deployed_of(plan, scenario))[0].at_growth for scenario, plan in (bare, spared)]
    assert carried[0] == carried[1] > 0


# ------------------------------------------------------------------------------------------- planned anew


def test_planned_anew_is_what_the_planner_answers(tmp_path, capsys):
    asked = ["--objective", "power", "--demand-rps", "40", "--min-tps", "100"]
    _, document = reviewed(tmp_path, "anew", asked, asked)
    for step in document["a"]["growth"]["steps"]:
        rate = 40 * (1 + step["growth"])
        capsys.readouterr()
        words = ["--scenario", "llama-70b-chat", *asked[:2], "--demand-rps", str(rate), *asked[4:], "--json"]
        assert run(words) == 0
        plan = json.loads(capsys.readouterr().out)
        assert step["request_rate_rps"] == {"chat": pytest.approx(rate)}
        assert step["anew"]["status"] == "optimal"
        assert step["anew"]["devices"] == {row["device"]: row["devices"] for row in plan["fleet"]}
        assert step["anew"]["power_w"] == pytest.approx(plan["totals"]["power_w"])
        assert step["anew"]["usd_per_hour"] == pytest.approx(plan["totals"]["usd_per_hour"])


def test_more_throughput_than_the_best_is_in_conflict_with_the_budget(tmp_path):
    _, document = reviewed(tmp_path, "conflict", REFERENCE, REFERENCE)
    side = document["a"]
    served, forward = side["plan"]["totals"]["request_rate_rps"], side["plan"]["totals"]["power_w"]["forward"]
    for step in side["growth"]["steps"]:
        anew = step["anew"]
        assert (anew["status"], anew["objective"], anew["devices"]) == ("infeasible", "power", None)
        nearest = {row["limit"]: row["achievable"] for row in anew["infeasibility"] if row["holding"]}
        assert nearest["power_budget"] == pytest.approx(forward * (1 + step["growth"]), rel=1e-6)
        assert nearest["demand"] == pytest.approx(served, rel=1e-6)


def test_objectives_are_kept_but_for_throughput():
    scenario, plan = split_plan()
    rates = {"chat": 25.0}
    for objective in ("power", "cost", "energy", "interactivity"):
        assert (
            planned_anew(scenario.replace(objective=objective), rates, Settings(explain=False)).objective == objective
        )
    assert planned_anew(scenario.replace(objective="throughput"), rates, Settings(explain=False)).objective == "power"
    unknown = with_device(scenario, "gpu", provisioned_power_w=None).replace(objective="throughput")
    assert planned_anew(unknown, rates, Settings(explain=False)).objective == "cost"
    unpriced = with_device(unknown, "gpu", provisioned_power_w=None, price=None)
    assert planned_anew(unpriced, rates, Settings(explain=False)).objective == "energy"
    assert plan.objective.name == "power"


def test_what_cannot_be_planned_says_why():
    scenario, _ = split_plan()
    unknown = with_device(scenario, "gpu", provisioned_power_w=None)
    found = planned_anew(unknown, {"chat": 25.0}, Settings(explain=False))
    assert found.status is found.devices is None
    assert "catalog.devices.gpu.provisioned_power_w: missing" in found.reason


# ------------------------------------------------------------------------------------------- what changed


def comparison_of(one, other):
    return compare(
        *(Planned(f"{name}.json", plan, scenario) for name, (scenario, plan) in zip("ab", (one, other), strict=True))
    )


@pytest.mark.parametrize("kind", ["one", "pairs", "shares"])
def test_turned_round_every_difference_changes_its_sign(kind):
    cases = drawn(kind)
    for (one, plan), (other, second) in itertools.pairwise(cases[:8]):
        there, back = changes.totals_change(plan, second), changes.totals_change(second, plan)
        for name, pair in there:
            mirrored = getattr(back, name)
            assert (pair.a, pair.b) == (mirrored.b, mirrored.a)
            assert pair.difference == (None if pair.a is None or pair.b is None else pair.b - pair.a)
            assert mirrored.difference == (None if pair.difference is None else -pair.difference)
        keys = [{change.key for change in changes.question_changes(*pair)} for pair in ((one, other), (other, one))]
        assert keys[0] == keys[1] != set()


def test_every_field_that_differs_is_named():
    one, _ = split_plan()
    other = with_device(one, "gpu", idle_power_w=80.0).replace(
        max_utilization=0.7,
        limits=one.limits.replace(power_budget_kw=9.0, inventory={"lpu": Stock(owned=1, purchasable=2)}),
    )
    found = {change.key: (change.a, change.b) for change in changes.question_changes(one, other)}
    assert found == {
        "limits.power_budget_kw": (None, 9.0),
        "limits.inventory.lpu": (None, {"owned": 1, "purchasable": 2}),
        "max_utilization": (0.8, 0.7),
        "catalog.devices.gpu.idle_power_w": (100.0, 80.0),
    }
    keys = list(found)
    assert (keys[0].partition(".")[0], keys[-1].partition(".")[0]) == ("limits", "catalog")


def test_totals_and_service_of_several_designs_add_up():
    for scenario, plan in drawn("shares"):
        service = {one.workload: one for one in changes.service_changes(plan, plan, scenario.workloads)}
        for name, workload in scenario.workloads.items():
            mine = [one.metrics for one in plan.deployments if one.workload == name]
            rate = sum(m.request_rate_rps for m in mine)
            steps = sum(m.request_rate_rps * workload.osl_tokens / m.tokens_per_step for m in mine)
            joules = sum(m.request_rate_rps * m.energy_j_per_request for m in mine)
            assert service[name].request_rate_rps.a == pytest.approx(rate)
            assert service[name].tokens_per_step.a == pytest.approx(rate * workload.osl_tokens / steps)
            assert service[name].energy_j_per_token.a == pytest.approx(joules / (rate * workload.osl_tokens))
            assert service[name].ttft_s.a == max(m.ttft_s for m in mine)
            assert service[name].interactivity_tps.a == min(m.interactivity_tps for m in mine)
            assert service[name].request_rate_rps.difference == 0


def test_headroom_holds_every_limit_of_both():
    one = split_plan(limits={"interactivity_floor_tps": 10.0})
    other = split_plan(fleet={"cost_budget_usd_per_hour": 90.0})
    rows = {row.name: row for row in comparison_of(one, other).headroom if row.name != "memory"}
    assert set(rows) == {"interactivity_floor", "cost_budget", "demand"}
    assert rows["interactivity_floor"].b is rows["cost_budget"].a is None
    floor, cost = rows["interactivity_floor"].a, rows["cost_budget"].b
    assert floor.left == pytest.approx((floor.value - 10) / 10)
    assert cost.left == pytest.approx((90 - other[1].totals.usd_per_hour) / 90)


# ------------------------------------------------------------------------------------------------- in words


def test_the_words_say_what_the_figures_say():
    one, other = split_plan(20.0), split_plan(25.0, fleet={"power_budget_kw": 40.0})
    found = comparison_of(one, other)
    text = " ".join(verdicts(found))
    more = (other[1].totals.power_w.provisioned - one[1].totals.power_w.provisioned) / 1e3
    assert more > 0
    assert "B serves 25 % more (2,525 output tok/s, 2,020 in A)" in text
    assert f"with {more:.4g} kW more provisioned" in text
    assert "workloads.chat.limits.demand_rps is 20 in A and 25 in B" in text
    assert "Both run every phase on the same options with the same draft length" in text
    carried = breaches_of(deployed_of(one[1], one[0]))[0]
    assert f"A carries {100 * carried.at_growth:.3g} % growth as bought" in text
    assert text.count("Losing one") == 1


def test_a_plan_against_itself_has_nothing_changed():
    one = split_plan()
    found = comparison_of(one, one)
    assert found.question == ()
    assert verdicts(found)[0] == "Nothing changed: A and B are the same plan."
    assert all(row.same for row in (*found.drafting, *found.placements))
    assert {pair.difference for _, pair in found.totals} == {0.0}
    assert "What is asked" not in [table.title for table in comparison_view(found).tables]


def test_a_partial_loss_names_what_breaks_and_whether_the_demand_holds():
    found = comparison_of(split_plan(120.0), split_plan())
    text = " ".join(verdicts(found))
    lost = {row.device: row for row in found.a.servers_lost}["gpu"]
    assert 0 < lost.rate_share < 1
    assert f"one gpu server leaves A {100 * lost.rate_share:.3g} % of its rate" in text
    assert "breaks first; the demand is not met" in text


def test_several_designs_lose_together_what_the_words_say():
    looked = 0
    for case in drawn("shares")[:8]:
        found = comparison_of(case, case)
        text = " ".join(verdicts(found))
        for lost in found.a.servers_lost:
            known = [left.rate_share for left in lost.workloads]
            if lost.breach is None or None in known:
                continue
            left = f"{per_cent(min(known))} of its rate (" if min(known) else "nothing of its rate"
            assert left in text
            looked += len(found.a.plan.deployments) > 1
    assert looked


def test_plans_of_different_workloads_are_told_apart():
    one = split_plan()
    renamed = one[0].replace(workloads={"code": one[0].workloads["chat"]})
    other = renamed, solve(renamed, Settings(explain=False))
    assert other[1].deployments
    text = " ".join(verdicts(comparison_of(one, other)))
    assert "The plans serve different workloads, code in B and chat in A." in text


# ------------------------------------------------------------------------------------------ the command line

REFERENCE = ["--scenario", "reference", *MAIN_JOB]


def planned(folder, name, asked):
    words = asked if "--scenario" in asked else ["--scenario", "llama-70b-chat", *asked]
    run([*words, "--output", str(folder / name)])
    return str(folder / name / "plan.json")


@cache
def reviewed_at(folder, one, other):
    code = run(
        ["review", planned(folder, "before", one), planned(folder, "after", other), "--output", str(folder / "r")]
    )
    return code, json.loads((folder / "r" / "review.json").read_text(encoding="utf-8"))


def reviewed(folder, name, one, other):
    """Exit code and document of the review of two questions, asked in folders of their own."""
    (folder / name).mkdir(exist_ok=True)
    return reviewed_at(folder / name, tuple(one), tuple(other))


SAMPLES = {
    "reference": (REFERENCE, ["--scenario", "reference", "--budget-kw", "60", "--min-tps", "120"]),
    "llama-70b-chat": (MAIN_JOB, ["--budget-kw", "60", "--min-tps", "100"]),
    "infeasible": (REFERENCE, ["--scenario", "reference", "--budget-kw", "15", *MAIN_JOB[2:], "--demand-rps", "40"]),
}
_VERSION = re.compile(r"phaseplan [\d.]+\w*")
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


@pytest.fixture
def at_80(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("sample", SAMPLES)
def test_text_and_markdown(sample, at_80, capsys, golden):
    for name, asked in zip(("before", "after"), SAMPLES[sample], strict=True):
        words = asked if "--scenario" in asked else ["--scenario", sample, *asked]
        run([*words, "--output", name])
    capsys.readouterr()
    assert run(["review", "before/plan.json", "after/plan.json", "--output", "review"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80
    golden(f"text/review-{sample}.txt", _VERSION.sub("phaseplan", out))
    text = Path("review/review.md").read_text(encoding="utf-8")
    golden(f"text/review-{sample}.md", _DIGEST.sub("…", _VERSION.sub("phaseplan", text)))
    rendered = MarkdownIt("commonmark").enable("table").render(text)
    assert "<img" not in rendered, "Markdown stands alone"
    assert rendered.count("<table>") >= 5


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_document_follows_its_schema(sample, tmp_path, capsys):
    code, document = reviewed(tmp_path, sample, *SAMPLES[sample])
    assert code == 0
    capsys.readouterr()
    assert run(["schema", "comparison"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(document)) == []
    assert Comparison.model_validate_json(json.dumps(document)).model_dump(mode="json") == document
    assert list(jsonschema.Draft202012Validator(schema).iter_errors({**document, "more": 1}))


def test_json_is_the_document_and_nothing_else(tmp_path, capsys):
    path = planned(tmp_path, "a", REFERENCE)
    capsys.readouterr()
    assert run(["review", path, path, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["question"] == []
    assert document["a"] == document["b"] == {**document["b"], "file": path}
    assert document["provenance"]["command"] == f"plan review {path} {path} --json"
    assert document["provenance"]["catalogs"] == document["a"]["plan"]["provenance"]["catalogs"]


def test_an_infeasible_plan_shows_its_conflict(tmp_path):
    code, document = reviewed(tmp_path, "none", *SAMPLES["infeasible"])
    assert code == 0
    side = document["b"]
    assert (side["servers_lost"], side["growth"]) == ([], None)
    assert {row["limit"] for row in side["plan"]["infeasibility"]} == {"power_budget", "interactivity_floor", "demand"}
    bounds = {row["name"]: row["b"] for row in document["headroom"]}
    assert bounds["power_budget"] == {"bound": 15_000.0, "value": None, "slack": None, "left": None}


def spoilt(plan, **provenance):
    return json.dumps({**plan, "provenance": {**plan["provenance"], **provenance}})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda plan: None, "there is no such file"),
        (lambda plan: "{", "it is no plan document"),
        (lambda plan: json.dumps({**plan, "scenario": 5}), "it is no plan document"),
        (lambda plan: '{"schema_version": 1, "points": [], "hypervolume": 0.0}', "it is no plan document"),
        (lambda plan: spoilt(plan, command=None), "names no command"),
        (lambda plan: spoilt(plan, command="plan --bugdet-kw 5"), "not understood"),
        (lambda plan: spoilt(plan, command="plan review a.json b.json"), "asks for no plan"),
        (lambda plan: spoilt(plan, catalogs={"catalogs/reference.yaml": "0"}), "has changed since"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_what_is_no_plan_is_refused(tmp_path, capsys, spoil, message, first):
    good = planned(tmp_path, "good", REFERENCE)
    with open(good, encoding="utf-8") as file:
        content = spoil(json.load(file))
    bad = tmp_path / "bad.json"
    if content is not None:
        bad.write_text(content, encoding="utf-8")
    capsys.readouterr()
    pair = [str(bad), good] if first else [good, str(bad)]
    assert run(["review", *pair, "--output", str(tmp_path / "out")]) == EXIT_BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert str(bad) in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_changed_scenario_is_refused(tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text("schema_version: 1\nname: mine\nextends: reference\n", encoding="utf-8")
    plan = planned(tmp_path, "plan", ["--scenario", str(path), *MAIN_JOB])
    assert run(["review", plan, plan]) == 0
    path.write_text("schema_version: 1\nname: mine\nextends: reference\npue: 1.5\n", encoding="utf-8")
    capsys.readouterr()
    assert run(["review", plan, plan]) == EXIT_BAD_INPUT
    assert "its scenario has changed since" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [[], ["one.json"], ["a", "b", "c"], ["a", "b", "--scenario", "reference"]], ids=" ".join
)
def test_a_review_takes_two_plans_and_no_question(words, capsys):
    assert run(["review", *words]) == EXIT_BAD_INPUT
    assert capsys.readouterr().err.startswith("error: ")


# ---------------------------------------------------------------------------------------------- files and page


def test_three_files_are_written(tmp_path):
    reviewed(tmp_path, "files", *SAMPLES["llama-70b-chat"])
    assert {path.name for path in (tmp_path / "files" / "r").iterdir()} == {"review.json", "review.md", "review.html"}
    text = (tmp_path / "files" / "r" / "review.html").read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="([^"#][^"]*)"', text) == [], "no file, no font, no script from elsewhere"
    assert "url(" not in text
    assert text.count("<figure id=") == 3
    assert TITLE in text


def test_without_the_extra_all_but_the_page_is_written(tmp_path, capsys, monkeypatch):
    path = planned(tmp_path, "a", REFERENCE)
    capsys.readouterr()
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    assert run(["review", path, path, "--output", str(tmp_path / "r")]) == 0
    assert {one.name for one in (tmp_path / "r").iterdir()} == {"review.json", "review.md"}
    assert "pip install 'phaseplan[report]'" in capsys.readouterr().err


EVIL = "<script>alert('&')</script> *bold* | `code`"


def test_what_a_file_says_is_never_markup():
    one = split_plan()
    named = one[0].replace(description=EVIL)
    found = comparison_of(one, (named, one[1]))
    assert [change.b for change in found.question] == [EVIL]
    report = comparison_report(found)
    page = html(report, drawings_of(report))
    assert "<script>alert" not in page
    rendered = MarkdownIt("commonmark").enable("table").render(markdown(without_charts(report), ".svg"))
    assert "<script>" not in rendered


def test_the_figures_show_both_plans():
    one, other = split_plan(20.0), split_plan(25.0, fleet={"power_budget_kw": 40.0})
    found = comparison_of(one, other)
    charts = {chart.name: chart for chart in chart_compared.comparison_charts(found)}
    assert set(charts) == {"power", "headroom", "server-lost"}
    spec = charts["power"].draw(400)
    values = spec["layer"][0]["data"]["values"]
    provisioned = {row["plan"]: row["value"] for row in values if row["label"] == "provisioned"}
    assert provisioned == {
        name: pytest.approx(plan.totals.power_w.provisioned / 1e3)
        for name, (_, plan) in zip("AB", (one, other), strict=True)
    }
    left = charts["headroom"].draw(250)["layer"][0]["data"]["values"]
    assert max(row["value"] for row in left) <= 100
    assert {row["plan"] for row in left if row["label"].startswith("power budget")} == {"B"}

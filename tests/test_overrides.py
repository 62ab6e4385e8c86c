"""Setting dotted keys: ``--set``, a scenario's overrides and the flags that stand for fields."""

import json

import pytest
from commands import run

from planner.cli.bare import with_service_flags
from planner.cli.common import place_overrides
from planner.errors import InputError
from planner.read.load import read_scenario
from planner.read.overrides import parse_assignments, set_all, set_key
from planner.read.yaml_tree import Mark, Tree, parse
from planner.schema.scenario import Stock

FLAG = Mark("--set x")


def tree_of(text):
    return parse(text, "file")


def after(text, key, value):
    tree = tree_of(text)
    set_key(tree, key, value, FLAG)
    assert tree.problems == []
    return tree.data


def problem(text, key):
    tree = tree_of(text)
    before = json.dumps(tree.data)
    set_key(tree, key, 1, FLAG)
    assert json.dumps(tree.data) == before
    (found,) = tree.problems
    return str(found)


def scenario_with(*assignments, name="reference"):
    return read_scenario(name, parse_assignments(assignments)).scenario


# ------------------------------------------------------------------------------------------- where a key leads


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("{pue: 1}", "pue", {"pue": 9}),
        ("{}", "pue", {"pue": 9}),
        ("{limits: {a: 1}}", "limits.power_budget_kw", {"limits": {"a": 1, "power_budget_kw": 9}}),
        ("{}", "limits.inventory.gpu", {"limits": {"inventory": {"gpu": 9}}}),
        ("{limits: null}", "limits.power_budget_kw", {"limits": {"power_budget_kw": 9}}),
        ("{proposers: [a, b]}", "proposers.1", {"proposers": ["a", 9]}),
        ("{catalog: {models: {llama-3.1-8b: {}}}}", "catalog.models.llama-3.1-8b.weights_gb", None),
    ],
)
def test_a_key_leads_to_its_field(text, key, expected):
    expected = expected or {"catalog": {"models": {"llama-3.1-8b": {"weights_gb": 9}}}}
    assert after(text, key, 9) == expected


def test_the_longest_name_with_dots_is_taken():
    text = "{catalog: {models: {a: {b: {description: x}}, a.b: {description: y}}}}"
    models = after(text, "catalog.models.a.b.description", "z")["catalog"]["models"]
    assert models == {"a": {"b": {"description": "x"}}, "a.b": {"description": "z"}}


def test_a_new_name_may_be_the_last_part_only():
    data = after("{catalog: {devices: {gpu: {}}}}", "catalog.devices.tpu", {})
    assert list(data["catalog"]["devices"]) == ["gpu", "tpu"]


@pytest.mark.parametrize(("key", "points"), [("t.4", {2: 2.0, 4: 9}), ("t.2", {2: 9}), ("t.04", {2: 2.0, 4: 9})])
def test_points_of_a_table_are_numbers(key, points):
    assert after("{t: {2: 2.0}}", key, 9) == {"t": points}


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ("{}", "a..b", "--set x: 'a..b' is no dotted key"),
        ("{}", ".a", "--set x: '.a' is no dotted key"),
        ("{pue: 1}", "pue.x", "--set x: pue is 1 and has no key 'x'"),
        ("{}", "pue.x", "--set x: pue takes a plain value and has no key 'x'"),
        ("{proposers: [a]}", "proposers.1", "--set x: proposers has no position '1' (valid: 0)"),
        ("{proposers: [a]}", "proposers.-1", "--set x: proposers has no position '-1' (valid: 0)"),
        ("{}", "limit.power", "--set x: limit: there is no such key (nearest: limits)"),
        (
            "{catalog: {devices: {gpu: {}}}}",
            "catalog.devices.gpuu.memory_gb",
            "--set x: catalog.devices.gpuu: there is no such key (nearest: gpu)",
        ),
    ],
)
def test_a_key_that_leads_nowhere_changes_nothing(text, key, message):
    assert problem(text, key) == message


def test_all_keys_that_lead_nowhere_are_told():
    tree = tree_of("{pue: 1}")
    set_all(tree, [("pue.x", 1, FLAG), ("host_factor", 2, FLAG), ("limit.x", 1, FLAG)])
    assert len(tree.problems) == 2
    assert tree.data == {"pue": 1, "host_factor": 2}


def test_the_mark_of_what_was_set_replaces_those_below():
    tree = tree_of("limits:\n  inventory:\n    gpu: 1\n")
    set_key(tree, "limits.inventory", {"gpu": 2}, FLAG)
    assert tree.mark(("limits", "inventory", "gpu")) == FLAG
    assert tree.mark(("limits",)) == Mark("file", 1)


def test_what_is_made_on_the_way_is_marked_too():
    tree = tree_of("name: x")
    set_key(tree, "transfers.kv_exposed_share", 1, FLAG)
    assert tree.mark(("transfers", "link")) == FLAG


def test_nothing_is_set_below_what_is_broken():
    tree = Tree({"catalog": None}, {("catalog",): Mark("file", 1, broken=True)})
    set_key(tree, "catalog.devices.gpu.memory_gb", 1, FLAG)
    assert tree.data == {"catalog": None}
    assert tree.problems == []


# ------------------------------------------------------------------------------------------------- assignments


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("a=1", "a", 1),
        ("a.b=1e3", "a.b", 1000.0),
        ("a=on", "a", "on"),
        ("a=010", "a", 10),
        ("a=b=c", "a", "b=c"),
        ("a=-1", "a", -1),
        ('a="1"', "a", "1"),
        ("a=", "a", None),
        ("a=null", "a", None),
        ("a=[1, x]", "a", [1, "x"]),
        ("a={floor: 40, per_token: 2.5}", "a", {"floor": 40, "per_token": 2.5}),
        (" a = 1 ", "a", 1),
    ],
)
def test_an_assignment_is_a_key_and_yaml(text, key, value):
    ((found_key, found, mark),) = parse_assignments([text])
    assert (found_key, found) == (key, value)
    assert str(mark) == f"--set {text}"


def test_all_bad_assignments_are_told():
    with pytest.raises(InputError) as caught:
        parse_assignments(["a", "b=1", "=1", "c=[", "d=!x 1", "e=# 1"])
    assert len(caught.value.problems) == 5
    assert all(line.startswith("--set ") for line in caught.value.problems)


# ------------------------------------------------------------------------------------------------ on scenarios


def test_every_kind_of_field_can_be_set():
    scenario = scenario_with(
        "max_draft_length=8",
        "objective=energy",
        "limits.inventory.gpu=3",
        "catalog.devices.gpu.idle_power_w=80",
        "catalog.devices.gpu.profiles.drafter.draft_decode.b1.latency_ms.per_token=5",
        "catalog.devices.gpu.profiles.target.target_verify.b1.energy_mj={per_token: 40}",
        "catalog.devices.gpu.price={usd_per_hour: 2.5, basis: list, date: '2026-01-01'}",
        "workloads.reference.limits.ttft_ceiling_ms=1e3",
        "proposers=[]",
        "pue=1.25",
    )
    gpu = scenario.catalog.devices["gpu"]
    assert (scenario.max_draft_length, scenario.objective, scenario.proposers, scenario.pue) == (8, "energy", (), 1.25)
    assert scenario.limits.inventory == {"gpu": Stock(purchasable=3)}
    assert (gpu.idle_power_w, gpu.price.usd_per_hour) == (80.0, 2.5)
    assert gpu.profiles["drafter"]["draft_decode"]["b1"].latency_ms.per_token == 5.0
    assert gpu.profiles["target"]["target_verify"]["b1"].energy_mj.base is None
    assert scenario.workloads["reference"].limits.ttft_ceiling_ms == 1000.0


def test_what_is_not_set_stays():
    assert scenario_with("pue=1.25").replace(pue=1.0) == scenario_with()


def test_the_last_of_two_wins():
    assert scenario_with("pue=1.25", "pue=1.5").pue == 1.5


def test_an_empty_value_takes_a_field_away():
    assert scenario_with("limits.power_budget_kw=50", "limits.power_budget_kw=").limits.power_budget_kw is None


def test_flags_win_over_set(capsys):
    places = ["--place=target_verify=gpu", "--place=target_prefill=gpu"]
    code = run(
        ["--budget-kw", "40", "--set", "limits.power_budget_kw=90", "--max-draft-length", "0", *places, "--json"]
    )
    plan = json.loads(capsys.readouterr().out)
    (limit,) = plan["limits"]
    assert code == 0
    assert limit["bound"] == 40_000.0


def test_places_become_overrides():
    assert place_overrides(["draft_decode=gpu:tp2:b8", "target_verify=gpu"]) == [
        ("places.draft_decode", "gpu:tp2:b8", Mark("--place draft_decode=gpu:tp2:b8")),
        ("places.target_verify", "gpu", Mark("--place target_verify=gpu")),
    ]


def test_service_flags_set_the_limits_of_every_workload():
    limits = with_service_flags(scenario_with(), min_tps=100.0, max_ttft_ms=200.0, demand_rps=30.0)
    found = limits.workloads["reference"].limits
    assert (found.interactivity_floor_tps, found.ttft_ceiling_ms, found.demand_rps) == (100.0, 200.0, 30.0)


def test_service_flags_that_are_not_given_change_nothing():
    scenario = scenario_with("workloads.reference.limits.demand_rps=7")
    assert with_service_flags(scenario, None, None, None) == scenario

"""The JSON Schemas are valid, every document that is shipped or printed follows its schema, and broken ones do not."""

import contextlib
import io
import json
from functools import cache
from pathlib import Path

import pytest
from commands import run

from planner.read import library
from planner.read.yaml_tree import parse_file
from planner.words import PHASES

jsonschema = pytest.importorskip("jsonschema")

BROKEN = Path(__file__).parent / "data" / "broken"
ON_GPU = [f"--place={phase}=gpu" for phase in PHASES]
PRINTED = {
    "optimal": ("plan", ["--budget-kw", "50", "--min-tps", "100"]),
    "infeasible": ("plan", ["--budget-kw", "50", "--min-tps", "200"]),
    "without speculation": ("plan", ["--demand-rps", "5", "--max-draft-length", "0", "--objective", "energy"]),
    "whole devices": ("plan", ["--set", "limits.inventory.gpu=40", "--counts", "integer"]),
    "evaluation": ("evaluation", ["evaluate", *ON_GPU, "--draft-length", "8"]),
    "plain evaluation": ("evaluation", ["evaluate", *ON_GPU[:2], "--draft-length", "0"]),
    "front": ("front", ["pareto", "--method", "exact"]),
    "searched front": ("front", ["pareto", "--trials", "50"]),
    "no front": ("front", ["pareto", "--min-tps", "200"]),
}

# The keys that other tools read, by document; a list stands for its items. Fields may be added, none may go.
PINNED = {
    "plan": {
        "": "schema_version status scenario objective deployments pools fleet totals limits baselines infeasibility"
        " assumptions provenance",
        "objective": "name value best_bound gap unit",
        "deployments": "workload share proposer proposer_kind draft_length verify_tokens placements metrics",
        "deployments.placements": "target_prefill target_verify draft_prefill draft_decode",
        "deployments.placements.target_verify": "pool device tensor_parallel batch_size replicas devices utilization",
        "deployments.metrics": "tokens_per_step step_time_s interactivity_tps tpot_s ttft_s request_rate_rps"
        " throughput_tps energy_j_per_request energy_j_per_token tps_per_kw energy_share",
        "deployments.metrics.energy_share": "target_prefill target_verify draft_prefill draft_decode transfers",
        "pools": "name device tensor_parallel replicas devices utilization phases",
        "pools.phases": "workload deployment phase",
        "fleet": "device devices available provisioned_w usd_per_hour",
        "totals": "throughput_tps request_rate_rps power_w tps_per_kw usd_per_hour usd_per_million_tokens",
        "totals.power_w": "forward average provisioned",
        "limits": "name workload device basis unit bound value slack binding marginal_value marginal_delta",
        "baselines": "name throughput_tps interactivity_tps ttft_s tps_per_kw violates",
        "infeasibility": "limit workload unit asked achievable holding",
        "provenance": "version solver runtime_s catalogs",
    },
    "front": {
        "": "schema_version points hypervolume reference_point exact provenance",
        "points": "interactivity_tps energy_j_per_token tps_per_kw ttft_s usd_per_million_tokens deployment",
        "points.deployment": "workload share proposer proposer_kind draft_length verify_tokens placements metrics",
    },
    "evaluation": {
        "": "schema_version workload share proposer proposer_kind draft_length verify_tokens placements metrics",
    },
}


@cache
def printed(*arguments):
    """Run the command and give the document that it prints; infeasible is an answer too."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run([*arguments]) in (0, 3)
    return json.loads(out.getvalue())


def schema(document):
    return printed("schema", document)


def validator(document):
    return jsonschema.Draft202012Validator(schema(document))


def file_data(path):
    """A file's plain data as JSON has it: keys are text there."""
    return json.loads(json.dumps(parse_file(str(path))[0].data))


DOCUMENTS = ["catalog", "scenario", "plan", "evaluation", "front", "review"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_schema_is_valid(document):
    assert schema(document)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema(document))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_schema_allows_no_other_keys(document):
    found = []

    def look(part, where):
        if isinstance(part, dict):
            if part.keys() & {"properties", "patternProperties"} and part.get("type") == "object":
                found.append((where, part.get("additionalProperties", True)))
            for key, below in part.items():
                look(below, f"{where}.{key}")

    look(schema(document), document)
    assert [where for where, more in found if more] == []
    assert len(found) >= 5


@pytest.mark.parametrize("kind", ["catalog", "scenario"])
def test_every_bundled_file_follows_its_schema(kind):
    for name in library.names(kind):
        validator(kind).validate(file_data(library.find(kind, name)[0]))


@pytest.mark.parametrize("name", PRINTED)
def test_every_printed_document_follows_its_schema(name):
    document, arguments = PRINTED[name]
    validator(document).validate(printed(*arguments, "--json"))


@pytest.mark.parametrize("name", PRINTED)
def test_a_printed_document_without_any_one_key_does_not_follow_its_schema(name):
    """A field without a value is null, never absent."""
    document, arguments = PRINTED[name]
    whole = printed(*arguments, "--json")
    for key in whole:
        less = {other: value for other, value in whole.items() if other != key}
        assert not validator(document).is_valid(less), key


REFUSED = [
    "catalog-unknown-key",
    "catalog-wrong-unit",
    "catalog-negative",
    "catalog-quoted-number",
    "catalog-bool-for-number",
    "catalog-null-mapping",
    "catalog-list-for-mapping",
    "catalog-missing-keys",
    "catalog-acceptance-kinds",
    "catalog-unknown-phase",
    "catalog-option-keys",
    "catalog-bad-names",
    "catalog-no-version",
    "catalog-wrong-version",
    "catalog-too-large-numbers",
    "scenario-unknown-key",
    "scenario-wrong-unit",
    "scenario-missing-keys",
    "scenario-extends-without-name",
    "scenario-overrides-without-extends",
    "scenario-overrides-is-a-list",
    "scenario-bad-places",
    "scenario-unknown-words",
    "scenario-limits",
    "scenario-ranges",
    "scenario-candidates",
    "scenario-no-workload",
]


@pytest.mark.parametrize("name", REFUSED)
def test_a_schema_refuses_what_an_editor_can_see(name):
    kind = name.partition("-")[0]
    assert not validator(kind).is_valid(file_data(BROKEN / f"{name}.yaml"))


# -------------------------------------------------------------------------------------------- the pinned keys


def parts_at(document, path):
    """Every part of a document at a path, items of lists one by one; nulls left out."""
    parts = [document]
    for key in filter(None, path.split(".")):
        parts = [part[key] for part in parts]
        parts = [item for part in parts for item in (part if isinstance(part, list) else [part])]
        parts = [part for part in parts if part is not None]
    return parts


@pytest.mark.parametrize("name", PRINTED)
def test_the_pinned_keys_are_there(name):
    document, arguments = PRINTED[name]
    whole = printed(*arguments, "--json")
    for path, keys in PINNED[document].items():
        for part in parts_at(whole, path):
            assert set(keys.split()) <= set(part), path


def test_every_pinned_part_is_looked_at():
    """So that none of the checks above is about an empty list only."""
    wholes = [printed(*PRINTED[name][1], "--json") for name in ("optimal", "infeasible")]
    for path in PINNED["plan"]:
        assert any(parts_at(whole, path) for whole in wholes), path


def test_an_infeasible_plan_holds_no_figures():
    plan = printed(*PRINTED["infeasible"][1], "--json")
    assert [plan[key] for key in ("deployments", "pools", "fleet", "baselines")] == [[], [], [], []]
    assert [plan["objective"][key] for key in ("value", "best_bound", "gap")] == [None, None, None]
    totals = dict(plan["totals"])
    assert set(totals.pop("power_w").values()) == {None}
    assert set(totals.values()) == {None}


def test_a_phase_that_does_not_run_is_null():
    plain = printed(*PRINTED["plain evaluation"][1], "--json")
    assert [plain["proposer"], plain["proposer_kind"], plain["draft_length"]] == [None, None, 0]
    for phase in ("draft_prefill", "draft_decode"):
        assert plain["placements"][phase] is None
        assert plain["metrics"]["energy_share"][phase] is None


@pytest.mark.parametrize("name", ["optimal", "without speculation", "whole devices", "evaluation", "plain evaluation"])
def test_shares_of_energy_sum_to_one(name):
    document, arguments = PRINTED[name]
    whole = printed(*arguments, "--json")
    for deployment in whole["deployments"] if document == "plan" else [whole]:
        shares = deployment["metrics"]["energy_share"].values()
        assert sum(share for share in shares if share is not None) == pytest.approx(1.0, abs=1e-12)


def test_units_of_objectives():
    units = {"throughput": "tok/s", "power": "W", "energy": "J/token", "interactivity": "tok/s"}
    for objective, unit in units.items():
        plan = printed("--objective", objective, "--demand-rps", "3", "--max-draft-length", "4", "--json")
        assert (plan["objective"]["name"], plan["objective"]["unit"]) == (objective, unit)

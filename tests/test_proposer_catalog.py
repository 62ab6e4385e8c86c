"""The bundled proposers: every kind, curves that cover what they say, sources, figures as measured."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import yaml

from planner.acceptance import covered_draft_length, tokens_per_step
from planner.options import cost_table, speculations_of
from planner.read.load import read_catalog, read_scenario
from planner.roofline import counts
from planner.schema.catalog import AcceptanceCurve, Catalog, Positions, Proposer
from planner.schema.scenario import Scenario
from planner.words import ProposerKind

ROOT = Path(__file__).resolve().parents[1]
FACTS = ROOT.parent / "shared" / "facts"
needs_facts = pytest.mark.skipif(not FACTS.is_dir(), reason=f"the public measurements are not at {FACTS}")

# Which rows of the collected measurements a figure stands for: draft length (or position) -> rows, whose mean it is.
Rows = dict[int, tuple[int, ...]]
FIGURES: dict[tuple[str, str, str], Rows] = {
    ("qwen3-1.7b-drafts", "qwen3-32b", "general"): {length: (1201 + length,) for length in range(1, 9)},
    ("llama-3.3-70b-eagle3", "llama-3.3-70b", "chat"): {3: (1033,), 6: (1034,)},
    ("llama-3.3-70b-eagle3-tree21", "llama-3.3-70b", "chat"): {6: (1035,)},
    ("llama-3.3-70b-eagle3-tree", "llama-3.3-70b", "general"): {8: (462,)},
    ("llama-3.3-70b-eagle3-tree", "llama-3.3-70b", "chat"): {8: (457,)},
    ("llama-3.3-70b-eagle3-tree", "llama-3.3-70b", "math"): {8: (459,)},
    ("llama-3.3-70b-eagle3-tree", "llama-3.3-70b", "summarization"): {8: (461,)},
    ("llama-3.1-8b-eagle3-tree", "llama-3.1-8b", "general"): {8: (450,)},
    ("llama-3.1-8b-eagle3-tree", "llama-3.1-8b", "code"): {8: (446,)},
    ("vicuna-13b-eagle3-tree", "vicuna-13b-v1.3", "general"): {8: (432,)},
    ("vicuna-13b-eagle3-tree", "vicuna-13b-v1.3", "code"): {8: (428,)},
    ("vicuna-13b-eagle3-tree", "vicuna-13b-v1.3", "math"): {8: (429,)},
    ("vicuna-13b-eagle3-tree", "vicuna-13b-v1.3", "chat"): {8: (430,)},
    ("qwen3-8b-eagle3", "qwen3-8b", "chat"): {7: (854,)},
    ("qwen3-8b-eagle3", "qwen3-8b", "code"): {7: (849, 850, 851)},
    ("qwen3-8b-eagle3", "qwen3-8b", "math"): {7: (846, 847, 848)},
    ("qwen3-4b-eagle3", "qwen3-4b", "chat"): {7: (825, 826)},
    ("qwen3-4b-eagle3", "qwen3-4b", "code"): {7: (822, 823, 824)},
    ("qwen3-4b-eagle3", "qwen3-4b", "math"): {7: (821,)},
    ("gpt-oss-20b-eagle3", "gpt-oss-20b", "chat"): {3: (815,), 7: (818,)},
    ("kimi-k2-eagle3", "kimi-k2", "code"): {length: (691 + length,) for length in range(1, 9)},
    ("kimi-k2-eagle3", "kimi-k2", "chat"): {3: (772,)},
    ("kimi-k2-eagle3", "kimi-k2", "math"): {3: (774, 776)},
    ("vicuna-7b-medusa", "vicuna-7b-v1.3", "general"): {4: (89, 124)},
    ("vicuna-7b-medusa-2", "vicuna-7b-v1.3", "chat"): {5: (577,)},
    ("vicuna-33b-medusa", "vicuna-33b-v1.3", "general"): {4: (222,)},
    ("deepseek-v3-mtp", "deepseek-v3-r1", "general"): {1: (652,), 3: (656,), 4: (657,)},
    ("deepseek-v3-mtp", "deepseek-v3-r1", "long_context"): {3: (656,), 4: (657,)},
    ("ngram", "vicuna-13b-v1.3", "code"): {10: (392,)},
    ("ngram", "vicuna-13b-v1.3", "chat"): {10: (394,)},
    ("ngram", "vicuna-33b-v1.3", "general"): {10: (243,)},
    ("ngram", "llama-4-scout", "general"): {3: (1217,), 5: (1215,)},
    ("ngram", "llama-4-scout", "chat"): {3: (1218,), 5: (1216,)},
    ("ngram", "llama-3.1-8b", "summarization"): {10: (1038,)},
    ("llama-2-7b-tree-5x8", "llama-2-7b", "general"): {8: (633,)},
    ("llama-2-7b-tree-5x8", "llama-2-7b", "web"): {8: (637,)},
    ("llama-2-7b-tree-128", "llama-2-7b", "general"): {10: (632,)},
    ("llama-2-7b-tree-128", "llama-2-7b", "chat"): {10: (644,)},
    ("llama-2-7b-tree-128", "llama-2-7b", "summarization"): {7: (640,)},
    ("qwen3-8b-dspark", "qwen3-8b", "chat"): {7: (870,)},
    ("qwen3-8b-dspark", "qwen3-8b", "code"): {7: (867, 868, 869)},
    ("qwen3-8b-dspark", "qwen3-8b", "math"): {7: (864, 865, 866)},
    ("qwen3-8b-dflash", "qwen3-8b", "chat"): {7: (861, 862, 863)},
    ("qwen3-8b-dflash", "qwen3-8b", "code"): {7: (858, 860)},
    ("qwen3-8b-dflash", "qwen3-8b", "math"): {7: (855,)},
    ("qwen3-4b-dspark", "qwen3-4b", "code"): {7: (1003,)},
    **{
        (f"llama-7b-tree-w{width}", "llama-7b", task): {8: (first + width - 1,)}
        for task, first in (("chat", 582), ("general", 587), ("qa", 592), ("commonsense", 602))
        for width in range(1, 6)
    },
}
ALPHAS: dict[tuple[str, str, str], tuple[int, ...]] = {
    ("llama-3.1-8b-drafts", "llama-3.1-70b", "general"): (1242,),
    ("vicuna-7b-eagle", "vicuna-7b-v1.3", "chat"): tuple(range(288, 293)),
    ("llama-2-70b-eagle", "llama-2-70b", "chat"): tuple(range(318, 323)),
    ("qwen3-4b-dspark", "qwen3-4b", "chat"): tuple(range(983, 990)),
    ("qwen3-4b-dspark", "qwen3-4b", "math"): tuple(range(941, 948)),
}
# The mean of a domain's mean: chat, code, math.
MEANS_OF_TASKS = ("qwen3-8b-eagle3", "qwen3-4b-eagle3", "qwen3-8b-dspark", "qwen3-8b-dflash")
# Units of acceptance lengths that are E: all of them count the token that the target adds.
COUNTS_BONUS = {
    "tokens per target pass incl. bonus",
    "computed 1+alpha",
    "average acceptance length",  # SGLang adds one per verify
    "mean accepted length, per SpecDecode-Bench analysis",
    "verified tokens per step",  # SpecInfer: its verification returns the accepted tokens and the target's next one
}
PROBABILITIES = {"mean", "conditional acceptance at position"}


@cache
def proposers() -> dict[str, Proposer]:
    return read_catalog("proposers").proposers


@cache
def raw() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "catalogs" / "proposers.yaml").read_text(encoding="utf-8"))


@cache
def facts() -> dict[int, dict[str, str]]:
    with (FACTS / "acceptance.csv").open(newline="", encoding="utf-8") as file:
        return {int(row["row"]): row for row in csv.DictReader(file)}


def curves() -> Iterator[tuple[str, str, str, AcceptanceCurve]]:
    for name, proposer in proposers().items():
        for target, tasks in proposer.acceptance.items():
            for task, curve in tasks.items():
                yield name, target, task, curve


def curve_of(name: str, target: str, task: str) -> AcceptanceCurve:
    return proposers()[name].acceptance[target][task]


# ------------------------------------------------------------------------------------------------------ catalog


def test_every_kind_is_on_offer() -> None:
    assert {proposer.kind for proposer in proposers().values()} == set(get_args(ProposerKind))


def test_the_models_that_are_named_come_from_the_bundled_catalogs() -> None:
    models = read_catalog("models").models
    named = {p.model for p in proposers().values()} - {None}
    assert named | {target for p in proposers().values() for target in p.acceptance} <= set(models)
    assert not set(proposers()) & set(models), "a name shows one entry"


def test_the_three_catalogs_are_used_together(tmp_path: Path) -> None:
    scenario = {
        "schema_version": 1,
        "name": "together",
        "catalog": ["devices", "models", "proposers"],
        "target": "llama-3.3-70b",
        "proposers": ["llama-3.3-70b-eagle3", "llama-3.2-1b-drafts", "ngram"],
        "workloads": {"chat": {"isl_tokens": 100, "osl_tokens": 50, "task": "chat"}},
    }
    file = tmp_path / "together.yaml"
    file.write_text(yaml.safe_dump(scenario), encoding="utf-8")
    catalog = read_scenario(str(file)).scenario.catalog
    assert set(catalog.proposers) == set(proposers())
    assert {"h100-sxm"} <= set(catalog.devices)
    assert set(catalog.sources) >= set(raw()["sources"])


def test_a_name_that_no_bundled_catalog_has_is_still_refused() -> None:
    data = raw() | {"proposers": {"x": raw()["proposers"]["qwen3-1.7b-drafts"] | {"model": "qwen3-1.7c"}}}
    with pytest.raises(ValueError, match=r"there is no model 'qwen3-1\.7c' \(nearest: qwen3-1\.7b"):
        Catalog.model_validate(data, context={"models": list(read_catalog("models").models)})
    with pytest.raises(ValueError, match=r"there is no model 'qwen3-1\.7b'"):
        Catalog.model_validate(raw())


@pytest.mark.parametrize("name", sorted(raw()["proposers"]))
def test_curves_cover_the_draft_lengths_on_offer(name: str) -> None:
    proposer = proposers()[name]
    most = proposer.max_draft_length
    assert most is not None
    for target, tasks in proposer.acceptance.items():
        for task, curve in tasks.items():
            covered = covered_draft_length(curve)
            longest = most if covered is None else min(most, covered)
            offered = [n for n in range(1, longest + 1) if proposer.tree is None or n in proposer.tree.nodes_by_depth()]
            assert offered, f"{target}, {task}: no draft length is on offer"
            committed = tokens_per_step(curve, [0, *offered])
            assert committed[0] == 1.0
            assert all(1.0 < value <= length + 1.0 for value, length in zip(committed[1:], offered, strict=True))


@pytest.mark.parametrize("name", sorted(raw()["proposers"]))
def test_every_number_has_a_source_and_a_confidence(name: str) -> None:
    entry = raw()["proposers"][name]
    assert entry["source"] in raw()["sources"]
    for field in {"acceptance", "max_draft_length", "tree", "host_time_ms", "hidden_bytes_per_token"} & set(entry):
        if field == "acceptance":
            for target, tasks in entry["acceptance"].items():
                for task in tasks:
                    path = f"acceptance.{target}.{task}"
                    assert any(path == key or path.startswith(f"{key}.") for key in entry["confidence"]), path
        else:
            assert field in entry["confidence"], field


def test_sources_are_dated_and_used() -> None:
    entries = raw()["proposers"].values()
    used = {entry["source"] for entry in entries}
    used |= {source for entry in entries for source in entry.get("sources", {}).values()}
    assert used == set(raw()["sources"])
    assert all(source["date"] and source["publisher"] for source in raw()["sources"].values())


def test_labels_name_curves_that_exist() -> None:
    for name, entry in raw()["proposers"].items():
        paths = {f"acceptance.{target}" for target in entry["acceptance"]}
        paths |= {f"acceptance.{target}.{task}" for target, tasks in entry["acceptance"].items() for task in tasks}
        for key in (*entry["confidence"], *entry.get("sources", {})):
            if key.startswith("acceptance."):
                assert any(key == path or key.startswith(f"{path}.tokens_per_step.") for path in paths), (
                    f"{name}: {key}"
                )


def test_models_that_run_beside_the_target_have_its_width() -> None:
    """A head on the target's hidden states is as wide as the target."""
    models = read_catalog("models").models
    for name, proposer in proposers().items():
        if proposer.kind not in ("eagle3", "mtp", "dspark", "medusa") or proposer.model is None:
            continue
        drafter = models[proposer.model]
        width = drafter.shape.hidden if drafter.shape else drafter.heads.hidden  # type: ignore[union-attr]
        for target in proposer.acceptance:
            assert width == models[target].shape.hidden, f"{name}: {target}"  # type: ignore[union-attr]


@cache
def bundled() -> Catalog:
    parts = [read_catalog(name) for name in ("devices", "models", "proposers")]
    groups = ("sources", "devices", "models", "proposers")
    merged = {group: {n: e for part in parts for n, e in getattr(part, group).items()} for group in groups}
    return Catalog.model_validate({"schema_version": 1, **merged})


@pytest.mark.parametrize("name", sorted(raw()["proposers"]))
def test_every_draft_length_on_offer_is_costed(name: str) -> None:
    for target, tasks in proposers()[name].acceptance.items():
        scenario = Scenario.model_validate(
            {
                "schema_version": 1,
                "name": "one",
                "catalog": bundled(),
                "target": target,
                "proposers": (name,),
                "workloads": {task: {"isl_tokens": 500, "osl_tokens": 200, "task": task} for task in tasks},
                "candidates": {"devices": ["b200-sxm"], "tensor_parallel": [1, 2, 8], "batch_sizes": [1]},
            }
        )
        for task in tasks:
            speculations = speculations_of(scenario, task)
            table = cost_table(scenario, task, speculations)
            assert len(speculations) > 1
            for phase in ("target_verify", "draft_decode"):
                own = table.runs(phase)
                if own.any():
                    assert np.isfinite(table.phases[phase].latency_s[:, own]).any(axis=0).all(), f"{target}: {phase}"


def test_medusa_heads_are_counted() -> None:
    for name, model in read_catalog("models").models.items():
        if model.heads is not None:
            each = model.heads.hidden**2 + model.heads.hidden * model.heads.vocabulary
            assert model.weights_gb == pytest.approx(2.0 * model.heads.count * each / 1e9, rel=1e-3), name
            assert model.kv_bytes_per_token == 0.0


def test_the_multi_token_prediction_module_has_the_published_size() -> None:
    """11.5 B parameters beside the shared embedding and output head; 1.5 B active, head included."""
    shape = read_catalog("models").models["mtp-deepseek-v3-r1"].shape
    assert shape is not None
    assert counts.parameters(shape) - counts.head_parameters(shape) == pytest.approx(11.5e9, rel=0.02)
    assert counts.active_parameters(shape) == pytest.approx(1.5e9, rel=0.1)


# ------------------------------------------------------------------------------------------------- measurements


def test_every_curve_is_measured_or_labelled() -> None:
    """A curve without rows is a mean of tasks, or says that it is assumed."""
    for name, target, task, _ in curves():
        if (name, target, task) in FIGURES or (name, target, task) in ALPHAS:
            continue
        entry = raw()["proposers"][name]
        path = f"acceptance.{target}.{task}"
        labels = [label for key, label in entry["confidence"].items() if path == key or path.startswith(f"{key}.")]
        assert "assumed" in labels or (name in MEANS_OF_TASKS and task == "general"), f"{name}, {target}, {task}"


@pytest.mark.parametrize("name", MEANS_OF_TASKS)
def test_general_is_the_mean_of_the_domains(name: str) -> None:
    ((_, tasks),) = proposers()[name].acceptance.items()
    domains = [float(tokens_per_step(tasks[task], 7)) for task in ("chat", "code", "math")]
    assert float(tokens_per_step(tasks["general"], 7)) == pytest.approx(sum(domains) / 3, rel=1e-3)


@needs_facts
@pytest.mark.parametrize("key", sorted(FIGURES), ids=" ".join)
def test_a_curve_passes_through_what_was_measured(key: tuple[str, str, str]) -> None:
    for length, numbers in FIGURES[key].items():
        rows = [facts()[number] for number in numbers]
        assert {row["tau_kind"] for row in rows} <= COUNTS_BONUS
        measured = sum(float(row["tau"]) for row in rows) / len(rows)
        assert float(tokens_per_step(curve_of(*key), length)) == pytest.approx(measured, rel=1e-3)
        stated = {float(row["draft_len"]) for row in rows if row["draft_len"] and not row["tree_size"].endswith("tree")}
        assert stated <= {float(length)}


@needs_facts
@pytest.mark.parametrize("key", sorted(ALPHAS), ids=" ".join)
def test_chances_of_acceptance_are_those_measured(key: tuple[str, str, str]) -> None:
    rows, curve = [facts()[number] for number in ALPHAS[key]], curve_of(*key)
    assert all(row["alpha_kind"] in PROBABILITIES or re.match(r"\d-alpha", row["alpha_kind"]) for row in rows)
    measured = tuple(float(row["alpha"]) for row in rows)
    assert (curve.probabilities if isinstance(curve, Positions) else (curve.alpha,)) == measured  # type: ignore[union-attr]


@needs_facts
def test_a_curve_taken_over_equals_the_one_it_was_taken_from() -> None:
    for name, target, source, task in (
        ("llama-3.1-8b-drafts", "llama-3.3-70b", "llama-3.1-70b", "general"),
        ("ngram", "llama-3.1-8b", "vicuna-13b-v1.3", "code"),
        ("ngram", "qwen3-coder-480b-a35b", "vicuna-13b-v1.3", "code"),
        ("ngram", "llama-3.3-70b", "llama-3.1-8b", "summarization"),
        ("ngram", "llama-3.3-70b", "vicuna-33b-v1.3", "general"),
    ):
        assert curve_of(name, target, task) == curve_of(name, source, task)
    assert float(tokens_per_step(curve_of("llama-3.3-70b-eagle3", "llama-3.3-70b", "rag"), 6)) == pytest.approx(
        float(facts()[1243]["tau"]), rel=1e-3
    )


# --------------------------------------------------------------------------------------------------------- page


def page_rows() -> dict[str, tuple[str, ...]]:
    """Rows of the page's table of proposers: kind, targets, tasks, draft lengths, source."""
    text = (ROOT / "docs" / "proposers.md").read_text(encoding="utf-8").partition("## What is on offer")[2]
    lines = re.findall(r"^\| `([\w.-]+)` \| (.*) \|$", text, re.MULTILINE)
    return {name: tuple(cell.strip() for cell in cells.split(" | ")) for name, cells in lines}


def lengths_shown(proposer: Proposer) -> str:
    if proposer.tree is None:
        return f"1–{proposer.max_draft_length}"
    nodes = proposer.tree.nodes_by_depth()
    if proposer.tree.branching is not None:
        return f"1–{max(nodes)}, {nodes[max(nodes)]} nodes"
    return "; ".join(f"{depth}, {count} nodes" for depth, count in nodes.items())


def test_the_page_shows_the_catalog() -> None:
    wanted = {
        name: (
            proposer.kind,
            ", ".join(proposer.acceptance),
            ", ".join(dict.fromkeys(task for tasks in proposer.acceptance.values() for task in tasks)),
            lengths_shown(proposer),
            str(proposer.source),
        )
        for name, proposer in proposers().items()
    }
    assert page_rows() == wanted

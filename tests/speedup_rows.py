"""Measured speed-ups of speculative decoding beside what the roofline predicts for them.

Every row of the two collections of measurements is a `Case`, which can be predicted, or a `Left` with the reason.
``python tests/speedup_rows.py [FIGURE]`` prints the tables of docs/speedups.md, and draws its figure.

    speed-up = E · t_decode(b) / (t_verify(b, drafted tokens + 1) + t_draft(D))

E is the row's own, or, for a curve over batch sizes that states none, what makes its first point come out.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from hardware_examples import catalog

from planner.roofline import body_precision, draft_decode, hardware, verify
from planner.roofline.passes import heads_draft
from planner.schema.hardware import Experts, LatentAttention, Precision, Shape

ROOT = Path(__file__).resolve().parents[1]
FACTS = ROOT.parent / "shared" / "facts"

# Where a source says nothing of it: tokens in the cache of a request of a chat benchmark.
CONTEXT = 500


@dataclass(frozen=True)
class Setting:
    """What ran where: enough to predict the times of a step."""

    device: str
    target: str
    drafter: str | None
    draft_length: int
    nodes: int
    batch: int
    context: int = CONTEXT
    degree: int = 1
    precision: Precision = "bf16"
    draft_context: int | None = None
    data_parallel_attention: bool = False
    draft_time_s: float | None = None


@dataclass(frozen=True)
class Case:
    """One measured figure that can be predicted. ``anchor``: measured at the first point of its curve."""

    source: str
    row: str
    group: str
    setting: Setting
    measured: float
    tokens_per_step: float | None = None
    anchor: tuple[Setting, float] | None = None


@dataclass(frozen=True)
class Left:
    """A row that cannot be predicted, and why."""

    source: str
    row: str
    reason: str


# ------------------------------------------------------------------------------------------------------ prediction

_MLA = LatentAttention(kv_rank=512, query_rank=1536, nope_head_dim=128, rope_head_dim=64, value_head_dim=128)
# Configurations read (aiconfigurator, commit 7b35965). Attention is taken for that of DeepSeek-V3 over the entries that
# compressed and selected caches leave to read: a window of 128 and every 4th position, at most 512 or 1024 of them, or
# every 128th, in turn. The DSpark drafter, whose shape is not published, is taken for five dense layers as for Qwen3.
ASSUMED_SHAPES = {
    "deepseek-v4-flash": Shape(
        hidden=4096, layers=43, heads=64, kv_heads=64, head_dim=192, vocabulary=129280, latent=_MLA,
        experts=Experts(count=256, per_token=6, hidden=2048, shared=1), native_precision="fp8",
    ),
    "deepseek-v4-pro": Shape(
        hidden=7168, layers=61, heads=128, kv_heads=128, head_dim=192, vocabulary=129280, latent=_MLA,
        experts=Experts(count=384, per_token=6, hidden=3072, shared=1), native_precision="fp8",
    ),
    "dspark-deepseek-v4-pro": Shape(
        hidden=7168, layers=5, heads=56, kv_heads=8, head_dim=128, ffn=18432, vocabulary=129280,
        embeddings_shared_with_target=True, block_size=7,
    ),
}  # fmt: skip


def entries_read(tokens: int, selected: int) -> int:
    """Cache entries that a layer of DeepSeek-V4 reads for a context, the mean of its two kinds of layers."""
    return 128 + (min(tokens // 4, selected) + tokens // 128) // 2


def shape_named(name: str) -> Shape:
    if name in ASSUMED_SHAPES:
        return ASSUMED_SHAPES[name]
    models = catalog().models
    model = models.get(name) or next(m for m in models.values() if m.shape is not None and name in m.shape.aliases)
    assert model.shape is not None
    return model.shape


def verify_s(s: Setting, tokens: int) -> float:
    shape = shape_named(s.target)
    hw = hardware(catalog().devices[s.device], s.precision, body_precision(shape, s.precision))
    cost = verify(
        hw, shape, s.precision, s.batch, s.context, s.degree, tokens, data_parallel_attention=s.data_parallel_attention
    )
    return float(cost.latency_s)


def draft_s(s: Setting) -> float:
    if s.draft_time_s is not None:
        return s.draft_time_s
    if s.drafter is None:
        return 0.0
    models = catalog().models
    if s.drafter in models and models[s.drafter].heads is not None:
        hw = hardware(catalog().devices[s.device], "bf16")
        return float(heads_draft(hw, models[s.drafter].heads, s.draft_length, s.batch, s.degree).latency_s)  # type: ignore[arg-type]
    shape = shape_named(s.drafter)
    precision = shape.native_precision
    hw = hardware(catalog().devices[s.device], precision, body_precision(shape, precision))
    context = s.context if s.draft_context is None else s.draft_context
    degree = s.degree if shape.heads % s.degree == 0 else 1
    return float(draft_decode(hw, shape, precision, s.draft_length, s.batch, context, degree, nodes=s.nodes).latency_s)


def per_token_gain(s: Setting) -> float:
    """Speed-up per token that a step commits: t_decode / (t_verify + t_draft)."""
    return verify_s(s, 1) / (verify_s(s, s.nodes + 1) + draft_s(s))


def predicted(case: Case) -> float:
    if case.group == STEPS:
        times = {"decode": verify_s(case.setting, 1), "verify": verify_s(case.setting, case.setting.nodes + 1)}
        return 1e3 * (times | {"draft": draft_s(case.setting)})[case.row.split()[-1]]
    if case.group == RATIO:
        return draft_s(case.setting) / verify_s(case.setting, 1)
    if case.group == BREAK_EVEN:
        return 1.0 / per_token_gain(case.setting)
    tokens = case.tokens_per_step
    if case.anchor is not None:
        first, measured = case.anchor
        tokens = measured / per_token_gain(first)
    assert tokens is not None
    return tokens * per_token_gain(case.setting)


def error(case: Case) -> float:
    return predicted(case) / case.measured - 1.0


# ----------------------------------------------------------------------------------------------------- what was run

ENGINES = "serving engines"
MAGICDEC = "MagicDec"
RESEARCH = "research stacks, batch 1"
CURVES = "batch curves of serving engines, E from the first point"
BREAK_EVEN = "break-even E, draft time as measured"
STEPS = "step times of MagicDec, ms"
RATIO = "one draft pass over one decode step, vLLM 0.10"
GROUPS = (ENGINES, MAGICDEC, RESEARCH, CURVES, BREAK_EVEN, STEPS, RATIO)

TARGETS = {
    "Vicuna-7B-v1.3": "vicuna-7b-v1.3", "Vicuna-13B-v1.3": "vicuna-13b-v1.3", "Vicuna-33B-v1.3": "vicuna-33b-v1.3",
    "Vicuna-7B": "vicuna-7b-v1.3", "Vicuna-13B": "vicuna-13b-v1.3", "Vicuna-33B": "vicuna-33b-v1.3",
    "LLaMA2-Chat-70B": "llama-2-70b", "Llama-2-7B": "llama-2-7b",
    "Llama-3.1-8B": "llama-3.1-8b", "Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "DeepSeek-R1-Distill-Llama-8B": "llama-3.1-8b",
    "Llama-3.3-70B-Instruct": "llama-3.3-70b", "Llama-3-70B": "llama-3.3-70b",
    "DeepSeek-V3": "deepseek-v3-r1", "Kimi-K2.5-W4A8": "kimi-k2", "Kimi-K2.6-NVFP4": "kimi-k2",
    "DeepSeek-V4-Flash-0731": "deepseek-v4-flash", "DeepSeek-V4-Pro-0813": "deepseek-v4-pro",
}  # fmt: skip
EAGLE_HEADS = {
    "vicuna-7b-v1.3": "eagle-vicuna-7b", "vicuna-13b-v1.3": "eagle-vicuna-13b", "vicuna-33b-v1.3": "eagle-vicuna-33b",
    "llama-2-70b": "eagle-llama-2-70b", "llama-3.1-8b": "eagle-llama-3.1-8b", "llama-3.3-70b": "eagle-llama-3.1-70b",
}  # fmt: skip
EAGLE3_HEADS = {
    "vicuna-13b-v1.3": "eagle3-vicuna-13b", "llama-3.1-8b": "eagle3-llama-3.1-8b",
    "llama-3.3-70b": "eagle3-llama-3.1-70b", "kimi-k2": "eagle3-kimi-k2",
}  # fmt: skip
MEDUSA_HEADS = {
    "vicuna-7b-v1.3": "medusa-vicuna-7b",
    "vicuna-13b-v1.3": "medusa-vicuna-13b",
    "vicuna-33b-v1.3": "medusa-vicuna-33b",
}
# One device type per name; a research stack that splits a model over several cards runs them in turn: degree 1.
BOARDS = {
    "1x RTX 3090": "rtx-3090", "RTX 3090": "rtx-3090", "1x A100": "a100-80g-sxm", "A100": "a100-80g-sxm",
    "4x A100-40G": "a100-80g-sxm", "H100": "h100-sxm", "4x H100": "h100-sxm", "8x H100": "h100-sxm", "8x L40": "l40",
    "8x A100": "a100-80g-sxm", "16x H200 decode": "h200-sxm", "8x MI325X": "mi325x", "GB200 TP4": "gb200-nvl72",
    "8x B300 TP8": "b300-sxm", "4x B300 TP4": "b300-sxm",
}  # fmt: skip
# Trees as the papers and their scripts state them: draft length (depth), drafted tokens.
EAGLE_TREE, MEDUSA_TREE, MEDUSA2_TREE, LOOKUP = (5, 25), (4, 63), (5, 63), (10, 10)
DYNAMIC_NODES = {"vicuna-7b-v1.3": 60, "llama-3.1-8b": 60, "vicuna-13b-v1.3": 50, "llama-3.3-70b": 48}
NO_KIND = {
    "Hydra": "heads that read one another: no kind of proposer",
    "retrieval (REST)": "retrieval from a data store: no kind of proposer",
    "Lookahead": "Jacobi iteration of the target: no kind of proposer",
}


def _drafting(proposer: str, target: str) -> tuple[str | None, int, int] | str:
    """Drafter, draft length and drafted tokens of a research stack, or why they are not known."""
    if proposer in NO_KIND:
        return NO_KIND[proposer]
    if proposer == "draft-model":
        return "the draft length changes from step to step (Hugging Face's schedule)"
    if proposer == "n-gram/prompt-lookup":
        return (None, *LOOKUP)
    if proposer in ("Medusa", "Medusa-2"):
        return (MEDUSA_HEADS[target], *(MEDUSA2_TREE if proposer == "Medusa-2" else MEDUSA_TREE))
    if proposer == "EAGLE":
        return (EAGLE_HEADS[target], *EAGLE_TREE)
    if proposer in ("EAGLE-2", "HASS"):
        return EAGLE_HEADS[target], 6, DYNAMIC_NODES[target]
    assert proposer == "EAGLE-3", proposer
    return EAGLE3_HEADS[target], 8, DYNAMIC_NODES[target]


def _research(row: dict[str, str]) -> Case | Left:
    source, number = row["source"], row["row"]
    if row["proposer"] in NO_KIND:
        return Left(source, number, NO_KIND[row["proposer"]])
    if not row["tau"]:
        return Left(source, number, "no acceptance length beside the speed-up")
    if row["hardware"] not in BOARDS:
        return Left(source, number, "two devices are named, not which of them ran the row")
    target = TARGETS[row["target_model"]]
    drafting = _drafting(row["proposer"], target)
    if isinstance(drafting, str):
        return Left(source, number, drafting)
    setting = Setting(BOARDS[row["hardware"]], target, *drafting, batch=1)
    return Case(source, number, RESEARCH, setting, float(row["speedup"]), float(row["tau"]))


def _sequoia(row: dict[str, str]) -> Case | Left:
    if "offload" in row["hardware"]:
        return Left(row["source"], row["row"], "weights are read from the host for every token: no such device here")
    length = int(float(row["draft_len"]))
    nodes = 40 if row["tree_size"] == "5x8" else int(row["tree_size"])
    setting = Setting("a100-80g-sxm", "llama-2-7b", "llama-68m", length, nodes, batch=1, context=256)
    return Case(row["source"], row["row"], RESEARCH, setting, float(row["speedup"]), float(row["tau"]))


def _engine(row: dict[str, str]) -> Case | Left:
    source, number = row["source"], row["row"]
    if not row["tau"]:
        return Left(source, number, "no acceptance length beside the speed-up")
    if row["hardware"] not in BOARDS:
        return Left(source, number, "no hardware is stated")
    target, board = TARGETS[row["target_model"]], BOARDS[row["hardware"]]
    length = int(float(row["draft_len"]))
    if source.startswith("SpecDecode-Bench"):  # the number of H100 is not stated: 4 are assumed
        depth, nodes = (6, 21) if row["tree_size"] else (length, length)
        setting = Setting(board, target, EAGLE3_HEADS[target], depth, nodes, batch=1, degree=4)
    elif source.startswith("LMSYS"):  # 2 requests on each of 16 devices, attention split by request
        setting = Setting(
            board, target, "mtp-deepseek-v3-r1", length, length, batch=32, context=65536 + 2048, degree=16,
            precision="fp8", data_parallel_attention=True,
        )  # fmt: skip
    else:
        assert source.startswith("AMD ROCm"), source
        setting = Setting(
            board, target, EAGLE3_HEADS[target], length, length, batch=40, context=CONTEXT, degree=8, precision="int4"
        )
    return Case(source, number, ENGINES, setting, float(row["speedup"]), float(row["tau"]))


ELSEWHERE = {
    "Chen et al.": "neither Chinchilla nor TPU v4 is in the catalog",
    "DeepSeek-V3 report": "no batch and no hardware is stated",
    "OWL": "neither model nor hardware is stated",
    "Gimlet": "partly modelled by its source",
    "TensorRT-LLM": "no draft length beside the speed-up",
    "SGLang docs": "neither draft length nor acceptance length beside the speed-up",
}
RESEARCH_SOURCES = ("Spec-Bench", "EAGLE, Table 1", "EAGLE-3, Table 1", "Medusa")


@cache
def acceptance_rows() -> tuple[Case | Left, ...]:
    """Every row of acceptance.csv that states a speed-up."""
    found: list[Case | Left] = []
    with (FACTS / "acceptance.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not row["speedup"]:
                continue
            source = row["source"]
            reason = next((why for name, why in ELSEWHERE.items() if source.startswith(name)), None)
            if reason is not None:
                found.append(Left(source, row["row"], reason))
            elif source.startswith("Sequoia"):
                found.append(_sequoia(row))
            elif source.startswith(RESEARCH_SOURCES):
                found.append(_research(row))
            else:
                found.append(_engine(row))
    return tuple(found)


# --------------------------------------------------------------------------------------------------- batch scaling

SCALING_ELSEWHERE = {
    "EAGLE Table 7": "no hardware is stated",
    "Meta": "neither model nor hardware is stated",
    "Clover": "neither model nor hardware is stated",
    "Cohere": "neither model nor hardware is stated",
    "Su et al.": "neither model nor hardware is stated",
    "DSpark Fig. 8": "a draft budget, no speed-up",
    "SGLang issue": "no hardware is stated, and the model is not in the catalog",
    "TensorRT-LLM": "no draft length beside the speed-up",
}
SPECDECODE_RATIOS = {
    "drafter forward / target forward (8B EAGLE)": Setting("h100-sxm", "llama-3.1-8b", "eagle-llama-3.1-8b", 1, 1, 1),
    "drafter forward / target forward (70B EAGLE)": Setting(
        "h100-sxm", "llama-3.3-70b", "eagle-llama-3.1-70b", 1, 1, 1, degree=4
    ),
}
MEASURES = {"T_autoregressive": "decode", "T_verify": "verify", "T_draft_total (gamma steps)": "draft"}


def _magicdec(rows: list[dict[str, str]]) -> Iterator[Case | Left]:
    """One table line: times of the three passes, tokens per step, speed-up."""
    values = {row["metric"]: float(row["value"]) for row in rows}
    row = rows[0]
    source, degree = row["source"], int(row["hardware"].partition("x")[0])
    length, batch, context = int(row["draft_len"]), int(row["batch"]), int(row["context"])
    target = TARGETS[row["target_model"]]
    drafter = "llama-3.2-1b" if row["draft"].startswith("Llama-3.2-1B") else target
    budget = int(float(row["kv_budget"])) if row["kv_budget"] else None
    label = " ".join(f"{row['draft']}, context {context} {row['task']}".split())
    setting = Setting(
        BOARDS[row["hardware"]], target, drafter, length, length, batch, context, degree, draft_context=budget
    )
    for metric, name in MEASURES.items():
        if name == "draft" and budget is None:
            yield Left(source, f"{label}: draft", "the KV budget of the draft is not stated")
        else:
            yield Case(source, f"{label}: {name}", STEPS, setting, values[metric])
    if budget is None:
        yield Left(source, f"{label}: speed-up", "the KV budget of the draft is not stated")
    else:
        yield Case(source, label, MAGICDEC, setting, values["speedup"], values["Omega expected tokens/step"])


def _curve(rows: list[dict[str, str]], settings: Iterable[Setting], speedups: Iterable[float]) -> Iterator[Case]:
    points = list(zip(rows, settings, speedups, strict=True))
    _, first, measured = points[0]
    for row, setting, value in points[1:]:
        label = f"{row['proposer']}, D={row['draft_len']}, b{row['batch']}"
        yield Case(row["source"], label, CURVES, setting, value, anchor=(first, measured))


def _batch_curve(rows: list[dict[str, str]]) -> Iterator[Case]:
    """Speed-ups at growing batches, one curve per proposer and target."""
    row = rows[0]
    target, length = TARGETS[row["target_model"]], int(row["draft_len"])
    heads = EAGLE3_HEADS if "3" in row["proposer"] else EAGLE_HEADS
    degree, precision = {
        "1x RTX 3090": (1, "bf16"), "H100": (4 if "70B" in row["target_model"] else 1, "bf16"), "GB200 TP4": (4, "fp4"),
    }[row["hardware"]]  # fmt: skip
    base = Setting(
        BOARDS[row["hardware"]], target, heads[target], length, length, 1, degree=degree, precision=precision
    )  # type: ignore[arg-type]
    settings = [replace(base, batch=int(row["batch"])) for row in rows]
    return _curve(rows, settings, [float(row["value"]) for row in rows])


def _dspark_curves(rows: list[dict[str, str]]) -> Iterator[Case | Left]:
    """Per-user throughput over batch, by draft length; the speed-up is over draft length 0."""
    users = [row for row in rows if row["metric"] == "per-user throughput"]
    plain = {row["batch"]: float(row["value"]) for row in users if row["draft_len"] == "0"}
    for length in dict.fromkeys(row["draft_len"] for row in users):
        line = [row for row in users if row["draft_len"] == length]
        if length == "0":
            continue
        if not length.isdigit():
            yield from (Left(r["source"], f"{length}, b{r['batch']}", "the draft length changes by load") for r in line)
            continue
        settings = [
            Setting(
                "b300-sxm", "deepseek-v4-pro", "dspark-deepseek-v4-pro", int(length), int(length), int(row["batch"]),
                entries_read(1024, 1024), 8, "fp4",
            )
            for row in line
        ]  # fmt: skip
        yield from _curve(line, settings, [float(row["value"]) / plain[row["batch"]] for row in line])


def _break_even(rows: list[dict[str, str]], drafts: dict[int, float]) -> Iterator[Case]:
    for row in rows:
        batch, length = int(row["batch"]), int(row["draft_len"])
        setting = Setting(
            "b300-sxm", "deepseek-v4-flash", None, length, length, batch,
            entries_read(int(row["context"]), 512), 4, "fp4",
            draft_time_s=1e-3 * drafts[batch],
        )  # fmt: skip
        yield Case(row["source"], f"D={length}, b{batch}", BREAK_EVEN, setting, float(row["value"]))


@cache
def scaling_rows() -> tuple[Case | Left, ...]:
    """Every speed-up, break-even and MagicDec step time of batch_scaling.csv."""
    with (FACTS / "batch_scaling.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found: list[Case | Left] = []
    lines: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        keys = ("source", "target_model", "draft", "task", "context", "batch", "draft_len", "hardware")
        if row["source"].startswith("MagicDec"):
            lines.setdefault(tuple(row[key] for key in keys), []).append(row)
    for line in lines.values():
        found += _magicdec(line)
    curves: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        reason = next((why for name, why in SCALING_ELSEWHERE.items() if row["source"].startswith(name)), None)
        if reason is not None:
            found.append(Left(row["source"], f"{row['target_model']} b{row['batch']}", reason))
        elif row["metric"] in SPECDECODE_RATIOS:
            setting, value = SPECDECODE_RATIOS[row["metric"]], float(row["value"])
            found.append(Case(row["source"], row["metric"].rpartition("(")[2].rstrip(")"), RATIO, setting, value))
        elif row["metric"].startswith("speedup loss"):
            found.append(Left(row["source"], row["metric"], "a loss between two batches, without the draft length"))
        elif "speedup" in row["metric"] and row["batch"] and not row["source"].startswith("MagicDec"):
            curves.setdefault((row["source"], row["proposer"], row["target_model"]), []).append(row)
    for curve in curves.values():
        found += _batch_curve(curve)
    found += _dspark_curves([row for row in rows if "Fig. 3" in row["source"]])
    drafts = {int(row["batch"]): float(row["value"]) for row in rows if row["metric"].startswith("draft step latency")}
    found += _break_even([row for row in rows if row["metric"].startswith("break-even")], drafts)
    return tuple(found)


# ----------------------------------------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class Errors:
    """How far a group of predictions is off."""

    count: int
    median: float
    p90: float
    bias: float


def errors_of(cases: Iterable[Case]) -> Errors:
    found = [error(case) for case in cases]
    absolute = np.abs(found)
    return Errors(len(found), float(np.median(absolute)), float(np.quantile(absolute, 0.9)), statistics.median(found))


def all_rows() -> tuple[Case | Left, ...]:
    return (*acceptance_rows(), *scaling_rows())


def cases_of(group: str) -> list[Case]:
    return [row for row in all_rows() if isinstance(row, Case) and row.group == group]


def named(source: str) -> str:
    """Name a source without what stands in brackets, and a thread by its number alone.

    >>> named("SpecDecode-Bench (tree vs chain)")
    'SpecDecode-Bench'
    """
    return source.partition(" (")[0].replace("issue/PR ", "#")


def shown(name: str, errors: Errors) -> str:
    return f"| {name} | {errors.count} | {errors.median:.1%} | {errors.p90:.1%} | {errors.bias:+.1%} |"


def summary_lines() -> list[str]:
    """The summary: one line per group, then one per source within it."""
    own = [case for group in (ENGINES, MAGICDEC, RESEARCH) for case in cases_of(group)]
    lines = [shown("**all speed-ups with E of their own**", errors_of(own))]
    for group in GROUPS:
        lines.append(shown(f"**{group}**", errors_of(cases_of(group))))
        sources = dict.fromkeys(named(case.source) for case in cases_of(group))
        if len(sources) > 1:
            lines += [shown(s, errors_of(c for c in cases_of(group) if named(c.source) == s)) for s in sources]
    return lines


def row_lines(group: str) -> list[str]:
    lines = []
    for case in cases_of(group):
        s = case.setting
        drafted = f"{s.draft_length}" if s.nodes == s.draft_length else f"{s.draft_length} ({s.nodes})"
        tokens = "–" if case.tokens_per_step is None else f"{case.tokens_per_step:g}"
        cells = (
            f"{named(case.source)}: {case.row}",
            s.target,
            s.drafter or "–",
            drafted,
            str(s.batch),
            f"{s.degree} × {s.device}",
            tokens,
            f"{case.measured:.3g}",
            f"{predicted(case):.3g}",
            f"{error(case):+.0%}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def left_lines() -> list[str]:
    counts = Counter((named(row.source), row.reason) for row in all_rows() if isinstance(row, Left))
    return [f"| {source} | {count} | {reason} |" for (source, reason), count in counts.items()]


def draw(path: Path) -> None:
    """Draw predicted against measured speed-ups; needs matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 6.0), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="measured speed-up", ylabel="predicted speed-up")
    for group, marker in zip((RESEARCH, ENGINES, CURVES, MAGICDEC), "os^x", strict=True):
        found = cases_of(group)
        axes.plot([c.measured for c in found], [predicted(c) for c in found], marker, ms=5, alpha=0.7, label=group)
    ends = (0.6, 7.0)
    for factor, style in ((1.0, "-"), (1.25, ":"), (0.8, ":")):
        axes.plot(ends, [factor * end for end in ends], style, color="0.4", lw=0.8)
    ticks = (0.7, 1, 1.5, 2, 3, 4, 6)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    for target in sys.argv[1:]:
        draw(Path(target))
    print("\n".join(summary_lines()))
    for name in GROUPS:
        print(f"\n{name}\n" + "\n".join(row_lines(name)))
    print("\n" + "\n".join(left_lines()))

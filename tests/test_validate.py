"""The validator: its reader, its layouts, its arithmetic, and the targets on the public measurements."""

from __future__ import annotations

import builtins
import json
from pathlib import Path

import pytest
from hardware_examples import ROOT, catalog

from planner.errors import InputError
from planner.read.measurements import measurements, read_measurements
from planner.report.figure import figure
from planner.schema.validation import METRICS, Measurement
from planner.validate import as_json, points, predict, validate
from planner.validate.predict import precision_named
from planner.validate.summary import error_summary, measured_value, ordering

FACTS = ROOT.parent / "shared" / "facts"
HEADER = "device,n_devices,model,precision,isl,osl,concurrency,ttft_ms,tpot_ms,out_tok_s,power_w,j_per_out_tok"
# InferenceX dump 2026-03/04 (first two) and ML.ENERGY leaderboard v3 (last): typed here with their sources' values.
ROWS = """
h100-sxm,2,qwen3-32b,,1024,1024,32,237,20.06,,,
h200-sxm,4,llama-3.1-70b,fp8,1024,8192,64,282,13.70,,,
h100-sxm,1,qwen3-14b,bfloat16,300,620,7.99,,12.536,627.41,443.0,0.70609
""".strip()


def _row(**fields) -> Measurement:
    plain = {"device": "h100-sxm", "model": "llama-3.1-8b", "n_devices": 1.0, "isl": 1000.0, "osl": 500.0}
    return Measurement.model_validate({"index": 0, "concurrency": 8.0, **plain, **fields})


def _write(path: Path, text: str) -> Path:
    file = path / "rows.csv"
    file.write_text(text, encoding="utf-8")
    return file


# ------------------------------------------------------------------------------------------------------ reader


def test_reads_missing_cells_and_ignores_further_columns(tmp_path: Path) -> None:
    rows = read_measurements(_write(tmp_path, f"colour,{HEADER}\nred,{ROWS.splitlines()[0]}\n"))
    assert rows[0].device == "h100-sxm"
    assert (rows[0].tpot_ms, rows[0].power_w, rows[0].n_devices) == (20.06, None, 2.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "rows.csv: the file is empty"),
        (f"{HEADER}\n", "no rows below the header"),
        ("model,tpot_ms\nx,1\n", "column 'device' is missing"),
        ("device,model\na,b\n", "no measured column"),
        ("device,model,tpot_ms,tpot_ms\na,b,1,2\n", "column 'tpot_ms' appears twice"),
        ("device,model,tpot_ms\na,b,fast\n", "rows.csv:2: tpot_ms: 'fast' is not a number"),
        ("device,model,tpot_ms\na,b,1\na,b,-1\n", "rows.csv:3: tpot_ms: -1 is out of range"),
        ("device,model,tpot_ms\na,b,nan\n", "nan is out of range"),
        ("device,model,tpot_ms\na,b,inf\n", "inf is out of range"),
        ("device,model,tpot_ms\n,b,1\n", "rows.csv:2: device is empty"),
        ("device,model,tpot_ms\na,b\n", "another number of cells"),
        ("device,model,tpot_ms\na,b,1,2\n", "another number of cells"),
        ('device,model,tpot_ms\n"a,b,1\n', "not a CSV file"),
    ],
)
def test_bad_files_say_where_and_what(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_measurements(_write(tmp_path, text))
    assert message in str(caught.value)


def test_all_problems_at_once_but_not_without_end(tmp_path: Path) -> None:
    file = _write(tmp_path, "device,model,tpot_ms\n" + "a,b,x\n" * 100)
    with pytest.raises(InputError) as caught:
        read_measurements(file)
    assert len(caught.value.problems) == 21


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_measurements(tmp_path / "missing.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        read_measurements(tmp_path / "binary.csv")


# -------------------------------------------------------------------------------------------------- prediction


def test_prediction_has_every_column() -> None:
    predicted = predict(_row(), catalog()).predicted
    assert set(predicted) == set(METRICS)
    assert predicted["j_per_out_tok"] == pytest.approx(predicted["power_w"] / predicted["out_tok_s"])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"device": "h100"}, "there is no device 'h100' (nearest: h100-sxm"),
        ({"model": "llama-3.1-9b"}, "there is no model 'llama-3.1-9b'"),
        ({"precision": "fp7"}, "there is no precision 'fp7'"),
        ({"isl": None}, "isl missing"),
        ({"n_devices": None}, "n_devices is missing"),
        ({"n_devices": 1.5}, "not a whole number"),
        ({"concurrency": 0.0}, "concurrency must be above 0"),
        ({"model": "llama-3.1-405b"}, "do not fit into 1 device"),
        ({"device": "l40s", "n_devices": 2.0}, "no tensor-parallel link"),
        ({"device": "gb200-nvl72", "n_devices": 28.0, "model": "qwen3-32b"}, "do not divide the 64 attention heads"),
        ({"device": "groq-lp30", "precision": "fp8"}, "states no data_sheet.tdp_w"),
    ],
)
def test_rows_that_cannot_be_predicted_say_why(fields, reason: str) -> None:
    prediction = predict(_row(**fields), catalog())
    assert prediction.predicted == {}
    assert reason in str(prediction.reason)


def test_aliases_share_a_shape() -> None:
    rows = [_row(model=name, n_devices=8.0, precision="fp8") for name in ("deepseek-v3-r1", "deepseek-r1")]
    assert predict(rows[0], catalog()).predicted == predict(rows[1], catalog()).predicted


def test_devices_beyond_the_link_are_further_replicas() -> None:
    one, two = (predict(_row(n_devices=8.0 * n, concurrency=16.0 * n), catalog()).predicted for n in (1, 2))
    assert two["tpot_ms"] == pytest.approx(one["tpot_ms"])
    assert two["out_tok_s"] == pytest.approx(2 * one["out_tok_s"])
    assert two["power_w"] == pytest.approx(2 * one["power_w"])


def test_dumps_that_multiply_degrees_count_devices_once() -> None:
    fields = {"model": "deepseek-v3-r1", "precision": "fp8", "device": "h200-sxm", "concurrency": 16.0}
    once = predict(_row(n_devices=8.0, **fields), catalog()).predicted
    assert predict(_row(n_devices=64.0, expert_parallel=8.0, **fields), catalog()).predicted == once


def test_an_unlimited_load_takes_the_layout_with_most_tokens() -> None:
    free = predict(_row(n_devices=8.0, concurrency=None), catalog())
    stated = predict(_row(n_devices=8.0, concurrency=None, parallelism="TP8"), catalog())
    assert free.predicted["out_tok_s"] >= stated.predicted["out_tok_s"]
    assert "concurrency: as many as fit (assumed)" in free.assumed


def test_what_is_assumed_is_said() -> None:
    assumed = predict(_row(device="mi300x", precision="", model="gemma-3-12b-it"), catalog()).assumed
    assert "precision bf16 (assumed)" in assumed
    assert "models.gemma-3-12b-it.shape (recalled)" in assumed
    assert "data_sheet.kernels.bf16.stream_fraction (assumed)" in assumed


def test_precisions_as_sources_write_them() -> None:
    assert [precision_named(word) for word in ("bfloat16", "mxfp4, fp8 KV", "NVFP4", "")] == [
        "bf16",
        "fp4",
        "fp4",
        "bf16",
    ]


# ----------------------------------------------------------------------------------------------------- summary


def test_error_summary_by_hand() -> None:
    summary = error_summary([0.10, -0.20, 0.30, -0.40, 0.50])
    assert (summary.count, summary.median_abs_error, summary.bias) == (5, 0.30, 0.10)
    assert summary.p90_abs_error == pytest.approx(0.46)


def test_ordering_counts_pairs_under_one_load() -> None:
    rows = [(_row(device=name), measured, predicted) for name, measured, predicted in
            (("h100-sxm", 10.0, 11.0), ("h200-sxm", 8.0, 9.0), ("b200-sxm", 6.0, 10.0))]  # fmt: skip
    other = (_row(device="a100-80g-sxm", concurrency=99.0), 1.0, 100.0)
    result = ordering([*rows, other])
    assert (result.pairs, result.agreeing) == (3, 2)
    assert ordering([other]).share is None


def test_measured_values() -> None:
    assert measured_value(_row(n_devices=4.0, out_tok_s_per_device=10.0), "out_tok_s") == 40.0
    assert measured_value(_row(n_devices=None, parallelism="DEP4", out_tok_s_per_device=10.0), "out_tok_s") == 40.0
    assert measured_value(_row(power_w=900.0, power_scope="wall, whole server"), "power_w") is None
    assert measured_value(_row(power_w=900.0, power_scope="GPU boards only"), "power_w") == 900.0


def test_json_document() -> None:
    rows = measurements([dict(zip(HEADER.split(","), line.split(","), strict=True)) for line in ROWS.splitlines()])
    bad = _row(device="nothing").replace(index=3)
    document = json.loads(json.dumps(as_json(validate([*rows, bad], catalog()))))
    assert [row["index"] for row in document["rows"]] == [0, 1, 2, 3]
    assert set(document["rows"][0]["predicted"]) == set(METRICS)
    assert document["rows"][0]["reason"] is None
    assert document["rows"][3]["predicted"] == {}
    assert "no device" in document["rows"][3]["reason"]
    assert document["summary"]["tpot_ms"]["all"]["count"] == 3
    assert set(document["summary"]["tpot_ms"]["by_device"]) == {"h100-sxm", "h200-sxm"}
    assert document["summary"]["unpredictable"] == 1


def test_published_rows_within_bands() -> None:
    rows = measurements([dict(zip(HEADER.split(","), line.split(","), strict=True)) for line in ROWS.splitlines()])
    summary = validate(rows, catalog()).metrics
    assert summary["tpot_ms"].all.p90_abs_error < 0.25
    assert summary["power_w"].all.median_abs_error < 0.20
    assert summary["j_per_out_tok"].all.median_abs_error < 0.30


def drawn_of(rows):
    result = validate(rows, catalog())
    return figure(points(rows, result), result)


def test_figure_has_a_panel_per_metric() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is an optional extra")
    rows = [_row(tpot_ms=9.0, power_w=500.0), _row(tpot_ms=12.0, concurrency=64.0).replace(index=1)]
    drawn = drawn_of(rows)
    assert [axes.get_title().split(":")[0] for axes in drawn.axes] == ["TPOT [ms]", "board power [W]"]
    with pytest.raises(InputError, match="nothing to draw"):
        drawn_of([_row()])


def test_figure_without_matplotlib_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(InputError, match="pip install"):
        drawn_of([_row(tpot_ms=9.0)])


# ------------------------------------------------------------------------------------------- all public rows

needs_facts = pytest.mark.skipif(not FACTS.is_dir(), reason=f"the public measurements are not at {FACTS}")
SERVED = ("h100-sxm", "h200-sxm", "b200-sxm")


def _is_mixture(row: Measurement) -> bool:
    models = catalog().models
    model = next(m for name, m in models.items() if row.model == name or row.model in m.shape.aliases)
    return model.shape.experts is not None


@pytest.fixture(scope="module")
def served_rows() -> list[Measurement]:
    """Serving rows and ML.ENERGY rows of the three boards, up to 64 concurrent requests."""
    energy = [row for row in read_measurements(FACTS / "measured_points.csv") if "NVML" in row.power_scope]
    rows = [*read_measurements(FACTS / "serving_points.csv"), *energy]
    return [row for row in rows if row.device in SERVED and 0 < (row.concurrency or 0) <= 64]


@needs_facts
@pytest.mark.parametrize(
    ("mixture", "metric", "median", "p90"),
    [
        (False, "tpot_ms", 0.10, 0.30),
        (True, "tpot_ms", 0.20, 0.60),
        (False, "ttft_ms", 0.30, 0.60),
        (True, "ttft_ms", 0.30, 1.10),
        (False, "power_w", 0.12, 0.30),
        (True, "power_w", 0.12, 0.35),
        (False, "j_per_out_tok", 0.20, 0.35),
        (True, "j_per_out_tok", 0.20, 0.60),
    ],
)
def test_targets_on_public_rows(served_rows, mixture: bool, metric: str, median: float, p90: float) -> None:
    rows = [row for row in served_rows if _is_mixture(row) == mixture]
    summary = validate(rows, catalog()).metrics[metric].all
    assert summary.count >= 60
    assert summary.median_abs_error <= median
    assert summary.p90_abs_error <= p90


@needs_facts
def test_devices_keep_their_order(served_rows) -> None:
    result = validate(served_rows, catalog()).ordering
    assert result.pairs >= 100
    assert result.share >= 0.90


@needs_facts
def test_throughput_of_tensorrt_llm() -> None:
    rows = [
        row for row in read_measurements(FACTS / "measured_points.csv") if row.framework == "trtllm" and row.parallelism
    ]
    summary = validate(rows, catalog()).metrics["out_tok_s"].all
    assert summary.count >= 50
    assert summary.median_abs_error <= 0.15

"""The report as files: one page that needs nothing else, Markdown, numbers, pictures; names are never markup."""

import html
import json
import re
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pytest
from commands import run
from markdown_it import MarkdownIt

from planner.cli import EXIT_BAD_INPUT, EXIT_INFEASIBLE
from planner.read.load import read_scenario
from planner.report import draw, page, vega
from planner.report.chart_front import plan_energy
from planner.report.chart_ways import STYLES
from planner.report.sections import report_of
from planner.review.curves import Commands
from planner.review.recipe import review

ROOT = Path(__file__).resolve().parents[1]
MAIN_JOB = ["--budget-kw", "50", "--min-tps", "100"]
EVIL = "<script>alert('&')</script> *bold* | `code`"


@cache
def main_report():
    scenario = read_scenario("reference").scenario
    workload = scenario.workloads["reference"]
    limits = workload.limits.replace(interactivity_floor_tps=100.0)
    asked = scenario.replace(
        workloads={"reference": workload.replace(limits=limits)},
        limits=scenario.limits.replace(power_budget_kw=50.0),
        description=EVIL,
    )
    found = review(asked, Commands("reference"))
    return report_of(asked, found), found


@cache
def main_page():
    report, _ = main_report()
    return page.html(report, page.drawings_of(report))


def written(folder, *arguments):
    code = run(["report", *arguments, "--output", str(folder)])
    return code, {str(path.relative_to(folder)): path for path in folder.rglob("*.*")}


# -------------------------------------------------------------------------------------------------------- files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return written(tmp_path_factory.mktemp("report"), *MAIN_JOB)


def test_a_report_is_four_kinds_of_files(files):
    code, found = files
    assert code == 0
    assert {"report.html", "report.md", "points.csv"} <= set(found)
    pictures = [name for name in found if name.startswith("figures/")]
    assert len(pictures) == 11
    for name in pictures:
        assert ET.fromstring(found[name].read_text(encoding="utf-8")).tag.endswith("svg")


def test_the_page_needs_nothing_else(files):
    text = files[1]["report.html"].read_text(encoding="utf-8")
    outside = re.findall(r'(?:src|href)="([^"#][^"]*)"', text)
    assert outside == [], "no file, no font, no script from elsewhere"
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "@import" not in text
    assert "url(" not in text


def test_markdown_shows_the_figures_beside_it(files):
    text = files[1]["report.md"].read_text(encoding="utf-8")
    rendered = MarkdownIt("commonmark").enable("table").render(text)
    shown = re.findall(r'<img src="([^"]+)"', rendered)
    assert sorted(shown) == sorted(name for name in files[1] if name.startswith("figures/"))
    assert "<code>plan report --scenario reference --budget-kw 50" in rendered


def test_figures_as_pictures(tmp_path):
    code, found = written(tmp_path, "--image", "png")
    assert code == 0
    pictures = [path for name, path in found.items() if name.startswith("figures/")]
    assert len(pictures) == 10
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert "figures/front.png" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_the_review_as_one_document(tmp_path, capsys):
    assert run(["report", *MAIN_JOB, "--json", "--output", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["plan"]["status"] == "optimal"
    assert len(document["front"]["points"]) == len(document["front_commands"]) == 13


def test_an_infeasible_question_has_a_report_too(tmp_path, capsys):
    code, found = written(tmp_path, "--budget-kw", "50", "--min-tps", "200")
    assert code == EXIT_INFEASIBLE
    assert "no design exceeds 136.2 tok/s" in found["report.html"].read_text(encoding="utf-8")
    assert "figures/front.svg" in found
    assert "figures/power.svg" not in found
    assert "No plan meets the interactivity floor." in capsys.readouterr().out


def test_without_the_extra_it_says_what_is_missing(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    assert run(["report", "--output", str(tmp_path / "r")]) == EXIT_BAD_INPUT
    assert "pip install 'phaseplan[report]'" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


# ------------------------------------------------------------------------------------------------ an earlier plan


def test_a_report_from_an_earlier_plan_is_the_same(tmp_path, files, capsys):
    assert run([*MAIN_JOB, "--output", str(tmp_path)]) == 0
    assert run(["report", "--from", str(tmp_path)]) == 0
    assert (tmp_path / "points.csv").read_text("utf-8") == files[1]["points.csv"].read_text("utf-8")
    assert "plan --scenario reference --budget-kw 50 --min-tps 100 --output" in (tmp_path / "report.html").read_text(
        encoding="utf-8"
    )
    capsys.readouterr()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda plan: None, "there is no plan.json"),
        (lambda plan: "{", "it is no plan document"),
        (lambda plan: {**plan, "scenario": 5}, "it is no plan document"),
        (lambda plan: {**plan, "provenance": {**plan["provenance"], "command": None}}, "names no command"),
        (
            lambda plan: {**plan, "provenance": {**plan["provenance"], "command": "plan --bugdet-kw 5"}},
            "not understood",
        ),
        (
            lambda plan: {**plan, "provenance": {**plan["provenance"], "command": "plan --budget-kw 40 --min-tps 100"}},
            "has changed since",
        ),
        (
            lambda plan: {**plan, "provenance": {**plan["provenance"], "catalogs": {"catalogs/reference.yaml": "0"}}},
            "has changed since",
        ),
    ],
)
def test_a_folder_without_a_good_plan_is_refused(tmp_path, capsys, spoil, message):
    assert run([*MAIN_JOB, "--output", str(tmp_path)]) == 0
    path = tmp_path / "plan.json"
    content = spoil(json.loads(path.read_text(encoding="utf-8")))
    path.unlink()
    if content is not None:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    capsys.readouterr()
    assert run(["report", "--from", str(tmp_path)]) == EXIT_BAD_INPUT
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "report.html").exists()


# ------------------------------------------------------------------------------------------------------ the page


def test_what_a_catalog_says_is_never_markup():
    text = main_page()
    assert EVIL not in text
    assert html.escape(EVIL, quote=True).replace("&#x27;", "&#39;") in text
    report, _ = main_report()
    assert "<script>" not in MarkdownIt("commonmark").enable("table").render(page.markdown(report, ".svg"))


def test_names_in_a_drawing_are_escaped():
    rows = [{"x": 1, "y": 2, "name": '<b>&"x"</b>', "hover": "<script>1</script>\n& more"}]
    encoding = {
        "x": vega.quantity("x", "<i>x</i>"),
        "y": vega.quantity("y", "y"),
        "color": {"field": "name", "type": "nominal"},
        "description": {"field": "hover"},
    }
    chart = vega.Chart("a", "A", "", lambda width: vega.spec_of(width, 100, [vega.layer("point", rows, encoding)]))
    drawing = draw.svg(chart)
    assert not re.search(r"<(b|i|script)\b", drawing)
    labels = [node.get("aria-label") for node in ET.fromstring(drawing).iter() if node.get("aria-label")]
    assert "<script>1</script>\n& more" in labels


def test_every_section_of_a_review_is_there():
    report, _ = main_report()
    assert [section.title for section in report.sections] == [
        "The answer",
        "What is possible",
        "What binds, and what more would buy",
        "Fleet and power",
        "Over the draft length",
        "Roofline",
        "Assumptions in force",
        "Sources",
        "Numbers and their confidence",
        "Reproduce",
    ]


def test_every_axis_has_a_unit():
    """In square brackets; what counts tokens says which."""
    report, _ = main_report()
    for chart in report.charts:
        titles = [
            part["title"]
            for layer in chart.draw(430)["layer"]
            for key, part in layer["encoding"].items()
            if key in ("x", "y") and part.get("title")
        ]
        assert titles
        for title in titles:
            assert re.search(r"\[.+\]|tokens per pass", title), (chart.name, title)
        if chart.name in ("front", "interactivity", "throughput-per-kw", "tokens-per-step", "draft-speed"):
            assert any("output token" in title for title in titles), chart.name


def test_every_number_drawn_says_what_it_is():
    report, found = main_report()
    drawings = page.drawings_of(report)
    for chart in report.charts:
        for drawing in (drawings[chart.name].wide, drawings[chart.name].narrow):
            labels = re.findall(r'aria-label="([^"]*&#xA;[^"]*)"', drawing)
            assert len(labels) >= 1, chart.name
    front = re.findall(r'aria-label="([^"]*&#xA;[^"]*)"', drawings["front"].wide)
    for point in found.front.points:
        assert any(f"draft length {point.deployment.draft_length} by drafter" in label for label in front)
    assert any(label.startswith("the plan") for label in front)
    assert any(label.startswith("knee") for label in front)
    assert any("target verify: gpu," in label and "replicas" in label for label in front)


def test_colours_are_told_apart_and_have_a_dark_twin():
    """Neighbouring ways differ in pattern, shape or width too; every colour of a figure is mapped for the dark."""
    looks = [style[1:] for style in STYLES.values()]
    assert len({str(look) for look in looks}) == len(looks)
    report, _ = main_report()
    used = set()
    for drawing in page.drawings_of(report).values():
        used |= set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6}|black|white)"', drawing.wide))
    assert used - set(page.DARK) <= {vega.AMBER}
    assert len(used) > 6


def test_the_plan_stands_where_its_numbers_say():
    report, found = main_report()
    tps, energy = plan_energy(found)
    (deployment,) = found.plan.deployments
    assert tps == deployment.metrics.interactivity_tps
    assert energy == pytest.approx(found.plan.totals.power_w.forward / found.plan.totals.throughput_tps)
    (front,) = [chart for chart in report.charts if chart.name == "front"]
    marks = [
        row for layer in front.draw(800)["layer"] for row in layer["data"]["values"] if row.get("text") == "the plan"
    ]
    assert {(row["tps"], row["energy"]) for row in marks} == {(tps, energy)}

"""What a person reads: numbers, sentences, tables, on the terminal and as Markdown."""

import html
import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from planner.read.load import read_scenario
from planner.report import markdown, sentences, terminal
from planner.report.numbers import figure, in_unit, percent, signed
from planner.report.tables import Table
from planner.report.views import View, evaluation_view, plan_view
from planner.schema import documents as doc
from planner.solve import solve

WORDS = st.text("ab1. \n-+=)(#*_`[]<>|\\~&!:'\"é·", max_size=30)
TRICKY = ("- a", "+ a", "1. a", "2) a", "---", "===", "# a", "> a", "a | b", "*a*", "~~a~~", "&amp;", "<b>", "[a](b)")


@cache
def asked(**limits):
    scenario = read_scenario("reference").scenario
    floor = limits.pop("floor", None)
    workload = scenario.workloads["reference"]
    workload = workload.replace(limits=workload.limits.replace(interactivity_floor_tps=floor))
    return scenario.replace(limits=scenario.limits.replace(**limits), workloads={"reference": workload})


@cache
def optimal():
    return solve(asked(power_budget_kw=50.0, floor=100.0))


@cache
def infeasible():
    return solve(asked(power_budget_kw=50.0, floor=200.0))


def feasible():
    """The optimal plan as if the time had run out 2 % before the bound."""
    goal = optimal().objective
    found = goal.replace(best_bound=goal.value * 1.02, gap=0.02)
    unsolved = [row.replace(binding=None, marginal_value=None, marginal_delta=None) for row in optimal().limits]
    return optimal().replace(status="feasible", objective=found, baselines=(), limits=tuple(unsolved))


def no_incumbent():
    return infeasible().replace(status="no_incumbent", infeasibility=())


PLANS = {"optimal": optimal, "feasible": feasible, "infeasible": infeasible, "no_incumbent": no_incumbent}

# ------------------------------------------------------------------------------------------------- numbers


def value_of(text):
    return float(text.replace(",", ""))


@given(st.floats(1e-4, 1e9, exclude_max=True), st.sampled_from([1, -1]))
def test_a_figure_keeps_four_significant_digits_without_an_exponent(value, sign):
    text = figure(sign * value)
    assert "e" not in text
    assert value_of(text) == pytest.approx(sign * value, rel=5.0001e-4)


@given(st.floats(1e-300, 1e300))
def test_a_figure_of_any_size_keeps_four_significant_digits(value):
    assert value_of(figure(value)) == pytest.approx(value, rel=5.0001e-4)


@given(st.floats(1e-4, 1e8))
def test_a_figure_has_no_digits_to_spare(value):
    """At most four significant digits behind whole thousands, and no zeros at the end of a fraction."""
    text = figure(value)
    assert not (("." in text) and text.endswith(("0", ".")))
    if "." in text:
        assert len(text.replace(".", "").replace(",", "").lstrip("0")) <= 4


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (-0.0, "0"), (None, "–"), (999.96, "1,000"), (0.00012345, "0.0001234"), (999_999_999.4, "999,999,999")],
)
def test_a_figure_at_its_edges(value, text):
    assert figure(value) == text


def test_units_are_those_that_people_use():
    assert in_unit(61_400.0, "W") == "61.4 kW"
    assert in_unit(0.2125, "s") == "212.5 ms"
    assert in_unit(32.6, "request/s") == "32.6 requests/s"
    assert (in_unit(1.0, "device"), signed(1.0, "device"), in_unit(0.0, "device")) == (
        "1 device",
        "+1 device",
        "0 devices",
    )
    assert in_unit(None, "W") == "–"
    assert signed(-0.0019, "s") == "−1.9 ms"
    assert percent(0.05841) == "5.8 %"


# ------------------------------------------------------------------------------------------------ markdown


def text_in(rendered):
    return html.unescape(re.sub(r"<[^>]+>", "", rendered)).strip()


def parser():
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


@given(WORDS)
def test_markdown_shows_the_text_that_was_escaped(text):
    rendered = parser().render(markdown.escape(text))
    assert text_in(rendered) == " ".join(text.split())
    assert set(re.findall(r"<[^>]+>", rendered)) <= {"<p>", "</p>"}, "nothing is taken for markup"


@pytest.mark.parametrize("text", TRICKY)
def test_markdown_takes_nothing_for_markup(text):
    assert parser().render(markdown.escape(text)) == f"<p>{html.escape(text)}</p>\n"


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4))
def test_a_markdown_table_keeps_its_cells(rows):
    table = Table("Any", ("left", "right"), tuple(rows))
    rendered = parser().render(markdown.render(View("Title", [], [table])))
    cells = [text_in(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", rendered, re.DOTALL)]
    assert cells == [" ".join(cell.split()) for row in rows for cell in row]


@pytest.mark.parametrize("name", PLANS)
def test_a_view_as_markdown_holds_every_table_sentence_and_assumption(name):
    view = plan_view(PLANS[name]())
    rendered = parser().render(markdown.render(view))
    assert re.findall("<h2>(.*?)</h2>", rendered) == [*(table.title for table in view.tables), "Assumptions in force"]
    assert rendered.count("<table>") == len(view.tables)
    assert rendered.count("<li>") == len(view.assumptions)
    for sentence in view.sentences:
        assert f"<p>{html.escape(sentence, quote=False)}</p>" in rendered


def test_a_table_without_a_title_has_no_empty_heading():
    text = markdown.render(View("Title", [], [Table("", ("a",), (("1",),))]))
    assert "## " not in text
    assert "\n\n\n" not in text


# ---------------------------------------------------------------------------------------------- the terminal

COUNTED = Table("Counted", ("what", "how many", "note"), (("a", "5", "few"), ("b", "12,345", "very many")))


def test_numbers_are_aligned_right_and_words_left():
    lines = terminal.text_of(View("Title", [], [COUNTED]), 60).splitlines()
    header, rows = lines[3], lines[5:7]
    ends = {
        header.index("how many") + len("how many"),
        *(row.index(n) + len(n) for row, n in zip(rows, ("5", "12,345"), strict=True)),
    }
    starts = {header.index("note"), rows[0].index("few"), rows[1].index("very")}
    assert len(ends) == len(starts) == 1


def test_markdown_is_aligned_like_the_terminal():
    assert "| :--- | ---: | :--- |" in markdown.render(View("Title", [], [COUNTED]))


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("name", PLANS)
def test_a_view_keeps_to_the_width(name, width):
    lines = terminal.text_of(plan_view(PLANS[name]()), width).splitlines()
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("name", PLANS)
def test_the_text_of_a_plan_at_80_columns(name, golden):
    text = terminal.text_of(plan_view(PLANS[name]()), 80)
    golden(f"text/plan-{name}.txt", re.sub(r"phaseplan [\d.]+, .*", "phaseplan", text))


# ----------------------------------------------------------------------------------------------------- views


def test_an_optimal_plan_says_what_is_proven():
    view = plan_view(optimal())
    assert view.title == "Plan for reference: optimal"
    assert "proven, no plan under this model is better" in view.sentences[0]
    assert [table.title for table in view.tables] == ["Placements", "Limits", "Baselines"]


def test_a_feasible_plan_says_how_far_it_may_be_from_the_best():
    (first, *_) = plan_view(feasible()).sentences
    assert "proven" not in first
    assert "best found at the time limit, at most 57," in first
    assert "(gap 2.0 %)" in first


def test_what_is_not_solved_again_is_not_called_binding():
    (limits,) = [table for table in plan_view(feasible()).tables if table.title == "Limits"]
    assert [row[-2:] for row in limits.rows] == [("?", "–"), ("?", "–")]


def test_a_bound_on_what_is_minimized_is_from_below():
    goal = doc.ObjectiveResult(name="power", value=50_000.0, best_bound=45_000.0, gap=0.1, unit="W")
    sentence = sentences.objective_sentence(feasible().replace(objective=goal))
    assert sentence.startswith("least power: 50 kW; best found at the time limit, at least 45 kW")


@pytest.mark.parametrize("name", ["infeasible", "no_incumbent"])
def test_without_a_plan_nothing_looks_like_one(name):
    text = terminal.text_of(plan_view(PLANS[name]()), 80)
    assert plan_view(PLANS[name]()).tables == []
    assert "Placements" not in text
    assert "draft length 7" not in text


def test_an_infeasible_question_is_answered_with_what_is_possible():
    first, second = plan_view(infeasible()).sentences
    assert first == "No plan meets the interactivity floor."
    assert re.search(r"200 tok/s asked.*no design exceeds 13\d(\.\d)? tok/s", second)


def test_no_incumbent_says_what_to_do():
    (only,) = plan_view(no_incumbent()).sentences
    assert "--time-limit-s" in only


@pytest.mark.parametrize("name", PLANS)
def test_sentences_begin_large_and_end(name):
    for sentence in plan_view(PLANS[name]()).sentences:
        assert not sentence[0].islower()
        assert sentence.endswith(".")
        assert "None" not in sentence


def conflict(limit, unit, asked_for, achievable, **holding):
    return doc.Conflict(
        limit=limit,
        workload="w",
        device=None,
        rack=None,
        unit=unit,
        asked=asked_for,
        achievable=achievable,
        holding=holding,
        suffices=True,
    )


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (
            conflict("power_budget", "W", 50e3, 61.4e3, demand=40.0, interactivity_floor=100.0),
            "power budget: 50 kW asked; with demand 40 requests/s, interactivity floor 100 tok/s: at least 61.4 kW",
        ),
        (
            conflict("demand", "request/s", 40.0, 32.6, power_budget=50e3),
            "demand: 40 requests/s asked; with power budget 50 kW: at most 32.6 requests/s",
        ),
        (
            conflict("interactivity_floor", "tok/s", 200.0, 136.5),
            "interactivity floor: 200 tok/s asked; no design exceeds 136.5 tok/s",
        ),
        (
            conflict("ttft_ceiling", "s", 0.1, 0.15),
            "TTFT ceiling: 100 ms asked; no design is faster than 150 ms",
        ),
        (
            conflict("ttft_ceiling", "s", 0.1, None, power_budget=5e3),
            "TTFT ceiling: 100 ms asked, and nothing is achievable with power budget 5 kW",
        ),
        (
            conflict("memory", "sequence", 8.0, 3.0),
            "memory: a replica holds 3 sequences at most, the smallest batch needs 8 sequences",
        ),
    ],
)
def test_a_conflict_in_words(row, text):
    assert sentences.conflict_sentence(row) == text


def test_a_move_that_changes_nothing_says_so():
    (floor,) = [row for row in optimal().limits if row.name == "interactivity_floor"]
    assert sentences.marginal_words(floor, "tok/s") == "no change"


def test_warnings_are_shown_in_both():
    view = View("Title", [], warnings=("look at *this*",))
    assert "Warning: look at *this*" in terminal.text_of(view, 80)
    assert r"> **Warning:** look at \*this\*" in markdown.render(view)


def test_an_evaluation_shows_every_metric():
    from planner.given import Given, evaluate_given
    from planner.solve import Settings

    scenario = asked().replace(places=dict.fromkeys(optimal().deployments[0].placements, "gpu"))
    view = evaluation_view(evaluate_given(scenario, Given(8), Settings()))
    metrics = {row[0]: row[1] for row in view.tables[0].rows}
    assert metrics["TTFT, unloaded"] == "190 ms"
    assert metrics["power, provisioned"] == "–"
    assert len(view.tables[1].rows) == 4

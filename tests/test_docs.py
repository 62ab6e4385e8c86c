"""Every command in the documentation runs, and shows what the page says; committed samples are not stale."""

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

from planner.cli import run
from planner.report.numbers import figure

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_RUN = re.compile(r"<!-- run -->\n```console\n(.*?)```", re.DOTALL)
_FIELDS = re.compile(r"<!-- fields -->\n```console\n(.*?)```", re.DOTALL)


def commands_to_run():
    for page in PAGES:
        for block in _RUN.findall(page.read_text(encoding="utf-8")):
            yield from (line[2:] for line in block.splitlines() if line.startswith("$ "))


def commands_with_fields():
    for page in PAGES:
        for block in _FIELDS.findall(page.read_text(encoding="utf-8")):
            command, fields = None, []
            for line in block.splitlines():
                if line.startswith("$ "):
                    if command:
                        yield command, tuple(fields)
                    command, fields = line[2:], []
                elif line.startswith("# "):
                    fields.append(tuple(line[2:].split(" = ")))
            yield command, tuple(fields)


def test_the_pages_hold_commands():
    assert len(list(commands_to_run())) >= 10
    assert len(list(commands_with_fields())) >= 12


@pytest.mark.parametrize("command", sorted(set(commands_to_run())))
def test_a_command_shown_runs(command, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert run(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(("command", "fields"), sorted(set(commands_with_fields())))
def test_a_field_shown_has_the_value_shown(command, fields, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert fields, "a command without a field shows nothing"
    assert run(shlex.split(command)[1:]) == 0
    document = json.loads(capsys.readouterr().out)
    for path, shown in fields:
        assert figure(float(look_up(document, path))) == shown, path


def look_up(document, path):
    for part in path.split("."):
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def regenerate():
    spec = importlib.util.spec_from_file_location("regenerate", ROOT / "reports" / "regenerate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_committed_samples_and_shown_outputs_are_fresh():
    assert regenerate().stale() == [], "run: python reports/regenerate.py"


def test_the_plans_of_a_shown_review_stand_above_it():
    text = (ROOT / "docs" / "review.md").read_text(encoding="utf-8")
    for name, command in regenerate().REVIEWED.items():
        assert text.index(f"$ {command} --output {name}\n") < text.index(f"{name}/plan.json")


def linked_names(page):
    return set(re.findall(r"`planner(?:\.\w+)+`", page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(("page", "least"), [("model.md", 30), ("review.md", 6)])
def test_every_function_named_on_a_page_exists(page, least):
    names = linked_names(ROOT / "docs" / page)
    assert len(names) >= least
    for name in names:
        module, _, attribute = name.strip("`").rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_every_constraint_stands_on_the_model_page():
    import inspect

    from planner.milp import constraints

    text = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
    for name, function in inspect.getmembers(constraints, inspect.isfunction):
        if function.__module__ == constraints.__name__ and not name.startswith("_"):
            assert f"`planner.milp.constraints.{name}`" in text, name

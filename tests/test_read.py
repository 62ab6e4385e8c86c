"""From files to scenarios: YAML 1.2, where values were given, extending, catalogs, and reading what was written."""

import contextlib
import hashlib
import json
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import scenarios

from planner.errors import InputError
from planner.read import library
from planner.read.load import read_catalog, read_scenario
from planner.read.yaml_tree import Mark, Problem, Tree, dotted, parse, parse_file, raise_all
from planner.schema.catalog import Catalog
from planner.schema.scenario import Stock

BASE = {"schema_version": 1, "name": "base", "extends": "reference"}


def write(folder, name, content):
    """Write a document as JSON, which is YAML; a text is written as it is."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return str(path)


def refused(path):
    """Problems of a catalog; none where it is read."""
    try:
        read_catalog(path)
    except InputError as error:
        return error.problems
    return ()


def problems_of(path, *overrides):
    with pytest.raises(InputError) as caught:
        read_scenario(path, overrides)
    return caught.value.problems


# ----------------------------------------------------------------------------------------- the core schema


OTHER_TIMES = "on off yes no y N On YES 0x10 0o17 0b1 1_000 12:30 12:30:45 2026-01-01 ="
NEARLY_NUMBERS = "1.5e 1e . + --1 1.2.3 nan inf infinity -.nan .iNf tRue nULL"


@pytest.mark.parametrize("text", [*OTHER_TIMES.split(), *NEARLY_NUMBERS.split()])
def test_what_only_older_yaml_takes_for_more_is_text(text):
    assert parse(f"key: {text}", "file").data == {"key": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000.0),
        ("1E3", 1000.0),
        ("-2.5e-3", -0.0025),
        (".5", 0.5),
        ("5.", 5.0),
        ("010", 10),
        ("+7", 7),
        ("-0", 0),
        ("1", 1),
        ("1.0", 1.0),
        ("true", True),
        ("False", False),
        ("NULL", None),
        ("~", None),
        ("", None),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ('"1"', "1"),
        ("'on'", "on"),
        ("!!str 1", "1"),
        ("!!float 1", 1.0),
        ('!!int "1"', 1),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_the_core_schema(text, value):
    found = parse(f"key: {text}", "file").data["key"]
    assert found == value
    assert type(found) is type(value)


def test_not_a_number_is_read_and_refused_later():
    assert math.isnan(parse("key: .NaN", "file").data["key"])


@pytest.mark.parametrize("text", ["!!bool yes", "!!null nothing", "!!int 1.5", "!!float one", "!!map x", "!!int 1_0"])
def test_a_tag_that_the_text_does_not_fit_is_refused(text):
    (problem,) = parse(f"key: {text}", "file").problems
    assert str(problem).startswith("file:1: key: '")
    assert "is not written as" in str(problem)


def test_keys_are_text_unless_they_are_whole_numbers():
    data = parse("{1: a, 010: b, on: c, 1.5: d, null: e, true: f, '2': g}", "file").data
    assert data == {1: "a", 10: "b", "on": "c", "1.5": "d", "null": "e", "true": "f", "2": "g"}


@pytest.mark.parametrize("text", ["{2: a, 2: b}", "{2: a, '2': b}", "{2: a, 02: b}", "{a: 1, 'a': 2}"])
def test_a_key_stands_once_however_it_is_written(text):
    (problem,) = parse(text, "file").problems
    assert "stands twice (first on line 1)" in str(problem)


def test_a_merge_key_is_nothing_special():
    assert parse("{<<: {a: 1}}", "file").data == {"<<": {"a": 1}}


def test_block_texts_keep_their_lines():
    assert parse("key: |\n  one\n  two\n", "file").data == {"key": "one\ntwo\n"}
    assert parse("key: >-\n  one\n  two\n", "file").data == {"key": "one two"}


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfkey: caf\xc3\xa9\n", b"key: caf\xc3\xa9\r\n", b"key: caf\xc3\xa9"])
def test_byte_order_marks_and_line_ends_of_others(content, tmp_path):
    (tmp_path / "file.yaml").write_bytes(content)
    tree, raw = parse_file(str(tmp_path / "file.yaml"))
    assert tree.data == {"key": "café"}
    assert raw == content


def test_every_key_and_item_has_its_line():
    tree = parse("a:\n  b: 1\n  c:\n    - x\n    - y\n'd.e': {f: 2}\n", "file")
    lines = {dotted(path): mark.line for path, mark in tree.marks.items()}
    assert lines == {"": 1, "a": 1, "a.b": 2, "a.c": 3, "a.c.0": 4, "a.c.1": 5, "d.e": 6, "d.e.f": 6}


def test_a_mark_is_found_for_what_stands_nowhere():
    tree = parse("a:\n  b: 1\n", "file")
    assert tree.mark(("a", "missing", 3)) == Mark("file", 1)
    assert Tree({}).mark(("a",)) is None


def test_problems_are_told_by_file_and_line_each_once():
    problems = [
        Problem(Mark("b", 3), "x"),
        Problem(Mark("a", 9), "y"),
        Problem(Mark("b", 1), "z"),
        Problem(Mark("b", 3), "x"),
    ]
    with pytest.raises(InputError) as caught:
        raise_all(problems)
    assert caught.value.problems == ("b:1: z", "b:3: x", "a:9: y")
    raise_all([])


PIECES = [
    "- ",
    "{",
    "}",
    "[",
    "]",
    ": ",
    "\n",
    "  ",
    "\t",
    "null",
    "1e999",
    ".nan",
    "-1",
    "'",
    '"',
    "&a ",
    "*a",
    "!x ",
    "|",
    "? ",
    "#",
]
MANGLED = st.tuples(st.integers(0, 10_000), st.sampled_from(PIECES), st.integers(0, 12))


@given(st.text(max_size=200) | st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(InputError):
        parse(text, "file")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.yaml"
        path.write_bytes(content)
        with contextlib.suppress(InputError):
            read_catalog(str(path))


@settings(max_examples=200)
@given(st.lists(MANGLED, min_size=1, max_size=4))
def test_a_mangled_catalog_is_read_or_refused_line_by_line(changes):
    text = library.find("catalog", "reference")[0].read_text(encoding="utf-8")
    for place, piece, length in changes:
        start = place % len(text)
        text = text[:start] + piece + text[start + length :]
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), "catalog.yaml", text)
        for problem in refused(path):
            assert problem.startswith(f"{path}:")
            assert "\n" not in problem


# ------------------------------------------------------------------------------------- finding and extending


def test_bundled_names_are_found_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {"devices", "models", "reference"} <= set(library.names("catalog"))
    assert {"reference", "reference-slow-prefill", "reference-high-energy-prefill"} <= set(library.names("scenario"))
    assert read_scenario("reference").scenario.name == "reference"


@pytest.mark.parametrize("name", library.names("scenario"))
def test_every_bundled_scenario_is_named_like_its_file(name):
    assert read_scenario(name).scenario.name == name


def test_a_missing_library_says_to_install_again(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "__file__", str(tmp_path / "a" / "b" / "library.py"))
    with pytest.raises(InputError, match="install phaseplan again"):
        library.folder("catalog")


def test_files_are_looked_for_beside_the_file_that_names_them(tmp_path, monkeypatch):
    """A catalog by path, one by bare name, and a base by path, read from another folder."""
    entry = {"schema_version": 1, "devices": {"npu": {"memory_gb": 64}}}
    write(tmp_path, "mine/deep/extra.yaml", entry)
    write(tmp_path, "mine/more.yaml", {"schema_version": 1, "devices": {"tpu": {"memory_gb": 32}}})
    write(tmp_path, "mine/base.yaml", {**BASE, "catalog": ["reference", "deep/extra.yaml", "more"]})
    path = write(tmp_path, "mine/sub/child.yaml", {"schema_version": 1, "name": "child", "extends": "../base.yaml"})
    monkeypatch.chdir(tmp_path / "mine" / "deep")
    devices = read_scenario(path).scenario.catalog.devices
    assert list(devices) == ["gpu", "accelerator", "npu", "tpu"]
    assert devices["tpu"].memory_gb == 32.0


def test_a_catalog_keeps_all_of_its_entries_beside_another(tmp_path):
    extra = {"schema_version": 1, "links": {"wire": {"bandwidth_gb_per_s": 50.0}}, "models": {"other": {}}}
    write(tmp_path, "extra.yaml", extra)
    path = write(tmp_path, "mine.yaml", {**BASE, "catalog": ["reference", "./extra.yaml"]})
    catalog = read_scenario(path).scenario.catalog
    assert list(catalog.models) == ["target", "drafter", "other"]
    assert catalog.devices == read_catalog("reference").devices


def test_a_child_replaces_keys_and_overrides_reach_deeper(tmp_path):
    write(
        tmp_path,
        "base.yaml",
        {**BASE, "objective": "energy", "limits": {"power_budget_kw": 9, "inventory": {"gpu": 1}}},
    )
    child = {
        "schema_version": 1,
        "name": "child",
        "extends": "./base.yaml",
        "limits": {"power_budget_kw": 7},
        "overrides": {"limits.inventory.accelerator": 3, "workloads.reference.osl_tokens": 64},
    }
    scenario = read_scenario(write(tmp_path, "child.yaml", child)).scenario
    assert scenario.name == "child"
    assert scenario.objective == "energy"
    assert scenario.limits.power_budget_kw == 7.0
    assert scenario.limits.inventory == {"accelerator": Stock(purchasable=3)}
    assert scenario.workloads["reference"].osl_tokens == 64
    assert scenario.workloads["reference"].isl_tokens == 4096


def test_extending_changes_nothing_that_it_does_not_name():
    slow, reference = (read_scenario(name).scenario for name in ("reference-slow-prefill", "reference"))
    latency = slow.catalog.devices["accelerator"].profiles["drafter"]["draft_prefill"]["b1"].latency_ms
    assert latency.constant == 150.0
    changed = {name: getattr(slow, name) for name in ("name", "description", "catalog")}
    assert reference.replace(**changed) == slow


def test_every_file_that_goes_in_has_its_digest(tmp_path):
    path = write(tmp_path, "mine.yaml", BASE)
    digests = read_scenario(path).digests
    root = library.folder("catalog").parent
    files = {
        path: Path(path),
        "scenarios/reference.yaml": root / "scenarios" / "reference.yaml",
        "catalogs/reference.yaml": root / "catalogs" / "reference.yaml",
    }
    assert digests == {shown: hashlib.sha256(file.read_bytes()).hexdigest() for shown, file in files.items()}


# --------------------------------------------------------------------------------- marks survive everything


def test_each_problem_stands_where_its_value_was_given(tmp_path):
    """In the catalog, the base, the child, its overrides, and a flag: each with its own file and line."""
    write(tmp_path, "cat.yaml", "schema_version: 1\nmodels: {m: {}}\ndevices:\n  d:\n    memory_gb: -1\n")
    write(
        tmp_path,
        "base.yaml",
        "schema_version: 1\nname: base\ncatalog: ./cat.yaml\ntarget: m\npue: 0\nhost_factor: 0\n"
        "workloads:\n  w:\n    isl_tokens: 0\n    osl_tokens: 5\n",
    )
    child = write(
        tmp_path,
        "child.yaml",
        "schema_version: 1\nname: child\nextends: ./base.yaml\nhost_factor: 99\noverrides:\n"
        "  workloads.w.osl_tokens: -5\n  catalog.devices.d.idle_power_w: -2\n",
    )
    flag = ("max_utilization", 7, Mark("--set max_utilization=7"))
    found = [line.removeprefix(f"{tmp_path}/") for line in problems_of(child, flag)]
    assert found == [
        "cat.yaml:5: devices.d.memory_gb: must be at least 1e-09, got -1",
        "child.yaml:4: host_factor: must be at most 10, got 99",
        "child.yaml:6: workloads.w.osl_tokens: must be at least 2, got -5",
        "child.yaml:7: catalog.devices.d.idle_power_w: must be at least 0, got -2",
        "base.yaml:5: pue: must be at least 1, got 0",
        "base.yaml:9: workloads.w.isl_tokens: must be at least 1, got 0",
        "--set max_utilization=7: max_utilization: must be at most 1, got 7",
    ]


def test_replacing_a_bad_value_ends_its_problem(tmp_path):
    write(tmp_path, "base.yaml", {**BASE, "pue": 0})
    child = {"schema_version": 1, "name": "child", "extends": "./base.yaml", "pue": 1.2}
    path = write(tmp_path, "child.yaml", child)
    assert read_scenario(path).scenario.pue == 1.2
    flag = ("pue", 1.3, Mark("--set pue=1.3"))
    assert read_scenario(str(tmp_path / "base.yaml"), [flag]).scenario.pue == 1.3


def test_names_with_dots_are_shown_whole(tmp_path):
    write(tmp_path, "cat.yaml", "schema_version: 1\nmodels:\n  llama-3.1-8b:\n    weights_gb: -16\n")
    (problem,) = problems_of(write(tmp_path, "mine.yaml", {**BASE, "catalog": ["reference", "./cat.yaml"]}))
    assert problem.endswith("cat.yaml:4: models.llama-3.1-8b.weights_gb: must be at least 1e-09, got -16")


def test_a_dangling_name_with_dots_stands_at_its_own_line(tmp_path):
    content = (
        "schema_version: 1\nmodels:\n  a.b: {}\nproposers:\n"
        "  p.q:\n    kind: eagle3\n    model: a.c\n    acceptance:\n      a.d: {}\n"
    )
    with pytest.raises(InputError) as caught:
        read_catalog(write(tmp_path, "cat.yaml", content))
    assert [line.split("/")[-1] for line in caught.value.problems] == [
        "cat.yaml:7: proposers.p.q.model: there is no model 'a.c' (nearest: a.b)",
        "cat.yaml:9: proposers.p.q.acceptance.a.d: there is no model 'a.d' (nearest: a.b)",
    ]


# ------------------------------------------------------------------------------------------- read(write(x))


def written(scenario, folder, **dump):
    """Write a scenario and its catalog as files that name each other."""
    write(folder, "catalog.yaml", scenario.catalog.model_dump(mode="json", **dump))
    data = scenario.model_dump(mode="json", exclude={"catalog"}, **dump)
    return write(folder, "scenario.yaml", {**data, "catalog": "./catalog.yaml"})


@pytest.mark.parametrize(
    "dump", [{}, {"exclude_unset": True}, {"exclude_defaults": True}], ids=["all", "set", "changed"]
)
@given(scenario=scenarios())
def test_reading_what_was_written_gives_the_same_scenario(scenario, dump):
    with tempfile.TemporaryDirectory() as name:
        assert read_scenario(written(scenario, Path(name), **dump)).scenario == scenario


LABELS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=40)


@given(scenario=scenarios(), label=LABELS, name=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}", fullmatch=True))
def test_reading_what_was_written_gives_the_same_catalog(scenario, label, name):
    data = scenario.catalog.model_dump(exclude_unset=True)
    data["description"] = label
    data["sources"] = {name: {"title": label, "publisher": label, "date": "2026", "url": None}}
    data["models"]["target"] |= {"description": label, "source": name, "confidence": {"weights_gb": "assumed"}}
    catalog = Catalog.model_validate(data)
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), "catalog.yaml", catalog.model_dump(mode="json", exclude_unset=True))
        assert read_catalog(path) == catalog


def test_what_the_command_shows_of_a_catalog_can_be_read_again(tmp_path, capsys):
    from planner.cli import run

    assert run(["catalog", "show", "reference", "--json"]) == 0
    path = write(tmp_path, "again.yaml", capsys.readouterr().out)
    assert read_catalog(path) == read_catalog("reference")

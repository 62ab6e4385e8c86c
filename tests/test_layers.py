"""Imports go one way: from the command line down to words and errors, with reading and reporting beside the model.

The whole source is parsed, so that an import inside a function counts too.
"""

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# From the bottom up. A module may import what stands below it; a folder's own order follows further down.
LAYERS = [
    {"planner.errors", "planner.words"},
    {"planner.schema"},
    {"planner.fields"},
    {"planner.acceptance", "planner.profiles", "planner.proposers", "planner.roofline"},
    {"planner.derived", "planner.aggregated"},
    {"planner.memory", "planner.tokens"},
    {"planner.transfers"},
    {"planner.options", "planner.validate"},
    {"planner.evaluate", "planner.measure"},
    {"planner.fleet", "planner.bounds"},
    {"planner.limits", "planner.rates"},
    {"planner.question", "planner.assemble", "planner.assumptions", "planner.payoff"},
    {"planner.structure"},
    {"planner.milp", "planner.placement"},
    {"planner.cases"},
    {"planner.optimise", "planner.check"},
    {"planner.whatif", "planner.alternatives", "planner.robust"},
    {"planner.solve"},
    {"planner.given", "planner.front", "planner.explain"},
    {"planner.search"},
    {"planner.review", "planner.comparison", "planner.sensitivity"},
    {"planner.cli", "planner.fit"},
    {"planner.__main__"},
]
# What files and results go through stands beside the model: it knows the documents and nothing that computes.
BESIDE = {"planner.read", "planner.report"}
KNOWN_BESIDE = {"planner.errors", "planner.words", "planner.schema"}

INSIDE = {
    "planner.schema": [
        "base",
        "names",
        "hardware",
        "catalog",
        "scenario",
        "documents",
        "explanation",
        "front",
        "review",
        "comparison",
        "sensitivity",
        "validation",
    ],
    "planner.read": ["yaml_tree", "library", "locate", "overrides", "load", "measurements"],
    "planner.structure": ["staircase", "least", "dominance", "charges", "coupled", "packing", "optimise"],
    "planner.milp": ["solver", "variables", "constraints", "objective", "program", "relaxation", "large"],
    "planner.front": ["geometry", "asked", "structure", "sweep", "recipe"],
    "planner.search": ["space", "inner", "storage", "sampler", "study", "recipe"],
    "planner.roofline": ["arrays", "counts", "hardware", "memory", "power", "passes", "option"],
    "planner.validate": ["predict", "summary"],
    "planner.comparison": ["bought", "changes", "loss", "growth", "recipe"],
    "planner.review": ["curves", "ways", "roofs", "recipe"],
    "planner.sensitivity": ["numbers", "costs", "placements", "answers", "moves", "crossings", "recipe"],
    "planner.report": [
        *(
            "files",
            "numbers",
            "sentences",
            "tables",
            "others",
            "views",
            "explanation",
            "front",
            "cards",
            "markdown",
            "terminal",
            "figure",
        ),
        *("vega", "chart_ways", "chart_front", "chart_curves", "chart_fleet", "chart_search", "charts"),
        *("chart_sensitivity", "draw", "sections", "points", "page", "sensitivity"),
        *("compared_words", "compared_tables", "chart_compared", "compared"),
    ],
}


@cache
def modules():
    """Every module of the package with its parsed source."""
    found = {}
    for path in sorted((ROOT / "planner").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imports_of(tree, known):
    """Names of modules that a source imports; ``from a import b`` is ``a.b`` where that is a module."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in whole}
    return found


@cache
def imports():
    return {name: imports_of(tree, modules()) for name, tree in modules().items()}


def calls_of(tree):
    """Names that a source calls, dotted where they are."""
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def group(module):
    """A module's place in the layers: a folder is one place."""
    return ".".join(module.split(".")[:2])


def layer(place):
    return next(number for number, places in enumerate(LAYERS) if place in places)


def modules_of(place):
    return [name for name in modules() if group(name) == place]


def inner(name):
    """Imports within the package; the package itself holds its version only."""
    return {other for other in imports()[name] if other.split(".")[0] == "planner" and other != "planner"}


def importers(package):
    return {name for name, found in imports().items() if any(other.split(".")[0] == package for other in found)}


def reached_from(name):
    """Everything that a module imports, and what that imports."""
    found, ahead = set(), [name]
    while ahead:
        for other in inner(ahead.pop()) - found:
            found.add(other)
            ahead.append(other)
    return found


def test_imports_are_found():
    tree = ast.parse("import a.b\nfrom c import d, e\ndef f():\n    from g.h import i\n")
    assert imports_of(tree, {"c.d"}) == {"a.b", "c.d", "c", "g.h"}
    assert len(modules()) > 50


def test_every_module_has_a_place():
    places = set().union(*LAYERS) | BESIDE
    assert {group(name) for name in modules()} - {"planner"} == places


@pytest.mark.parametrize("name", sorted(modules()))
def test_imports_go_down(name):
    place = group(name)
    for other in inner(name):
        if group(other) == place:
            continue
        if place in BESIDE:
            assert group(other) in KNOWN_BESIDE, f"{name} imports {other}"
        elif group(other) in BESIDE:
            assert place in LAYERS[-2], f"{name} imports {other}"
        else:
            assert layer(group(other)) < layer(place), f"{name} imports {other}"


@pytest.mark.parametrize("place", INSIDE)
def test_imports_within_a_folder_go_down(place):
    order = [f"{place}.{name}" for name in INSIDE[place]]
    assert {name for name in modules() if name.startswith(f"{place}.")} == set(order)
    for number, name in enumerate(order):
        assert {other for other in inner(name) if group(other) == place} <= set(order[:number]), name


def test_there_are_no_cycles():
    """Of the command line's modules, which load each other late, only imports at the top of a module count."""
    graph = {name: inner(name) for name in modules()}
    for name in graph:
        if group(name) == "planner.cli":
            top = ast.Module(
                [node for node in modules()[name].body if not isinstance(node, (ast.FunctionDef, ast.ClassDef))], []
            )
            graph[name] = {other for other in imports_of(top, modules()) if other.startswith("planner.")}
    assert len(list(TopologicalSorter(graph).static_order())) == len(modules())


def test_the_package_itself_imports_nothing():
    assert imports()["planner"] <= {"__future__"}


@pytest.mark.parametrize(
    ("package", "users"),
    [
        ("pulp", {"planner.milp.solver"}),
        ("highspy", set()),
        ("optuna", {f"planner.search.{name}" for name in ("storage", "sampler", "study", "recipe")}),
        ("sqlalchemy", {"planner.search.storage"}),
        ("moocore", {"planner.front.geometry"}),
        ("vl_convert", {"planner.report.draw"}),
        ("jinja2", {"planner.report.page"}),
        ("yaml", {"planner.read.yaml_tree"}),
    ],
)
def test_a_package_is_used_in_one_place(package, users):
    assert importers(package) == users


def test_documents_are_modelled_in_one_place():
    places = {group(name) for name in importers("pydantic") | importers("pydantic_core")}
    # Fields of documents are changed one at a time, which hears of values that they do not take.
    assert places == {"planner.schema", "planner.read", "planner.cli", "planner.fields"}


def test_what_checks_a_plan_knows_no_solver():
    assert {name for name in reached_from("planner.check") if group(name) in ("planner.milp", "planner.solve")} == set()
    assert "planner.milp.solver" in reached_from("planner.solve")


def test_nothing_below_the_command_line_prints():
    printing = {
        "print",
        "input",
        "click.echo",
        "sys.stdout.write",
        "sys.stderr.write",
        "logging.getLogger",
        "warnings.warn",
    }
    for name, tree in modules().items():
        if group(name) not in ("planner.cli", "planner.fit"):
            assert not printing & calls_of(tree), name
            # Optuna warns of what it calls experimental: that is left out where its parts are made.
            allowed = {"warnings"} if name == "planner.search.storage" else set()
            assert not {"click", "logging", "warnings"} & imports()[name] - allowed, name
    assert importers("rich") == {"planner.report.terminal", "planner.cli.common", "planner.fit"}
    assert "click.echo" in calls_of(modules()["planner.cli.common"]), "so that the check can fail"


def test_files_begin_and_end_at_the_edge():
    """Reading, writing of reports, the command line and a study's storage know paths; the solver opens /dev/null."""
    for package in ("pathlib", "tempfile", "shutil", "glob", "io", "fileinput"):
        places = {group(name) for name in importers(package)}
        known = {"planner.read", "planner.report", "planner.cli"}
        assert places - known <= ({"planner.search"} if package == "pathlib" else set()), package
    assert "planner.search.storage" in importers("pathlib")
    opening = {"open", "io.open", "os.open", "os.fdopen"}
    users = {name for name, tree in modules().items() if opening & calls_of(tree)}
    assert users == {"planner.read.yaml_tree", "planner.report.files", "planner.cli", "planner.milp.solver"}
    assert ast.unparse(modules()["planner.milp.solver"]).count("os.open(os.devnull, ") == 1

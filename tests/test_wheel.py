"""The wheel works by itself: installed into an empty folder it finds its catalogs and answers the main question."""

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


def done(command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **more)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of this tree, built without reaching out."""
    for name in ("pip", "hatchling"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"a wheel cannot be built here: {name} is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    built = done(
        [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder), str(ROOT)]
    )
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder with the wheel and nothing else in it."""
    folder = tmp_path_factory.mktemp("installed")
    result = done([*PIP, "install", "--no-deps", "--no-index", "--target", str(folder), str(wheel)])
    assert result.returncode == 0, result.stderr
    return folder


def run(installed, folder, *command):
    """Run Python in a folder with the installed wheel before everything else."""
    return done([sys.executable, *command], cwd=folder, env={**os.environ, "PYTHONPATH": str(installed)})


def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for kind in ("catalogs", "scenarios"):
        files = {f"planner/{kind}/{path.name}" for path in (ROOT / kind).glob("*.yaml")}
        assert files
        assert files <= names
    assert {path.split("/")[0] for path in names if ".dist-info" not in path} == {"planner"}
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "planner").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == sources


def test_the_metadata_says_how_to_run_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (folder,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = Parser().parsestr(archive.read(f"{folder}/METADATA").decode())
        scripts = archive.read(f"{folder}/entry_points.txt").decode()
    assert (metadata["Name"], metadata["License-Expression"]) == ("phaseplan", "Apache-2.0")
    assert "plan = planner.cli:main" in scripts
    assert any(name.startswith("pulp") for name in metadata.get_all("Requires-Dist"))


def test_the_main_question_is_answered_in_an_empty_folder(installed, tmp_path):
    result = run(installed, tmp_path, "-m", "planner", "--budget-kw", "50", "--min-tps", "100", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    plan = json.loads(result.stdout)
    assert plan["status"] == "optimal"
    assert plan["deployments"][0]["metrics"]["interactivity_tps"] >= 100
    catalogs = {f"catalogs/{name}.yaml" for name in ("devices", "models", "proposers", "links")}
    assert set(plan["provenance"]["catalogs"]) == {"scenarios/llama-70b-chat.yaml", *catalogs}
    assert list(tmp_path.iterdir()) == []


def test_a_report_is_written_from_the_wheel(installed, tmp_path):
    result = run(installed, tmp_path, "-m", "planner", "report", *("--budget-kw", "50"))
    assert (result.returncode, result.stderr) == (0, "")
    written = {path.name for path in (tmp_path / "report").iterdir()}
    assert written == {"report.html", "report.md", "points.csv", "figures"}
    assert "<svg" in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")


def test_the_data_is_found_inside_the_package(installed, tmp_path):
    script = "from planner.read import library\nfor kind in ('catalog', 'scenario'): print(library.folder(kind))"
    result = run(installed, tmp_path, "-c", script)
    assert result.stdout.split() == [str(installed / "planner" / kind) for kind in ("catalogs", "scenarios")]


def test_the_script_is_installed(installed, tmp_path):
    from planner import __version__

    result = run(installed, tmp_path, str(installed / "bin" / "plan"), "--version")
    assert result.stdout == f"phaseplan, version {__version__}\n"

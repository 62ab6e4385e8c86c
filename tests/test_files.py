"""Files are written whole or not at all, also when the run is killed while it writes."""

import os
import signal
import subprocess
import sys

import pytest

from planner.errors import InputError
from planner.report.files import write_all

OLD = "old, and whole\n"
FILES = {"catalogs.json": "new\n", "catalogs.md": "new too\n"}

# Stop after half of a temporary file is written, or after the first of two files is renamed; then wait to be killed.
STOPS = {
    "half-written": """
def stop(handle, mode):
    os.write(handle, b'{"schema_version": 1, "cat')
    print("now", flush=True)
    time.sleep(60)
os.fdopen = stop
""",
    "half-renamed": """
rename, calls = os.replace, []
def stop(old, new):
    rename(old, new)
    calls.append(new)
    if len(calls) == 1:
        print("now", flush=True)
        time.sleep(60)
os.replace = stop
""",
}


def killed_while_writing(folder, stop, number):
    """Run ``plan catalog list --output .`` in a folder and kill it at a stop; give its exit code."""
    script = f"import os, sys, time\nfrom planner.cli import main\n{STOPS[stop]}\nmain()\n"
    command = [sys.executable, "-c", script, "catalog", "list", "--json", "--output", "."]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "now\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert err == ""
    return process.returncode


def shown(folder):
    """What a reader of the folder sees: hidden temporary files left out."""
    return {path.name: path.read_text() for path in folder.iterdir() if not path.name.startswith(".")}


@pytest.mark.parametrize("stop", STOPS)
def test_a_terminated_run_leaves_the_folder_as_it_was(stop, tmp_path):
    for name in FILES:
        (tmp_path / name).write_text(OLD)
    assert killed_while_writing(tmp_path, stop, signal.SIGTERM) == 128 + signal.SIGTERM
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(FILES, OLD)


def test_a_killed_run_leaves_no_half_written_file(tmp_path):
    assert killed_while_writing(tmp_path, "half-written", signal.SIGKILL) == -signal.SIGKILL
    assert shown(tmp_path) == {}


def test_a_killed_run_leaves_old_files_whole(tmp_path):
    for name in FILES:
        (tmp_path / name).write_text(OLD)
    killed_while_writing(tmp_path, "half-written", signal.SIGKILL)
    assert shown(tmp_path) == dict.fromkeys(FILES, OLD)


def test_a_run_killed_between_two_files_leaves_each_whole(tmp_path):
    (tmp_path / "catalogs.md").write_text(OLD)
    killed_while_writing(tmp_path, "half-renamed", signal.SIGKILL)
    found = shown(tmp_path)
    assert set(found) == set(FILES)
    assert found["catalogs.json"].endswith("}\n")
    assert found["catalogs.md"] == OLD


def test_writes_every_file_into_a_folder_that_it_makes(tmp_path):
    folder = tmp_path / "deep" / "folder"
    assert write_all(folder, FILES) == [folder / name for name in FILES]
    assert {path.name: path.read_text() for path in folder.iterdir()} == FILES


def test_new_files_have_the_permissions_of_new_files(tmp_path):
    before = os.umask(0o027)
    try:
        (path, _) = write_all(tmp_path, FILES)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_replaces_files_that_are_there(tmp_path):
    (tmp_path / "catalogs.json").write_text(OLD)
    write_all(tmp_path, FILES)
    assert shown(tmp_path) == FILES


@pytest.mark.parametrize("old", [None, OLD])
def test_a_file_that_cannot_be_written_takes_the_others_back(old, tmp_path):
    """The second target is a folder, so that only the first can be renamed."""
    first = tmp_path / "catalogs.json"
    if old is not None:
        first.write_text(old)
    (tmp_path / "catalogs.md").mkdir()
    with pytest.raises(InputError, match=r"--output .*: cannot be written: Is a directory"):
        write_all(tmp_path, FILES)
    assert (first.read_text() if first.exists() else None) == old
    assert {path.name for path in tmp_path.iterdir()} <= {"catalogs.json", "catalogs.md"}


def test_an_interrupt_takes_everything_back(tmp_path, monkeypatch):
    rename, renamed = os.replace, []

    def interrupted(temporary, target):
        if len(renamed) == 1:
            renamed.append(None)
            raise KeyboardInterrupt
        renamed.append(target)
        rename(temporary, target)

    (tmp_path / "catalogs.json").write_text(OLD)
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_all(tmp_path, FILES)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"catalogs.json": OLD}


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(_handle, _mode):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_all(tmp_path, FILES)
    assert list(tmp_path.iterdir()) == []

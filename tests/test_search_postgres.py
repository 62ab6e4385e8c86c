"""Four workers on a real PostgreSQL: one is killed, the database is restarted, and nothing finished is lost."""

import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import optuna
import pytest

from planner.search.storage import opened

EXAMPLE = str(Path(__file__).resolve().parents[1] / "docs" / "examples" / "knobs.yaml")
BINARIES = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [str(Path(shutil.which("pg_ctl") or "").parent)]
TRIALS, MORE = 240, 260


class Server:
    """A PostgreSQL of its own, on a free port and in a folder that is thrown away. It refuses to run as root."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="pg-")
        self.who = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        if self.who:
            shutil.chown(self.folder, **self.who)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.data = f"{self.folder}/data"
        self.done("initdb", "-D", self.data, "-A", "trust", "-U", "planner", "-E", "UTF8")
        self.control("start")

    @property
    def url(self):
        return f"postgresql://planner@127.0.0.1:{self.port}/postgres"

    def done(self, program, *arguments):
        command = [f"{BINARIES[-1]}/{program}", *arguments]
        log = subprocess.DEVNULL
        subprocess.run(command, check=True, stdout=log, stderr=log, cwd=self.folder, timeout=60, **self.who)

    def control(self, action, *more):
        options = f"-p {self.port} -h 127.0.0.1 -k {self.folder}"
        self.done("pg_ctl", action, "-w", "-D", self.data, "-l", f"{self.folder}/log", "-o", options, *more)


@pytest.fixture
def server():
    if not Path(f"{BINARIES[-1]}/initdb").is_file():
        pytest.skip("PostgreSQL's server is not installed here")
    running = Server()
    yield running
    running.done("pg_ctl", "stop", "-D", running.data, "-m", "immediate")
    shutil.rmtree(running.folder)


def finished(url):
    """The finished trials by number: what they sampled and found; none before there is a study."""
    storage = opened(url, 10)
    try:
        done = [
            trial
            for study in storage.get_all_studies()
            for trial in storage.get_all_trials(study._study_id, deepcopy=False)
            if trial.state == optuna.trial.TrialState.COMPLETE
        ]
    finally:
        storage.remove_session()
        storage.engine.dispose()
    return {trial.number: (trial.params, trial.values) for trial in done}


def until(condition, seconds):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.2)
    return found


def workers_of(parent):
    """Process ids of the workers that the threads of a process started, in the order of their start."""
    threads = Path(f"/proc/{parent}/task").glob("*/children")
    children = sorted({pid for thread in threads for pid in thread.read_text().split()}, key=int)
    return [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def command(url, trials, workers):
    told = ["--trials", str(trials), "--workers", str(workers), "--no-warm-start", "--storage", url, "--json"]
    return [sys.executable, "-m", "planner", "pareto", "--scenario", EXAMPLE, *told]


def test_nothing_finished_is_lost(server):
    with subprocess.Popen(
        command(server.url, TRIALS, 4), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            until(lambda: running.poll() is not None or len(finished(server.url)) > 20, 120)
            workers = workers_of(running.pid)
            assert len(workers) == 4
            os.kill(workers[1], signal.SIGKILL)
            known = finished(server.url)
            server.control("restart", "-m", "immediate")
            assert running.poll() is None, running.communicate()[1]
            out, err = running.communicate(timeout=240)
        finally:
            running.kill()
    assert running.returncode == 0, err
    assert err.strip() == "warning: worker 2 ended before its time (SIGKILL)"
    front = json.loads(out)
    assert TRIALS <= front["search"]["trials"] <= TRIALS + 3
    after = finished(server.url)
    assert len(after) >= TRIALS
    assert len(known) > 20
    assert {number: after[number] for number in known} == known

    resumed = subprocess.run(command(server.url, MORE, 1), capture_output=True, text=True, timeout=240)
    assert (resumed.returncode, resumed.stderr) == (0, "")
    last = finished(server.url)
    assert len(last) >= MORE
    assert {number: last[number] for number in after} == after
    assert json.loads(resumed.stdout)["hypervolume"] >= front["hypervolume"]

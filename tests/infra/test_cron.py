"""infra/cron/run.sh must run one job at a time, with a log, a lock and an alert."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from croniter import croniter

ROOT = Path(__file__).parents[2]
CRON = ROOT / "infra" / "cron"

pytestmark = pytest.mark.skipif(shutil.which("flock") is None, reason="no flock on this system")


class Wrapper:
    """run.sh with its own folders, and an alert that records its calls."""

    def __init__(self, folder: Path):
        self.logs, self.alerts = folder / "logs", folder / "alerts"
        self.settings = folder / "gaixie.env"
        alert = folder / "alert"
        alert.write_text(f'#!/bin/sh\n{{ echo "$@"; cat; }} >>"{self.alerts}"\n')
        alert.chmod(0o755)
        self.settings.write_text(
            f'GAIXIE_LOGS={self.logs}\nGAIXIE_LOCKS={folder}/locks\nALERT_COMMAND="{alert} of"\n'
            "FROM_SETTINGS=yes\n"
        )

    def start(self, *words, **environment) -> subprocess.Popen:
        return subprocess.Popen(
            ["sh", CRON / "run.sh", *map(str, words)],
            env=os.environ | {"GAIXIE_ENV": str(self.settings), "RUN_ID": "20261122"} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words, **environment) -> tuple[int, str]:
        """Returns (exit code, standard error)."""
        process = self.start(*words, **environment)
        out, error = process.communicate()
        assert out == ""
        return process.returncode, error

    def log(self, name: str) -> str:
        return (self.logs / f"{name}-20261122.log").read_text()


@pytest.fixture
def wrapper(tmp_path) -> Wrapper:
    return Wrapper(tmp_path)


class Held:
    """A job that reports its start, and ends when it is told to."""

    def __init__(self, folder: Path, script: str = 'echo begun >"$1"; read word <"$2"'):
        self.begun, self.end = folder / "begun", folder / "end"
        os.mkfifo(self.begun)
        os.mkfifo(self.end)
        self.command = ("sh", "-c", script, "job", self.begun, self.end)

    def wait(self) -> None:
        assert self.begun.read_text() == "begun\n"  # blocks until the job opens the pipe

    def finish(self) -> None:
        self.end.write_text("now\n")


def test_never_twice_at_once(wrapper, tmp_path):
    job = Held(tmp_path)
    first = wrapper.start("score", *job.command)
    job.wait()
    code, said = wrapper.run("score", "true")
    assert code == 75
    assert said == "run.sh: score still runs; this start is skipped\n"
    assert wrapper.run("release", "true")[0] == 0  # another job has its own lock
    job.finish()
    assert first.wait() == 0
    assert not wrapper.alerts.exists()
    assert wrapper.run("score", "true") == (0, "")


def test_a_failure_alerts_once_and_keeps_its_code(wrapper):
    code, said = wrapper.run("score", "sh", "-c", "seq 100; echo it broke >&2; exit 7")
    assert code == 7
    assert said.startswith("run.sh: score failed with exit code 7: ")
    call, *tail = wrapper.alerts.read_text().splitlines()
    assert call == "of score 7"
    *tail, command, log, again = tail
    assert len(tail) == 40
    assert tail[0] == "63"
    assert tail[-2] == "it broke"
    assert tail[-1].endswith("exit code 7")
    assert command.startswith("command: sh -c seq 100")
    assert Path(log.removeprefix("log: ")).is_file()
    assert "RUN_ID=20" in again


def test_a_signal_goes_to_the_job_whose_code_counts(wrapper, tmp_path):
    script = 'trap "exit 5" TERM; echo begun >"$1"; read word <"$2"'
    job = Held(tmp_path, script)
    process = wrapper.start("score", *job.command)
    job.wait()
    process.terminate()
    assert process.wait() == 5
    assert wrapper.alerts.read_text().startswith("of score 5\n")


def test_the_day_is_the_run_id(wrapper):
    words = ("echo", "--run-id", "@RUN_ID", "--version", "@VERSION", "a b")
    assert wrapper.run("score", *words) == (0, "")
    assert "\n--run-id 20261122 --version 2026.11.22 a b\n" in wrapper.log("score")
    assert wrapper.run("score", "sh", "-c", "echo $FROM_SETTINGS")[0] == 0
    assert "\nyes\n" in wrapper.log("score")  # the second run of a day appends to the log


def test_old_logs_go(wrapper):
    wrapper.logs.mkdir()
    ages = {"score-20260101.log.1.gz": 0, "score-20261101.log": None, "release-20260101.log": 0}
    for name, age in ages.items():
        (wrapper.logs / name).touch()
        if age is not None:
            os.utime(wrapper.logs / name, (age, age))
    assert wrapper.run("score", "true") == (0, "")
    found = {path.name for path in wrapper.logs.iterdir()}
    assert found & ages.keys() == ages.keys() - {"score-20260101.log.1.gz"}


def test_crontab_lines():
    lines = (CRON / "crontab").read_text("utf-8").splitlines()
    entries = [line.split(None, 5) for line in lines if line[:1].isdigit()]
    assert len(entries) == 4
    for *fields, command in entries:
        assert croniter.is_valid(" ".join(fields), strict=True), fields
        assert "%" not in command  # cron would end the command at a %

"""infra/cron/run.sh must run one job at a time, with a log, a lock and an alert."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from croniter import croniter

CRON = Path(__file__).parents[2] / "infra" / "cron"

pytestmark = pytest.mark.skipif(shutil.which("flock") is None, reason="no flock on this system")


class Wrapper:
    """run.sh with its own folders, and an alert that records its calls."""

    def __init__(self, folder: Path):
        self.logs, self.alerts = folder / "logs", folder / "alerts"
        alert, self.settings = folder / "alert", folder / "gaixie.env"
        alert.write_text(f'#!/bin/sh\n{{ echo "$@"; cat; }} >>"{self.alerts}"\n')
        alert.chmod(0o755)
        folders = f"GAIXIE_LOGS={self.logs}\nGAIXIE_LOCKS={folder}/locks\n"
        self.settings.write_text(f'{folders}ALERT_COMMAND="{alert} of"\nFROM_SETTINGS=yes\n')

    def start(self, *words) -> subprocess.Popen:
        return subprocess.Popen(
            ["sh", CRON / "run.sh", *map(str, words)],
            env=os.environ | {"GAIXIE_ENV": str(self.settings), "RUN_ID": "20261122"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *words) -> tuple[int, str]:
        """Returns (exit code, output)."""
        process = self.start(*words)
        return process.wait(), process.communicate()[0]


@pytest.fixture
def wrapper(tmp_path) -> Wrapper:
    return Wrapper(tmp_path)


@pytest.fixture
def job(tmp_path) -> list[object]:
    """Returns a command that writes into the pipe begun, ends when the pipe end is written to, and
    with exit code 5 at SIGTERM."""
    os.mkfifo(tmp_path / "begun")
    os.mkfifo(tmp_path / "end")
    script = 'trap "exit 5" TERM; echo begun >"$1"; read word <"$2"'
    return ["sh", "-c", script, "job", tmp_path / "begun", tmp_path / "end"]


def test_never_twice_at_once(wrapper, job, tmp_path):
    first = wrapper.start("score", *job)
    assert (tmp_path / "begun").read_text() == "begun\n"  # blocks until the job opens the pipe
    assert wrapper.run("score", "true") == (75, "run.sh: score still runs; this start is skipped\n")
    assert wrapper.run("release", "true")[0] == 0  # another job has its own lock
    (tmp_path / "end").write_text("now\n")
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
    assert (len(tail), tail[0], tail[-2]) == (40, "63", "it broke")
    assert tail[-1].endswith("exit code 7")
    assert command.startswith("command: sh -c seq 100")
    assert Path(log.removeprefix("log: ")).is_file()
    assert "RUN_ID=20" in again


def test_a_signal_goes_to_the_job_whose_code_counts(wrapper, job, tmp_path):
    process = wrapper.start("score", *job)
    assert (tmp_path / "begun").read_text() == "begun\n"
    process.terminate()
    assert process.wait() == 5
    assert wrapper.alerts.read_text().startswith("of score 5\n")


def test_the_day_is_the_run_id(wrapper):
    words = ("echo", "--run-id", "@RUN_ID", "--version", "@VERSION", "a b")
    assert wrapper.run("score", *words) == (0, "")
    assert wrapper.run("score", "sh", "-c", "echo $FROM_SETTINGS")[0] == 0
    text = (wrapper.logs / "score-20261122.log").read_text()  # both runs of a day
    assert "\n--run-id 20261122 --version 2026.11.22 a b\n" in text
    assert "\nyes\n" in text


def test_old_logs_go(wrapper):
    wrapper.logs.mkdir()
    logs = [wrapper.logs / f"{name}-20260101.log" for name in ("score", "release")]
    for path in logs:
        path.touch()
        os.utime(path, (0, 0))
    (wrapper.logs / "score-20261101.log").touch()
    assert wrapper.run("score", "true") == (0, "")
    assert not logs[0].exists()
    assert len([*wrapper.logs.iterdir()]) == 3  # another job's, a new one, today's


def test_crontab_lines():
    lines = (CRON / "crontab").read_text("utf-8").splitlines()
    entries = [line.split(None, 5) for line in lines if line[:1].isdigit()]
    assert len(entries) == 4
    for *fields, command in entries:
        assert croniter.is_valid(" ".join(fields), strict=True), fields
        assert "%" not in command  # cron would end the command at a %

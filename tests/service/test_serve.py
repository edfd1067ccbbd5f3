"""service/serve.py as a command: its dry run, its error messages, its imports."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from servers import wait_for
from tiny_seq2seq import tiny_seq2seq

from gaixie.service import serve
from gaixie.udfs.spscore import SPScore

ROOT = Path(__file__).parents[2]
PAIRS = [("今天公园很好看", "公园今天很好看"), ("我们昨天读书", "昨天我们读了书")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_seq2seq(tmp_path_factory.mktemp("model"), PAIRS)


def test_a_dry_run_answers_once(folder, monkeypatch, capfd):
    monkeypatch.setenv("GAIXIE_TOKENS", "me=a-secret-of-sixteen")
    assert serve.main([folder, "--dry-run", "--draws", "2"]) == 0
    out, err = capfd.readouterr()
    said = [line for line in err.splitlines() if not line.startswith("{")]
    assert any(line.startswith("score: 0.") for line in said)
    assert any(line.startswith("paraphrase: ") for line in said)
    assert said[-1] == SPScore.load().signature()
    assert "a-secret-of-sixteen" not in out + err


def test_scoring_alone_imports_no_torch():
    code = (
        "import sys; from gaixie.service.serve import main; code = main(['--dry-run']); "
        "sys.exit(code or 'torch' in sys.modules or 'pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("given", "environment", "message"),
    [
        (["no/such"], {}, "no/such: no such folder"),
        (["--tier", "best", "--dry-run"], {}, "best"),
        ([], {"GAIXIE_TOKENS": "abc"}, "entry 1: expected NAME=TOKEN"),
        ([], {"GAIXIE_TOKENS": "me=short"}, "16 or more"),
        ([], {"GAIXIE_TOKENS_FILE": "/none"}, "none"),
        (["{folder}", "--min-meaning", "2"], {}, "min_meaning"),
        (["--timeout", "-1"], {}, "timeout"),
    ],
)
def test_mistakes(folder, tmp_path, monkeypatch, capsys, given, environment, message):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert serve.main([one.format(tmp=tmp_path, folder=folder) for one in given]) == 2
    error = capsys.readouterr().err
    assert message in error.splitlines()[-1], error
    assert "short" not in error


@pytest.mark.long
@pytest.mark.parametrize("library", ["pydantic_core", "_multiarray_umath", "libarrow", "httptools"])
def test_an_early_interrupt_is_one_line(library):
    """Ctrl-C while `gaixie serve` imports what needs a library must give one line, not a trace."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gaixie.jobs.cli", "serve", "--port", "0"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    maps = Path(f"/proc/{process.pid}/maps")
    wait_for(lambda: library in maps.read_text(), f"the import of {library}", process)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert len(stderr.splitlines()) == 1
    assert "interrupted" in stderr

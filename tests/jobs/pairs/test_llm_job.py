"""jobs/build_pairs.py llm with Spark: accounts must close, whatever the server does."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from ask_endpoint import FAST
from built_pairs import manifest, table
from llm_server import PREFIX, Server, serving
from servers import wait_for

from gaixie.jobs.build_pairs import main
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.llm.estimate import preview
from gaixie.jobs.pairs.llm.method import LlmSettings
from gaixie.jobs.pairs.llm.prompts import Prompt
from gaixie.udfs.storage.manifest import PairsManifest

ROOT = Path(__file__).parents[3]
KEY = "sk-0123456789-of-the-test"


@pytest.fixture
def serve(tmp_path, monkeypatch) -> Iterator[Callable[..., Server]]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(tmp_path) as start:
        yield start


@pytest.fixture
def sentences(examples, tmp_path) -> list[str]:
    """Writes a table of 60 suitable sentences and four that can be in no pair."""
    texts = list(dict.fromkeys(examples["source"]))[:60]
    rows = [*texts, texts[0] + " ", "太短了。", None, "No Chinese in this one at all."]
    pd.DataFrame({"text": rows}).to_parquet(tmp_path / "text.parquet")
    return texts


REASONS = {"repeated": 1, "too_short": 1, "null": 1, "no_han": 1}


def line(folder: Path, server: Server, *given: object) -> list[str]:
    words = ["llm", "--input", folder / "text.parquet", "--output", folder / "made"]
    words += ["--model", "a-model", "--base-url", server.url, "--set", "piece_sentences=20"]
    for name, value in FAST.items():
        words += ["--set", f"llm.{name}={value}"]
    return [str(word) for word in (*words, *given)]


def built(folder: Path) -> PairsManifest:
    return manifest(folder / "made")


def pairs(folder: Path) -> pd.DataFrame:
    return table(folder / "made", "pairs")


def test_from_sentences_to_pairs(spark, serve, sentences, tmp_path, capfd):
    """Pairs must come out despite every fault, and the key must be in no file and no line."""
    faults = ["refused", "cut off", "copied", "english", "withheld", "500", "429", "cut", "lines"]
    server = serve({sentences[n]: [fault] for n, fault in enumerate(faults)})
    prices = ("--price-in", 1, "--price-out", 2, "--temperature", 0.5)
    assert main(line(tmp_path, server, *prices)) == 0
    made, told = pairs(tmp_path), built(tmp_path)
    quarantine = REASONS | {"refused": 2, "cut_off": 1, "copied": 1, "no_han": 2}
    assert told.quarantine == quarantine
    assert (told.read, told.used, told.pairs) == (64, 55, 55)
    assert set(made["paraphrase"]) == {PREFIX + text for text in sentences[5:]}
    assert set(zip(made.origin, made.method, made.model, strict=True)) == {
        ("llm", "llm", "a-model")
    }
    assert '"temperature": 0.5' in made.parameters[0]
    assert '"prompt": "zero_shot"' in made.parameters[0]
    assert (told.figures["requests"], told.figures["failed"]) == (len(server.paid()), 3)
    lost = sum(row["in"] + row["out"] for row in server.paid() if row["kind"] == "cut")
    assert told.figures["tokens_in"] + told.figures["tokens_out"] > server.tokens() - lost
    assert told.figures["cost"] == pytest.approx(
        (told.figures["tokens_in"] + 2 * told.figures["tokens_out"]) / 1e6
    )
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert KEY not in "".join(capfd.readouterr())


def test_the_budget_ends_the_job_and_more_of_it_goes_on(spark, serve, sentences, tmp_path):
    server = serve()
    with pytest.raises(JobError) as stopped:
        main(line(tmp_path, server, "--max-tokens-total", 6_000, "--concurrency", 4))
    assert "--max-tokens-total 6,000 is almost used up: " in str(stopped.value)
    assert "nothing was published; raise it and give --resume" in str(stopped.value)
    assert server.tokens() <= 6_000
    assert not (tmp_path / "made/manifest.json").exists()
    more = ("--max-tokens-total", 8_000, "--publish-partial", "--resume")
    assert main(line(tmp_path, server, *more)) == 0
    told = built(tmp_path)
    assert 6_000 < server.tokens() <= 8_000
    assert told.quarantine["over_budget"] == 60 - told.used
    assert told.used == len(server.paid())
    again = line(tmp_path, server, "--cache", tmp_path / "made/answers")
    again[again.index("--output") + 1] = str(tmp_path / "again")
    assert main(again) == 0
    counts = Counter(text for row in server.paid() for text in row["sentences"])
    assert counts == Counter(sentences)


@pytest.mark.long
def test_killed_and_resumed(spark, serve, sentences, tmp_path):
    """A killed job must resume without paying again; it runs in its own process."""
    server = serve({text: ["500"] for text in sentences[::5]})
    command = [sys.executable, ROOT / "jobs/build_pairs.py", *line(tmp_path, server)]
    command += ["--concurrency", "4", "--requests-per-minute", "1200"]
    process = subprocess.Popen(
        [*map(str, command)],
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    wait_for(lambda: len(server.paid()) >= 33, "33 answers", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert main(line(tmp_path, server, "--resume", "--take-over")) == 0
    told = built(tmp_path)
    assert (told.quarantine, told.used) == (REASONS, 60)
    counts = Counter(text for row in server.paid() for text in row["sentences"])
    assert counts.keys() == {*sentences}
    assert counts.total() <= 60 + 4  # requests under way at the kill


def test_dry_run(spark, serve, sentences, tmp_path, capsys):
    server = serve()
    given = ("--dry-run", "--price-in", 1, "--price-out", 2, "--requests-per-minute", 10)
    assert main(line(tmp_path, server, *given)) == 0
    said = capsys.readouterr().out
    assert said.count("只输出改写后的句子") == 5
    assert "estimate: about 60 sentences, 60 requests, " in said
    assert "2.0 s a request: assumed, since no answer of this model is recorded" in said
    assert "cost: 0.0" in said
    assert "time: 6.0 minutes at these limits\nnothing was written\n" in said
    assert not server.paid()
    assert not (tmp_path / "made").exists()


def test_the_estimate_holds_what_todays_vocabularies_take(capsys):
    """The estimate must cover a model that takes two thirds of a token per character."""
    settings, text = LlmSettings(price_in=1, price_out=1), "由于连日暴雨，通往县城的公路一度中断。"
    preview(settings, "a-model", [text] * 20, 1e6, None)
    least, most = re.search(r"cost: ([\d.]+) to ([\d.]+)", capsys.readouterr().out).groups()
    asked = len(Prompt(settings).messages([text], None)[0]["content"])
    assert float(least) < (asked + len(text)) * 0.66 < float(most) < 1.7 * float(least)

"""llm without Spark must lose no sentence, pay for none twice, and keep the budget."""

import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import ask_endpoint
import pytest
from ask_endpoint import ask, written
from llm_server import PREFIX, Server, serving
from servers import free_port, wait_for

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.llm import record as records
from gaixie.jobs.pairs.llm.answers import STOP, Answer
from gaixie.jobs.pairs.llm.record import Record, Spent
from gaixie.udfs.storage.storage import File

KEY = "sk-0123456789-of-the-test"


def sentence(number: int) -> str:
    return f"第{number}号仓库的货物在昨天夜里全部运到了码头。"


@pytest.fixture
def serve(tmp_path) -> Iterator[Callable[..., Server]]:
    """Yields a function that starts a server with a script and writes ``count`` sentences."""
    with serving(tmp_path) as begin:

        def start(count: int, script: dict[str, list[str]] | None = None) -> Server:
            lines = [sentence(number) for number in range(count)]
            (tmp_path / "sentences.txt").write_text("\n".join(lines), "utf-8")
            return begin(script)

        yield start


def pairs(folder: Path) -> dict[str, str | None]:
    return {row.source: row.paraphrase for row in written(folder) if row.reason is None}


def paid(server: Server) -> Counter[str]:
    return Counter(text for line in server.paid() for text in line["sentences"])


FAULTS = {
    "429": (None, 1),
    "500": (None, 1),
    "cut": (None, 2),
    "json": (None, 2),
    "lines": (None, 2),
    "empty": (None, 2),
    "refused": ("refused", 1),
    "withheld": ("refused", 1),
    "filtered": ("refused", 0),
    "cut off": ("cut_off", 1),
    "english": ("no_han", 1),
    "copied": ("copied", 1),
}
"""For each fault that a sentence meets once: its final reason, and the answers paid."""


def test_every_fault(serve, tmp_path):
    """Faults must lose none of 200 sentences, and must not make others be paid twice."""
    script = {sentence(7 * n): [fault] for n, fault in enumerate(FAULTS)}
    script[sentence(101)], script[sentence(102)] = ["empty", "lines"], ["500"] * 6
    server = serve(200, script)
    asking = ask(tmp_path, server.url, 64, concurrency=8, attempts=6)
    rows = {row.source: row for row in written(tmp_path)}
    assert len(rows) == 200
    for number, (fault, (reason, count)) in enumerate(FAULTS.items()):
        text = sentence(7 * number)
        expected = None if reason in ("no_han", "copied") else reason  # later steps find these
        assert rows[text].reason == expected, fault
        assert paid(server)[text] == count, fault
        del rows[text]
    assert rows.pop(sentence(101)).reason == "malformed_answer"
    assert rows.pop(sentence(102)).reason == "gave_up"
    assert {row.reason for row in rows.values()} == {None}
    assert all(row.paraphrase == PREFIX + row.source for row in rows.values())
    assert {paid(server)[text] for text in rows} == {1}
    assert asking.report.asked_again == 3


def test_an_answer_that_does_not_come_in_time(serve, tmp_path):
    """A lost answer must count as the most it could cost, because its real cost is unknown."""
    server = serve(3, {sentence(1): ["slow"]})
    asking = ask(tmp_path, server.url, 3, request_seconds=0.5, attempts=100)
    assert len(pairs(tmp_path)) == 3
    assert asking.endpoint.failure == "no answer within 0.5 s"
    budget = asking.endpoint.budget
    assert budget.tokens_in + budget.tokens_out > server.tokens()


def test_several_sentences_a_request(serve, tmp_path):
    """If an answer lacks a sentence or is cut off, each sentence must be asked for by itself."""
    server = serve(22, {sentence(5): ["short"], sentence(9): ["cut off", "cut off"]})
    ask(tmp_path, server.url, 22, sentences_per_request=4)
    rows = {row.source: row.reason for row in written(tmp_path)}
    assert rows.pop(sentence(9)) == "cut_off"
    assert [*rows.values()] == [None] * 21
    sizes = Counter(len(line["sentences"]) for line in server.paid())
    assert sizes == {4: 5, 2: 1, 1: 8}
    ask(tmp_path, server.url, 22, sentences_per_request=4)
    assert len(server.paid()) == 14


def test_degrees_and_paraphrases(serve, tmp_path):
    server = serve(3)
    ask(tmp_path, server.url, 3, prompt="degree", degrees=(1, 4), paraphrases=2)
    told = [(row.source, row.parameters) for row in written(tmp_path)]
    variants = [{"degree": d, "number": k} for d in (1, 4) for k in (0, 1)]
    assert told == [(sentence(n), variant) for n in range(3) for variant in variants]
    assert len(server.paid()) == 12


def test_what_is_on_record_is_not_paid_again(serve, tmp_path):
    server = serve(40, {sentence(3): ["empty", "empty"], sentence(4): ["refused"]})
    ask(tmp_path, server.url, 10)
    count = len(server.paid())
    assert count == 41
    for path in (tmp_path / "pieces").iterdir():
        path.unlink()
    asking = ask(tmp_path, server.url, 7, concurrency=3)  # with other pieces and another pace
    assert len(server.paid()) == count
    assert (asking.report.reused, asking.report.answers) == (41, 40)
    for changed in ({"temperature": 0.5}, {"prompt": "few_shot"}):
        for path in (tmp_path / "pieces").iterdir():
            path.unlink()
        ask(tmp_path, server.url, 40, **changed)
        count += 40
        assert len(server.paid()) == count, changed


def test_a_budget_of_tokens_is_never_exceeded(serve, tmp_path):
    server = serve(60, {sentence(2): ["cut"], sentence(8): ["500"]})
    asking = ask(tmp_path, server.url, 10, concurrency=6, max_tokens_total=6_000)
    assert asking.endpoint.over_budget
    spent = server.tokens()
    assert 3_000 < spent <= 6_000
    assert len(written(tmp_path)) < 60
    asking = ask(tmp_path, server.url, 10, concurrency=6, max_tokens_total=6_000)  # no more
    assert (asking.endpoint.over_budget, server.tokens()) == (True, spent)
    asking = ask(tmp_path, server.url, 10, concurrency=6, max_tokens_total=60_000)
    assert not asking.endpoint.over_budget
    assert pairs(tmp_path) == {sentence(n): PREFIX + sentence(n) for n in range(60)}
    assert Counter(paid(server).values()) == {1: 59, 2: 1}  # the answer that was cut


def test_a_budget_of_money_and_what_is_left_of_the_sentences(serve, tmp_path):
    server = serve(60)
    given = {"price_in": 1e3, "price_out": 2e3, "max_cost": 8.0, "publish_partial": True}
    ask(tmp_path, server.url, 10, **given)
    cost = sum(line["in"] * 1e-3 + line["out"] * 2e-3 for line in server.paid())
    assert 4 < cost <= 8
    reasons = Counter(row.reason for row in written(tmp_path))
    assert reasons == {None: len(server.paid()), "over_budget": 60 - len(server.paid())}


@pytest.mark.long
def test_killed_at_random_moments(serve, tmp_path):
    """After kills, recorded answers must not be paid again, and no sentence may be missing."""
    server = serve(300, {sentence(n): ["500"] for n in range(0, 300, 9)})
    command = [sys.executable, ask_endpoint.__file__, str(tmp_path), server.url, "40"]
    command += ["concurrency=5", "backoff_seconds=0.001", "max_tokens_total=1000000"]
    moments = sorted(random.Random(7).sample(range(20, 280), 2))
    recorded: set[str] = set()
    for moment in moments:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        wait_for(lambda m=moment: len(server.paid()) >= m, "answers", process, every=0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        with sqlite3.connect(tmp_path / "answers" / records.NAME) as database:
            texts = [text for (text,) in database.execute("SELECT text FROM answers")]
        recorded |= {text.removeprefix(PREFIX) for text in texts}
        assert len(recorded) >= moment - 5 * (moments.index(moment) + 1)
        again = paid(server)
        assert {again[text] for text in recorded} <= {1, 2}
        held = {text: again[text] for text in recorded}
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {text: paid(server)[text] for text in held} == held
    assert pairs(tmp_path) == {sentence(n): PREFIX + sentence(n) for n in range(300)}
    assert paid(server).total() <= 300 + 5 * 2  # requests under way at a kill
    record = Record(str(tmp_path / "answers"), "a building")
    spent = record.spent()
    record.close()
    assert spent.tokens_in + spent.tokens_out >= server.tokens()


STOPPED = {
    "unauthorized": "the key is missing, or the endpoint refuses it (401: ",
    "missing": "no such model, or no such address (404: ",
    "poor": "the account has no money left (429: ",
    "rejected": "refuses the request (400: ",
}


@pytest.mark.parametrize(("fault", "message"), STOPPED.items())
def test_what_stops_at_once(serve, tmp_path, monkeypatch, fault, message):
    """A fatal fault must give one line, without the key that the server repeats."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = serve(20, {"仓库": [fault] * 20})
    with pytest.raises(JobError) as stopped:
        ask(tmp_path, server.url, 5, concurrency=1)
    assert message in str(stopped.value)
    assert "Bearer ***" in str(stopped.value)
    assert "\n" not in str(stopped.value)
    assert not server.paid()


def test_an_endpoint_that_fails_and_fails(serve, tmp_path):
    server = serve(20, {sentence(n): ["500"] * 9 for n in range(4, 20)})
    with pytest.raises(JobError, match="3 requests in a row failed, the last with: 500: no"):
        ask(tmp_path, server.url, 5, concurrency=1, attempts=2, stop_after=3)
    assert len(written(tmp_path)) == 5


def test_a_host_that_is_not_there_stops_at_once(tmp_path, monkeypatch):
    """The first request must not be retried, because an unknown host name stays unknown."""

    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    (tmp_path / "sentences.txt").write_text(sentence(1), "utf-8")
    with pytest.raises(JobError, match=r"https://api\.example/v1: .*Name or service not known"):
        ask(tmp_path, "https://api.example/v1", 5, attempts=6, backoff_seconds=3600)
    assert not written(tmp_path)


def test_nobody_answers(tmp_path):
    (tmp_path / "sentences.txt").write_text(sentence(1), "utf-8")
    url = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(JobError, match=r"127\.0\.0\.1:\d+/v1: no answer; .*[Cc]onnect"):
        ask(tmp_path, url, 5, attempts=2)
    assert not written(tmp_path)


def test_a_record_in_a_store(tmp_path, monkeypatch):
    """In a store, each group of events is an object; the next process must rebuild the tables."""

    def path(uri: str) -> Path:
        return tmp_path / uri.removeprefix("s3a://")

    def list_files(uri: str) -> list[File]:
        return [File(f"{uri}/{file.name}", 0, None) for file in sorted(path(uri).glob("*"))]

    path("s3a://bucket/answers").mkdir(parents=True)
    monkeypatch.setattr(records.storage, "list_files", list_files)
    monkeypatch.setattr(records.storage, "read_bytes", lambda uri: path(uri).read_bytes())
    monkeypatch.setattr(
        records.storage, "write", lambda uri, text: path(uri).write_text(text, "utf-8")
    )
    sent = {"building": "b", "model": "m", "state": "sent", "tokens_in": 9, "tokens_out": 9}
    record = Record("s3a://bucket/answers", "b")
    for number in ("1", "2", "3"):
        record.write({"id": number, "characters_in": 3, **sent})
    answer = (records.key("x").hex(), STOP, "改写")
    done = {"state": "done", "tokens_in": 4, "tokens_out": 2, "characters_out": 2, "seconds": 1.5}
    record.write({"id": "1", **done, "answers": [answer]})
    failed = {"state": "failed", "tokens_in": 0, "tokens_out": 0, "answers": []}
    record.write({"id": "2", **failed})
    record.close()
    for objects in (6, 6):
        record = Record("s3a://bucket/answers", "b")
        record.begin()
        assert record.answers([records.key("x"), records.key("y")]) == {
            records.key("x"): Answer("stop", "改写")
        }
        assert record.spent() == Spent(2, 13, 11, 2)
        measured = record.measured("m")
        assert measured
        assert measured[1:] == pytest.approx((4 / 3, 1, 1.5))
        record.close()
        assert len(list_files("s3a://bucket/answers")) == objects


def test_a_record_that_is_none(tmp_path):
    (tmp_path / records.NAME).write_bytes(b"no database, whatever its name says" * 100)
    with pytest.raises(JobError, match=r"answers\.sqlite: file is not a database"):
        Record(str(tmp_path), "b")

"""`gaixie serve` as a command: it answers, drains, ends, and says what is wrong in one line."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from servers import free_port, wait_for
from services import answers
from shared import ROOT

from gaixie.service import serve

PAIRS = [{"source": "今天天气很好，我们一起去公园吧。", "paraphrase": "天气这么好，去公园吧。"}] * 9


@contextmanager
def running(*given: object) -> Iterator[tuple[str, subprocess.Popen]]:
    """Yields the address and the process of a service, once it answers."""
    port = free_port()
    line = [sys.executable, "-m", "gaixie.service.serve", "--port", port, "--tier", "core", *given]
    process = subprocess.Popen([*map(str, line)], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: answers(url), "the service", process)
        yield url, process
    finally:
        process.kill()
        process.communicate()


def test_it_needs_no_torch():
    code = "import sys, gaixie.service.serve as s; s.make_service('full', s.ServiceSettings()); "
    code += "sys.exit('torch' in sys.modules or 'pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_under_way_is_answered_at_the_end(workers):
    """After SIGTERM a request whose body is still on its way must be answered, but no new one; and
    the service must end without a word."""
    body = json.dumps({"pairs": PAIRS}).encode()
    head = "POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"Expect: 100-continue\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    with running("--workers", workers) as (url, process):
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as connection:
            connection.sendall(head.encode())
            assert connection.recv(1_000).startswith(b"HTTP/1.1 100")  # a worker wants the body
            process.send_signal(signal.SIGTERM)
            wait_for(lambda: not answers(url), "the end of new requests", process)
            connection.sendall(body)
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        assert len(json.loads(answer.partition(b"\r\n\r\n")[2])["scores"]) == len(PAIRS)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 0, stderr
        lines = [line for line in stderr.splitlines() if line.startswith("http")]
        assert lines == [f"{url}  {workers} process{'es' * (workers > 1)}"]


def test_mistakes(monkeypatch, refused):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused(serve.main, ["--tier", "core", "--port", taken.getsockname()[1]], "--port 0")
    for tokens, named in (("abc", "GAIXIE_TOKENS: entry 1"), ("me=short", "me")):
        monkeypatch.setenv("GAIXIE_TOKENS", tokens)
        assert "short" not in refused(serve.main, [], named)
    monkeypatch.delenv("GAIXIE_TOKENS")
    monkeypatch.setenv("GAIXIE_TOKENS_FILE", "/none")
    refused(serve.main, [], "/none")

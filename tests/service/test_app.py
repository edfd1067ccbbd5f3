"""Every answer in its form, whatever is asked: wrong requests, half requests, clients that go."""

from __future__ import annotations

import json
import re
import socket
from collections import Counter
from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from servers import wait_for
from services import Doubling, serving

from gaixie.service import connections
from gaixie.service.app import HEADERS, make_app
from gaixie.service.scoring import ScoringPart
from gaixie.service.settings import ServiceSettings

PAIR = {
    "source": "市图书馆将于下周二举办古籍修复体验活动。",
    "paraphrase": "下周二，市图书馆会办古籍修复活动。",
}


@pytest.fixture(scope="module")
def app():
    settings = ServiceSettings(max_pairs=20, max_rows=20, max_explained=5)
    return make_app([ScoringPart("core", settings), Doubling()], settings)


@pytest.fixture(scope="module")
def service(app):
    with serving(app) as service:
        yield service


def test_it_says_what_it_is(service):
    about = service.ask("/v1/about").json
    assert set(about["parts"]) == {"score", "double"}
    assert about["parts"]["score"]["signature"].startswith("SPScore-zh|")
    assert service.ask("/health").json == {"status": "alive"}
    assert service.ask("/ready").json == {"status": "ready"}


@pytest.mark.parametrize("path", ["/v1/about", "/v1/none", "/openapi.json"])
def test_every_answer_has_the_headers_of_safety(service, path):
    answer = service.ask(path)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "Server" not in answer.headers
    assert "Set-Cookie" not in answer.headers


def body(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


WRONG = {
    "nothing": (b"", "application/json", 422),
    "no json": (b"{", "application/json", 422),
    "half a pair": (body('{"pairs": [{"source": "a"}]}'), "application/json", 422),
    "a list": (b"[]", "application/json", 422),
    "null": (b"null", "application/json", 422),
    "no pairs": (b'{"pairs": []}', "application/json", 422),
    "null text": (b'{"pairs": [{"source": null, "paraphrase": "b"}]}', "application/json", 422),
    "number": (b'{"pairs": [{"source": 1, "paraphrase": "b"}]}', "application/json", 422),
    "NaN": (b'{"pairs": [{"source": NaN, "paraphrase": "b"}]}', "application/json", 422),
    "huge number": (b'{"pairs": ' + b"9" * 10_000 + b"}", "application/json", 400),
    "1e999": (b'{"pairs": 1e999}', "application/json", 422),
    "deep": (b"[" * 100_000 + b"]" * 100_000, "application/json", 400),
    "deep objects": (b'{"pairs":' * 50_000 + b"1" + b"}" * 50_000, "application/json", 400),
    "surrogate": (
        b'{"pairs": [{"source": "\\ud800", "paraphrase": "b"}]}',
        "application/json",
        422,
    ),
    "raw surrogate": (
        body('{"pairs": [{"source": "\ud800", "paraphrase": "b"}]}'),
        "application/json",
        422,
    ),
    "field of surrogates": (b'{"\\ud800": 1, "pairs": []}', "application/json", 422),
    "field of lines": (b'{"a\\nb": 1}', "application/json", 422),
    "long field": (b'{"' + b"a" * 100_000 + b'": 1}', "application/json", 422),
    "not UTF-8": (b'{"pairs": [{"source": "\xff", "paraphrase": "b"}]}', "application/json", 400),
    "NUL": (b'{"pairs": [{"source": "a\\u0000", "paraphrase": "b"}]}', "application/json", 422),
    "raw NUL": (b'{"pairs": [{"source": "a\0", "paraphrase": "b"}]}', "application/json", 422),
    "unknown field": (
        b'{"pairs": [{"source": "a", "paraphrase": "b"}], "x": 1}',
        "application/json",
        422,
    ),
    "unknown field of a pair": (
        b'{"pairs": [{"source": "a", "paraphrase": "b", "path": "/etc"}]}',
        "application/json",
        422,
    ),
    "text": (json.dumps({"pairs": [PAIR]}).encode(), "text/plain", 422),
    "form": (b"pairs=1", "application/x-www-form-urlencoded", 422),
    "21 pairs": (json.dumps({"pairs": [PAIR] * 21}).encode(), "application/json", 413),
    "6 to explain": (
        json.dumps({"pairs": [PAIR] * 6, "explain": True}).encode(),
        "application/json",
        413,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_gets_one_line(service, name):
    given, kind, status = WRONG[name]
    answer = service.ask("/v1/score", given, Content_Type=kind)
    assert answer.error()[0] == status
    assert len(answer.error()[2]) <= 300
    assert "value error" not in answer.error()[2].lower()


def test_the_line_names_the_place_and_not_the_text(service):
    given = {"pairs": [PAIR, {"source": "好", "paraphrase": ["秘密"]}]}
    message = service.ask("/v1/score", given).error()[2]
    assert message == "pairs.1.paraphrase: input should be a valid string"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/none", 404),
        ("GET", "/redoc", 404),
        ("GET", "/v1/score", 405),
        ("PUT", "/v1/score", 405),
        ("DELETE", "/v1/about", 405),
        ("POST", "/health", 405),
        ("BREW", "/v1/score", 400),
        ("GET", "/%00", 404),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/page/..%2f..%2fapp.py", 404),
        ("GET", "/page/../app.py", 404),
        ("POST", "/v1/score/", 404),
    ],
)
def test_a_wrong_address_or_method(service, method, path, status):
    answer = service.ask(path, method=method)
    assert answer.status == status
    if method != "BREW":  # which the parser of HTTP refuses, by itself
        assert answer.error()[0] == status


def test_an_error_that_nobody_thought_of_shows_nothing(service, capfd):
    answer = service.ask("/v1/double", {"numbers": [0]})
    assert answer.error() == (500, "internal", "an error of the service, which its log explains")


def test_nothing_loads_from_elsewhere(service):
    document = service.ask("/openapi.json")
    assert not re.search(rb'"https?://', document.body)


def test_the_document_describes_every_route(app):
    document = app.openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation.get("description"), (method, path)
            assert "HTTPValidationError" not in json.dumps(operation), path
            assert "4XX" in operation["responses"]
    schemas = document["components"]["schemas"]
    assert schemas["PairIn"]["properties"]["source"]["examples"]


CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize(
    ("path", "examples"), [("/v1/score", 100), ("/v1/score-table", 60), ("/v1/about", 5)]
)
def test_requests_that_nobody_thought_of(app, service, path, examples, mode):
    """Right ones (positive) and wrong ones (negative), made of what /openapi.json says."""
    schema = schemathesis.openapi.from_dict(app.openapi())
    (operation,) = [one.ok() for one in schema.get_all_operations() if one.ok().path == path]
    seen = Counter()

    @settings(max_examples=examples, database=None, suppress_health_check=[*HealthCheck])
    @given(operation.as_strategy(mode))
    def ask(case):
        response = case.call(base_url=service.url)
        seen[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    try:
        ask()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE  # there is nothing to do wrong
        return
    assert max(seen) < 500
    if (path, mode) == ("/v1/score", GenerationMode.POSITIVE):
        assert seen[200]


# Raw sockets: what no library would send.

SCORE = json.dumps({"pairs": [PAIR]}).encode()


def request(body: bytes = SCORE, *lines: str, version: str = "1.1") -> bytes:
    head = [f"POST /v1/score HTTP/{version}", "Host: x", "Content-Type: application/json"]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", *lines, "", ""]).encode() + body


def answers(connection: socket.socket, count: int) -> list[tuple[int, bytes]]:
    """(status, body) of so many answers."""
    stream = connection.makefile("rb")
    found = []
    for _ in range(count):
        status = int(stream.readline().split()[1])
        length = 0
        while line := stream.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        found.append((status, stream.read(length)))
    return found


def test_several_requests_at_once_are_answered_in_their_order(service):
    singles = [json.dumps({"numbers": [k]}).encode() for k in range(1, 6)]
    with service.connect() as connection:
        connection.sendall(b"".join(request(own).replace(b"/score", b"/double") for own in singles))
        found = answers(connection, 5)
    assert [json.loads(text)["doubled"] for _, text in found] == [[2 * k] for k in range(1, 6)]


def test_a_request_in_small_pieces_is_one(service):
    with service.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        whole = request()
        for start in range(0, len(whole), 7):
            connection.sendall(whole[start : start + 7])
        ((status, text),) = answers(connection, 1)
    assert status == 200
    assert len(json.loads(text)["scores"]) == 1


def test_the_old_protocol_is_answered_and_closed(service):
    with service.connect() as connection:
        connection.sendall(request(version="1.0"))
        stream = connection.makefile("rb").read()
    assert stream.split(b"\r\n")[0].endswith(b"200 OK")
    assert json.loads(stream.partition(b"\r\n\r\n")[2])["scores"]


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",  # TLS
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 200_000 + b"\r\n\r\n",
    ],
    ids=range(10),
)
def test_what_is_no_http_ends_one_connection_alone(service, sent):
    with service.connect() as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.makefile("rb").read()
        except ConnectionError:
            answer = b""
    assert not answer or answer.split()[1] in (b"400", b"413", b"422", b"431", b"200"), answer[:200]
    assert b" 500 " not in answer.split(b"\r\n")[0]
    assert service.ask("/health").status == 200


def test_half_a_request_keeps_nobody_waiting(service):
    halves = [service.connect() for _ in range(50)]
    try:
        for number, connection in enumerate(halves):
            connection.sendall(request()[: 20 + 5 * number])
        assert service.ask("/v1/score", SCORE, Content_Type="application/json").status == 200
    finally:
        for connection in halves:
            connection.close()
    assert service.ask("/v1/score", SCORE, Content_Type="application/json").status == 200


def test_a_head_that_does_not_come_is_closed_and_connections_are_bounded(monkeypatch, capfd):
    """Whatever the pace of its bytes; one line of the log, not one for each."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 1.0)
    monkeypatch.setattr(connections, "most_connections", lambda: 8)
    connections._said.clear()
    with serving(make_app([Doubling()], ServiceSettings())) as service:
        slow = [service.connect() for _ in range(8)]
        for connection in slow:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: x")
        with service.connect() as ninth, suppress(ConnectionResetError):
            assert ninth.recv(10) == b""
        for connection in slow:
            with suppress(ConnectionResetError):
                connection.sendall(b"y")
                assert connection.recv(10) == b""
            connection.close()
        assert service.ask("/health").status == 200
    lines = [line for line in capfd.readouterr().err.splitlines() if not line.startswith("{")]
    assert lines == [
        "8 connections are open: no more are taken",
        "a connection without a whole request in 1 s was closed",
    ]


def test_without_a_model_paraphrase_says_so():
    with serving(make_app([Doubling()], ServiceSettings())) as service:
        message = service.ask("/v1/paraphrase", {"text": "今天"}).error()[2]
        assert message == "this service has no model that writes; gaixie serve starts one that has"


@pytest.fixture
def held():
    """A service whose thread is at work on one request as long as the test lasts."""
    part = Doubling(queue=3)
    with serving(make_app([part], ServiceSettings())) as service:
        part.go.clear()
        with service.connect() as first:
            first.sendall(double([7]))
            assert part.begun.wait(60)
            try:
                yield service, part
                part.go.set()
                assert json.loads(answers(first, 1)[0][1]) == {"doubled": [14]}
            finally:
                part.go.set()


def double(numbers: list[int]) -> bytes:
    return request(json.dumps({"numbers": numbers}).encode()).replace(b"/score", b"/double")


def test_a_client_that_goes_takes_its_items_from_the_queue(held):
    service, part = held
    with service.connect() as gone:
        gone.sendall(double([1, 2]))
        wait_for(lambda: part.batcher.length == 2, "its items")
    wait_for(lambda: part.batcher.length == 0, "the queue to be empty")
    part.go.set()
    assert service.ask("/v1/double", {"numbers": [3]}).json == {"doubled": [6]}
    assert part.worked == [7, 3]


def test_a_full_queue_answers_429(held):
    service, part = held
    with service.connect() as second:
        second.sendall(double([1, 2]))
        wait_for(lambda: part.batcher.length == 2, "its items")
        answer = service.ask("/v1/double", {"numbers": [3, 4]})
        assert answer.error() == (429, "too_many", "2 wait already")
        assert int(answer.headers["Retry-After"]) >= 1
        part.go.set()
        assert json.loads(answers(second, 1)[0][1]) == {"doubled": [2, 4]}


def test_what_takes_too_long_is_answered_503(held):
    service, part = held
    part.timeout = 0.05
    answer = service.ask("/v1/double", {"numbers": [3]})
    assert answer.error() == (503, "unavailable", "not done within 0.05 s")
    assert int(answer.headers["Retry-After"]) >= 1
    assert part.batcher.length == 0

"""Every answer must have its form: for wrong requests, half requests and clients that leave."""

import json
import re
import socket

import pytest
from servers import wait_for
from services import Doubling, serving

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


JSON = "application/json"


def pair(source: bytes) -> bytes:
    return b'{"pairs": [{"source": %b, "paraphrase": "b"}]}' % source


WRONG = {
    "nothing": (b"", JSON, 422),
    "no json": (b"{", JSON, 422),
    "half a pair": (b'{"pairs": [{"source": "a"}]}', JSON, 422),
    "no pairs": (b'{"pairs": []}', JSON, 422),
    "NaN": (pair(b"NaN"), JSON, 422),
    "huge number": (b'{"pairs": ' + b"9" * 10_000 + b"}", JSON, 400),
    "deep": (b"[" * 100_000 + b"]" * 100_000, JSON, 400),
    "surrogate": (pair(b'"\\ud800"'), JSON, 422),
    "field of surrogates": (b'{"\\ud800": 1, "pairs": []}', JSON, 422),
    "long field": (b'{"' + b"a" * 100_000 + b'": 1}', JSON, 422),
    "not UTF-8": (pair(b'"\xff"'), JSON, 400),
    "NUL": (pair(b'"a\\u0000"'), JSON, 422),
    "unknown field": (pair(b'"a", "path": "/etc"'), JSON, 422),
    "text": (json.dumps({"pairs": [PAIR]}).encode(), "text/plain", 422),
    "21 pairs": (json.dumps({"pairs": [PAIR] * 21}).encode(), JSON, 413),
    "6 to explain": (json.dumps({"pairs": [PAIR] * 6, "explain": True}).encode(), JSON, 413),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_gets_one_line(service, name):
    given, kind, status = WRONG[name]
    answer = service.ask("/v1/score", given, Content_Type=kind)
    assert answer.error()[0] == status
    assert len(answer.error()[2]) <= 300
    assert "value error" not in answer.error()[2].lower()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/none", 404),
        ("GET", "/v1/score", 405),
        ("POST", "/health", 405),
        ("BREW", "/v1/score", 400),
        ("GET", "/%00", 404),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/page/..%2f..%2fapp.py", 404),
        ("POST", "/v1/score/", 404),
    ],
)
def test_a_wrong_address_or_method(service, method, path, status):
    answer = service.ask(path, method=method)
    assert answer.status == status
    if method != "BREW":  # the HTTP parser itself refuses BREW
        assert answer.error()[0] == status


def test_an_error_that_nobody_thought_of_shows_nothing(service, capfd):
    answer = service.ask("/v1/double", {"numbers": [0]})
    assert answer.error() == (500, "internal", "an error in the service; its log explains it")


def test_the_document_describes_every_route(app):
    document = app.openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation.get("description"), (method, path)
            assert "HTTPValidationError" not in json.dumps(operation), path
            assert "4XX" in operation["responses"]
    assert not re.search(r'"https?://', json.dumps(document))  # nothing loads from another host
    schemas = document["components"]["schemas"]
    assert schemas["PairIn"]["properties"]["source"]["examples"]


# Raw sockets send what no library would.

SCORE = json.dumps({"pairs": [PAIR]}).encode()


def request(body: bytes = SCORE, *lines: str, version: str = "1.1") -> bytes:
    head = [f"POST /v1/score HTTP/{version}", "Host: x", "Content-Type: application/json"]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", *lines, "", ""]).encode() + body


def answers(connection: socket.socket, count: int) -> list[tuple[int, bytes]]:
    """Reads (status, body) of ``count`` answers."""
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


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",  # TLS
        b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 200_000 + b"\r\n\r\n",
    ],
    ids=range(6),
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


def test_without_a_model_paraphrase_says_so():
    with serving(make_app([Doubling()], ServiceSettings())) as service:
        message = service.ask("/v1/paraphrase", {"text": "今天"}).error()[2]
        assert (
            message
            == "this service has no model that writes; gaixie serve starts a service with one"
        )


@pytest.fixture
def held():
    """Yields a service whose thread works on one request for the whole test."""
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


def test_a_full_queue_answers_429_and_what_takes_too_long_503(held):
    service, part = held
    with service.connect() as second:
        second.sendall(double([1, 2]))
        wait_for(lambda: part.batcher.length == 2, "its items")
        full = service.ask("/v1/double", {"numbers": [3, 4]})
        assert full.error() == (429, "too_many", "2 items are already waiting")
        part.timeout = 0.05
        late = service.ask("/v1/double", {"numbers": [3]})
        assert late.error() == (503, "unavailable", "not done within 0.05 s")
        assert all(int(answer.headers["Retry-After"]) >= 1 for answer in (full, late))
        assert part.batcher.length == 2
        part.go.set()
        assert json.loads(answers(second, 1)[0][1]) == {"doubled": [2, 4]}

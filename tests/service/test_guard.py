"""Tokens, quotas and rates: who may ask, how much, and how often."""

import http.client
import json
import socket
import time

import pytest
from services import Doubling, serving

from gaixie.service.app import make_app
from gaixie.service.guard import Account
from gaixie.service.refusals import Refused
from gaixie.service.settings import ServiceSettings, read_tokens

TOKENS = {"anna": "a-token-of-anna-1", "bert": "a-token-of-bert-2"}


def app(**settings):
    return make_app([Doubling()], ServiceSettings(**settings))


@pytest.fixture(scope="module")
def guarded():
    with serving(app(tokens=TOKENS)) as service:
        yield service


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_a_token_lets_in(guarded, name, scheme):
    answer = guarded.ask("/v1/double", {"numbers": [1]}, Authorization=f"{scheme} {TOKENS[name]}")
    assert (answer.status, answer.json) == (200, {"doubled": [2]})


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer a-token-of-anna-"},
        {"Authorization": "Bearer a-token-of-anna-12"},
        {"Authorization": "Bearer A-TOKEN-OF-ANNA-1"},
        {"Authorization": "Basic a-token-of-anna-1"},
        {"Authorization": "Bearer \xe9\xff"},
        {"Authorization": "Bearer a-token-of-anna-1 a-token-of-bert-2"},
    ],
)
@pytest.mark.parametrize("path", ["/v1/double", "/v1/unknown", "/v1/%64ouble", "/v1/about/"])
def test_nothing_else_does(guarded, header, path):
    answer = guarded.ask(path, {"numbers": [1]}, **header)
    assert answer.error()[:2] == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert b"anna" not in answer.body


@pytest.mark.parametrize("path", ["/v1/about", "/health", "/ready", "/metrics", "/openapi.json"])
def test_what_needs_no_token_shows_none(guarded, path):
    answer = guarded.ask(path)
    assert answer.status == 200
    assert not any(token.encode() in answer.body for token in TOKENS.values())
    if path == "/v1/about":
        assert answer.json["token_needed"] is True
        assert answer.json["parts"] == {"double": {"examples": [1]}}
        assert answer.json["limits"]["max_pairs"] == 1_000


def test_tokens_are_read_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("GAIXIE_TOKENS_FILE", raising=False)
    monkeypatch.delenv("GAIXIE_TOKENS", raising=False)
    assert read_tokens() == {}
    monkeypatch.setenv("GAIXIE_TOKENS", "anna=a-token-of-anna-1, bert=a-token-of-bert=2=\n")
    assert read_tokens() == {"anna": "a-token-of-anna-1", "bert": "a-token-of-bert=2="}
    file = tmp_path / "tokens"
    file.write_text("carl=a-token-of-carl-3\n")
    monkeypatch.setenv("GAIXIE_TOKENS_FILE", str(file))  # like a mounted secret
    assert read_tokens() == {"carl": "a-token-of-carl-3"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a-token-of-anna-1", "entry 1: expected NAME=TOKEN"),
        ("anna=a-token-of-anna-1 =a-token-of-bert-2", "entry 2: expected NAME=TOKEN"),
        ("anna=secret", "anna: expected 16 or more ASCII characters"),
        ("a=a-token-of-anna-1 b=a-token-of-anna-1", "b: the name or its token is given twice"),
    ],
)
def test_a_wrong_entry_is_named_and_not_shown(monkeypatch, text, said):
    monkeypatch.delenv("GAIXIE_TOKENS_FILE", raising=False)
    monkeypatch.setenv("GAIXIE_TOKENS", text)
    with pytest.raises(ValueError, match="GAIXIE_TOKENS") as error:
        read_tokens()
    assert str(error.value) == f"GAIXIE_TOKENS: {said}"


@pytest.fixture(scope="module")
def small():
    with serving(app(max_body=1_000, body_timeout=0.3)) as service:
        yield service


@pytest.mark.parametrize("size", [1_001, 3_999, 4_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_read_and_refused(small, size, chunked):
    body = json.dumps({"numbers": [1]}).encode().ljust(size)
    sent = iter([body[:700], body[700:]]) if chunked else body
    connection = http.client.HTTPConnection("127.0.0.1", small.port, timeout=60)
    connection.request("POST", "/v1/double", sent, {"Content-Type": "application/json"})
    response = connection.getresponse()
    assert response.status == 413
    assert json.load(response)["error"]["message"] == "the body has more than 1,000 bytes"
    connection.close()


def read_all(connection: socket.socket) -> bytes:
    pieces = []
    while piece := connection.recv(65_536):
        pieces.append(piece)
    return b"".join(pieces)


HEAD = b"POST /v1/double HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def test_a_huge_body_is_refused_before_it_comes(small):
    with small.connect() as connection:
        connection.sendall(HEAD + b"Content-Length: 4001\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 413 ")


def test_a_body_without_end_is_refused_when_it_is_too_long(small):
    with small.connect() as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(5):
            connection.sendall(b"3e8\r\n" + b" " * 1_000 + b"\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 413 ")


def test_a_body_that_does_not_come_is_given_up(small):
    with small.connect() as connection:
        connection.sendall(HEAD + b"Content-Length: 15\r\n\r\n{")
        assert read_all(connection).startswith(b"HTTP/1.1 408 ")
    assert small.ask("/health").status == 200


def test_requests_a_minute(monkeypatch):
    settings = {"requests_per_minute": 2, "tokens": TOKENS}
    own = {name: {"Authorization": f"Bearer {token}"} for name, token in TOKENS.items()}
    with serving(app(**settings)) as service:
        asked = [service.ask("/v1/double", {"numbers": [1]}, **own["anna"]) for _ in range(3)]
        assert [answer.status for answer in asked] == [200, 200, 429]
        assert asked[2].error()[1:] == ("too_many", "too many requests a minute")
        assert 25 <= int(asked[2].headers["Retry-After"]) <= 30
        assert service.ask("/v1/double", {"numbers": [1]}, **own["bert"]).status == 200
        assert all(service.ask("/health").status == 200 for _ in range(5))  # probes are not limited


def test_a_bucket_fills_up_by_the_second(monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    account = Account("anna", (None, 10 / 60))  # ten pairs per minute
    account.spend(1, 6)
    with pytest.raises(Refused) as refused:
        account.spend(1, 5)
    assert refused.value.retry_after == pytest.approx(6.0)  # one is missing
    now += 5.9
    with pytest.raises(Refused):
        account.spend(1, 5)
    now += 0.2
    account.spend(1, 5)
    now += 10_000
    account.spend(1, 25)  # more than the bucket holds: allowed when full, then in debt
    with pytest.raises(Refused) as refused:
        account.spend(1, 1)
    assert refused.value.retry_after == pytest.approx(96.0)


def test_several_processes_share_a_rate():
    """Each process must allow its share of the rate, so that all together allow the whole."""
    with serving(app(requests_per_minute=6, workers=3)) as service:
        asked = [service.ask("/v1/double", {"numbers": [1]}).status for _ in range(3)]
    assert asked == [200, 200, 429]


def test_the_log_holds_neither_text_nor_token(capfd):
    with serving(app(tokens=TOKENS)) as service:
        capfd.readouterr()
        header = {"Authorization": f"Bearer {TOKENS['anna']}"}
        service.ask("/v1/double?secret=5", {"numbers": [12345]}, **header)
        service.ask("/v1/of-a-client", {"numbers": [12345]}, **header)
        service.ask("/v1/double", {"numbers": [12345]}, Authorization="Bearer a-wrong-one-of-eve")
    log = capfd.readouterr().err
    first, second, third = map(json.loads, log.splitlines())
    assert first["route"] == "/v1/double"
    assert first["status"] == 200
    assert first["client"] == "token anna"
    assert first["ms"] >= 0
    assert (second["route"], second["status"]) == ("other", 404)
    assert third["status"] == 401
    assert not any(text in log for text in ("12345", "secret", "a-token", "eve", "of-a-client"))


def test_other_origins_are_not_allowed_unless_named(guarded):
    asked = {"Origin": "https://other.example", "Access_Control_Request_Method": "POST"}
    answer = guarded.ask("/v1/about", Origin="https://other.example")
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert guarded.ask("/v1/double", method="OPTIONS", **asked).status in (401, 405)
    with serving(app(cors=["https://other.example"], tokens=TOKENS)) as service:
        answer = service.ask("/v1/double", method="OPTIONS", **asked)
        assert answer.status == 200
        assert answer.headers["Access-Control-Allow-Origin"] == "https://other.example"
        third = service.ask("/v1/about", Origin="https://third.example")
        assert "Access-Control-Allow-Origin" not in third.headers
        assert "Set-Cookie" not in third.headers

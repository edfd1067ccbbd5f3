"""Every answer must have its form: for wrong requests, half requests and clients that leave."""

import json

import pytest
from servers import wait_for
from services import Answer, Doubling, serving

from gaixie.service.app import HEADERS, make_app
from gaixie.service.scoring import ScoringPart
from gaixie.service.settings import ServiceSettings

PAIR = {
    "source": "市图书馆将于下周二举办古籍修复活动。",
    "paraphrase": "下周二，市图书馆会修复古籍。",
}
JSON = "application/json"
TOKEN = "a-secret-of-sixteen"


@pytest.fixture(scope="module")
def app():
    settings = ServiceSettings(max_pairs=20, max_rows=20, max_body=1_000_000)
    return make_app([ScoringPart("core", settings), Doubling()], settings)


def test_it_says_what_it_is(service):
    about = service.ask("/v1/about").json
    assert set(about["parts"]) == {"score", "double"}
    assert about["parts"]["score"]["signature"].startswith("SPScore-zh|")
    assert "tokens" not in about["limits"]
    assert service.ask("/health").status == service.ask("/ready").status == 200


def test_every_answer_has_the_headers_of_safety(service):
    for path in ("/v1/about", "/v1/none", "/openapi.json"):
        answer = service.ask(path)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert not {"Server", "Set-Cookie"} & {*answer.headers}


def pair(source: bytes) -> bytes:
    return b'{"pairs": [{"source": %b, "paraphrase": "b"}]}' % source


WRONG = {
    "no json": (b"{", JSON, 422),
    "no pairs": (b'{"pairs": []}', JSON, 422),
    "NaN": (pair(b"NaN"), JSON, 422),
    "deep": (b"[" * 100_000 + b"]" * 100_000, JSON, 400),
    "field of surrogates": (b'{"\\ud800": 1, "pairs": []}', JSON, 422),
    "not UTF-8": (pair(b'"\xff"'), JSON, 400),
    "empty": (b"", JSON, 422),
    "key twice": (pair(b'"a", "source": "b"'), JSON, 422),
    "unknown field": (pair(b'"a", "path": "/etc"'), JSON, 422),
    "text": (json.dumps({"pairs": [PAIR]}).encode(), "text/plain", 422),
    "21 pairs": (json.dumps({"pairs": [PAIR] * 21}).encode(), JSON, 413),
    "too many bytes": (pair(b'"' + b"a" * 1_000_000 + b'"'), JSON, 413),
}
SAID = {"key stands twice": ["key twice"], "a JSON object": ["empty"], "JSON in": ["not UTF-8"]}


def test_a_wrong_request_gets_one_line(service):
    for name, (given, kind, status) in WRONG.items():
        answer = service.ask("/v1/score", given, Content_Type=kind)
        assert answer.error()[0] == status, name
        for said, of in SAID.items():
            assert said in answer.error()[2] or name not in of
    for path, status in {"/v1/none": 404, "/v1/score": 405, "/page/..%2f..%2fapp.py": 404}.items():
        assert service.ask(path).error()[0] == status
    assert service.ask("/v1/score/", method="POST").error()[0] == 404


def test_half_a_surrogate_pair_costs_its_pair_alone(service):
    broken = json.dumps({"pairs": [PAIR, PAIR | {"source": "今天\ud83d很好。"}]}).encode()
    good, bad = service.ask("/v1/score", broken, Content_Type=JSON).json["scores"]
    assert good["spscore"] > 0
    assert (bad["spscore"], bad["reason"]) == (None, "undecodable")


def test_a_token_opens_what_it_should():
    settings = ServiceSettings(tokens={"me": TOKEN})
    with serving(make_app([Doubling()], settings)) as service:
        for given, status in (("", 401), (f"Bearer {TOKEN}x", 401), (f"Bearer {TOKEN}", 200)):
            headers = {"Authorization": given} if given else {}
            assert service.ask("/v1/double", {"numbers": [1]}, **headers).status == status
        assert service.ask("/v1/about").json["token_needed"]
        assert service.ask("/").status == service.ask("/ready").status == 200


def test_an_error_that_nobody_thought_of_shows_nothing(service, capfd):
    status, code, message = service.ask("/v1/double", {"numbers": [0]}).error()
    assert (status, code) == (500, "internal")
    assert "nobody" not in message


@pytest.fixture
def held():
    """Yields a service whose thread works on one request for the whole test."""
    part = Doubling(queue=3)
    with serving(make_app([part], ServiceSettings())) as service:
        part.go.clear()
        with service.asking("/v1/double", {"numbers": [7]}) as first:
            assert part.begun.wait(60)
            try:
                yield service, part
                part.go.set()
                assert Answer(first.getresponse()).json == {"doubled": [14]}
            finally:
                part.go.set()


def test_a_client_that_goes_takes_its_items_from_the_queue(held):
    service, part = held
    with service.asking("/v1/double", {"numbers": [1, 2]}):
        wait_for(lambda: part.batcher.length == 2, "its items")
    wait_for(lambda: all(one.future.done() for one in part.batcher._waiting), "it to leave")
    part.go.set()
    assert service.ask("/v1/double", {"numbers": [3]}).json == {"doubled": [6]}
    assert part.worked == [7, 3]


def test_a_full_queue_answers_429_and_what_takes_too_long_503(held):
    service, part = held
    with service.asking("/v1/double", {"numbers": [1, 2]}) as second:
        wait_for(lambda: part.batcher.length == 2, "its items")
        full = service.ask("/v1/double", {"numbers": [3, 4]})
        assert full.error()[:2] == (429, "too_many")
        part.timeout = 0.05
        late = service.ask("/v1/double", {"numbers": [3]})
        assert late.error()[:2] == (503, "unavailable")
        assert all(int(one.headers["Retry-After"]) >= 1 for one in (full, late))
        part.go.set()
        assert Answer(second.getresponse()).json == {"doubled": [2, 4]}
        assert part.worked == [7, 1, 2]  # and not what came too late

"""The client against a real service, and against one with scripted answers."""

import json
import time

import pytest
from fastapi import APIRouter, Request, Response
from services import serving

from gaixie.service.app import make_app
from gaixie.service.client import Client, ServiceError
from gaixie.service.part import Part
from gaixie.service.scoring import ScoringPart
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.spscore import OUTPUTS, SPScore

PAIRS = [
    (f"第{k}次会议将于下周二在市图书馆举行。", f"市图书馆将在下周二召开第{k}次会议。")
    for k in range(25)
]
TOKEN = "a-secret-of-sixteen"


@pytest.fixture(scope="module")
def service():
    settings = ServiceSettings(max_pairs=4, max_explained=3, tokens={"me": TOKEN})
    with serving(make_app([ScoringPart("core", settings)], settings)) as service:
        yield service


def test_long_lists_go_in_parts_and_come_back_in_order(service):
    client = Client(service.url, TOKEN)
    scores = client.score(PAIRS)
    expected = SPScore.load().judge(*zip(*PAIRS, strict=True))
    assert len(scores) == len(PAIRS)
    for name in OUTPUTS:
        assert [one[name] for one in scores] == pytest.approx(expected[name].tolist(), abs=1e-6)
    explained = client.score(PAIRS[:7], explain=True, changes=True)
    assert all(one["changes"]["source"] and isinstance(one["reasons"], list) for one in explained)
    assert client.score([]) == []
    assert client.models() == []
    assert client.ready()


def test_what_the_service_says_is_what_is_raised(service):
    with pytest.raises(ServiceError, match="bearer token") as refused:
        Client(service.url, "wrong").score(PAIRS[:1])
    assert refused.value.status == 401
    with pytest.raises(ServiceError, match=r"surrogate|string|unicode") as refused:
        Client(service.url, TOKEN).score([("\ud800", "b")])
    assert refused.value.status in (400, 422)
    closed, began = Client("http://127.0.0.1:9"), time.monotonic()
    with pytest.raises(ServiceError, match=r"127\.0\.0\.1:9: nothing listens .* gaixie serve"):
        closed.about()
    assert time.monotonic() - began < 2  # it does not retry
    assert not closed.ready()


class Scripted(Part):
    """Serves POST /v1/score, which fails as scripted before it answers."""

    name = "score"

    def __init__(self, statuses: list[int]):
        self.statuses = statuses
        self.router = APIRouter(prefix="/v1")
        self.router.post("/score")(self.score)

    async def score(self, request: Request) -> Response:
        if not self.statuses:
            count = len((await request.json())["pairs"])
            return Response(json.dumps({"scores": [{}] * count}))
        status = self.statuses.pop(0)
        if status == 200:  # the answer is cut short
            return Response('{"scores": [')
        return Response("busy", status, {"Retry-After": "0"})


def test_it_tries_again():
    part = Scripted([503, 429, 200, 502, 503])
    with serving(make_app([part], ServiceSettings())) as service:
        client = Client(service.url, retries=5)
        assert client.score(PAIRS[:2]) == [{}, {}]
        assert part.statuses == []
        part.statuses += [503] * 3
        with pytest.raises(ServiceError, match="503"):
            Client(service.url, retries=1).score(PAIRS[:1])
        assert part.statuses == [503]  # two tries
        part.statuses[:] = [418]
        with pytest.raises(ServiceError, match="418"):
            client.score(PAIRS[:1])
        assert part.statuses == []  # permanent errors are not retried

"""POST /v1/paraphrase: candidates of the library, judged, sorted, filtered and counted."""

from functools import partial
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from gaixie.service.app import make_app
from gaixie.service.paraphrasing import ParaphrasingPart
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.paraphrase.paraphraser import Paraphrase, Paraphraser
from gaixie.udfs.spscore import OUTPUTS, SPScore

SOURCES = [
    "会议原定周四举行，但因为暴雨推迟到了下周。",
    "我没有生你的气，只是今天太累了，不想说话而已。",
]
WRITTEN = {
    SOURCES[0]: [
        "会议原定周四举行，但因为暴雨取消了。",
        "因为暴雨，原定周四的会议延期到了下个星期。",
        "会议原定星期四举行，但因为暴雨推迟到了下周。",
        "今天天气很好，我们一起去公园吧。",  # another meaning
    ]
}


def client_of(load) -> TestClient:
    settings = ServiceSettings(max_texts=8, max_characters=60)
    return TestClient(make_app([ParaphrasingPart("core", settings, load)], settings))


@pytest.fixture(scope="module")
def client(known_writer):
    with client_of(partial(Paraphraser.load, known_writer)) as client:
        yield client


@pytest.fixture(scope="module")
def scripted():
    """Yields a client of a service whose candidates are WRITTEN's."""

    class Scripted:
        writer = SimpleNamespace(name="scripted")

        def __call__(self, texts, wanted):
            written = [WRITTEN.get(text, [])[: wanted.n] for text in texts]
            return [[Paraphrase(one, 1.0) for one in own] for own in written]

    with client_of(Scripted) as made:
        yield made


def ask(client, **given) -> dict:
    answer = client.post("/v1/paraphrase", json=given)
    assert answer.status_code == 200, answer.text
    assert "NaN" not in answer.text
    return answer.json()


def test_the_candidates_are_judged_by_the_metric(client):
    answer, metric = ask(client, texts=SOURCES, n=3, degree=4), SPScore.load()
    for source, result in zip(SOURCES, answer["results"], strict=True):
        texts = [one["text"] for one in result["candidates"]]
        assert 1 <= len(texts) <= 3
        rows = metric.outputs([source] * len(texts), texts)
        for one, row in zip(result["candidates"], rows.tolist(), strict=True):
            assert [one[name] for name in OUTPUTS] == pytest.approx(row, abs=1e-6)
    assert answer["signature"] == metric.signature()


def test_what_is_no_paraphrase_is_hidden_and_the_order_is_kept(scripted):
    [result] = ask(scripted, text=SOURCES[0], n=9, keep=["推迟", "暴雨", "地震"])["results"]
    assert result["absent"] == ["地震"]
    found = [one["text"] for one in result["candidates"]]
    assert found == [text for text in WRITTEN[SOURCES[0]] if text in found]
    assert result["left_out"] == 4 - len(found) > 0
    [result] = ask(scripted, text=SOURCES[1])["results"]
    assert (result["candidates"], result["reason"]) == ([], "nothing_good_enough")


def test_reasons_and_changes_are_of_each_candidate(scripted):
    [result] = ask(scripted, text=SOURCES[0], n=2, explain=True, changes=True)["results"]
    assert len(result["candidates"]) == 2
    for candidate in result["candidates"]:
        assert "".join(one["text"] for one in candidate["changes"]["source"]) == SOURCES[0]
        text = "".join(one["text"] for one in candidate["changes"]["paraphrase"])
        assert (text, type(candidate["reasons"])) == (candidate["text"], list)


def test_a_text_of_which_nothing_can_be_written(client):
    texts = ["", " \u3000", "他\ufffd看花", "花" * 61, "How are you?", SOURCES[0]]
    results = ask(client, texts=texts, n=1)["results"]
    reasons = ["empty", "empty", "undecodable", "too_long", "no_han", None]
    assert [result["reason"] for result in results] == reasons
    assert [bool(result["candidates"]) for result in results] == [False] * 5 + [True]


def test_what_is_refused(client):
    for given, named in (
        ({"text": "他看花", "degree": 9}, "degree"),
        ({"text": "他看花", "n": 0}, "n:"),
        ({"texts": ["他看花"] * 9}, "at most 8"),
        ({"texts": []}, "texts"),
        ({"text": "他看花", "texts": ["他"]}, "either text or texts"),
        ({}, "either text or texts"),
        ({"text": "他看花", "keep": ["花"]}, "2 to 40"),
        ({"text": "他看花", "style": "正式"}, "style"),
        ({"text": "他看花", "tone": "文言"}, "tone"),
    ):
        answer = client.post("/v1/paraphrase", json=given)
        assert 400 <= answer.status_code < 500
        assert named in answer.json()["error"]["message"]

"""POST /v1/paraphrase and GET /v1/models with a tiny model, through the application."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient
from tiny_seq2seq import tiny_seq2seq

from gaixie.service.app import make_app
from gaixie.service.paraphrasing import ParaphrasingPart
from gaixie.service.scoring import ScoringPart
from gaixie.service.settings import ServiceSettings
from gaixie.service.trained_writer import Model, ModelWriter
from gaixie.training.modeling.generator import Decoding
from gaixie.training.modeling.paraphraser import Paraphraser, Ranking
from gaixie.udfs.spscore import OUTPUTS

PAIRS = [
    ("今天公园很好看", "公园今天很好看"),
    ("我们昨天读书", "昨天我们读了书"),
    ("他看花", "花他看了"),
    ("他在公园看书", "他在公园看书"),
]
SOURCES = [source for source, _ in PAIRS]
DECODING = Decoding(beams=3)
RANKING = Ranking("spscore", min_meaning=0.3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_seq2seq(tmp_path_factory.mktemp("model"), PAIRS)


@pytest.fixture(scope="module")
def client(folder):
    settings = ServiceSettings(max_texts=8, max_characters=60)
    model = Model(folder, DECODING, RANKING)
    parts = [
        ScoringPart("core", settings),
        ParaphrasingPart(ModelWriter(model, settings.max_characters), settings),
    ]
    with TestClient(make_app(parts, settings)) as client:
        yield client


def ask(client, **given) -> dict:
    answer = client.post("/v1/paraphrase", json=given)
    assert answer.status_code == 200, answer.text
    assert "NaN" not in answer.text  # NaN, for a text without entities, is not JSON
    return answer.json()


def refused(client, **given) -> str:
    answer = client.post("/v1/paraphrase", json=given)
    assert 400 <= answer.status_code < 500
    message = answer.json()["error"]["message"]
    assert "\n" not in message
    return message


def test_the_candidates_are_those_of_the_library(client, folder):
    """Candidates must equal the library's, without copies, in its order, with its judgements."""
    answer = ask(client, texts=SOURCES, n=3, seed=7)
    library = Paraphraser.load(folder, RANKING)(SOURCES, DECODING)
    for source, result, expected in zip(SOURCES, answer["results"], library, strict=True):
        assert result["source"] == source
        assert result["dropped"] == {"copies": 0, "lost_a_kept_term": 0, "no_chinese": 0}
        assert [own["text"] for own in result["candidates"]] == [own.text for own in expected[:3]]
        for found, own in zip(result["candidates"], expected, strict=False):
            for name in OUTPUTS:
                assert found[name] == pytest.approx(own.judgements[name], abs=1e-6)
    [model] = client.get("/v1/models").json()["models"]
    assert model["name"] == answer["model"]
    assert model["signature"] == answer["signature"] == library_signature(client)


def library_signature(client) -> str:
    return client.get("/v1/about").json()["parts"]["score"]["signature"]


def test_a_seed_gives_the_same_again_whatever_else_is_asked_for(client):
    asked = {"text": SOURCES[0], "n": 3, "seed": 3}
    alone = ask(client, **asked)
    with ThreadPoolExecutor(8) as threads:
        others = [threads.submit(ask, client, text=text, n=2) for text in SOURCES * 3]
        again = [threads.submit(ask, client, **asked) for _ in range(4)]
        assert all(one.result() == alone for one in again)
        for source, one in zip(SOURCES * 3, others, strict=True):
            assert one.result()["results"][0]["source"] == source


def test_kept_terms_are_kept(client):
    plain = ask(client, texts=SOURCES[:2], n=3)
    assert any("昨天" not in one["text"] for one in plain["results"][0]["candidates"])
    kept = ask(client, texts=SOURCES[:2], n=3, keep=["今天公园", "昨天"])
    for result, term in zip(kept["results"], ("今天公园", "昨天"), strict=True):
        assert all(term in one["text"] for one in result["candidates"])


def test_reasons_and_changes_are_of_each_candidate(client):
    answer = ask(client, text=SOURCES[1], n=2, explain=True, changes=True)
    for candidate in answer["results"][0]["candidates"]:
        sides = candidate["changes"]
        assert "".join(own["text"] for own in sides["source"]) == SOURCES[1]
        assert "".join(own["text"] for own in sides["paraphrase"]) == candidate["text"]
        assert isinstance(candidate["reasons"], list)


def test_a_text_of_which_nothing_can_be_written(client):
    texts = ["", " \u3000", "他\ufffd看花", "花" * 61, "他看花"]
    results = ask(client, texts=texts)["results"]
    reasons = ["empty", "empty", "undecodable", "too_long", None]
    assert [result["reason"] for result in results] == reasons
    assert [bool(result["candidates"]) for result in results] == [False] * 4 + [True]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"text": "他看花", "degree": 9}, "degree"),
        ({"text": "他看花", "n": 4}, "n: at most 3"),
        ({"text": "他看花", "n": 0}, "n:"),
        ({"texts": ["他看花"] * 9}, "at most 8"),
        ({"texts": []}, "texts"),
        ({"text": "他看花", "texts": ["他"]}, "either text or texts"),
        ({}, "either text or texts"),
        ({"text": "他看花", "keep": ["花"]}, "2 to 40"),
        ({"text": "他看花", "keep": ["花他"] * 17}, "keep"),
        ({"text": "a\0b"}, "NUL"),
        ({"text": "他看花", "beams": 3}, "beams"),
        ({"text": 3}, "text"),
    ],
)
def test_what_is_refused(client, given, named):
    assert named in refused(client, **given)

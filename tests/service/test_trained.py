"""POST /v1/paraphrase with a trained model."""

from starlette.testclient import TestClient
from tiny_seq2seq import tiny_seq2seq

from gaixie.service.listening import make_service
from gaixie.service.settings import ServiceSettings

PAIRS = [("今天公园很好看", "公园今天很好看"), ("我们昨天读书", "昨天我们读了书")]


def test_a_model_writes_and_a_seed_draws_the_same_again(tmp_path):
    app = make_service("core", ServiceSettings(), model=tiny_seq2seq(tmp_path / "model", PAIRS))
    with TestClient(app) as client:
        given = {"texts": [source for source, _ in PAIRS], "n": 3, "seed": 3}
        answer = client.post("/v1/paraphrase", json=given).json()
        assert answer["model"] == client.get("/v1/about").json()["parts"]["paraphrase"]["name"]
        for (source, paraphrase), result in zip(PAIRS, answer["results"], strict=True):
            assert result["source"] == source
            assert paraphrase in [one["text"] for one in result["candidates"]]
        assert client.post("/v1/paraphrase", json=given).json() == answer

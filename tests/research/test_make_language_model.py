"""Kneser-Ney must equal its definition, the packed model the unpacked one; the command must work.

golden/kneser_ney.jsonl has the probabilities of some n-grams of three corpora, which the class
Dictionary of this file, Chen and Goodman's equations, found in commit 9a00160. Discounts are those
of the corpus in two of them, and in orders with few n-grams fixed ones.
"""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaixie.research.fitting import kneser_ney as kn
from gaixie.research.make_language_model import Excluded, gather, main
from gaixie.udfs.meaning.language_model import MANIFEST, LanguageModel
from gaixie.udfs.meaning.language_model_kernel import BEGIN, END, FIRST_CHARACTER, WAYS

Gram = tuple[int, ...]
GOLDEN = pd.read_json(Path(__file__).parent / "golden/kneser_ney.jsonl", lines=True)


def stream_of(sentences: list[Gram]) -> np.ndarray:
    return np.array([n for s in sentences for n in (BEGIN, *s, END)], np.uint16)


def names(grams: list[kn.Grams]) -> list[list[Gram]]:
    """Returns the character ids of each n-gram, by order."""
    found: list[list[Gram]] = [[(k,) for k in range(len(grams[0].first))]]
    for order in grams[1:]:
        rows = zip(order.first.tolist(), order.suffixes.tolist(), strict=True)
        found.append([(first, *found[-1][suffix]) for first, suffix in rows])
    return found


SIZE = FIRST_CHARACTER + 5


def chain(count: int, seed: int = 3, size: int = SIZE) -> list[Gram]:
    """Returns sentences in which some characters follow others more often."""
    chance = np.random.default_rng(seed)
    numbers = np.arange(FIRST_CHARACTER, size)
    following = chance.dirichlet(np.full(len(numbers), 0.4), len(numbers))
    found = []
    for _ in range(count):
        at, sentence = 0, []
        for _ in range(chance.integers(0, 15)):
            at = int(chance.choice(len(numbers), p=following[at]))
            sentence.append(int(numbers[at]))
        found.append(tuple(sentence))
    return found


def test_estimates_are_those_of_the_definition():
    for (count, order, size), rows in GOLDEN.groupby(["sentences", "order", "size"]):
        grams = kn.count_grams(stream_of(chain(count, size=size)), order, size)
        model = kn.interpolate(grams, kn.estimate_shares(grams))
        found = {
            gram: p
            for these, values in zip(names(grams), model.probabilities, strict=True)
            for gram, p in zip(these, values.tolist(), strict=True)
        }
        expected = {tuple(row.gram): row.probability for row in rows.itertuples()}
        assert {gram: found[gram] for gram in expected} == pytest.approx(expected, rel=1e-4)


class Backing:
    """Computes probabilities from a model's n-grams and backoffs, in dictionaries."""

    def __init__(self, grams: list[kn.Grams], model: kn.Model, kept: list[np.ndarray | None]):
        self.logs: dict[Gram, float] = {}
        self.backoffs: dict[Gram, float] = {}
        for k, these in enumerate(names(grams)):
            for row, gram in enumerate(these):
                if k == 0 or kept[k][row]:
                    self.logs[gram] = math.log(model.probabilities[k][row])
                    if k + 1 < len(grams):
                        self.backoffs[gram] = math.log(model.backoffs[k][row])

    def log_probability(self, character: int, context: Gram) -> float:
        if (*context, character) in self.logs:
            return self.logs[*context, character]
        return self.backoffs.get(context, 0.0) + self.log_probability(character, context[1:])


@given(st.integers(2, 4), st.integers(1, 3), st.integers(1, 40))
@settings(max_examples=5)
def test_a_pruned_model_is_a_distribution_in_every_context(order, least, buckets):
    grams = kn.count_grams(stream_of(chain(120)), order, SIZE)
    shares = kn.estimate_shares(grams)
    kept, _ = kn.choose(grams, shares, [1, 1] + [least] * order, buckets)
    backing = Backing(grams, kn.interpolate(grams, shares, kept), kept)
    possible = [n for n in range(SIZE) if n != BEGIN]
    for context in [(), *(gram for these in names(grams)[:-1] for gram in these)]:
        total = sum(math.exp(backing.log_probability(n, context)) for n in possible)
        assert total == pytest.approx(1, abs=1e-4)


def test_the_packed_model_is_the_unpacked_one_within_half_a_step():
    grams = kn.count_grams(stream_of(chain(900, size=60)), 5, 60)
    shares = kn.estimate_shares(grams)
    kept, buckets = kn.choose(grams, shares, [1] * 5, 10_000)
    model = kn.interpolate(grams, shares, kept)
    arrays = kn.pack(grams, model, kept, buckets)
    backing = Backing(grams, model, kept)
    slots, hashes = arrays["slots"].reshape(buckets, WAYS), kn.hash_grams(grams)
    lost = 0
    for k, these in enumerate(names(grams)[1:], 1):
        half = -arrays["scales"][k - 1] / 2 + 1e-6
        assert (half < 0.03).all()
        for row, gram in enumerate(these):
            if not kept[k][row]:
                lost += 1
                continue
            value, steps = int(hashes[k][row]), arrays["scales"][k - 1].tolist()
            bucket = slots[(value >> 32) * buckets >> 32].tolist()
            code = next(slot for slot in bucket if slot >> 16 == max(value & 0xFFFF, 1))
            assert abs(((code >> 8 & 0xFF) - 1) * steps[0] - backing.logs[gram]) <= half[0]
            assert abs((code & 0xFF) * steps[1] - backing.backoffs.get(gram, 0)) <= half[1]
    # The table is half full, so almost nothing is lost to full buckets.
    assert lost < 0.01 * sum(map(len, hashes[1:]))


# The command


@pytest.fixture
def corpus(tmp_path) -> Path:
    path = tmp_path / "corpus.parquet"
    texts = [
        "今天的天气很好,我们去公园。",
        "今天的天气不好,我们在家。",
        "我们明天去公园散步吧。",
    ] * 2
    texts += [f"第{k}天的天气也很好,我们还去公园。" for k in range(40)]
    pq.write_table(pa.table({"text": [*texts, None, ""]}), path)
    return path


def test_it_makes_a_model_that_loads(corpus, tmp_path, capsys):
    output = tmp_path / "model"
    line = ["--input", str(corpus), "--output", str(output), "--source", "made up, CC0"]
    assert main(line) == 0
    assert capsys.readouterr().out.startswith(f"{output}: order 5, ")
    model = LanguageModel.load(output)
    good = model.log_probabilities("今天的天气很好。").mean()
    assert good > model.log_probabilities("很今的天好天气。").mean() + 1
    manifest = json.loads((output / MANIFEST).read_text())
    assert manifest["sentences"] == {"read": 46, "trained_on": 43, "repeated": 3, "excluded": 0}
    assert str(tmp_path) not in (output / MANIFEST).read_text()
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    assert main([*line, "--overwrite"]) == 0
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before


def test_excluded_sentences_and_what_overlaps_with_them(tmp_path):
    path = tmp_path / "rated.jsonl"
    path.write_text(json.dumps({"source": "一二三四五六七八九十甲乙", "paraphrase": "短\u2003句"}))
    excluded = Excluded(path)
    shared, part = "二三四五六七八九十甲", "一二三四五六七八九"
    groups = [[f"前{shared}后"], [f"前{part}后"], ["短 句"], ["短 句子"], ["好", shared]]
    found, counts = gather(groups, excluded)
    assert found == [f"前{part}后", "短 句子"]
    assert (counts["read"], counts["excluded"]) == (6, 4)


def test_a_mistake_is_one_line(corpus, tmp_path, refused):
    refused(main, ["--input", f"{corpus}:zh", "--output", tmp_path / "model"], "corpus.parquet")
    assert not (tmp_path / "model").exists()

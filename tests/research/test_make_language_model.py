"""Kneser-Ney must equal its definition in slow dictionaries, the packed model the unpacked one;
and the command must work."""

import json
import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaixie.research.fitting import kneser_ney as kn
from gaixie.research.make_language_model import Excluded, as_stream, gather, main, number_characters
from gaixie.udfs.meaning.language_model import MANIFEST, LanguageModel
from gaixie.udfs.meaning.language_model_kernel import BEGIN, END, FIRST_CHARACTER, WAYS
from gaixie.udfs.text.code_points import from_strings

Gram = tuple[int, ...]


class Dictionary:
    """Interpolated modified Kneser-Ney as Chen and Goodman state it."""

    def __init__(self, sentences: list[Gram], order: int, size: int):
        self.size = size
        occurrences: Counter[Gram] = Counter()
        before: dict[Gram, set[int]] = defaultdict(set)
        for sentence in sentences:
            whole = (BEGIN, *sentence, END)
            for end in range(1, len(whole) + 1):
                for start in range(max(end - order, 0), end):
                    occurrences[whole[start:end]] += 1
                    if start:
                        before[whole[start:end]].add(whole[start - 1])
        self.occurrences = occurrences
        self.counts = {
            gram: number if len(gram) == order or gram[0] == BEGIN else len(before[gram])
            for gram, number in occurrences.items()
            if gram != (BEGIN,)
        }
        self.followers: dict[Gram, list[int]] = defaultdict(list)
        of_counts: dict[int, Counter[int]] = defaultdict(Counter)
        for gram, count in self.counts.items():
            self.followers[gram[:-1]].append(gram[-1])
            of_counts[len(gram)][count] += 1
        self.discounts = {k: self._discounts(of_counts[k]) for k in of_counts}

    @staticmethod
    def _discounts(n: Counter[int]) -> list[float]:
        if all(n[k] for k in (1, 2, 3, 4)):
            y = n[1] / (n[1] + 2 * n[2])
            found = [k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3)]
            if min(found) >= 0:
                return [0, *found]
        return [0, 0.5, 1, 1.5]

    def probability(self, character: int, context: Gram) -> float:
        followers = self.followers[context]
        if followers:
            counts = {w: self.counts[*context, w] for w in followers}
            discount = self.discounts[len(context) + 1]
            total = sum(counts.values())
            freed = sum(discount[min(count, 3)] for count in counts.values())
            count = counts.get(character, 0)
            own = (count - discount[min(count, 3)]) / total
            below = self.probability(character, context[1:]) if context else 1 / (self.size - 1)
            return own + freed / total * below
        return self.probability(character, context[1:])


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
sentences_of_numbers = st.lists(
    st.lists(st.integers(FIRST_CHARACTER, SIZE - 1), max_size=9).map(tuple), min_size=1, max_size=25
)


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


@given(sentences_of_numbers, st.integers(2, 5))
@settings(max_examples=30)
def test_estimates_are_those_of_the_definition(sentences, order):
    check_estimates(sentences, order, SIZE)


@pytest.mark.parametrize(("order", "size"), [(2, 40), (4, 20)])
def test_estimates_with_discounts_of_the_corpus(order, size):
    definition = check_estimates(chain(400, size=size), order, size)
    assert definition.discounts[order] != [0, *kn.FALLBACK]


def check_estimates(sentences: list[Gram], order: int, size: int) -> Dictionary:
    definition = Dictionary(sentences, order, size)
    grams = kn.count_grams(stream_of(sentences), order, size)
    model = kn.interpolate(grams, kn.estimate_shares(grams))
    for k, these in enumerate(names(grams)):
        counted = dict(zip(these, grams[k].occurrences.tolist(), strict=True))
        there = {gram: n for gram, n in definition.occurrences.items() if len(gram) == k + 1}
        assert {gram: n for gram, n in counted.items() if n} == there
        for gram, p in zip(these, model.probabilities[k].tolist(), strict=True):
            if gram != (BEGIN,):
                assert p == pytest.approx(definition.probability(gram[-1], gram[:-1]), rel=1e-4)
    return definition


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
    sentences = chain(900, size=60)
    grams = kn.count_grams(stream_of(sentences), 5, 60)
    shares = kn.estimate_shares(grams)
    kept, buckets = kn.choose(grams, shares, [1] * 5, 10_000)
    model = kn.interpolate(grams, shares, kept)
    arrays = kn.pack(grams, model, kept, buckets)
    backing = Backing(grams, model, kept)
    packed = unpack(arrays, buckets)
    hashes = kn.hash_grams(grams)
    lost = 0
    for k, these in enumerate(names(grams)[1:], 1):
        half = -arrays["scales"][k - 1] / 2 + 1e-6
        assert (half < 0.03).all()
        for row, gram in enumerate(these):
            found = packed(hashes[k][row])
            if not kept[k][row]:
                lost += 1
                continue
            steps = arrays["scales"][k - 1].tolist()
            assert abs((found[0] - 1) * steps[0] - backing.logs[gram]) <= half[0]
            assert abs(found[1] * steps[1] - backing.backoffs.get(gram, 0)) <= half[1]
    # The table is half full, so almost nothing is lost to full buckets.
    assert lost < 0.01 * sum(map(len, hashes[1:]))


def unpack(arrays: dict[str, np.ndarray], buckets: int):
    """Returns a function from a hash to (code of the log probability, code of the backoff)."""
    slots = arrays["slots"].reshape(buckets, WAYS)

    def find(value: np.uint64) -> tuple[int, int] | None:
        bucket = slots[(int(value) >> 32) * buckets >> 32].tolist()
        wanted = max(int(value) & 0xFFFF, 1)
        found = [slot for slot in bucket if slot >> 16 == wanted]
        return (found[0] >> 8 & 0xFF, found[0] & 0xFF) if found else None

    return find


def test_streams_of_sentences():
    text = from_strings(["乙甲乙", "", "丙\U00020000"])
    characters, size = number_characters(text, 2)
    assert size == FIRST_CHARACTER + 1
    assert as_stream(text, characters).tolist() == [1, 3, 0, 3, 2, 1, 2, 1, 0, 0, 2]
    with pytest.raises(ValueError, match="no character occurs 3 times"):
        number_characters(text, 3)


# The command

TEXTS = ["今天的天气很好,我们去公园。", "今天的天气不好,我们在家。", "我们明天去公园散步吧。"] * 2


@pytest.fixture
def corpus(tmp_path) -> Path:
    path = tmp_path / "corpus.parquet"
    more = [f"第{k}天的天气也很好,我们还去公园。" for k in range(40)]
    pq.write_table(pa.table({"text": [*TEXTS, None, "", *more]}), path)
    return path


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def test_it_makes_a_model_that_loads(corpus, tmp_path, capsys):
    output = tmp_path / "model"
    assert run("--input", corpus, "--output", output, "--source", "made up, CC0") == 0
    line = capsys.readouterr().out
    assert line.startswith(f"{output}: order 5, ")
    model = LanguageModel.load(output)
    good = model.log_probabilities("今天的天气很好。").mean()
    assert good > model.log_probabilities("很今的天好天气。").mean() + 1
    manifest = json.loads((output / MANIFEST).read_text())
    assert manifest["sentences"] == {"read": 46, "trained_on": 43, "repeated": 3, "excluded": 0}
    assert manifest["sources"] == ["made up, CC0"]
    assert manifest["inputs"] == ["corpus.parquet:text"]
    assert str(tmp_path) not in (output / MANIFEST).read_text()
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    line = ["--input", corpus, "--output", output, "--source", "made up, CC0", "--overwrite"]
    assert run(*line) == 0
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before


def test_excluded_sentences_and_what_overlaps_with_them(tmp_path):
    path = tmp_path / "rated.jsonl"
    rated = {"source": "一二三四五六七八九十甲乙", "paraphrase": "短\u3000句"}
    path.write_text(json.dumps(rated))
    excluded = Excluded(path)
    shared, part = "二三四五六七八九十甲", "一二三四五六七八九"
    groups = [[f"前{shared}后"], [f"前{part}后"], ["短 句"], ["短 句子"], ["好", shared]]
    found, counts = gather([groups], excluded, None)
    assert found == [f"前{part}后", "短 句子"]
    assert (counts["read"], counts["excluded"]) == (6, 4)


def test_a_mistake_is_one_line(corpus, tmp_path, refused):
    refused(main, ["--input", f"{corpus}:zh", "--output", tmp_path / "model"], "corpus.parquet")
    assert not (tmp_path / "model").exists()

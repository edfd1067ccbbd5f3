"""The character language model: by hand, kernels against definitions, and files that are none."""

import json
import math
from itertools import pairwise

import numpy as np
import plain_language_model
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaixie.udfs.meaning import language_model as lm
from gaixie.udfs.meaning.language_model import NAMES, LanguageModel, features, odd_spots
from gaixie.udfs.meaning.language_model_kernel import (
    BEGIN,
    END,
    FIRST_CHARACTER,
    SEED,
    WAYS,
    Tables,
    extend_hash,
    first_slot,
)
from gaixie.udfs.text.code_points import from_strings

CHARACTERS = "甲乙丙"
UNIGRAMS = [-9, -99, -2, -1, -2, -3]  # unknown, begin, end, 甲, 乙, 丙


def number(character: str) -> int:
    return {"^": BEGIN, "$": END}.get(character) or FIRST_CHARACTER + CHARACTERS.index(character)


def model_of(grams: dict[str, tuple[float, float]], backoffs: dict[str, float], order: int):
    """Returns a model with these n-grams' log probability and backoff, in steps of a quarter.

    ^ and $ stand for beginning and end.
    """
    characters = np.zeros(ord("甲") + 1, np.uint16)
    for character in CHARACTERS:
        characters[ord(character)] = number(character)
    unigrams = np.zeros((len(UNIGRAMS), 2), np.float32)
    unigrams[:, 0] = UNIGRAMS
    for character, backoff in backoffs.items():
        unigrams[number(character), 1] = backoff
    buckets = 3
    slots = np.zeros(buckets * WAYS, np.uint32)
    for gram, (log_p, backoff) in grams.items():
        value = SEED
        for character in reversed(gram):
            value = np.uint64(extend_hash(value, np.uint64(number(character))))
        start = int(first_slot(value, np.uint64(buckets)))
        free = start + int((slots[start : start + WAYS] != 0).sum())
        code = (1 + round(-4 * log_p)) << 8 | round(-4 * backoff)
        slots[free] = (int(value) & 0xFFFF) << 16 | code
    scales = np.full((order - 1, 2), -0.25, np.float32)
    tables = Tables(characters, unigrams, slots, scales)
    for array in tables:
        array.flags.writeable = False
    return LanguageModel(tables, "by hand", order)


@pytest.fixture(scope="module")
def by_hand() -> LanguageModel:
    grams = {
        "^甲": (-0.5, -0.25),
        "甲乙": (-1, -0.5),
        "^甲乙": (-0.25, 0),
        "丙$": (-1.5, 0),
        "甲乙丙": (-0.75, 0),
    }
    return model_of(grams, {"^": -0.75, "甲": -1, "乙": -0.5, "丙": -0.25}, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("甲乙丙", [-0.5, -0.25, -0.75, -1.5]),
        ("", [-0.75 - 2]),  # the end after the beginning, of which there is no bigram
        ("乙", [-0.75 - 2, -0.5 - 2]),
        # 丙 after ^甲: the backoffs of the bigram ^甲 and of 甲; then 乙 after 丙.
        ("甲丙乙", [-0.5, -0.25 - 1 - 3, -0.25 - 2, -0.5 - 2]),
        ("乙甲乙甲", [-2.75, -0.5 - 1, -1, -0.5 - 0.5 - 1, -1 - 2]),
        ("龙丁", [-0.75 - 9, -9, -2]),  # beyond the table of characters, and not in it
    ],
)
def test_log_probabilities_by_hand(by_hand, text, expected):
    assert by_hand.log_probabilities(text).tolist() == expected


def test_columns_by_hand(by_hand):
    # 甲乙丙$: log p -0.5 -0.25 -0.75 -1.5, gains 0.5 1.75 2.25 0.5, orders 2 3 3 2.
    # 甲丙乙$: log p -0.5 -4.25 -2.25 -2.5, gains 0.5 -1.25 -0.25 -0.5, orders 2 1 1 1.
    row = dict(
        zip(
            NAMES,
            features(from_strings(["甲乙丙"]), from_strings(["甲丙乙"]), by_hand)[0].tolist(),
            strict=True,
        )
    )
    expected = {
        "mean": -2.375,
        "gain": -0.375,
        "deviation": math.sqrt((1.875**2 + 1.875**2 + 0.125**2 + 0.125**2) / 4),
        "end": -2.5,
        "worst_3": -3.0,
        "worst_5": -2.375,
        "worst_gain_3": -2 / 3,
        "rare": 0.0,
        "loss": -0.5,
        "losing": 0.75,
        "order": 1.25,
        "weak": 1.0,
        "joints": 0.75,  # all but 甲 after the beginning
        "joint_mean": -3.0,
        "joint_gain": -2 / 3,
        "joint_worst": -1.25,
        "joint_loss": -0.5,
        "joint_worst_3": -2 / 3,
        "joint_worst_5": -2 / 3,
        "new_mean": -3.0,
        "total": -9.5,
        "mean_added": -2.375 + 0.75,
        "order_added": 1.25 - 2.5,
        "joints_added": 0.0,
    }
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-6)


LETTERS = "".join(map(chr, range(0x4E00, 0x4E00 + 14)))


@pytest.fixture(scope="module")
def trained() -> LanguageModel:
    """Returns a model of random sentences, in which some characters follow others more often."""
    from gaixie.research.make_language_model import _arguments, make_tables

    chance = np.random.default_rng(5)
    chain = chance.dirichlet(np.full(len(LETTERS), 0.3), len(LETTERS))
    sentences = []
    for _ in range(300):
        text, at = "", 0
        for _ in range(chance.integers(1, 20)):
            at = chance.choice(len(LETTERS), p=chain[at])
            text += LETTERS[at]
        sentences.append(text)
    options = _arguments(["--input", "-", "--output", "-", "--least", "1", "--order", "4"])
    tables, _ = make_tables(from_strings(sentences), options)
    for array in tables:
        array.flags.writeable = False
    return LanguageModel(tables, "random", 4)


texts = st.text(st.sampled_from(LETTERS + "A𠀀"), max_size=30)


@given(texts, texts)
@settings(max_examples=150)
def test_kernel_and_definition_agree(trained, a, b):
    # A longer pair in the batch gives the row more room than it needs.
    pairs = [(a, b), (b + a + b, a + a), (a, a)]
    rows = features(*(from_strings(list(side)) for side in zip(*pairs, strict=True)), trained)
    assert rows.dtype == np.float32
    for pair, row in zip(pairs, rows, strict=True):
        expected = plain_language_model.reference(*pair, trained)
        assert row.tolist() == pytest.approx(
            [expected[name] for name in NAMES], abs=1e-4, nan_ok=True
        )


@given(texts, st.integers(0, 5))
def test_odd_spots_are_stretches_apart(trained, text, count):
    spots = odd_spots(text, trained, count)
    assert len(spots) <= count
    assert all(0 <= spot.start < spot.end <= len(text) and spot.nats > 0 for spot in spots)
    assert [spot.nats for spot in spots] == sorted((spot.nats for spot in spots), reverse=True)
    assert all(left.end <= right.start for left, right in pairwise(sorted(spots)))


def test_odd_spots_by_hand(by_hand):
    # The gains of 甲乙丙丙丙: 0.5 1.75 2.25 -0.25 -0.25.
    (spot,) = odd_spots("甲乙丙丙丙", by_hand, 3)
    assert (spot.start, spot.end, spot.nats) == (1, 5, pytest.approx(3 - 1.75))


# Folders


@pytest.fixture
def folder(trained, tmp_path):
    for name, array in trained.tables._asdict().items():
        np.save(tmp_path / f"{name}.npy", array)
    manifest = {
        "format": lm.FORMAT,
        "version": lm.VERSION,
        "normalisation": "nfkc+ws",
        "digest": lm.digest(*trained.tables),
    }
    (tmp_path / lm.MANIFEST).write_text(json.dumps(manifest))
    return tmp_path


def test_a_folder_loads_as_it_was(trained, folder):
    loaded = LanguageModel.load(folder)
    assert (loaded.order, loaded.digest) == (4, lm.digest(*trained.tables))
    assert not loaded.tables.slots.flags.writeable
    text = LETTERS[:9]
    assert (loaded.log_probabilities(text) == trained.log_probabilities(text)).all()


@pytest.mark.parametrize(
    ("key", "value"), [("format", "other"), ("version", 2), ("normalisation", "nfc"), ("digest", 0)]
)
def test_another_kind_of_model_is_refused(folder, key, value):
    path = folder / lm.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(ValueError, match=f"{lm.MANIFEST}: {key} "):
        LanguageModel.load(folder)


@pytest.mark.parametrize("name", [lm.MANIFEST, *(f"{name}.npy" for name in Tables._fields)])
def test_missing_and_damaged_files_are_named(folder, name):
    path = folder / name
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"[]"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=name) as caught:
            LanguageModel.load(folder)
        assert "\n" not in str(caught.value)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=name):
        LanguageModel.load(folder)

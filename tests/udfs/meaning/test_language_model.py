"""The character language model: by hand, and files that are none. test_golden has its columns."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.meaning import language_model as lm
from gaixie.udfs.meaning import language_model_kernel as lm_kernel
from gaixie.udfs.meaning.array_folder import write_arrays
from gaixie.udfs.meaning.language_model import LanguageModel, odd_spots
from gaixie.udfs.text.normalise import NORMALISATION

CHARACTERS = "甲乙丙"
UNIGRAMS = [-9, -99, -2, -1, -2, -3]  # unknown, begin, end, 甲, 乙, 丙


NUMBERS = {"^": lm_kernel.BEGIN, "$": lm_kernel.END}
NUMBERS |= {character: k for k, character in enumerate(CHARACTERS, lm_kernel.FIRST_CHARACTER)}


def model_of(grams: dict[str, tuple[float, float]], backoffs: dict[str, float], order: int):
    """Returns a model with these n-grams' log probability and backoff, in steps of a quarter.

    ^ and $ stand for beginning and end.
    """
    characters = np.zeros(ord("甲") + 1, np.uint16)
    for character in CHARACTERS:
        characters[ord(character)] = NUMBERS[character]
    unigrams = np.zeros((len(UNIGRAMS), 2), np.float32)
    unigrams[:, 0] = UNIGRAMS
    for character, backoff in backoffs.items():
        unigrams[NUMBERS[character], 1] = backoff
    buckets = 3
    slots = np.zeros(buckets * lm_kernel.WAYS, np.uint32)
    for gram, (log_p, backoff) in grams.items():
        value = lm_kernel.SEED
        for character in reversed(gram):
            value = np.uint64(lm_kernel.extend_hash(value, np.uint64(NUMBERS[character])))
        start = int(lm_kernel.first_slot(value, np.uint64(buckets)))
        free = start + int((slots[start : start + lm_kernel.WAYS] != 0).sum())
        code = (1 + round(-4 * log_p)) << 8 | round(-4 * backoff)
        slots[free] = (int(value) & 0xFFFF) << 16 | code
    scales = np.full((order - 1, 2), -0.25, np.float32)
    tables = lm_kernel.Tables(characters, unigrams, slots, scales)
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


@given(st.text("甲乙丙丁", max_size=30), st.integers(0, 5))
def test_odd_spots_are_stretches_apart(by_hand, text, count):
    spots = odd_spots(text, by_hand, count)
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
def folder(by_hand, tmp_path):
    manifest = {
        "format": lm.FORMAT,
        "version": lm.VERSION,
        "normalisation": NORMALISATION,
        "digest": lm.digest(*by_hand.tables),
    }
    write_arrays(tmp_path / lm.MANIFEST, by_hand.tables._asdict(), manifest)
    return tmp_path


def test_a_folder_loads_as_it_was(by_hand, folder):
    loaded = LanguageModel.load(folder)
    assert (loaded.order, loaded.digest) == (3, lm.digest(*by_hand.tables))
    assert not loaded.tables.slots.flags.writeable
    assert (loaded.log_probabilities("甲丙乙") == by_hand.log_probabilities("甲丙乙")).all()


@pytest.mark.parametrize("name", [lm.MANIFEST, "slots.npy"])
def test_missing_and_damaged_files_are_named(folder, name):
    path = folder / name
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole.replace(b"nfkc", b"nfc"), b"[]"):
        if damaged != whole:
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=name) as caught:
                LanguageModel.load(folder)
            assert "\n" not in str(caught.value)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=name):
        LanguageModel.load(folder)

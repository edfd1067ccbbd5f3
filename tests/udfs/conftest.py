"""Fixtures for the tests of udfs: the examples, a small encoder, toy segmenters, and a feature by
both its implementations."""

import re

import pyarrow as pa
import pytest
from plain_features import reference
from scored_runs import examples  # noqa: F401, whose name pytest looks for here
from shared import once

from gaixie.udfs.features import FEATURES, extract
from gaixie.udfs.text.code_points import CodePoints, Words, to_strings, word_ends
from gaixie.udfs.text.normalise import normalise


class ToySegmenter:
    """Cuts each text with a plain function from a string to its words."""

    name = "toy"
    version = "0"

    def __init__(self, cut_one):
        self.cut_one = cut_one

    def cut(self, texts):
        return [self.cut_one(text) for text in texts]

    def word_ends(self, text: CodePoints) -> Words:
        return word_ends(self.cut(to_strings(text)))


@pytest.fixture(scope="session")
def bert(tmp_path_factory) -> str:
    """Returns the folder of a small encoder; read-only."""
    from tiny_models import tiny_bert

    return str(once(tmp_path_factory, "bert", tiny_bert))


@pytest.fixture(scope="session")
def characters():
    """Returns a segmenter for which every character is a word."""
    return ToySegmenter(list)


@pytest.fixture(scope="session")
def chunks():
    """Returns a segmenter with words of up to three letters; other characters stand alone."""
    return ToySegmenter(re.compile(r"\w{1,3}|\W", re.DOTALL).findall)


@pytest.fixture(scope="session")
def given_words():
    """Returns a function that makes a segmenter for given sentences, written 我/爱/北京."""

    def segmenter(*sentences: str) -> ToySegmenter:
        words = {sentence.replace("/", ""): sentence.split("/") for sentence in sentences}
        return ToySegmenter(lambda text: words[text])

    return segmenter


@pytest.fixture(scope="session")
def both(characters):
    """Returns a function that gives a feature of a raw pair (by its reference, by its kernel)."""

    def feature(name, source, paraphrase, segmenter=characters) -> tuple[float, float]:
        row = extract(pa.array([source]), pa.array([paraphrase]), segmenter)[0]
        a, b = normalise(source), normalise(paraphrase)
        return reference(a, b, *segmenter.cut([a, b]))[name], float(row[FEATURES.index(name)])

    return feature

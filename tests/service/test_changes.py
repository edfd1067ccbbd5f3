"""Marked changes between two sentences: golden examples, and properties of any two."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.service.changes import changes
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import load_segmenter

SEGMENTER = load_segmenter()
MARKS = {"moved": "M", "replaced": "R", "added": "+", "lost": "-"}


def marked(source: str, paraphrase: str) -> tuple[str, ...]:
    """Returns both sentences with their differences in brackets."""
    found = changes(source, paraphrase, SEGMENTER)
    return tuple("".join(map(mark, found[side])) for side in ("source", "paraphrase"))


def mark(own: dict) -> str:
    return own["text"] if own["kind"] == "same" else f"[{MARKS[own['kind']]}{own['text']}]"


GOLDEN = [
    # A time moves to the front, with a comma.
    ("该公司股价[M周五]下跌。", "[M周五][+,]该公司股价下跌。"),
    # A number written in two ways, one of them as several words; a different number.
    ("股价下跌了[R百分之四点二]。", "股价下跌了[R4.2%]。"),
    ("他买了[-三十]本书。", "他买了[+40]本书。"),
    # Synonyms; function words appear and disappear.
    ("昨天[R爸爸]买[-了]汽车。", "昨天[R父亲]买汽车。"),
    # As many words in the same place; a compound is cut as the other sentence is.
    ("代表们[R参加]会议，[R很高兴]。", "代表们[R出席]会议，[R非常开心]。"),
    ("快递员把包裹放在了门卫室。", "快递员把包裹放在了门卫室[+里]。"),
]
"""Pairs as a person would mark them."""


@pytest.mark.parametrize("golden", GOLDEN)
def test_what_a_person_would_mark(golden):
    source, paraphrase = (re.sub(r"\[[MR+-]|\]", "", text) for text in golden)
    assert marked(source, paraphrase) == golden


def test_a_copy_is_one_segment():
    text = "今天天气很好,我们去公园吧。"
    whole = {"text": text, "kind": "same", "partner": 0}
    assert changes(text, text, SEGMENTER) == {"source": [whole], "paraphrase": [whole]}


PIECES = [
    *("今天", "明天", "天气", "很", "好", "的", "了", "，", "。", "三十", "30", "%", "百分之五"),
    *("公园", "a1", "（", "汽车", "轿车", "𠮷", "我们", " ", "\u3000"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@given(texts, texts)
def test_what_holds_for_any_two(source, paraphrase):
    found = changes(source, paraphrase, SEGMENTER)
    sides = ("source", "paraphrase")
    for side, text in zip(sides, (source, paraphrase), strict=True):
        assert normalise("".join(own["text"] for own in found[side])) == normalise(text)
        assert all(own["text"] for own in found[side])
    assert {own["kind"] for own in found["source"]} <= {"same", "moved", "replaced", "lost"}
    assert {own["kind"] for own in found["paraphrase"]} <= {"same", "moved", "replaced", "added"}
    for side, other in zip(sides, sides[::-1], strict=True):
        for number, own in enumerate(found[side]):
            if own["kind"] in ("added", "lost"):
                assert own["partner"] is None
                continue
            partner = found[other][own["partner"]]
            assert partner["partner"] == number
            assert partner["kind"] == own["kind"]
            if own["kind"] in ("same", "moved"):
                assert normalise(partner["text"]) == normalise(own["text"])
            assert own["kind"] == "same" or any(c.isalnum() for c in own["text"])
    order = [own["partner"] for own in found["source"] if own["kind"] == "same"]
    assert order == sorted(order)

"""Good paraphrases must beat bad ones, on sources that no shipped model was fitted on.

The rated core shares no sentence with examples/pairs.jsonl. The models' cards have the figures of
every kind of bad paraphrase, including the hard kind: a good one with one wrong word.
"""

import numpy as np
import pytest

from gaixie.research.fitting.negatives import CORRUPTIONS, make_negatives
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.text.segmenters import load_segmenter

OWN = ("first_half", "last_half", "repeated", "words_shuffled", "characters_replaced")
BEATEN = ("copy", "unrelated", "spliced", *CORRUPTIONS, *(f"own_{name}" for name in OWN))


@pytest.mark.parametrize("tier", ["core", pytest.param("full", marks=pytest.mark.long)])
def test_a_good_paraphrase_beats_its_negatives(examples, tier):
    good = examples[examples["rated"] >= 3.5][:66].to_dict("records")
    segmenter = load_segmenter("jieba")
    pairs, negatives = [], []
    for k, pair in enumerate(good):
        source, paraphrase = pair["source"], pair["paraphrase"]
        other = good[(k + 7) % len(good)]["source"]
        sides = source, paraphrase, other
        made = make_negatives(*sides, lambda text: segmenter.tag([text])[0], kinds=BEATEN)
        pairs.append((source, paraphrase))
        negatives += [(k, kind, source, text) for kind, text in made.items()]
    model = SPScore.load(tier)
    best = model.score(*zip(*pairs, strict=True))
    scores = model.score([row[2] for row in negatives], [row[3] for row in negatives])

    lost: dict[str, list[int]] = {kind: [] for kind in BEATEN}
    for (k, kind, *_), score in zip(negatives, scores, strict=True):
        lost[kind].append(int(score >= best[k]))
    assert all(len(losses) >= 20 for losses in lost.values())
    shares = {kind: sum(losses) / len(losses) for kind, losses in lost.items()}
    assert {kind: share for kind, share in shares.items() if share > 0.02} == {}


@pytest.mark.parametrize("tier", ["paper", "core", pytest.param("full", marks=pytest.mark.long)])
def test_text_without_chinese_is_worth_nothing(tier):
    """Text without Chinese must score 0, and text with one or two Chinese characters near 0, or
    punctuation would pass as a paraphrase."""
    source = "由于连日暴雨，市政府决定从明天起关闭所有的公园和学校。"
    without = ["，" * 25, "……！！！", "", " ", "12345", "Schools are closed.", "😀😀😀", "がっこう"]
    little = ["，，，，学，，，，，，", "的，的，的，的，的，的", "。公园"]
    model = SPScore.load(tier)
    pairs = [(source, text) for text in without] + [(text, source) for text in without]
    np.testing.assert_array_equal(model.outputs(*zip(*pairs, strict=True)), 0)
    good = "连着下了几天大雨，市里决定明天开始把公园和学校全都关掉。"
    scores = model.score([source] * 4, [*little, good])
    assert scores[3] > (0.2 if tier == "paper" else 0.3)
    if tier != "paper":  # paper sees only how much was changed
        assert scores[:3].max() < 0.1
        assert model.explain(source, "。") == ["no Chinese in the paraphrase"]
        assert model.explain("12345", source) == ["no Chinese in the source"]

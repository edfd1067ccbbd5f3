"""Good paraphrases against what must never beat them, on sources that no shipped model was fitted on.

The rated core shares no sentence with examples/pairs.jsonl. Figures of every kind, also of those that stay
hard (one word of the paraphrase itself is wrong), stand in the models' cards.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gaixie.udfs.spscore import SPScore
from gaixie.udfs.spscore.negatives import CORRUPTIONS, make_negatives
from gaixie.udfs.text.segmenters import load_segmenter

ROOT = Path(__file__).parents[3]
BEATEN = (
    "copy",
    "unrelated",
    "spliced",
    *CORRUPTIONS,
    "own_first_half",
    "own_last_half",
    "own_repeated",
    "own_words_shuffled",
    "own_characters_replaced",
)


@pytest.fixture(scope="module")
def good() -> list[dict]:
    lines = (ROOT / "examples" / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    return [pair for pair in map(json.loads, lines) if pair["rated"] >= 3.5][:66]


@pytest.mark.parametrize("tier", ["core", "full"])
def test_a_good_paraphrase_beats_its_negatives(good, tier):
    if tier == "full":
        pytest.importorskip("transformers", reason="tier full reads its encoder with it")
    segmenter = load_segmenter("jieba")
    pairs, negatives = [], []
    for k, pair in enumerate(good):
        source, paraphrase = pair["source"], pair["paraphrase"]
        other = good[(k + 7) % len(good)]["source"]
        made = make_negatives(
            source, paraphrase, other, lambda text: next(iter(segmenter.tag([text]))), kinds=BEATEN
        )
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

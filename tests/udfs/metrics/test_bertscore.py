from __future__ import annotations

import random

import bert_score
import numpy as np
import plain_metrics
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import CHARACTERS, tiny_bert

from gaixie.udfs.metrics import bertscore
from gaixie.udfs.metrics.bertscore import BERTScore, match
from gaixie.udfs.metrics.metric import Pairs


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_bert(tmp_path_factory.mktemp("bertscore") / "bert")


@pytest.fixture(scope="module")
def sentences() -> tuple[list[str], list[str], list[str]]:
    """Paraphrases, and two columns of references."""
    rng = random.Random(0)

    def sentence() -> str:
        return " ".join("".join(rng.choices(CHARACTERS, k=rng.randint(1, 9))) for _ in "ab")

    return tuple([sentence() for _ in range(60)] for _ in range(3))


@pytest.mark.parametrize("layer", [1, 3])
@pytest.mark.parametrize("idf", [False, True])
def test_equals_the_package(folder, sentences, layer, idf):
    ours, theirs, _ = sentences
    wanted = bert_score.score(
        ours, theirs, model_type=folder, num_layers=layer, idf=idf, nthreads=0, device="cpu"
    )
    found = BERTScore(folder, layer, idf).compare(pa.array(ours), [pa.array(theirs)])
    np.testing.assert_allclose(found, torch.stack(wanted, dim=1).numpy(), atol=2e-6)


def test_equals_the_package_with_a_baseline(folder, sentences, tmp_path):
    ours, theirs, _ = sentences
    baseline = tmp_path / "tiny.tsv"
    baseline.write_text("LAYER,P,R,F\n0,0,0,0\n1,0.1,0.2,0.3\n2,0.4,0.5,0.45\n")
    wanted = bert_score.score(
        ours,
        theirs,
        model_type=folder,
        num_layers=2,
        nthreads=0,
        device="cpu",
        lang="zh",
        rescale_with_baseline=True,
        baseline_path=str(baseline),
    )
    metric = BERTScore(folder, 2, baseline=str(baseline))
    found = metric.compare(pa.array(ours), [pa.array(theirs)])
    np.testing.assert_allclose(found, torch.stack(wanted, dim=1).numpy(), atol=1e-5)
    assert "|baseline:tiny.tsv|" in metric.signature()


def test_equals_the_reference(folder, sentences):
    ours, theirs, _ = sentences
    metric = BERTScore(folder, idf=True)
    encoder = bertscore.load_encoder(folder)
    weights = bertscore.token_weights(encoder, [pa.array(theirs)], idf=True)
    found = metric.compare(pa.array(ours), [pa.array(theirs)])
    for row, pair in enumerate(zip(ours, theirs, strict=True)):
        embedded = encoder.token_embeddings(pair)
        ids = np.split(embedded.ids, embedded.offsets[1:2])
        wanted = plain_metrics.bertscore(
            embedded[0].numpy(), embedded[1].numpy(), *(weights[i] for i in ids)
        )
        np.testing.assert_allclose(found[row], wanted, atol=2e-6)


def test_by_hand():
    # Paraphrase tokens (1, 0) and (0, 1), references (0.6, 0.8) alone and (0.8, 0.6).
    # Best of the paraphrase's: max(.6, .8) = .8 and max(.8, .6) = .8, so P = .8.
    # Best of the reference's: max(.6, .8) = .8 and max(.8, .6) = .8, weights 3 and 1, so R = .8.
    # Without the second reference token: P = (2·.6 + 1·.8) / 3 with weights 2 and 1, R = .8,
    # so P = 2/3 and F1 = 2 · .8 · 2/3 / (.8 + 2/3) = 8/11.
    ours = np.array([[1.0, 0], [0, 1]])
    theirs = np.array([[0.6, 0.8], [0.8, 0.6]])
    assert plain_metrics.bertscore(ours, theirs, [1, 1], [3, 1]) == pytest.approx((0.8, 0.8, 0.8))
    assert plain_metrics.bertscore(ours, theirs[:1], [2, 1], [1]) == pytest.approx(
        (2 / 3, 0.8, 8 / 11)
    )


@st.composite
def batch(draw):
    """Two padded batches of random embeddings, with weights and masks."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pairs = draw(st.integers(1, 4))
    sides = []
    for _ in "ab":
        lengths = rng.integers(1, 6, pairs)
        vectors = rng.normal(size=(pairs, lengths.max(), 3))
        vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
        mask = np.arange(lengths.max()) < lengths[:, None]
        weights = np.where(mask, rng.choice([0, 0.5, 2], mask.shape), 0)
        sides.append((vectors, weights, mask))
    return sides


@given(batch())
@settings(max_examples=50)
def test_match_equals_the_reference_whatever_the_padding(sides):
    found = match(*(torch.from_numpy(part) for side in sides for part in side)).numpy()
    for row, scores in enumerate(found):
        cut = [[part[row][side[2][row]] for part in side[:2]] for side in sides]
        (ours, our_weights), (theirs, their_weights) = cut
        np.testing.assert_allclose(
            scores,
            plain_metrics.bertscore(ours, theirs, our_weights, their_weights),
            rtol=1e-6,
            atol=1e-9,
        )


def test_missing_and_empty_sides(folder):
    pairs = Pairs.of(
        [None, None, None, None, None],
        ["今天天气很好", None, "我不知道", "", "你好"],
        ["今天天气很好", "我", None, "我", " "],
        [None, "我", "我不知道", None, "你好"],
    )
    scores = BERTScore(folder).sentence_scores(pairs)
    assert scores == pytest.approx([1, np.nan, 1, 0, 1], nan_ok=True, abs=1e-6)
    assert BERTScore(folder).corpus_score(pairs) == pytest.approx(0.75, abs=1e-6)


def test_chunks_do_not_change_scores(folder, sentences, monkeypatch):
    pairs = Pairs.of(sentences[0], *sentences)
    whole = BERTScore(folder, idf=True).sentence_scores(pairs)
    monkeypatch.setattr(bertscore, "PAIRS_AT_ONCE", 7)
    monkeypatch.setattr(bertscore, "CELLS_AT_ONCE", 500)
    parts = BERTScore(folder, idf=True).sentence_scores(pairs)
    np.testing.assert_allclose(parts, whole, atol=1e-6)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("LAYER,P,R,F\n1,0,0,0\n", "has no row of layer 3"), ("3,a,0,0\n", "is not LAYER,P,R,F")],
)
def test_baseline_that_does_not_fit(folder, tmp_path, content, complaint):
    path = tmp_path / "b.tsv"
    path.write_text(content)
    with pytest.raises(ValueError, match=complaint):
        BERTScore(folder, baseline=str(path)).sentence_scores(Pairs.of(["我"], ["我"], ["我"]))


def test_signature(folder):
    parts = BERTScore(folder, idf=True).signature().split("|")
    assert parts[0] == "BERTScore"
    assert parts[1].startswith("model:bert@")
    assert parts[2:6] == ["layer:3", "idf:yes", "baseline:none", "precision:float32"]

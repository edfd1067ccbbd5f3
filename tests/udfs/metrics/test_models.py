"""Metrics that read with a model, over tiny ones: similarity, ParaScore, BERT-iBLEU."""

import numpy as np
import pytest
import torch
from sacrebleu.metrics import BLEU

from gaixie.udfs.metrics.bert_ibleu import BERTiBLEU
from gaixie.udfs.metrics.bertscore import BERTScore
from gaixie.udfs.metrics.encoder import load_encoder
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.parascore import ParaScore
from gaixie.udfs.metrics.similarity import SentenceSimilarity

SOURCES = ["今天天气很好", "我不知道", "你去北京了吗", "好好好好"]
PARAPHRASES = ["今天的天气不错", "我不知道", "我不清楚", "好好好知"]
REFERENCES = ["天气今天很好", "我不清楚", "你在北京吗", "好"]
# Edits / longer side, and DS of a gamma of 0.35: 0.25 is below it.
DISTANCES = [3 / 7, 0, 6 / 6, 1 / 4]
DIVERSITIES = [0.35, -1, 0.35, 0.25 * 1.35 / 0.35 - 1]


def test_similarity_is_the_cosine_of_means(bert):
    prefix = "abc "

    def mean(text):
        encoder = load_encoder(bert)
        with torch.inference_mode():
            batch = encoder.tokenizer([prefix + text], return_tensors="pt")
            return encoder.network(batch["input_ids"]).last_hidden_state[0].mean(dim=0)

    scores = SentenceSimilarity(bert, prefix).sentence_scores(Pairs.of(SOURCES, PARAPHRASES))
    for score, a, b in zip(scores, SOURCES, PARAPHRASES, strict=True):
        expected = torch.nn.functional.cosine_similarity(mean(a), mean(b), dim=0)
        assert score == pytest.approx(float(expected), abs=1e-6)
    assert "|prefix:none|" in SentenceSimilarity(bert, "").signature()


@pytest.mark.parametrize("references", [[], [REFERENCES], [REFERENCES, SOURCES[::-1]]])
def test_parascore_is_the_best_similarity_and_the_diversity(bert, references):
    pairs = Pairs.of(SOURCES, PARAPHRASES, *references)
    metric = ParaScore(bert, 0.3)
    assert metric.parts(pairs)[1] == pytest.approx(DIVERSITIES)
    sides = [Pairs.of(SOURCES, PARAPHRASES, side) for side in (SOURCES, *references)]
    best = np.max([BERTScore(bert).sentence_scores(side) for side in sides], axis=0)
    expected = best + 0.3 * np.array(DIVERSITIES)
    np.testing.assert_allclose(metric.sentence_scores(pairs), expected, atol=1e-6)
    plain = ParaScore(bert, omega=0.3, threshold=False)
    expected = best + 0.3 * np.array(DISTANCES)
    np.testing.assert_allclose(plain.sentence_scores(pairs), expected, atol=1e-6)
    assert plain.name != metric.name


def test_bert_ibleu_is_the_harmonic_mean(bert):
    beta = 3.0
    sources = ["今天北京天气很好", "你去北京了吗"]
    paraphrases = ["今天北京的天气不错", "你去北京了吗"]
    scores = BERTiBLEU(beta, bert).sentence_scores(Pairs.of(sources, paraphrases))
    kept = BERTScore(bert).sentence_scores(Pairs.of(sources, paraphrases, sources))[0]
    bleu = BLEU(tokenize="char", effective_order=True)
    copied = bleu.sentence_score(paraphrases[0], sources[:1]).score / 100
    expected = (beta + 1) / (beta / kept + 1 / (1 - copied))
    assert scores.tolist() == pytest.approx([expected, 0], abs=1e-6)  # the second is a copy

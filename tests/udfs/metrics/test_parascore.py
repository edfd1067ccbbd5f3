import pytest
from plain_metrics import edit_distance, parascore
from tiny_models import tiny_bert

from gaixie.udfs.metrics.bertscore import BERTScore
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.parascore import ParaScore

SOURCES = ["今天天气很好", "我不知道", "你去北京了吗", "好好好好"]
PARAPHRASES = ["今天的天气不错", "我不知道", "我不清楚", "好好好知"]
REFERENCES = ["天气今天很好", "我不清楚", "你在北京吗", "好"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_bert(tmp_path_factory.mktemp("parascore") / "bert")


@pytest.mark.parametrize("references", [[], [REFERENCES], [REFERENCES, SOURCES[::-1]]])
def test_equals_the_reference(folder, references):
    pairs = Pairs.of(SOURCES, PARAPHRASES, *references)
    scores = ParaScore(folder, 0.3, 0.4).sentence_scores(pairs)
    compared = [
        BERTScore(folder).sentence_scores(Pairs.of(SOURCES, PARAPHRASES, side))
        for side in (SOURCES, *references)
    ]
    for row, (source, paraphrase) in enumerate(zip(SOURCES, PARAPHRASES, strict=True)):
        distance = edit_distance(source, paraphrase)
        wanted = parascore([scores[row] for scores in compared], distance, 0.3, 0.4)
        assert scores[row] == pytest.approx(wanted, abs=1e-6)


def test_diversity_by_hand(folder):
    # Edits / longer side: 3 of 7 (more than γ), 0, 6 of 6, 1 of 4: 0.25 · 1.35 / 0.35 − 1.
    found = ParaScore(folder).diversity(Pairs.of(SOURCES, PARAPHRASES))
    assert found == pytest.approx([0.35, -1, 0.35, 0.25 * 1.35 / 0.35 - 1])


def test_without_the_threshold(folder):
    # DS = d: 3 of 7, 0, 6 of 6, 1 of 4
    pairs = Pairs.of(SOURCES, PARAPHRASES)
    metric = ParaScore(folder, omega=0.3, threshold=False)
    assert metric.diversity(pairs) == pytest.approx([3 / 7, 0, 1, 1 / 4])
    similarity = ParaScore(folder).similarities(pairs)
    expected = similarity + 0.3 * metric.diversity(pairs)
    assert metric.sentence_scores(pairs) == pytest.approx(expected)
    assert metric.name != ParaScore(folder).name  # their names must differ
    assert metric.range == (-1, 1.3)
    assert "|omega:0.3|gamma:none|" in metric.signature()

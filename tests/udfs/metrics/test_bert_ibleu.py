import pytest
from plain_metrics import bert_ibleu
from sacrebleu.metrics import BLEU
from tiny_models import tiny_bert

from gaixie.udfs.metrics.bert_ibleu import BERTiBLEU
from gaixie.udfs.metrics.bertscore import BERTScore
from gaixie.udfs.metrics.metric import Pairs

SOURCES = ["今天北京天气很好", "我今天不知道", "你去北京了吗", "他不在北京。"]
PARAPHRASES = ["今天北京的天气很不错", "我今天不清楚", "你去北京了吗", "abc天气了吗"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_bert(tmp_path_factory.mktemp("bert-ibleu") / "bert")


@pytest.mark.parametrize("beta", [1.0, 4.0])
def test_equals_the_reference_over_sacrebleu(folder, beta):
    scores = BERTiBLEU(beta, folder).sentence_scores(Pairs.of(SOURCES, PARAPHRASES))
    meaning = BERTScore(folder).sentence_scores(Pairs.of(SOURCES, PARAPHRASES, SOURCES))
    bleu = BLEU(tokenize="char", effective_order=True)
    for row, (source, paraphrase) in enumerate(zip(SOURCES, PARAPHRASES, strict=True)):
        self_bleu = bleu.sentence_score(paraphrase, [source]).score / 100
        assert scores[row] == pytest.approx(bert_ibleu(meaning[row], self_bleu, beta), abs=1e-6)


def test_a_copy_scores_nothing(folder):
    assert bert_ibleu(1, 1) == 0
    scores = BERTiBLEU(model=folder).sentence_scores(Pairs.of(SOURCES, SOURCES))
    assert list(scores) == [0, 0, 0, 0]

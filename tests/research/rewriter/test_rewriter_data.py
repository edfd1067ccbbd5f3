"""Which pairs the rewriter learns from."""

from random import Random

from tokenizers import Tokenizer

from gaixie.research.rewriter.data import Collector, collect, degree_of, edited, fixed_terms
from gaixie.research.rewriter.material import KINDS, LONGEST, load, save
from gaixie.udfs.meaning.pair_encoder import SHIPPED
from gaixie.udfs.paraphrase import lexicon

TEXT = "因为暴雨，会议从周四推迟到了下周，大家都很失望。"
OTHER = "由于下暴雨，大家失望地得知，会议从周四延到了下周。"


def pairs_of(collector):
    texts = list(collector.texts)
    return {(texts[a], texts[b], KINDS[kind]) for a, b, kind, _, _ in collector.rows}


def test_all_ordered_pairs_of_a_group():
    collector = Collector()
    collector.group([TEXT, OTHER], "written")
    assert pairs_of(collector) == {(TEXT, OTHER, "written"), (OTHER, TEXT, "written")}


def test_only_the_best_versions_are_written():
    collector = Collector()
    collector.group([TEXT, OTHER], "translated", targets=1)
    assert pairs_of(collector) == {(OTHER, TEXT, "translated")}


def test_numbers_names_and_length_agree():
    pairs = [
        ("会议在3月15日举行，来了200人。", "会议在3月16日举行，来了200人。"),
        ("王小明昨天去了北京开会学习。", "王小明昨天去了上海开会学习。"),
        (TEXT, TEXT + "这是谁也没有想到的，也没有办法。"),
    ]
    for pair in pairs:
        collector = Collector()
        collector.group(pair, "written")
        assert not collector.rows, pair


def test_fixed_terms():
    found = fixed_terms("他在2024年为GPT-4花了1,200元，只占3.5%")
    assert found == ["2024", "GPT-", "4", "1,200", "3.5%"]


def test_degrees():
    assert degree_of(TEXT, TEXT.replace("失望", "沮丧")) == 1
    assert degree_of(TEXT, "雨下得太大，只好把会挪到下个星期再开。") == 5


def test_an_edited_sentence_is_the_source():
    """So what is written is the person's sentence; one that no edit fits is restored instead."""
    collector = collect([], [], [], [(TEXT, OTHER), ("你好吗？", "你好吗？")])
    assert pairs_of(collector) == {(OTHER, TEXT, "edited"), ("你好吗？", "你好吗？", "plain")}


def test_edits_depend_on_the_seed_alone_and_change_most_sentences():
    known = lexicon.load()
    drawn = {edited(TEXT, Random(seed), known) for seed in range(8)}
    assert {edited(TEXT, Random(seed), known) for seed in range(8)} == drawn
    assert len(drawn - {TEXT}) >= 3


def test_material(tmp_path):
    tokenizer = Tokenizer.from_file(str(SHIPPED / "tokenizer.json"))
    tokenizer.no_truncation()
    long = "他说了很多很多的话，" * 40
    collector = collect([], [[TEXT, OTHER]], [], [(long, long)])
    material = collector.material(tokenizer)
    assert len(material.ends) == 3
    assert material.pairs.tolist() == [[0, 1], [1, 0]], f"a text of over {LONGEST} tokens"
    ids = material.tokens[: material.ends[0]].tolist()
    assert tokenizer.decode(ids).replace(" ", "").strip("▁") == TEXT.replace("，", ",")
    save(material, tmp_path / "material.npz")
    for own, read in zip(material, load(tmp_path / "material.npz"), strict=True):
        assert (own == read).all()

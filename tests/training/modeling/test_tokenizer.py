"""The entity-aligned tokenizer must lose nothing, align pairs, and work in transformers."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_seq2seq import WORDS

from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.vocabulary import BOS, EOS, SETTINGS_FILE, SPECIAL, VOCABULARY_FILE
from gaixie.udfs.text.entities import EntitySettings, load_settings
from gaixie.udfs.text.normalise import normalise

ENTITIES = load_settings(Path(__file__).parents[3] / "conf/entities.yaml")

tokenizer = EntityAlignedTokenizer.from_words(WORDS, ENTITIES)
tokens = tokenizer.tokenize


# What a sentence becomes


def test_words_entities_characters_and_bytes():
    assert tokens("昨天我们在公园看花") == ["昨天", "我们", "在", "公园", "看", "花"]
    assert tokens("他2024年3月读了《三国》") == ["他", "<date_1>", "读", "了", "<title_1>"]
    assert tokens("他读\u4e00书") == ["他", "读", "<0xE4>", "<0xB8>", "<0x80>", "书"]
    assert tokens("天公") == ["天", "公"]  # characters of words are tokens too


def test_long_words_are_entities():
    """A long unknown word must become an entity; jieba cuts the name as one word of four
    characters, and k decides."""
    name = "阿尔卑斯"
    assert tokens(f"他在{name}") == ["他", "在", "<word_1>"]
    five = EntityAlignedTokenizer.from_words(WORDS, ENTITIES, word_characters=5)
    assert "<word_1>" not in five.tokenize(f"他在{name}")
    known = EntityAlignedTokenizer.from_words([*WORDS, name], ENTITIES)
    assert known.tokenize(f"他在{name}") == ["他", "在", name]


def test_more_entities_than_indices():
    two = EntityAlignedTokenizer.from_words(WORDS, ENTITIES, indices=2)
    text = "《三国》《水浒》《三体》《三国》"
    batch = two(text)
    assert two.tokenize(text)[:2] == ["<title_1>", "<title_2>"]
    assert two.tokenize(text)[-1] == "<title_1>"
    assert "<title_3>" not in two.get_vocab()
    assert two.decode(batch["input_ids"], entities=batch["entities"]) == text


# Nothing is lost


FEW = st.text(st.sampled_from("我们昨天《》“”2024年月日的花<date_1>s/ 阿尔卑斯山脉%元"))


@given(st.lists(st.text() | FEW, max_size=5))
def test_round_trip_alone_and_in_a_batch(texts):
    batch = tokenizer(texts)
    for text, ids, table in zip(texts, batch["input_ids"], batch["entities"], strict=True):
        alone = tokenizer(text)
        assert (alone["input_ids"], alone["entities"]) == (ids, table)
        assert tokenizer.decode(ids, entities=table) == normalise(text)
        assert tokenizer.decode(tokenizer.encode(text)) == normalise(text)


def test_names_of_tokens_in_the_text():
    text = "他读<date_1>和</s>,<pad><0xE4>"
    ids = tokenizer.encode(text)
    assert ids[0] == BOS
    assert ids[-1] == EOS
    fixed = len(SPECIAL) + (len(ENTITIES.kinds) + 1) * 16
    assert all(index >= fixed for index in ids[1:-1])
    assert tokenizer.decode(ids) == text
    batch = tokenizer(text)
    assert tokenizer.decode(batch["input_ids"], entities=batch["entities"]) == text


# Pairs


def test_a_pair_is_aligned():
    target = "《三国》今天读了,《水浒》他2024年3月读"
    batch = tokenizer("他2024年3月读了《三国》", text_target=target)
    labels = tokenizer.convert_ids_to_tokens(batch["labels"])
    assert labels[1] == "<title_1>"
    assert "<date_1>" in labels
    assert "<title_2>" not in labels  # 《水浒》 is not in the source, so it is spelled out
    assert tokenizer.decode(batch["labels"], entities=batch["entities"]) == target


def test_what_the_source_does_not_have_is_dropped():
    ids = tokenizer.convert_tokens_to_ids(["他", "<date_1>", "读", "<title_2>", "<title_1>"])
    assert tokenizer.decode(ids, entities=json.dumps({"<title_1>": "《三国》"})) == "他读《三国》"


# transformers


def test_save_and_load(tmp_path):
    from transformers import AutoTokenizer

    tokenizer.save_pretrained(tmp_path)
    for loaded in (
        AutoTokenizer.from_pretrained(tmp_path),
        EntityAlignedTokenizer.from_pretrained(tmp_path),
    ):
        assert isinstance(loaded, EntityAlignedTokenizer)
        assert loaded.get_vocab() == tokenizer.get_vocab()
        text = "他2024年3月读了《三国》"
        assert dict(loaded(text)) == dict(tokenizer(text))
    assert len(tokenizer.get_added_vocab()) == len(SPECIAL)


# Bad input


@pytest.mark.parametrize("words", [["花", "看", "花"], ["花", "<date_1>"], ["花\n看"]])
def test_bad_words(words):
    with pytest.raises(ValueError, match=r"^[^\n]*('花' occurs twice|cannot be a word)[^\n]*$"):
        EntityAlignedTokenizer.from_words(words, ENTITIES)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        *[(VOCABULARY_FILE, "\n花\n", "\n花\n花\n"), (VOCABULARY_FILE, "<pad>\n", "")],
        (SETTINGS_FILE, "entities", "entity"),
    ],
)
def test_bad_folders(tmp_path, name, old, new):
    tokenizer.save_pretrained(tmp_path)
    path = tmp_path / name
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    with pytest.raises(ValueError, match=str(path)):
        EntityAlignedTokenizer.from_pretrained(tmp_path)


# Place names


def test_place_names_are_indexed_where_the_tokenizer_knows_them(tmp_path):
    words, known = ["我", "去", "了", "北京", "上海"], ["北京", "上海", "武汉市", "广州"]
    plain = EntityAlignedTokenizer.from_words(words, EntitySettings())
    assert plain.tokenize("我去了北京") == ["我", "去", "了", "北京"]
    assert "<location_1>" not in plain.get_vocab()
    made = EntityAlignedTokenizer.from_words(words, EntitySettings(), indices=2, locations=known)
    made.save_pretrained(tmp_path)
    places = EntityAlignedTokenizer.from_pretrained(tmp_path)
    assert places.tokenize("我去了广州") == ["我", "去", "了", "<location_1>"]
    texts = "我去了武汉市北京上海", "武汉市我去了广州北京"
    batch = places(texts[0], text_target=texts[1])
    assert json.loads(batch["entities"]) == {"<location_1>": "武汉市", "<location_2>": "北京"}
    # A third place has no index and is its own token; one that the source lacks is spelled out.
    tokens = places.convert_ids_to_tokens(batch["input_ids"][1:-1])
    assert tokens[3:] == ["<location_1>", "<location_2>", "上海"]
    for text, ids in zip(texts, (batch["input_ids"], batch["labels"]), strict=True):
        assert places.decode(ids, entities=batch["entities"]) == text

"""The lexicon: its file, and where its phrases are found."""

from __future__ import annotations

from pathlib import Path

import pytest
import rjieba

from gaixie.udfs.paraphrase.edits import Edit, apply, fits
from gaixie.udfs.paraphrase.lexicon import Lexicon, lexical_edits, load

SMALL: Lexicon = {"但是": (("不过", True),), "发生": (("出现", False),), "的": (("之", True),)}


def found(text: str, lexicon: Lexicon = SMALL) -> list[tuple[str, str]]:
    given = lexical_edits(text, rjieba.tag(text), lexicon)
    return [(text[own.start : own.end], own.new) for own in given]


def test_a_phrase_is_found_where_words_begin_and_end() -> None:
    assert found("但是什么也没有发生。") == [("但是", "不过"), ("发生", "出现")]
    assert found("他不但是医生，而且是作家。") == []


def test_titles_stay() -> None:
    assert found("《但是还有书籍》上映了。") == []


def test_nothing_is_doubled() -> None:
    assert found("不过但是他没来。") == []
    assert found("他说的在理。", {"说": (("说的", True),)}) == []


def test_the_file_that_ships() -> None:
    lexicon = load()
    assert len(lexicon) > 4_000
    for phrase, others in lexicon.items():
        assert phrase not in dict(others)
        assert len(dict(others)) == len(others)


def test_a_wrong_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "own.tsv"
    file.write_text("但是\t不过\n没有制表符\n", "utf-8")
    with pytest.raises(ValueError, match=r"own.tsv, line 2: expected phrase<TAB>alternatives"):
        load(file)


def test_edits_together() -> None:
    text = "但是他来了"
    first, last = Edit(0, 2, "不过", "word"), Edit(3, 5, "到了", "word")
    assert apply(text, [last, first]) == "不过他到了"
    assert fits(last, [first])
    assert not fits(Edit(1, 4, "", "word"), [first])
    assert not fits(Edit(0, 0, "然而", "rule"), [Edit(0, 0, "可", "rule")])

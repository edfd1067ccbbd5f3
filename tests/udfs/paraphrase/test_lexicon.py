"""The lexicon: its file, and where it finds its phrases."""

from pathlib import Path

import pytest
import rjieba

from gaixie.udfs.paraphrase.edits import Edit, apply, fits
from gaixie.udfs.paraphrase.lexicon import Alternative, Lexicon, lexical_edits, load
from gaixie.udfs.paraphrase.rules.register import register_of

SMALL: Lexicon = {
    "但是": [Alternative("不过", True, "", None)],
    "发生": [Alternative("出现", False, "", None)],
    "的": [Alternative("之", True, "", None)],
}


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
    assert found("他说的在理。", {"说": [Alternative("说的", True, "", None)]}) == []


def test_the_file_that_ships() -> None:
    lexicon = load()
    assert len(lexicon) > 2_500
    for phrase, others in lexicon.items():
        new = [own for own, *_ in others]
        assert phrase not in new
        assert len(set(new)) == len(new)


def test_an_alternative_stands_where_it_may(tmp_path: Path) -> None:
    file = tmp_path / "own.tsv"
    file.write_text("一起\t一同@(?<!在)_\n", "utf-8")
    assert found("他们一起去。", load(file)) == [("一起", "一同")]
    assert found("他们在一起。", load(file)) == []


@pytest.mark.parametrize(
    ("text", "register", "expected"),
    [
        ("据警方通报，所以停电的是变压器。", "written", {"因此": False, "这不": True}),
        ("我没带伞，所以淋湿了。", "spoken", {"这不": False}),
        ("她来晚了，所以没吃上饭。", "plain", {"因此": True, "这不": True}),
    ],
)
def test_an_alternative_of_another_register_is_doubtful_or_out(tmp_path, text, register, expected):
    file = tmp_path / "own.tsv"
    file.write_text("所以\t~+因此\t-这不\n", "utf-8")
    assert register_of(text) == register
    edits = list(lexical_edits(text, rjieba.tag(text), load(file)))
    assert {own.new: own.doubtful for own in edits} == expected
    assert [own.sure for own in edits] == [own.new != "因此" for own in edits]


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

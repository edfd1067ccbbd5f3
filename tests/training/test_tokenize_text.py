"""The command tokenize_text on a small corpus: make and show."""

import pytest

from gaixie.training.tokenize_text import main
from gaixie.udfs.text.normalise import normalise

TEXTS = ["他2024年3月读了《三国》。", "我们昨天在公园看花，花了300元。", "今天很好看"]
WORDS = "word\tclass\tcount\n我们\tfunction word\t9\n昨天\tgeneral noun\t8\n公园\tgeneral noun\t7\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vocabulary.tsv").write_text(WORDS, "utf-8")
    line = ["make", str(tmp_path / "vocabulary.tsv"), "--output", str(tmp_path / "tokenizer")]
    assert main(line) == 0
    return str(tmp_path / "tokenizer")


def test_characters_of_words_left_out_are_tokens(folder, tmp_path, capsys):
    made = str(tmp_path / "small")
    for more, tokens in (
        ([], ["我们", "<0xE5>", "<0x9C>", "<0xA8>", "公", "园"]),  # no word has 在
        (["--common-characters"], ["我们", "在", "公", "园"]),
    ):
        line = ["make", str(tmp_path / "vocabulary.tsv"), "--output", made, "--words", "1"]
        assert main([*line, *more]) == 0
        assert "1 of them words" in capsys.readouterr().out
        assert main(["show", made, "我们在公园"]) == 0
        assert capsys.readouterr().out.splitlines()[0].split() == tokens


def test_show_a_pair(folder, capsys):
    assert main(["show", folder, TEXTS[0], "--target", "《三国》他读"]) == 0
    out = capsys.readouterr().out
    assert "<date_1>" in out
    assert out.count("<title_1>") == 3  # source, target, table
    assert f"decoded: {normalise(TEXTS[0])}" in out


@pytest.mark.parametrize(
    ("line", "named"),
    [("show {tmp}/none 花", "none"), ("make {tmp}/t.jsonl --output {tmp}/x", "no column 'word'")],
)
def test_bad_input(tmp_path, refused, line, named):
    (tmp_path / "t.jsonl").write_text('{"text": "花"}\n')
    refused(main, line.format(tmp=tmp_path).split(), named)

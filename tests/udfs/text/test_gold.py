"""Lines of a gold corpus must be parsed: word/tag, compounds in brackets, under NFKC."""

import pytest

from gaixie.udfs.text.gold import parse_paragraph


@pytest.mark.parametrize(
    ("line", "words", "tags"),
    [
        ("[中央/n 电视台/n]nt 的/u", ["中央", "电视台", "的"], ["n", "n", "u"]),
        ("[[北京/ns 大学/n]nt 出版社/n]nt", ["北京", "大学", "出版社"], ["ns", "n", "n"]),
        ("[/w 我/r ]/w", ["[", "我", "]"], ["w", "r", "w"]),
        ("19980101-01-001-001/m 迈向/v", ["迈向"], ["v"]),
        ("１２月/t ，/w ……/w Ａ/nx", ["12月", ",", "......", "A"], ["t", "w", "w", "nx"]),
        ("℃/q", ["°C"], ["q"]),
    ],
)
def test_token_forms(line, words, tags):
    assert parse_paragraph(line.split()) == (words, tags)


@pytest.mark.parametrize("token", ["迈向", "迈向/", "/v", "迈向/1"])
def test_malformed_token(token):
    with pytest.raises(ValueError, match=f"'{token}' is not word/tag"):
        parse_paragraph(["充满/v", token])

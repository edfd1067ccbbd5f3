import pytest
from plain_metrics import are_synonyms

from gaixie.udfs.metrics.cilin import load_forest


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("高兴", "快乐", True),  # both on Ga01A01=
        ("人", "人士", True),
        ("师生", "师徒", False),  # on Aa01C07#: related, not synonyms
        ("高兴", "人", False),
        ("高兴", "没有这个词", False),
        ("没有这个词", "没有这个词", True),
        ("", "", True),
        ("𠮷", "𠮷", True),
        ("𠮷", "吉", False),
    ],
)
def test_synonyms(one, other, expected):
    assert are_synonyms(one, other) is expected
    assert are_synonyms(other, one) is expected


def test_lines():
    assert len(load_forest().synsets("人")) > 1
    assert load_forest().synsets("没有这个词") == []
    assert len(load_forest()) > 40_000

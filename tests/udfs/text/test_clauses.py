"""Clauses must be cut as by hand, and the kernel must equal the definition."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from plain_features import split_clauses

from gaixie.udfs.text.clauses import clause_spans

# Text is normalised, so fullwidth commas, colons… are ASCII.
GOLDEN = [
    ("天黑了,我们回家。", [(0, "天黑了"), (4, "我们回家")]),
    ("好!好?好;好。好:好,好", [(k, "好") for k in range(0, 14, 2)]),
    ("苹果、梨、桃子", [(0, "苹果、梨、桃子")]),  # the enumeration comma cuts nothing
    # Numbers, times and addresses are not cut.
    ("涨了3.14元", [(0, "涨了3.14元")]),
    ("共1,000人,走了", [(0, "共1,000人"), (8, "走了")]),
    ("在12:30见", [(0, "在12:30见")]),
    ("见a.cn。", [(0, "见a.cn")]),
    ("v1.2.3,好", [(0, "v1.2.3"), (7, "好")]),
    # …only between two ASCII letters or digits.
    ("他说:3点", [(0, "他说"), (3, "3点")]),
    ("第3.好", [(0, "第3"), (3, "好")]),
    ("3.", [(0, "3")]),
    ("3..5", [(0, "3"), (3, "5")]),
    ("٣.٤", [(0, "٣"), (2, "٤")]),  # Arabic digits are not ASCII
    ("3;4", [(0, "3"), (2, "4")]),  # ; ! ? 。 always cut
    # An ellipsis … is now ...; a quotation mark belongs to its clause.
    ("等等...走了", [(0, "等等"), (5, "走了")]),
    ("他说:“好。”走了", [(0, "他说"), (3, "“好"), (6, "”走了")]),
    # Spaces around a clause do not belong to it; spaces inside do.
    (" 你 好 , 再 见 ", [(1, "你 好"), (7, "再 见")]),
    ("\u3000好\u3000,好", [(0, "\u3000好\u3000"), (4, "好")]),  # only U+0020 is a space here
    ("。", []),
    ("", []),
    (",。!", []),
]


def by_kernel(text: str) -> list[tuple[int, str]]:
    codes = np.array([ord(character) for character in text], np.uint32)
    # Gives the kernel the least room it needs, with a cell on either side that it must not touch.
    starts, ends = np.full((2, len(text) // 2 + 3), -1, np.int32)
    count = clause_spans(codes, starts[1:-1], ends[1:-1])
    assert starts[0] == starts[-1] == ends[0] == ends[-1] == -1
    bounds = zip(starts[1 : count + 1], ends[1 : count + 1], strict=True)
    return [(int(start), text[start:end]) for start, end in bounds]


@pytest.mark.parametrize(("text", "clauses"), GOLDEN)
def test_golden(text, clauses):
    assert split_clauses(text) == clauses
    assert by_kernel(text) == clauses


FEW = "好 aZ09,.:;!?。、…\u3000"


@given(st.lists(st.text(st.sampled_from(FEW) | st.characters(), max_size=20), max_size=10))
@example(["a," * 20, ",".join("好" * 20)])  # as many clauses as fit
def test_kernel_is_definition(texts):
    for text in texts:
        assert by_kernel(text) == split_clauses(text)


def test_kernel_is_definition_around_every_character():
    """Kernel and definition must agree on each BMP character before and after each mark that may be
    inside a token."""
    for mark in ",.:":
        for start in range(0, 0x10000, 0x800):
            text = "".join(f"{chr(code)}{mark}a{mark}" for code in range(start, start + 0x800))
            assert by_kernel(text) == split_clauses(text)

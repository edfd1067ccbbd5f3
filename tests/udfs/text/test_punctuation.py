"""Full-width punctuation must be restored where Chinese print has it."""

import pytest

pytest.importorskip("transformers", reason="the package of the models needs it")

from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.punctuation import restore

PRINTED = [
    "他说：“好的，没问题！”然后就走了。",
    "真的吗？！我不信（谁信呢）。",
    "比分是3:1，观众有1,200人；门票100元。",
    "新冠（COVID-19）暴发后，他用iPhone，她不用。",
    "他想了想……还是没说。",
    "他去了《红楼梦》展，看了吗？",
    "价格涨了5%！",
]


@pytest.mark.parametrize("text", PRINTED)
def test_what_normalisation_took_comes_back(text):
    assert restore(normalise(text), text) == text


def test_a_source_without_marks_gets_those_of_print():
    assert restore("老实说,我不知道", "老实说我不知道。") == "老实说，我不知道"


def test_a_source_in_half_width_stays_in_it():
    text = "老实说,我不知道?"
    assert restore(text, "说实话,我真的不知道.") == text


def test_what_is_not_chinese_stays():
    assert restore("Hello, world! (3:1)", "你好，世界！") == "Hello, world! (3:1)"

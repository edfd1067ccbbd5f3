"""llm: what is read out of an answer, and why an answer is no paraphrase."""

import pytest

from gaixie.jobs.pairs.llm import checked, parse

SOURCE = "由于连日暴雨，通往县城的公路一度中断。"
DONE = "连日大雨使通向县城的公路一度断了。"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (DONE, DONE),
        (f"改写后的句子：{DONE}\n", DONE),
        (f"改写:“{DONE}”", DONE),
        (f"```\n{DONE}\n```", DONE),
        (f"<think>\n要改写。\n\n</think>\n\n{DONE}", DONE),
        ("“不急，”他说，“船还没开。”", "“不急，”他说，“船还没开。”"),
        (f"{DONE}\n{DONE}", None),
        (f"好的，以下是改写：\n{DONE}", None),
        ("“”", None),
        ("", None),
    ],
)
def test_what_is_read_out_of_an_answer(answer, expected):
    assert parse(answer, SOURCE) == expected


@pytest.mark.parametrize(
    ("answer", "ending", "reason"),
    [
        (DONE, "stop", None),
        (DONE, "length", "cut_off"),
        (None, "content_filter", "refused"),
        (None, None, "malformed_answer"),
        (f"{DONE}\n{DONE}", "stop", "malformed_answer"),
        ("很抱歉，作为一个人工智能语言模型，我不能提供此类内容。", "stop", "refused"),
        ("I'm sorry, but I can't help with that.", "stop", "refused"),
        ("抱歉，你的雨伞被我忘在了咖啡店，明天下班我就去拿来还你。", "stop", None),
        ("The road to the county seat was cut off by rain 中断。", "stop", "wrong_language"),
        ("The road was cut off by heavy rain.", "stop", None),  # no_han, for all methods
    ],
)
def test_why_an_answer_is_no_paraphrase(answer, ending, reason):
    assert checked(SOURCE, answer, ending)[0] == reason
    assert checked("对不起，我无法完成任务。", "抱歉，我不能完成。", "stop")[0] is None

"""llm: how answers are split, why a paraphrase is rejected, and what a prompt says."""

import re

import pytest

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.llm.answers import STOP, Answer, judged, parse
from gaixie.jobs.pairs.llm.method import PROMPTS, LlmSettings
from gaixie.jobs.pairs.llm.prompts import Prompt

ONE = ["由于连日暴雨，通往县城的公路一度中断。"]
TWO = [*ONE, "“别急，”他说，“船还没有开。”"]
DONE = "连日大雨使通向县城的公路一度断了。"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DONE, [DONE]),
        (f"改写后的句子：{DONE}\n", [DONE]),
        (f"改写:“{DONE}”", [DONE]),
        (f"<think>\n要改写。\n\n</think>\n\n{DONE}", [DONE]),
        ("“不急，”他说，“船还没开。”", ["“不急，”他说，“船还没开。”"]),
        (f"{DONE}\n{DONE}", None),
        (f"好的，以下是改写：\n{DONE}", None),
        ("“”", None),
        (None, None),
    ],
)
def test_an_answer_about_one_sentence(text, expected):
    assert parse(text, ONE) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"2": "乙。", "1": "甲。"}', ["甲。", "乙。"]),
        ('```json\n{"1": "甲。", "2": "乙。"}\n```', ["甲。", "乙。"]),
        ("1、甲。\n2、乙。", ["甲。", "乙。"]),
        ('{"1": "甲。", "2": "乙。", "3": "丙。"}', None),
        ('{"1": "甲。", "1": "乙。"}', None),
        ('{"1": "甲。", "2": ["乙。"]}', None),
        ('{"1": "甲。", "2": "乙。"', None),
        ('["甲。", "乙。"]', None),
        ("2. 乙。\n1. 甲。", None),
        ("1. 甲。\n2. 乙。\n以上。", None),
        ("甲。\n乙。", None),
    ],
)
def test_an_answer_about_several_sentences(text, expected):
    assert parse(text, TWO) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (DONE, None),
        ("很抱歉，作为一个人工智能语言模型，我不能提供此类内容。", "refused"),
        ("I'm sorry, but I can't help with that.", "refused"),
        ("抱歉，你的雨伞被我忘在了咖啡店，明天下班我就去拿来还你。", None),
        ("The road to the county seat was cut off by heavy rain 中断。", "wrong_language"),
        ("The road to the county seat was cut off by heavy rain.", None),  # no_han, for all methods
    ],
)
def test_why_a_paraphrase_is_none(answer, expected):
    assert judged(ONE[0], Answer(STOP, answer)) == expected


def test_a_source_that_says_it_cannot_is_no_refusal():
    source = "对不起，我无法完成您交给我的任务，请您另找别人。"
    answer = Answer(STOP, "抱歉，您交办的事我不能完成，还请您另请高明。")
    assert judged(source, answer) is None


@pytest.mark.parametrize("name", PROMPTS)
def test_prompts_say_what_to_do_and_end_in_the_sentences(name):
    degrees = (1, 5) if name == "degree" else ()
    settings = LlmSettings(prompt=name, degrees=degrees, system="你是一位编辑。")
    prompt = Prompt(settings)
    degree = settings.variants[-1][0]
    system, asked = prompt.messages(ONE, degree)
    assert system == {"role": "system", "content": "你是一位编辑。"}
    assert asked["content"].endswith(f"\n\n{ONE[0]}")
    assert "只输出改写后的句子" in asked["content"]
    assert ("改写程度为 5" in asked["content"]) == (name == "degree")
    shown = re.search("^(原句|复杂)：", asked["content"], re.MULTILINE)
    assert bool(shown) == name.endswith("few_shot")
    several = prompt.messages(TWO, degree)[-1]["content"]
    assert several.endswith(f"\n\n1. {TWO[0]}\n2. {TWO[1]}")
    assert "共 2 个句子" in several


def test_the_paper_s_prompt_is_in_its_words():
    asked = Prompt(LlmSettings(prompt="paper")).messages(ONE, None)[0]["content"]
    assert asked.startswith(
        "请帮我改写输入的句子，要求：1. 确保原文的语法、拼写和句式没有错误，这样可以让改写结果更加准确和流畅。"
        "2. 在改写时，尽可能使用自己的语言来表达原文中的含义，改变句子结构，避免直接复制原文的短语和句式。"
        "3. 对一些机构、个人、专有名词可以进行其他叫法的替换。\n"
    )


def test_a_template_of_ones_own(tmp_path):
    path = tmp_path / "own.j2"
    path.write_text("用{{ '文言' if degree == 5 else '白话' }}改写：{{ listed }}", "utf-8")
    settings = LlmSettings(prompt=str(path), degrees=(5,))
    assert Prompt(settings).messages(ONE, 5)[0]["content"] == f"用文言改写：{ONE[0]}"
    before = settings.prompt_sha256
    path.write_text("改写：{{ listed }}", "utf-8")
    assert settings.prompt_sha256 != before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("改写这个句子。", "own.j2: does not print the sentences"),
        ("改写：\n{{ sentence }}", "own.j2: 'sentence' is undefined"),
        ("改写：\n{% if %}{{ listed }}", "own.j2, line 2: "),
    ],
)
def test_a_template_that_is_no_good(tmp_path, text, message):
    path = tmp_path / "own.j2"
    path.write_text(text, "utf-8")
    with pytest.raises(JobError, match=message):
        Prompt(LlmSettings(prompt=str(path)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prompt": "nowhere.j2"}, "nowhere.j2: no such file"),
        ({"prompt": "degree"}, "needs degrees"),
        ({"degrees": (1,)}, "the prompt zero_shot does not use degrees"),
        ({"max_cost": 1.0}, "max_cost needs price_in and price_out"),
        ({"base_url": "127.0.0.1:8000"}, "expected a URL such as"),
        ({"base_url": "https://me:secret@host/v1"}, "expected no user, password or query"),
        ({"local": True, "sentences_per_request": 2}, "for a local model, set batch"),
    ],
)
def test_settings_that_are_at_odds(given, message):
    with pytest.raises(ValueError, match=message):
        LlmSettings(**given)

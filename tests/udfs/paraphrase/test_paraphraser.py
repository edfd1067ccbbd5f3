"""Drafts of a tiny model that knows them by heart, judged by what ships."""

import json
import math

import numpy as np
import pytest
from tiny_writer import tiny_writer

from gaixie.udfs.paraphrase.judge import Judge
from gaixie.udfs.paraphrase.paraphraser import SENTENCE, Paraphraser, Wanted
from gaixie.udfs.paraphrase.quality import COLUMNS, FILE, Quality
from gaixie.udfs.paraphrase.writer import Draft, ModelWriter

RAIN, READ = "会议原定周四举行，因为暴雨推迟到了下周。", "他昨天在图书馆看书。"
DATE = "《红楼梦》的销量在2024年3月5日超过了3000本。"
GOOD = "因为暴雨，原定周四举行的会议推迟到了下周。"
LIGHT = "昨天他在图书馆看书。"
KNOWN = [
    (RAIN, "4", GOOD),
    (READ, "4", READ),  # a copy, so that a lighter degree is tried
    (READ, "2", LIGHT),
    (DATE, "4", "2024年3月6日，《红楼梦》的销量超过了3000本。"),  # another date
    (DATE, "2", "《红楼梦》的销量在2024年3月5日超过了三千本。"),
    (RAIN, "口语", "会本来周四开，下暴雨，改到下周了。"),
]


@pytest.fixture(scope="module")
def paraphraser(tmp_path_factory) -> Paraphraser:
    folder = tiny_writer(tmp_path_factory.mktemp("writer"), KNOWN)
    quality = Quality(Judge.load(folder / "judge"))
    return Paraphraser(ModelWriter.load(folder, "float32"), quality, temperature=0.1, accepted=0.0)


def texts(found) -> list[list[str]]:
    return [[one.text for one in own] for own in found]


def test_a_degree_then_a_lighter_one_then_nothing(paraphraser: Paraphraser) -> None:
    found = paraphraser([RAIN, READ, DATE, "Hello.", ""])
    assert texts(found) == [[GOOD], [LIGHT], [], [], []]


def test_a_tone_and_terms_to_keep(paraphraser: Paraphraser) -> None:
    assert texts(paraphraser([RAIN], Wanted(tone="口语"))) == [[KNOWN[-1][2]]]
    assert texts(paraphraser([RAIN], Wanted(keep=("会议原定",)))) == [[]]


def test_a_near_copy_is_for_those_who_want_a_light_touch(paraphraser: Paraphraser) -> None:
    near = RAIN.replace("因为", "由于")
    wanted = (Wanted(), Wanted(degree=3), Wanted(degree=2), Wanted(tone="正式"))
    assert [paraphraser._passes(RAIN, near, one) for one in wanted] == [False, False, True, True]


def test_a_text_is_written_sentence_by_sentence(paraphraser: Paraphraser) -> None:
    """A sentence without a paraphrase stays, and so does the space between sentences."""
    [[whole]] = paraphraser([f"{RAIN}\n  {DATE}{READ}"])
    assert whole.text == f"{GOOD}\n  {DATE}{LIGHT}"
    alone = [own[0] for own in paraphraser([RAIN, READ])]
    assert whole.accepted == pytest.approx(min(one.accepted for one in alone))


@pytest.mark.parametrize("text", ["他说：“走吧！”然后走了。", "一。\n\n二？！三……四", "没有句号"])
def test_the_sentences_of_a_text_are_the_text(text: str) -> None:
    assert "".join(SENTENCE.findall(text)) == text


def test_what_readers_hardly_accept_is_not_shown(paraphraser: Paraphraser) -> None:
    strict = Paraphraser(paraphraser.writer, paraphraser.quality, accepted=1.01)
    assert texts(strict([RAIN, READ])) == [[], []]


@pytest.mark.parametrize("wrong", [{"degree": 6}, {"degree": 0}, {"n": 0}, {"tone": "文言"}])
def test_a_request_out_of_range(wrong) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Wanted(**wrong)


# Quality


def test_likelihood_and_meaning_raise_acceptance() -> None:
    """By hand: the logistic function of the weighted columns."""

    def judge(sources, paraphrases):
        return np.array([[0, 0, 2 if text == GOOD else -2, 2, 0, 0, 0] for text in paraphrases])

    quality = Quality(judge)
    drafts = [Draft(GOOD, -0.4, -2.0), Draft(GOOD, -2.5, -9.0), Draft("会议取消了。", -0.4, -2.0)]
    likely, unlikely, other = quality([RAIN] * 3, drafts)
    assert likely.accepted > max(unlikely.accepted, other.accepted)
    model = json.loads(FILE.read_text("utf-8"))["written"]
    row = dict(zip(COLUMNS, quality.columns([RAIN] * 3, drafts)[0], strict=True))
    assert row["meaning"] == 2
    columns = zip(model["columns"], model["mean"], model["scale"], strict=True)
    x = [(row[name] - mean) / scale for name, mean, scale in columns]
    total = sum(a * b for a, b in zip(x, model["accepted"], strict=True)) + model["accepted_bias"]
    assert likely.accepted == pytest.approx(1 / (1 + math.exp(-total)))


def test_a_draft_without_likelihood(paraphraser: Paraphraser) -> None:
    [reading] = paraphraser.quality([RAIN], [Draft(GOOD)])
    assert 0 < reading.accepted < 1
    assert paraphraser.quality([], []) == []

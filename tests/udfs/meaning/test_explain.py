"""Reasons: a low judgement gets those that are surely faults, with the texts as written."""

import pytest

from gaixie.udfs.meaning.core_features import Resources
from gaixie.udfs.meaning.explain import LOW, Sentence, explain_pairs
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import load_segmenter

SEGMENTER = load_segmenter()
SOURCE = "他在２０１９年花了３，０００元买下这座房子，没有后悔。"
GOOD = "２０１９年，这座房子被他花３０００元买了下来，他没有后悔。"
BAD = "他在２０１９年花了５０００元买下这座房子的的，后悔了。"
HIGH = dict.fromkeys(LOW, 0.9)


def reasons(source, paraphrase, judgements=None, language="en"):
    pairs, resources = [(source, paraphrase)], Resources.load()
    return explain_pairs(pairs, SEGMENTER, resources, [judgements], language)[0]


def test_facts_are_named_as_they_were_written():
    found = reasons(SOURCE, BAD)
    assert found[0] == "meaning: the number “３，０００” is missing"
    assert found[1] == "meaning: the number “５０００” is new"
    assert len(found) == 3
    assert found[2].startswith("fluency: “")
    assert "的的" in found[2]
    found = reasons(SOURCE, SOURCE.replace("没有", ""), HIGH | {"meaning": 0.1})
    assert found == ["meaning: the negation “没有” is dropped"]
    assert not any("number" in reason or "negation" in reason for reason in reasons(SOURCE, GOOD))
    assert "语义：丢失数字“３，０００”" in reasons(SOURCE, BAD, language="zh")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("paraphrase", [SOURCE, GOOD, BAD, "候鸟靠太阳和星星辨认方向，飞得很远。"])
def test_a_reason_is_of_a_low_judgement(paraphrase, language):
    names = reasons(SOURCE, SOURCE, dict.fromkeys(LOW, 0.1), language)
    names = {reason.partition(":")[0].partition("：")[0] for reason in names}
    assert len(names) == 3  # nothing is wrong with the meaning
    assert "100%" in " ".join(reasons(SOURCE, SOURCE, HIGH | {"structure": 0.1}, language))
    assert not reasons("经理批评了张三", "张三被经理批评了", HIGH | {"structure": 0.1}, language)
    always = reasons(SOURCE, paraphrase, HIGH, language)
    assert len(always) == (paraphrase == BAD)  # another number
    for name in LOW:
        found = reasons(SOURCE, paraphrase, HIGH | {name: 0.49}, language)
        found = found if name == "meaning" else [own for own in found if own not in always]
        assert bool(found) or name in ("meaning", "structure")
        assert len({reason.partition(":")[0].partition("：")[0] for reason in found}) <= 1
        assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("source", "paraphrase", "said"),
    [
        ("今天抓获四百名嫌犯。", "今天抓住了嫌犯。", "the number “四百名” is missing"),
        ("会议第二天才结束。", "会议结束了，各自回家。", "the number “第二天” is missing"),
        ("歌手保罗·麦卡特尼昨天到了。", "歌手昨天到了。", "“保罗·麦卡特尼” is missing"),
        ("去年的产量大幅增加了。", "去年的产量大幅减少了。", "“增加” became “减少”"),
        ("他上午九点要去参加会议。", "他要在晚上九点出席会议。", "“上午” became “晚上”"),
        ("利润增长了百分之二十。", "利润提高了三成。", "the number “百分之二十” is missing"),
        ("会议原定周四举行。", "会议原定周五举行。", "the weekday “周四” is missing"),
        ("他5月13日花了80日元。", "他5月花了80日元。", "the date “13日” is missing"),
    ],
)
def test_the_first_reason_is_the_fault(source, paraphrase, said):
    """It is named once; what else differs, such as 参加 and 出席, is no fault and goes unsaid."""
    found = reasons(source, paraphrase, HIGH | {"meaning": 0.1})
    assert found[0] == f"meaning: {said}"
    assert sum(said.partition("“")[2].partition("”")[0] in reason for reason in found) == 1
    assert not any("counterpart" in reason for reason in found)


def test_what_the_source_says_too_is_never_called_odd():
    odd = "这座的的房子，去年产量减少了，他后悔。"
    low = HIGH | {"fluency": 0.1}
    assert any("的的" in reason for reason in reasons(SOURCE, odd, low))
    assert not any("的的" in reason for reason in reasons(odd.replace("他", "她"), odd, low))
    assert reasons(odd, odd, low) == ["fluency: it reads less smoothly than the source"]


@pytest.mark.parametrize(
    ("source", "paraphrase"),
    [
        ("他日复一日地在工厂里工作。", "他每天都在工厂里工作。"),
        ("这是全国首座跨海大桥。", "这是全国第一座跨海大桥。"),
        ("这本书的定价是十八元六角。", "这本书定价18.6元。"),
        ("这种产品的附加价值低。", "这种产品附加价值不高。"),
        ("他没有勇气向她道歉。", "他缺乏向她道歉的勇气。"),
        ("莫言获得了诺贝尔奖。", "莫言拿到了诺奖。"),
        ("会议将在下周举行。", "会议在下周举行了。"),
        ("这件事我们非做不可。", "这件事我们必须做。"),
        ("他给了我一百块钱买书。", "为了买书，一百块钱他给了我。"),
        ("昨天晚上狗咬了人。", "昨天晚上人咬了狗。"),
        ("我们约好礼拜三在门口见面。", "我们约好周三在门口见面。"),
        ("会议于二○二四年三月在北京召开。", "会议2024年3月在北京召开，共一天。"),
        ("今年的产量是去年的两倍。", "今年的产量比去年翻倍了。"),
        ("今年的产量比去年增加了一倍。", "今年的产量是去年的两倍。"),
        ("产值比五年前翻两番。", "产值是五年前的四倍。"),
        ("她拿到了两个冠军。", "她成了双冠王。"),
        ("我今天想去买OPPOWatch手表。", "今天我想去买一块oppo watch手表。"),
        ("他住在澳大利亚的Perth市。", "他住在澳大利亚珀斯市。"),
        ("房间大小是3×4米。", "房间大小是3 x 4米。"),
        ("一般情况下，我们周日休息。", "总体上，我们周日休息。"),
        ("他不到一小时就回来了。", "他一小时之内就回来了。"),
        ("他差点没摔倒在楼梯上。", "他差点儿摔倒在楼梯上。"),
        ("我这个月的钱没花完。", "我这个月的钱还有剩下的。"),
    ],
)
def test_no_reason_is_false(source, paraphrase):
    found = reasons(source, paraphrase, HIGH | {"meaning": 0.1})
    wrong = ("number", "negation", "became", "missing", "content")
    assert not any(word in reason for reason in found for word in wrong)


@pytest.mark.parametrize(
    ("source", "paraphrase", "said"),
    [
        ("这袋大米重五十斤。", "这袋米有五十公斤重。", "“五十斤” became “五十公斤”"),
        ("气温昨夜降到-5℃。", "昨夜气温降到5℃。", "“-5” became “5”"),
        ("馆里新到了五万册图书。", "馆里新进了5000册图书。", "“五万册” became “5000册”"),
        ("会议下午三点开始。", "会议凌晨三点开始。", "“下午” became “凌晨”"),
        ("财产有23亿美元。", "财产是 23 亿美元。", None),
        ("会议有三百人参加。", "有人参加了会议。", None),
    ],
)
def test_another_number_is_named_however_high_the_meaning(source, paraphrase, said):
    assert reasons(source, paraphrase, HIGH) == [f"meaning: {said}"] * bool(said)


def test_what_is_often_said_otherwise_needs_a_very_low_meaning():
    pair = "他没有去北京开会。", "他去北京开了会。"
    assert reasons(*pair, HIGH | {"meaning": 0.5}) == []
    assert reasons(*pair, HIGH | {"meaning": 0.3}) == ["meaning: the negation “没有” is dropped"]
    assert reasons(*pair, HIGH | {"meaning": 0.7}) == []


@pytest.mark.parametrize(
    ("written", "part", "quoted"),
    [
        ("花了 　３，０００元", "3,000", "３，０００"),
        ("等等…走了", "走", "走"),
        ("㍿东芝", "东芝", "东芝"),
        ("e\u0301cole很好", "很好", "很好"),
    ],
)
def test_what_a_piece_was_written_as(written, part, quoted):
    sentence = Sentence(written, SEGMENTER.cut([normalise(written)])[0])
    start = sentence.text.index(part)
    assert sentence.quote(start, start + len(part)) == quoted


def test_many_pairs_have_the_reasons_of_each():
    """Many pairs together must get the reasons of each alone, also without Chinese or if long."""
    pairs = [(SOURCE, GOOD), (SOURCE, "no."), (SOURCE, BAD), (GOOD * 20, BAD * 20), (BAD, SOURCE)]
    given = [None, HIGH, None, HIGH | {"meaning": 0.1}, HIGH | {"fluency": 0.1}]
    many = explain_pairs(pairs, SEGMENTER, Resources.load(), given)
    assert many == [reasons(*pair, own) for pair, own in zip(pairs, given, strict=True)]
    assert explain_pairs([], SEGMENTER, Resources.load(), []) == []


def test_the_metric_explains_its_own_judgements():
    assert SPScore.load().explain(SOURCE, BAD, SEGMENTER, "zh")
    assert SPScore.load("paper").explain(SOURCE, BAD) == []

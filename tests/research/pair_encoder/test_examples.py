"""The pair encoder's examples: broken sentences, good versions, drawn examples."""

from random import Random

import pandas as pd
import pytest
import rjieba

from gaixie.research.pair_encoder.broken import Breaker
from gaixie.research.pair_encoder.examples import Examples
from gaixie.research.pair_encoder.sets import Example, Sets, consensus
from gaixie.udfs.meaning.pair_encoder import TASKS

SENTENCES = [
    "李娜在2019年没有赢得比赛，但是张伟去年已经成功了。",
    "警方表示，至少有三名游客在上海受伤，其中两人已经出院。",
    "如果明天下雨，公司可能会推迟会议，因为大多数员工住在北京。",
]


def test_what_is_broken() -> None:
    breaker = Breaker(SENTENCES, Random(3))
    given = {breaker.negation("他没有来。") for _ in range(40)}
    assert given & {"他有来。", "他没有来。"} == {"他有来。"}
    # Those of the first sentence are merely listed.
    assert [*map(breaker.roles, ("苹果和香蕉。", "苹果比香蕉贵。"))] == [None, "香蕉比苹果贵。"]
    breaker = Breaker(SENTENCES, Random(3))
    one, other = "他在2019年支持了张伟。", "张伟在2019年得到了他的支持。"
    for _ in range(20):
        pair = breaker.in_both(one, other)  # the same change in both
        assert pair not in (None, (one, other))
        new = {*rjieba.cut(pair[0])} - {*rjieba.cut(one)}
        assert new
        assert all(word in pair[1] for word in new)


def test_the_consensus_leaves_the_stranger_out() -> None:
    near = [
        f"{when}在公园{where}散步了很久。"
        for when in ("我们昨天", "昨天我们")
        for where in ("里", "")
    ]
    stranger = "会议结束以后没有任何人留下来说话。"
    assert stranger not in consensus([*near, stranger], [1] * 5)
    assert {*consensus([*near, stranger], [1] * 5)} == {*near}
    assert consensus(near, [0] * 4) == []


def test_examples_are_the_same_again_and_have_a_target() -> None:
    group = {"group": 1, "texts": [f"{SENTENCES[0]}{k}" for k in range(5)]}
    kinds = ("negation", "roles", "fact", "scope", "salad")
    rated = {"source": "甲乙丙丁", "paraphrase": "丁丙乙甲", "part": "encoder", "kind": "wmt"}
    rated |= {"structure": 1, "synonyms": 1, "meaning": 0.3, "fluency": 0.95, "overall": 0.2}
    pairs = [rated, rated | {"kind": "written_roles", "overall": 0.1}]
    pairs += [rated | {"kind": kind, "meaning": 0.6} for kind in ("translated", "written_draft")]
    pairs += [rated | {"part": "test", "source": "不可以学"}]
    sets = Sets(
        versions=[SENTENCES, SENTENCES[::-1]],
        written=[group],
        broken={1: {"group": 1, **dict.fromkeys(kinds, "坏的句子。")}},
        rated=pd.DataFrame(pairs),
        exchanged=[{"source": "甲借给乙", "same": ["乙向甲借"], "wrong": ["乙借给甲", "甲没借"]}],
        rewritten=[{"source": "雨大路封", "same": ["路因雨封"], "wrong": ["路虽封无雨"]}],
        premises=[
            {"premise": "雨很大", "entailed": ["下雨"], "neutral": ["冷"], "contradicted": ["晴"]}
        ],
        judged=[Example("一", "二", {"question": 1.0})],
        grammar=[("对的句子。", 1)],
    )
    one, other = (Examples(sets, Random(5)) for _ in range(2))
    drawn = [one.draw()[1] for _ in range(300)]
    assert drawn == [other.draw()[1] for _ in range(300)]
    assert {"translated", "drafts"} <= {one.draw()[0] for _ in range(60)}
    for own in drawn:
        assert own.targets
        assert set(own.targets) <= set(TASKS)
        assert all(0 <= value <= 1 for value in own.targets.values())
        assert own.source != "不可以学"
        if own.worse:
            assert own.worse.source == own.source
            assert sum(own.worse.targets.values()) < sum(own.targets.values())
    assert sum(own.worse is not None for own in drawn) > 60
    targets, names = one.of_rated([rated]).targets, ("same", "fluent", "good", "overall")
    assert [targets[name] for name in names] == pytest.approx([0, 1, 0, 0.2])
    mended = one.of_rated([rated | {"corrected": "可以"}])
    assert (mended.paraphrase, mended.rank) == ("可以", "good")
    assert mended.worse.targets == targets
    degrees = [one.of_degree(group["texts"], {"roles": "坏"} | sets.broken[1]) for _ in range(80)]
    roles = [own.targets for own in degrees if own.targets.get("overall") == 0.1]
    assert roles  # only one kind of written pairs was rated
    assert all(own["same"] == 0 and own["meaning"] == 0.3 for own in roles)
    assert any("overall" not in own.targets and own.targets["same"] == 1 for own in degrees)

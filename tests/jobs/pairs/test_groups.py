"""Which sentences can be in a pair, and which group they get."""

from collections import Counter

import pyarrow as pa
import pytest
from xxhash import xxh3_128_hexdigest

from gaixie.jobs.pairs import groups
from gaixie.jobs.pairs.groups import judge_batch
from gaixie.jobs.pairs.method import REPEATED
from gaixie.jobs.pairs.parallel import Parallel
from gaixie.jobs.pairs.versions import Versions

GOOD = "火势从三楼的一间厨房开始蔓延。"


def judged(rows, alone: bool) -> tuple[list, list]:
    source, paraphrase, foreign = (
        pa.array(column, pa.string()) for column in zip(*rows, strict=True)
    )
    result = judge_batch(source, paraphrase, foreign, 5, 20, alone)
    return result.field(0).to_pylist(), result.field(1).to_pylist()


def test_sentences_by_themselves():
    rows = [
        (GOOD, GOOD, "Fire."),
        (None, None, "Fire."),
        ("一二三四", "一二三四", "Fire."),
        ("only Latin letters", "only Latin letters", "Fire."),
        (2 * GOOD, 2 * GOOD, "Fire."),
        (GOOD, GOOD, None),
        (GOOD, GOOD, " \u3000"),
        (GOOD, GOOD, "br\ufffdken"),
    ]
    reasons = [None, "null", "too_short", "no_han", "too_long"]
    reasons += ["no_foreign", "no_foreign", "undecodable"]
    assert judged(rows, alone=True)[0] == reasons


def test_the_group_is_a_hash_that_anyone_can_compute():
    groups = judged([(GOOD, GOOD, f) for f in ("Ｆire:  火", "Fire: 火", "fire: 火")], True)[1]
    assert groups[0] == groups[1] == xxh3_128_hexdigest("Fire: 火".encode())
    assert groups[2] != groups[0]


PLACES = {"input": "in", "output": "out"}


@pytest.mark.parametrize(
    "method", [Versions(**PLACES, foreign_column="en", max_pairs=3), Parallel(**PLACES)]
)
def test_a_task_holds_so_many_items_of_a_group_at_once(method, monkeypatch):
    """Memory is bounded: items over the limit are counted, and repeats are not held."""
    monkeypatch.setattr(groups, "MEMBERS", 4)
    held = []

    def watched(items):
        held.append(items)
        return method.pairs_of(items)

    texts = ["一", "二", "一", "三", "四", "五", "一", "六", "五", "二"]
    rows = [
        {"group": group, "foreign": f"{group} {number}", "source": text, "paraphrase": text + "啊"}
        for group, of_group in (("g", texts), ("h", texts[:3]))
        for number, text in enumerate(of_group)
    ]
    if method.alone:
        rows = [{k: v for k, v in row.items() if k != "paraphrase"} for row in rows]
    batches = [pa.RecordBatch.from_pylist(rows)]
    made = list(groups.made_of_groups(batches, watched, method.alone))
    assert [len(items) for items in held] == [4, 2]
    left = Counter((row["group"], row["reason"], row["source"]) for row in made if row["reason"])
    over = {text: left["g", "over_limit", text] for text in ("五", "六")}
    assert over == {"五": 2, "六": 1}
    assert (left["g", "repeated", "一"], left["g", "repeated", "二"]) == (2, 1)
    assert left["h", "repeated", "一"] == 1
    pairs = [row for row in made if row["reason"] is None]
    sides = ("source", "paraphrase") if method.alone else ("source",)
    used = {(row["group"], row[side]) for row in pairs for side in sides}
    assert left.total() + len(used) == len(rows)
    assert {row["foreign"] for row in pairs} == {"g 0", "h 0"}


def test_the_same_two_sentences_are_merged_whichever_is_the_human_s():
    members = [("１２", "三"), ("12", "三"), ("三", "12"), ("三", "四")]
    for directions in ("one", "both"):
        method = Parallel(**PLACES, directions=directions)
        made = list(method.pairs_of(members))
        assert [item.reason for item in made].count(REPEATED) == 2
        assert len(made) == 2 + 2 * (1 + method.both)
        assert made == list(method.pairs_of(members[::-1]))

"""Which sentences can be in a pair, and which group they get."""

import pyarrow as pa
from xxhash import xxh3_128_hexdigest

from gaixie.jobs.pairs.method import check_batch

GOOD = "火势从三楼的一间厨房开始蔓延。"


def checked(rows, alone: bool) -> tuple[list, list]:
    sides = (pa.array(column, pa.string()) for column in zip(*rows, strict=True))
    result = check_batch(*sides, 5, 20, alone)
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
    assert checked(rows, alone=True)[0] == reasons


def test_the_group_is_a_hash_that_anyone_can_compute():
    groups = checked([(GOOD, GOOD, f) for f in ("Ｆire:  火", "Fire: 火", "fire: 火")], True)[1]
    assert groups[0] == groups[1] == xxh3_128_hexdigest("Fire: 火".encode())
    assert groups[2] != groups[0]

"""Pairs of human and machine translation, one group at a time."""

from gaixie.jobs.pairs.method import REPEATED, Made
from gaixie.jobs.pairs.parallel import Parallel


def test_a_row_is_a_pair():
    members = [("他来了", "他到了"), ("他来了", "来了他")]
    assert list(Parallel(False).make(members)) == [
        Made(None, "他来了", "他到了"),
        Made(None, "他来了", "来了他"),
    ]


def test_the_same_two_sentences_are_merged_whichever_is_the_human_s():
    members = [("１２", "三"), ("12", "三"), ("三", "12")]
    for both in (False, True):
        made = list(Parallel(both).make(members))
        assert [reason for reason, *_ in made].count(REPEATED) == 2
        assert len(made) == 3 + both
        assert made == list(Parallel(both).make(members[::-1]))

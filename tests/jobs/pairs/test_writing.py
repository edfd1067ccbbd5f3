"""Candidates that a model wrote must become pairs or be counted."""

import json
from types import SimpleNamespace

import pytest

from gaixie.jobs.pairs.pieces import WritePairs
from gaixie.jobs.pairs.writing import Settling, Written

A, B, C = (f"{word}从三楼的一间厨房开始蔓延。" for word in ("火势", "大火", "火灾"))
SETTLING = Settling(5, 30, False, '{"beams": 4}')


def row(source: str) -> dict[str, str]:
    return {"source": source, "foreign": source, "group": source[:2]}


def settled(*written: Written, settling: Settling = SETTLING) -> list[dict]:
    sources = dict.fromkeys(item.source for item in written)
    return settling.settle([row(source) for source in sources], "source", written).to_pylist()


def test_a_pair_has_the_parameters_of_the_building_and_its_own():
    [pair] = settled(Written(None, A, B, {"pivot": "ar"}))
    assert (pair["reason"], pair["source"], pair["paraphrase"]) == (None, A, B)
    assert (pair["group"], pair["dropped"]) == (A[:2], False)
    assert json.loads(pair["parameters"]) == {"beams": 4, "pivot": "ar"}
    both = settled(Written(None, A, B), settling=Settling(5, 30, True, "{}"))
    assert [(pair["source"], pair["paraphrase"]) for pair in both] == [(A, B), (B, A)]


@pytest.mark.parametrize(
    ("paraphrase", "reason"),
    [
        (None, "null"),
        ("火。", "too_short"),
        (A + " ", "copied"),
        ("火\ufffd从三楼的一间厨房", "undecodable"),
    ],
)
def test_what_is_no_pair_whatever_the_method(paraphrase, reason):
    [made] = settled(Written(None, A, paraphrase))
    assert (made["reason"], made["dropped"]) == (reason, False)


def test_a_sentence_is_in_a_pair_or_in_one_leftover():
    made = settled(
        Written("cut_off", A, None),
        Written(None, A, B),
        Written(None, A, B + " "),
        Written("cut_off", B, "火"),
        Written(None, B, B),
        Written(None, C, A),
    )
    told = [(item["source"], item["reason"], item["dropped"]) for item in made]
    assert told == [
        (A, "cut_off", True),
        (A, None, False),
        (A, "repeated", True),
        (B, "cut_off", False),
        (B, "copied", True),
        (C, None, False),
    ]


def test_several_sentences_of_one_foreign_sentence():
    rows = [{"source": text, "foreign": "Fire.", "group": "g"} for text in (A, B)]
    made = SETTLING.settle(rows, "foreign", [Written(None, "Fire.", C)]).to_pylist()
    assert [(pair["source"], pair["paraphrase"]) for pair in made] == [(A, C), (B, C)]


def test_a_model_that_leaves_a_sentence_out():
    with pytest.raises(RuntimeError, match="wrote nothing for"):
        SETTLING.settle([row(A)], "source", [])
    assert SETTLING.settle([], "source", []).num_rows == 0


def test_an_estimate_counts_the_cores_that_may_still_come():
    """An estimate must count the cores to come: dynamic allocation starts with few executors."""
    conf = {"spark.dynamicAllocation.enabled": "true", "spark.executor.cores": "4"}
    conf["spark.dynamicAllocation.maxExecutors"] = "100"
    context = SimpleNamespace(defaultParallelism=2, getConf=lambda: conf)
    told = []
    method = SimpleNamespace(reads="source", preview=lambda *given: told.append(given))
    job = SimpleNamespace(spark=SimpleNamespace(sparkContext=context), limit=None, method=method)
    WritePairs.show(job, [row(A)], fit=5, rows=10)
    assert told == [([A], 5, 400)]

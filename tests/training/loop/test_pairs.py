"""A stage must learn from the right pairs, in an order that the seed alone decides."""

from collections import Counter
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from manifests import write_scored

from gaixie.training.loop import pairs as loop_pairs
from gaixie.training.settings import Data, PairSettings, Settings
from gaixie.udfs.text.splits import GROUP, SPLITS, splits_of

TABLE = pa.table(
    {
        "source": ["a", "a", "a", "b", "b", "c"],
        "paraphrase": ["1", "2", "3", "4", "5", "6"],
        "meaning": [0.9, 0.5, None, 0.7, 0.8, 0.2],
        "fluency": [0.9, 0.9, 0.9, 0.3, 0.9, 0.9],
        "origin": ["llm", "llm", "llm", "human", "human", "parallel"],
    }
)


TEXTS = ("source", "paraphrase")


def chosen(seed: int = 0, **settings) -> list[str]:
    random = np.random.default_rng(seed)
    return loop_pairs._choose(PairSettings(**settings), TABLE, random)["paraphrase"].to_pylist()


def made(uri: str, stage: int = 1, **changes) -> dict[str, list[tuple[str, str]]]:
    """Returns the train and validation pairs of a stage."""
    data = {"uri": uri, "validation": 0.2, "test": 0.1} | changes.pop("data", {})
    given = {"data": data, "tokenizer": "t", "output": "o", "model": {"config": {}}}
    given |= {"batch": {"pairs": 1}, "curriculum": [[1], [2]]}
    settings = Settings.model_validate(given | changes)
    sides = loop_pairs.stage_pairs(loop_pairs.Corpus(settings.data), settings, stage).items()
    return {side: [*zip(*(t[n].to_pylist() for n in TEXTS), strict=True)] for side, t in sides}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    """Returns a published run of two stages, in which three pairs are a group."""
    tables = {}
    for (origin, rows), stage in product({"parallel": 180, "llm": 90}.items(), (1, 2)):
        columns = {
            "pair_id": [f"{origin}-{stage}-{k}" for k in range(rows)],
            "source": [f"{origin}{stage}第{k}句" + "晚" * (k * 7 % 23) for k in range(rows)],
            "paraphrase": [f"第{k}种说法" + "迟" * (k * 5 % 19) for k in range(rows)],
            GROUP: [f"{origin}-{k // 3}" for k in range(rows)],
        }
        tables[origin, stage] = pa.table(columns)
    return write_scored(tmp_path_factory.mktemp("root") / "runs/r", tables, row_group_size=20)


# Which pairs


def test_floors():
    """Pairs below a floor must be left out, and pairs without that judgement too."""
    assert chosen(min_meaning=0.7) == ["1", "4", "5"]
    assert chosen(min_meaning=0.7, min_fluency=0.5) == ["1", "5"]


def test_weights_by_origin():
    assert Counter(chosen(weights={"human": 2, "parallel": 0})) == Counter("1234455")
    drawn = [len(chosen(seed, weights={"llm": 0.5})) for seed in range(300)]
    assert np.mean(drawn) == pytest.approx(4.5, abs=0.2)


@given(st.lists(st.sampled_from("abcdef"), max_size=40), st.integers(1, 4), st.integers(0, 2**32))
def test_partners(sources, most, seed):
    table = pa.table({"source": pa.array(sources, pa.string()), "row": [*range(len(sources))]})
    kept = loop_pairs._partners(PairSettings(max_partners=most), table, np.random.default_rng(seed))
    counts = Counter(kept["source"].to_pylist())
    assert counts == {source: min(count, most) for source, count in Counter(sources).items()}
    assert kept["row"].to_pylist() == sorted(kept["row"].to_pylist())


def test_splits_go_by_group(run):
    """No group may be on two sides, and train, validation and test must be all pairs."""
    corpus = loop_pairs.Corpus(Data(uri=run, validation=0.2, test=0.1))
    side_of: dict[str, str] = {}
    rows = 0
    for split, table in corpus.read(1, ["source", "paraphrase", GROUP]):
        rows += len(table)
        for group in table[GROUP].to_pylist():
            assert side_of.setdefault(group, split) == split
    assert rows == 270
    expected = splits_of(pa.array([*side_of]), corpus.shares, 13)
    assert [SPLITS[number] for number in expected] == [*side_of.values()]
    found, groups = made(run, evaluation={"pairs": 1_000}), Counter(side_of.values())
    assert len(found["train"]) == 3 * groups["train"]
    assert len(found["validation"]) == 3 * groups["validation"]
    assert groups["test"] > 0
    assert not {*found["train"]} & {*found["validation"]}


def test_the_seed_decides(run):
    assert made(run) == made(run)
    assert made(run)["validation"] != made(run, data={"split_seed": 14})["validation"]
    few = made(run, evaluation={"pairs": 5})["validation"]
    assert len(few) == 5
    assert {*few} < {*made(run)["validation"]}


def test_the_mix_is_a_share_of_what_is_above_the_floors(tmp_path: Path):
    """All 200 pairs of stage 2 are above the floor, and half of stage 1; a fifth is 50 of these."""
    tables = {}
    for stage, meanings in ((1, [0.1, 0.9] * 100), (2, [0.9] * 200)):
        names = [f"{stage}级第{k}句,{meaning}" for k, meaning in enumerate(meanings)]
        tables["llm", stage] = pa.table({"source": names, "paraphrase": names, "meaning": meanings})
    uri = write_scored(tmp_path / "runs/r", tables, row_group_size=50)
    data = {"min_meaning": 0.5, "mix": 0.2, "validation": 0.05, "test": 0}
    train = made(uri, 2, data=data)["train"]
    counts = Counter(source[0] for source, _ in train)
    assert counts["1"] == round(counts["2"] / 4)
    assert all(source.endswith("0.9") for source, _ in train)
    assert {source[0] for source, _ in made(uri, 1, data=data)["train"]} == {"1"}


def test_too_little(run):
    for changes, message in (
        ({"batch": {"pairs": 400}}, "too few training pairs"),
        ({"data": {"validation": 0.0}}, "no validation pair"),
        ({"curriculum": [[3]]}, "stage 3 has no pairs"),
        ({"data": {"min_meaning": 0.5}}, "no column 'meaning'"),
    ):
        with pytest.raises(ValueError, match=message):
            made(run, **changes)


# Files and order


@given(st.lists(st.integers(1, 40), max_size=60), st.integers(1, 20), st.integers(0, 9))
def test_batches_are_of_like_length(lengths, size, seed):
    """Batches must be whole, of distinct rows, and their ranges of lengths must not overlap."""
    longer = np.array(lengths, int)
    batches = loop_pairs.cut_batches(longer, size, np.random.default_rng(seed))
    rows = [row for batch in batches for row in batch.tolist()]
    assert len({*rows}) == len(rows) == len(lengths) // size * size
    assert all(len(batch) == size for batch in batches)
    ranges = sorted((longer[batch].min(), longer[batch].max()) for batch in batches)
    for (_, end), (begin, _) in pairwise(ranges):
        assert end <= begin


@given(st.integers(1, 5), st.integers(0, 12), st.integers(0, 3))
def test_epoch_follows_epoch(size, batches, seed):
    """The order must be that of the epochs, one after the other, as often as it is asked for."""
    lengths = np.arange(11) % 4
    sampler = loop_pairs.LikeLengths(lengths, size, batches, [seed, 1])
    expected: list[int] = []
    for epoch in range(batches + 1):
        random = np.random.default_rng([seed, 1, epoch])
        expected += np.concatenate(loop_pairs.cut_batches(lengths, size, random)).tolist()
    assert [*sampler] == [*sampler] == expected[: size * batches]
    assert len(sampler) == size * batches

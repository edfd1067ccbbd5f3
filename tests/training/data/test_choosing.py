"""A stage must learn from the right pairs: floors, partners, weights, degrees."""

from collections import Counter
from itertools import takewhile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from manifests import write_scored

from gaixie.training.data.choosing import choose, columns_of, degree_of
from gaixie.training.data.corpus import Corpus
from gaixie.training.data.stage_data import StageStream
from gaixie.training.settings import PairSettings, StreamSettings

TABLE = pa.table(
    {
        "source": ["a", "a", "a", "b", "b", "c"],
        "paraphrase": ["1", "2", "3", "4", "5", "6"],
        "meaning": [0.9, 0.5, None, 0.7, 0.8, 0.2],
        "fluency": [0.9, 0.9, 0.9, 0.3, 0.9, 0.9],
        "origin": ["llm", "llm", "llm", "human", "human", "parallel"],
    }
)


def chosen(seed: int = 0, **settings) -> list[str]:
    random = np.random.default_rng(seed)
    return choose(PairSettings(**settings), TABLE, random)["paraphrase"].to_pylist()


def test_floors():
    """Pairs below a floor must be left out, and pairs without that judgement too."""
    assert chosen(min_meaning=0.7) == ["1", "4", "5"]
    assert chosen(min_meaning=0.7, min_fluency=0.5) == ["1", "5"]
    assert columns_of(PairSettings(min_fluency=0.5)) == ["fluency"]


def test_paraphrases_that_copy():
    """Paraphrases above the Self-BLEU limit must be left out.

    The second shares three of four words with its source, in order; the third shares none.
    """
    source = ["我们今天去公园看花"] * 3
    rows = {
        "source": source,
        "paraphrase": ["我们今天去公园看花", "我们今天去公园散步", "春色满园"],
    }
    table, random = pa.table(rows), np.random.default_rng(0)
    for most, kept in ((100, 3), (99, 2), (14, 1)):
        assert len(choose(PairSettings(max_self_bleu=most), table, random)) == kept
    assert not len(choose(PairSettings(max_self_bleu=14), table.slice(0, 0), random))
    assert "max_self_bleu" not in PairSettings().model_dump()
    assert PairSettings(max_self_bleu=14).model_dump(mode="json")["max_self_bleu"] == 14


def test_weights_by_origin():
    assert Counter(chosen(weights={"human": 2, "parallel": 0})) == Counter("1234455")
    drawn = [len(chosen(seed, weights={"llm": 0.5})) for seed in range(300)]
    assert np.mean(drawn) == pytest.approx(4.5, abs=0.2)


@given(st.lists(st.sampled_from("abcdef"), max_size=40), st.integers(1, 4), st.integers(0, 2**32))
def test_partners(sources, most, seed):
    table = pa.table({"source": pa.array(sources, pa.string()), "row": [*range(len(sources))]})
    random = np.random.default_rng(seed)
    kept = choose(PairSettings(max_partners=most), table, random)
    counts = Counter(kept["source"].to_pylist())
    assert counts == {source: min(count, most) for source, count in Counter(sources).items()}
    assert kept["row"].to_pylist() == sorted(kept["row"].to_pylist())


def test_degrees():
    """The mean of the two judgements of change gives the degree; 0.08, 0.15, 0.22 and 0.3 begin the
    next degree."""
    change = np.array([0.0, 0.079, 0.08, 0.16, 0.22, 0.29, 0.3, 1.0])
    assert degree_of(change, change).tolist() == [1, 1, 2, 3, 4, 4, 5, 5]
    assert degree_of(np.array([0.0]), np.array([0.5])).tolist() == [4]


def test_the_mix_is_a_share_of_what_is_above_the_floors(tmp_path: Path):
    """The mix must be a share of pairs above the floors, not of all.

    All 200 pairs of stage 2 are above, and half of stage 1; a fifth of the epoch is 50 of these.
    """
    tables = {}
    for stage, meanings in ((1, [0.1, 0.9] * 100), (2, [0.9] * 200)):
        names = [f"第{stage}级第{k}句,{meaning}" for k, meaning in enumerate(meanings)]
        columns = {"source": names, "paraphrase": names, "meaning": meanings}
        tables["llm", stage] = pa.table(columns)
    uri = write_scored(tmp_path / "runs/r", tables, row_group_size=50)
    corpus = Corpus(uri, validation=0, test=0)
    pairs = PairSettings(min_meaning=0.5)
    settings = StreamSettings(batch_size=1, mix=0.2, curriculum=((1,), (2,)), pairs=pairs)
    batches = StageStream(corpus, 2, settings).batches()
    epoch = [batch.source[0] for batch in takewhile(lambda batch: batch.next.epoch == 0, batches)]
    assert Counter(text.partition("第")[2][0] for text in epoch) == {"2": 200, "1": 50}
    assert all(text.endswith("0.9") for text in epoch)

"""Denoising: which tokens are hidden and moved, and plain sentences in place of pairs."""

from collections import Counter
from itertools import islice, pairwise, takewhile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from manifests import write_scored

from gaixie.training.data.corpus import Corpus
from gaixie.training.data.denoising import Sentences, add_noise
from gaixie.training.data.stage_data import Position, StageStream
from gaixie.training.modeling.vocabulary import MASK
from gaixie.training.settings import DenoisingSettings, Noise, StreamSettings

FIRST = 100  # first id of the tests, above the special tokens
tokens = st.integers(0, 80).map(lambda count: [*range(FIRST, FIRST + count)])
seeds = st.integers(0, 2**63 - 1)


@given(tokens, seeds, st.floats(0, 0.9), st.floats(0.5, 8))
def test_hides_no_more_than_its_share(ids, seed, share, span):
    noise = Noise(mask=share, span=span, shuffle=0)
    left = [token for token in add_noise(noise, ids, seed) if token != MASK]
    assert left == sorted(left)
    assert set(left) <= set(ids)
    assert len(ids) - len(left) <= round(share * len(ids))
    assert add_noise(noise, ids, seed) == add_noise(noise, ids, seed)


@given(tokens, seeds)
def test_a_hidden_span_is_one_mask(ids, seed):
    noised = add_noise(Noise(mask=0.5, span=2, shuffle=0), ids, seed)
    assert not any(a == b == MASK for a, b in pairwise(noised))
    if len(noised) == len(ids):
        assert all(a in (b, MASK) for a, b in zip(noised, ids, strict=True))


@given(tokens, seeds)
def test_the_shuffle_loses_nothing(ids, seed):
    assert Counter(add_noise(Noise(mask=0, shuffle=3), ids, seed)) == Counter(ids)
    assert add_noise(Noise(mask=0, shuffle=0), ids, seed) == ids


def test_about_the_share_is_hidden():
    """About 30 % of the tokens must be hidden, a little less because spans overlap; measured on
    1,000 sentences of 40 tokens."""
    hidden = [
        40 - sum(t != MASK for t in add_noise(Noise(shuffle=0), [*range(9, 49)], k))
        for k in range(1000)
    ]
    assert 0.24 < np.mean(hidden) / 40 <= 0.3


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    """Returns sixty pairs of twenty groups, whose sentences name their group."""
    folder = tmp_path_factory.mktemp("root") / "runs/monday"
    numbers = [k // 3 for k in range(60)]
    table = pa.table(
        {
            "pair_id": [str(k) for k in range(60)],
            "source": [f"第{g}组的句子,第{k}种说法" for k, g in enumerate(numbers)],
            "paraphrase": [f"第{g}组的另一句,说法{k}" for k, g in enumerate(numbers)],
            "group": [f"组{g}" for g in numbers],
        }
    )
    uri = write_scored(folder, {("parallel", 1): table}, row_group_size=17)
    return Corpus(uri, validation=0.2, test=0.1)


def groups_of(texts) -> set[str]:
    return {text.partition("组")[0] for text in texts}


def test_no_group_is_on_both_sides(corpus):
    """No group may be on both sides; a split by source would separate its different sources."""
    sides = {}
    for split in ("train", "validation", "test"):
        parts = [corpus.read(group, split) for group in corpus.groups(1)]
        table = pa.concat_tables(parts)
        sides[split] = groups_of([*table["source"].to_pylist(), *table["paraphrase"].to_pylist()])
    assert sides["train"]
    assert sides["validation"]
    assert sum(map(len, sides.values())) == len(set.union(*sides.values())) == 20


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    texts = [f"一个普通的句子,编号是{k}" for k in range(50)] + [None, ""]
    pq.write_table(pa.table({"text": texts}), folder / "a.parquet", row_group_size=20)
    return folder


def stream_of(corpus: Corpus, plain: Path | None, rank: int = 0, world: int = 1) -> StageStream:
    sentences = {} if plain is None else {str(plain): "text"}
    data = Sentences(corpus, DenoisingSettings(sentences=sentences))
    return StageStream(data, 1, StreamSettings(batch_size=4, block_rows=40), rank, world)


def epoch(stream: StageStream) -> list:
    return [*takewhile(lambda batch: batch.next.epoch == 0, stream.batches(Position()))]


def test_distinct_sentences_of_both_kinds(corpus, plain):
    stream = stream_of(corpus, plain)
    read = [text for batch in epoch(stream) for text in batch.source]
    assert all(batch.source == batch.paraphrase for batch in epoch(stream))
    assert max(Counter(read).values()) == 1
    apart = stream.held_out("validation", 1_000)["source"].to_pylist()
    assert apart
    assert not set(apart) & set(read)
    of_pairs = [text for text in read if "组" in text]
    held_out = pa.concat_tables([corpus.read(group, "validation") for group in corpus.groups(1)])
    assert of_pairs
    assert not groups_of(of_pairs) & groups_of(held_out["source"].to_pylist())


def test_noise_is_the_same_for_any_number_of_ranks(corpus, plain):
    whole = [*islice(stream_of(corpus, plain).batches(), 12)]
    halves = [[*islice(stream_of(corpus, plain, rank, 2).batches(), 12)] for rank in (0, 1)]
    for batch, *ranks in zip(whole, *halves, strict=True):
        for rank, half in enumerate(ranks):
            assert half.source == batch.source[rank::2]
            assert half.options["noise"] == batch.options["noise"][rank::2]
    seen = [seed for batch in whole for seed in batch.options["noise"]]
    assert len(set(seen)) == len(seen)

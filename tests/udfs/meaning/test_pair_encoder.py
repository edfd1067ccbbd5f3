"""The pair encoder: its folder, its batches, and messages about an unusable folder."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.meaning import pair_encoder
from gaixie.udfs.meaning.pair_encoder import TASKS, PairEncoder, batches

WRITTEN = Path(__file__).parents[3] / "examples/written/data"
TEXTS = ["今天天气很好", "天气今天不错", "他昨天买了三本书", "书", "好"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Returns a network with random weights, and the folder it was exported to."""
    import torch
    from tiny_models import tiny_bert

    from gaixie.research.pair_encoder.network import PairNetwork, export, save

    folder = tmp_path_factory.mktemp("encoder")
    bert = tiny_bert(folder / "bert", 1, positions=512)
    torch.manual_seed(1)
    network = PairNetwork(folder / "bert").eval()
    save(network, folder / "bert", folder / "trained", 0)
    export(folder / "trained", folder / "own")
    return network, bert, folder / "own"


def test_a_folder_gives_what_the_network_gives(trained):
    import torch

    from gaixie.research.pair_encoder.examples import line_of
    from gaixie.research.pair_encoder.sets import Example
    from gaixie.research.pair_encoder.training import DeviceTable, table_of

    network, bert, folder = trained
    pairs = [Example(one, other, {}) for one, other in zip(TEXTS, TEXTS[::-1], strict=True)]
    table = table_of([line_of("", pair) for pair in pairs], bert)
    with torch.no_grad():
        device = torch.device("cpu")
        logits, *_ = DeviceTable(table, device).outputs(network, torch.arange(len(TEXTS)), 32)
    found = PairEncoder.load(folder, threads=1).predict(TEXTS, TEXTS[::-1])
    assert found.shape == (len(TEXTS), len(TASKS))
    expected = torch.sigmoid(logits.float())
    np.testing.assert_allclose(found, expected, atol=0.03)  # weights have 8 bits


def test_batches_do_not_change_a_prediction(trained, monkeypatch):
    encoder = PairEncoder.load(trained[2], threads=1)
    together = encoder.predict(TEXTS * 9, TEXTS[::-1] * 9)
    monkeypatch.setattr(pair_encoder, "BATCH_TOKENS", 1)
    np.testing.assert_allclose(encoder.predict(TEXTS * 9, TEXTS[::-1] * 9), together, atol=1e-6)


def test_what_is_said_of_a_pair_depends_on_no_other(examples):
    """A pair's outputs must not depend on its batch; padding to longer pairs would change them in
    the shipped encoder."""
    encoder = PairEncoder.load(threads=1)
    texts = examples["source"][:20], examples["paraphrase"][:20]
    alone = [encoder.predict([a], [b])[0] for a, b in zip(*texts, strict=True)]
    assert np.abs(encoder.predict(*texts) - alone).max() < 1e-5


def test_long_sentences_are_cut_and_no_pairs_are_no_error(trained):
    encoder = PairEncoder.load(trained[2], threads=1)
    assert np.isfinite(encoder.predict(["今天天气" * 200], ["今天天气" * 200])).all()
    assert encoder.predict([], []).shape == (0, len(TASKS))


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 100))
def test_every_row_is_in_one_batch_within_the_limit(lengths, limit):
    for part in (parts := list(batches(lengths, limit, equal=True))):
        assert len({lengths[row] for row in part}) == 1
    assert sorted(row for part in parts for row in part) == list(range(len(lengths)))
    parts = list(batches(lengths, limit))
    assert sorted(row for part in parts for row in part) == list(range(len(lengths)))
    for part in parts:
        assert len(part) == 1 or len(part) * max(lengths[row] for row in part) <= limit
    order = [lengths[row] for part in parts for row in part]
    assert order == sorted(order)


@pytest.mark.parametrize("name", ["pair_encoder.json", "tokenizer.json", "head.npz", "model.bin"])
def test_a_missing_or_damaged_file_is_named(trained, tmp_path, name):
    folder = shutil.copytree(trained[2], tmp_path / "own")
    path = next(folder.rglob(name))
    path.write_bytes(b"[]")
    with pytest.raises(ValueError, match=r"pair_encoder\.json"):
        PairEncoder.load(folder)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=name):
        PairEncoder.load(folder)


WINS = {"negation": 0.7, "roles": 0.55, "fact": 0.75, "scope": 0.8, "salad": 0.92}
"""Minimum share of paraphrases that beat a counterpart; the card has the shares of all groups."""


@pytest.mark.long
def test_the_shipped_encoder_reads():
    """The shipped encoder must beat WINS on groups of examples/written it did not learn from."""
    groups = pd.read_parquet(WRITTEN / "groups-test.parquet").set_index("group")["texts"]
    counterparts = pd.read_parquet(WRITTEN / "counterparts-test.parquet")
    encoder, won = PairEncoder.load(), {}
    for kind, least in WINS.items():
        task = TASKS.index("fluent" if kind == "salad" else "same")
        of_kind = (counterparts["kind"] == kind) & (counterparts["group"] < 30_000)
        rows = counterparts[of_kind].head(30)
        right = [groups[group][2] for group in rows["group"]]
        right, wrong = (encoder.predict(rows["source"], o)[:, task] for o in (right, rows["text"]))
        won[kind] = (right > wrong).mean() >= least
    assert won == dict.fromkeys(WINS, True)

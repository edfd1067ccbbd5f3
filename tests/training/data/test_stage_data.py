"""The loader must give every training pair once, in one order for any number of ranks, and resume
at any batch."""

import json
import multiprocessing
import os
import re
import shutil
import socket
from itertools import groupby, islice, pairwise, takewhile
from multiprocessing import resource_sharer
from pathlib import Path

import hypothesis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from manifests import release_manifest, write_manifest

from gaixie.training.data.corpus import Corpus
from gaixie.training.data.stage_data import Position, StageStream, cut_batches
from gaixie.training.data.stage_loader import IGNORED, PairEncoder, StageLoader, _end_quietly
from gaixie.training.settings import StreamSettings
from gaixie.udfs.text.splits import SPLITS, splits_of

Pair = tuple[str, str]
ROWS_A_GROUP = 20


def sentences(stage: int, count: int, origin: str = "parallel") -> list[Pair]:
    """Returns pairs of different lengths; every third source has two pairs."""
    found = []
    for k in range(count):
        source = f"{origin}第{k - (k % 3 == 2)}句在第{stage}级，山里的春天来得很" + "晚" * (
            k * 7 % 23
        )
        found.append((source, f"第{k}种说法：春天到山里" + "很" * (k * 5 % 19) + "迟"))
    return found


def write_run(root: Path, run_id: str, stages: dict[int, dict[str, list[Pair]]]) -> str:
    """Publishes a run like jobs/score_corpus.py, two files per origin and stage. Gives the URI."""
    folder = root / "runs" / run_id
    files = []
    for stage, origins in stages.items():
        for origin, pairs in origins.items():
            place = folder / f"scored/origin={origin}/stage={stage}"
            place.mkdir(parents=True)
            for number, part in enumerate((pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :])):
                file = place / f"part-{number:05}.parquet"
                table = pa.table(
                    {
                        "pair_id": [f"{origin}-{stage}-{number}-{k}" for k in range(len(part))],
                        "source": pa.array([a for a, _ in part], pa.string()),
                        "paraphrase": pa.array([b for _, b in part], pa.string()),
                    }
                )
                pq.write_table(table, file, row_group_size=ROWS_A_GROUP, write_page_checksum=True)
                files.append(file)
    return write_manifest(folder, files)


STAGES = {
    1: {"parallel": sentences(1, 180), "llm": sentences(1, 70, "llm")},
    2: {"parallel": sentences(2, 90)},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    """Returns the URI of a published run of two stages; read-only."""
    return write_run(tmp_path_factory.mktemp("root"), "monday", STAGES)


def pairs_of(stage: int) -> list[Pair]:
    return [pair for pairs in STAGES[stage].values() for pair in pairs]


def settings(**given) -> StreamSettings:
    return StreamSettings(**{"batch_size": 4, "block_rows": 60} | given)


def stream(uri: str, stage: int = 1, rank: int = 0, world: int = 1, **given) -> StageStream:
    return StageStream(Corpus(uri, 0.1, 0.1), stage, settings(**given), rank, world)


def epoch(of: StageStream, number: int = 0, **workers) -> list:
    batches = of.batches(Position(number), **workers)
    return [*takewhile(lambda batch: batch.next.epoch == number, batches)]


def pairs(batches) -> list[Pair]:
    return [pair for batch in batches for pair in zip(batch.source, batch.paraphrase, strict=True)]


def test_stages_together_are_the_pairs_of_all(run):
    """A stage of training on two stages of the data must have the pairs of both, and validation
    pairs in proportion."""
    both = stream(run, batch_size=1, curriculum=((1, 2),))
    held_out = both.held_out("validation", 1_000).to_pylist()
    apart = {(row["source"], row["paraphrase"]) for row in held_out}
    test = {
        (row["source"], row["paraphrase"])
        for stage in (1, 2)
        for row in both.corpus.held_out(stage, "test", 1_000).to_pylist()
    }
    found = pairs(epoch(both))
    assert both.rows == len(pairs_of(1) + pairs_of(2))
    assert sorted(found) == sorted({*pairs_of(1), *pairs_of(2)} - apart - test)
    blocks = [pair in pairs_of(2) for pair in found]
    assert len([*groupby(blocks)]) > 4  # mixed, not one after the other
    few = [(row["source"], row["paraphrase"]) for row in both.held_out("validation", 9).to_pylist()]
    assert len(few) == 9
    assert {*few} <= apart
    assert {pair in pairs_of(2) for pair in few} == {True, False}


# Splits


def test_the_split_of_a_text_does_not_depend_on_the_others():
    texts = [f"第{k}句，Ａ１ 春天 \u3000 e\u0301" for k in range(300)]
    shares = {"train": 0.5, "validation": 0.2, "test": 0.3}
    found = splits_of(pa.chunked_array([texts]), [*shares.values()], 13)
    alone = [splits_of(pa.chunked_array([[text]]), [*shares.values()], 13)[0] for text in texts]
    assert list(found) == alone
    assert {*found} == {0, 1, 2}
    assert {*splits_of(pa.chunked_array([texts]), (0.8, 0, 0.2), 13)} == {0, 2}


def test_held_out_pairs_are_the_same_and_so_many(run):
    corpus = Corpus(run, 0.2, 0.1)
    whole, some = (corpus.held_out(1, "validation", rows) for rows in (1_000, 5))
    assert len(some) == 5
    assert some.equals(whole.slice(0, 5))
    assert some.equals(Corpus(run, 0.2, 0.1).held_out(1, "validation", 5))
    other = Corpus(run, 0.2, 0.1, split_seed=14).held_out(1, "validation", 1_000)
    assert {*other["source"].to_pylist()} != {*whole["source"].to_pylist()}


# Order


def test_an_epoch_is_every_training_pair_once(run):
    corpus = Corpus(run, 0.1, 0.1)
    split = splits_of(pa.chunked_array([[source for source, _ in pairs_of(1)]]), corpus.shares, 13)
    train = [pair for pair, place in zip(pairs_of(1), split, strict=True) if place == 0]
    assert 150 < len(train) < 240
    assert sorted(pairs(epoch(stream(run, batch_size=1)))) == sorted(train)


def test_epochs_differ_and_seeds_decide(run):
    first, second = (pairs(epoch(stream(run, batch_size=1), number)) for number in (0, 1))
    assert first != second
    assert sorted(first) == sorted(second)
    assert first == pairs(epoch(stream(run, batch_size=1)))
    assert first != pairs(epoch(stream(run, batch_size=1, seed=14)))
    whole = [*islice(stream(run, batch_size=1).batches(), len(first) + 5)]
    assert pairs(whole) == first + second[:5]  # epoch follows epoch


GIVEN = {
    "batch_size": st.sampled_from([4, 8, 12]),
    "block_rows": st.sampled_from([1, 50, 120, 10_000]),
    "mix": st.sampled_from([0.0, 0.1, 0.6]),
    "seed": st.integers(0, 3),
}
examples = hypothesis.settings(deadline=None, max_examples=25)


@examples
@given(st.fixed_dictionaries(GIVEN), st.sampled_from([2, 4]), st.integers(0, 2))
def test_ranks_share_the_batches_of_one(run, given, world, number):
    whole = epoch(stream(run, 2, **given), number)
    ranks = [epoch(stream(run, 2, rank, world, **given), number) for rank in range(world)]
    assert {len(batches) for batches in ranks} == {len(whole)}
    for batch, *stripes in zip(whole, *ranks, strict=True):
        assert {(one.next, one.pairs) for one in stripes} == {(batch.next, len(batch.source))}
        assert {len(one.source) for one in stripes} == {batch.pairs // world}
        assert sorted(pairs(stripes)) == sorted(pairs([batch]))


@examples
@given(st.fixed_dictionaries(GIVEN), st.integers(0, 2))
def test_a_block_leaves_out_less_than_a_batch(run, given, number):
    one = stream(run, 2, **given | {"mix": 0.0})
    every = pairs(epoch(stream(run, 2, batch_size=1)))
    found = pairs(epoch(one, number))
    assert len({*found}) == len(found)
    assert {*found} <= {*every}
    blocks = one._blocks(number)
    assert len(every) - len(found) <= len(blocks) * (one.settings.batch_size - 1)
    assert sorted(place for block in blocks for place in block) == [*range(len(one._groups))]


@examples
@given(st.fixed_dictionaries(GIVEN), st.integers(1, 3))
def test_workers_take_turns(run, given, workers):
    one = stream(run, 2, **given)
    start = Position(1, 0, 3)
    whole = [*islice(one.batches(start), 40)]
    parts = [one.batches(start, worker, workers) for worker in range(workers)]
    assert [next(parts[k % workers]) for k in range(40)] == whole


@hypothesis.settings(examples, max_examples=8)
@given(st.fixed_dictionaries(GIVEN))
def test_resumes_at_every_batch(run, given):
    """Resuming at any batch must give the same batches; tested over two epochs of batches of 4
    pairs."""
    one = stream(run, 2, **given)
    whole = [*islice(one.batches(), 45)]
    for place in range(42):
        rest = one.batches(whole[place].next)
        assert [*islice(rest, 3)] == whole[place + 1 : place + 4]


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (2, 4), (4, 2)])
def test_another_number_of_ranks_goes_on_in_the_same_order(run, before, after):
    whole = epoch(stream(run))
    loaders = [StageLoader(stream(run, 1, rank, before)) for rank in range(before)]
    for loader in loaders:
        assert len([*islice(loader, 7)]) == 7
    states = [json.loads(json.dumps(loader.state_dict())) for loader in loaders]
    assert states == [states[0]] * before
    assert states[0]["pairs"] == 7 * 4
    ranks = [StageLoader(stream(run, 1, rank, after)) for rank in range(after)]
    for loader in ranks:
        loader.load_state_dict(states[0])
    for batch in whole[7:]:
        parts = [next(iter(loader)) for loader in ranks]
        found = [
            pair for source, paraphrase in parts for pair in zip(source, paraphrase, strict=True)
        ]
        assert sorted(found) == sorted(pairs([batch]))


# Batches of similar length


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=60),
    st.integers(1, 20),
    st.integers(0, 9),
)
def test_batches_are_of_like_length(lengths, size, seed):
    """Batches must be whole, of distinct rows, and their ranges of lengths must not overlap."""
    source, paraphrase = np.array(lengths, int).reshape(-1, 2).T
    batches = cut_batches(source, paraphrase, size, np.random.default_rng(seed))
    rows = [row for batch in batches for row in batch.tolist()]
    assert len({*rows}) == len(rows) == len(lengths) // size * size
    assert all(len(batch) == size for batch in batches)
    longer = np.maximum(source, paraphrase)
    ranges = sorted((longer[batch].min(), longer[batch].max()) for batch in batches)
    for (_, end), (begin, _) in pairwise(ranges):
        assert end <= begin


# Earlier stages


def test_a_share_of_earlier_stages(run):
    """A share of 0.25 must mix m earlier pairs into n of the stage so that m / (n + m) = 0.25, or
    m = n / 3."""
    mixed = stream(run, 2, mix=0.25, batch_size=1, block_rows=10_000)
    found = pairs(epoch(mixed))
    own = pairs(epoch(stream(run, 2, batch_size=1)))
    earlier = [pair for pair in found if pair not in {*own}]
    assert len(found) - len(earlier) == len(own)
    assert len(earlier) == round(len(own) / 3)
    train = {*pairs(epoch(stream(run, 1, batch_size=1)))}
    assert len({*earlier}) == len(earlier)
    assert {*earlier} <= train  # they bring in nothing of validation and test
    assert pairs(epoch(mixed)) == found
    assert {*pairs(epoch(mixed, 1))} != {*found}


# The loader


def test_worker_processes_give_the_same(run):
    alone, helped = (StageLoader(stream(run), workers=workers) for workers in (0, 2))
    first = [*islice(alone, 30)]
    assert [*islice(helped, 30)] == first
    assert helped.state_dict() == alone.state_dict()  # without what workers fetched ahead
    assert [*islice(helped, 50)] == [*islice(alone, 50)]  # past the end of the epoch
    assert alone.position.epoch == 1


def test_a_worker_whose_batch_is_half_fetched_says_nothing(capfd):
    """A worker must stay silent if Ctrl-C comes while the run connects to it to fetch a batch."""

    def worker(answers) -> None:
        _end_quietly(0)
        resource = resource_sharer.DupFd(0)
        address = resource._id[0]
        with socket.socket(socket.AF_UNIX) as half:
            half.connect(address)
            half.recv(4)
        os.close(resource.detach())  # served after the broken connection
        answers.send("served")

    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=worker, args=(there,))
    process.start()
    assert here.recv() == "served"
    process.join()
    assert capfd.readouterr().err == ""


def test_a_position_of_other_data_or_settings(run):
    state = StageLoader(stream(run)).state_dict()
    with pytest.raises(ValueError, match=r"saved with batch_size 4, but here it is 8$"):
        StageLoader(stream(run, batch_size=8)).load_state_dict(state)
    with pytest.raises(ValueError, match=r"saved with rows 250, but here it is 90$"):
        StageLoader(stream(run, 2)).load_state_dict(state)


@pytest.fixture(scope="module")
def encode():
    from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
    from gaixie.training.tokenize_text import CONFIG
    from gaixie.udfs.text.entities import load_settings

    words = ["春天", "山里", "说法"]
    return PairEncoder(EntityAlignedTokenizer.from_words(words, load_settings(CONFIG)))


def test_encoded_pairs(encode):
    """Padding must equal the tokenizer's own; labels are padded with a value that the loss
    ignores."""
    source = ["他2024年3月去了山里", "春天"]
    paraphrase = ["2024年3月他在山里", "春天来了，春天来了"]
    batch = encode(source, paraphrase)
    rows = encode.tokenizer(source, text_target=paraphrase)
    expected = encode.tokenizer.pad({"input_ids": rows["input_ids"]}, return_tensors="pt")
    assert torch.equal(batch["input_ids"], expected["input_ids"])
    assert torch.equal(batch["attention_mask"], expected["attention_mask"])
    first, second = rows["labels"]
    assert len(first) < len(second)
    left = [IGNORED] * (len(second) - len(first))
    assert batch["labels"].tolist() == [first + left, second]
    assert [json.loads(table) for table in batch["entities"]] == [{"<date_1>": "2024年3月"}, {}]
    short = PairEncoder(encode.tokenizer, max_length=5, multiple_of=8)(source, paraphrase)
    assert short["input_ids"].shape == short["labels"].shape == (2, 8)
    assert short["attention_mask"].sum(1).tolist() == [5, 3]  # <s> 春天 </s>


# Where pairs come from


def test_from_an_object_store(run, store, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in store.environment("reader").items():
        monkeypatch.setenv(name, value)
    uri, client = "s3://gaixie/stage-data/runs/monday", store.client()
    for file in Path(run).rglob("*"):
        if file.is_file():
            key = f"stage-data/runs/monday/{file.relative_to(run)}"
            client.upload_file(str(file), store.BUCKET, key)
    assert [*islice(StageLoader(stream(uri), workers=2), 40)] == [
        *islice(StageLoader(stream(run)), 40)
    ]
    lost = next(key for key in store.keys("stage-data") if "stage=2" in key)
    client.delete_object(Bucket=store.BUCKET, Key=lost)
    message = f"s3://gaixie/{lost}: the manifest names this file, but it does not exist"
    with pytest.raises(FileNotFoundError, match=f"^{message}$"):
        stream(uri, 2)


def three_parts(corpus: Corpus, stage: int) -> list[list[Pair]]:
    """Returns the training, validation and test pairs of a stage, sorted."""
    train = epoch(StageStream(corpus, stage, StreamSettings(batch_size=1)))
    tables = [corpus.held_out(stage, split, 10_000).to_pydict() for split in SPLITS[1:]]
    held_out = [zip(table["source"], table["paraphrase"], strict=True) for table in tables]
    return [sorted(pairs(train)), *map(sorted, held_out)]


def test_a_release_without_splits_is_split_as_a_run(run, tmp_path):
    files = []
    for number, file in enumerate(sorted(Path(run).rglob("*.parquet"))):
        stage = file.parent.name.removeprefix("stage=")
        path = f"data/split=train/subset=stage-{stage}/part-{number}.parquet"
        (tmp_path / "build-1" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, tmp_path / "build-1" / path)
        files.append({"path": path, "bytes": 1, "sha256": "0", "rows": 1})
    card = {"path": "README.md", "bytes": 1, "sha256": "0"}
    manifest = release_manifest(build="build-1", files=[card, *files])
    (tmp_path / "manifest.json").write_text(manifest.to_json(), "utf-8")
    release = Corpus(str(tmp_path), 0.1, 0.1)
    for stage in (1, 2):
        assert three_parts(release, stage) == three_parts(Corpus(run, 0.1, 0.1), stage)


# A user's mistakes give one line


def fails(error: type[Exception], message: str):
    return pytest.raises(error, match=f"^{re.escape(message)}$")


@pytest.mark.parametrize("workers", [0, 1])
def test_too_few_pairs_once_validation_is_apart(tmp_path, workers):
    """One line must say so if no pair is left to train on: five pairs of one source are all in
    validation."""
    pairs = [("同一句话，说了五次", f"第{k}种说法") for k in range(5)]
    uri = write_run(tmp_path, "small", {1: {"human": pairs}})
    corpus = Corpus(uri, validation=0.9999, test=0)
    loader = StageLoader(StageStream(corpus, 1, StreamSettings(batch_size=4)), workers=workers)
    message = (
        f"{uri}: stage 1 has too few training pairs for one batch: 0 of 4 in the largest block"
    )
    with fails(ValueError, message):
        next(iter(loader))
    assert len(corpus.held_out(1, "validation", 10)) == 5
    message = f"{uri}: stage 1 has no test pair among its 5; use a larger share than 0"
    with fails(ValueError, message):
        corpus.held_out(1, "test", 10)


def test_a_file_that_is_gone(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "monday")
    file = sorted(copy.rglob("stage=2/*.parquet"))[1]
    one = stream(str(copy), 2)
    file.unlink()
    message = f"{file}: the manifest names this file, but it does not exist"
    with fails(FileNotFoundError, message):
        stream(str(copy), 2)
    with fails(FileNotFoundError, message):  # deleted while it is read
        [*islice(one.batches(), 20)]
    assert next(stream(str(copy), 1).batches())


@pytest.mark.parametrize("workers", [0, 2])
def test_a_corrupt_file(run, tmp_path, workers):
    copy = shutil.copytree(run, tmp_path / "monday")
    file = sorted(copy.rglob("stage=2/*.parquet"))[0]
    data = bytearray(file.read_bytes())
    chunk = pq.read_metadata(file).row_group(1).column(1)
    data[chunk.dictionary_page_offset + chunk.total_compressed_size - 5] ^= 1  # a bit of a sentence
    file.write_bytes(data)
    loader = StageLoader(stream(str(copy), 2), workers=workers)
    with pytest.raises(OSError, match=f"^{file}: not a whole Parquet file: [^\n]+$"):
        [*islice(loader, 20)]
    file.write_bytes(data[:-9])
    with pytest.raises(OSError, match=f"^{file}: not a whole Parquet file: [^\n]+$"):
        stream(str(copy), 2)


def test_settings_that_cannot_be(run):
    with fails(ValueError, "batch_size: 4 pairs cannot be divided among 3 ranks"):
        stream(run, 1, 0, 3)
    with fails(ValueError, "mix: 0.5, but no stage is earlier than stage 1"):
        stream(run, mix=0.5)
    with fails(ValueError, "validation 0.5 and test 0.5: expected shares that leave some train"):
        Corpus(run, 0.5, 0.5)

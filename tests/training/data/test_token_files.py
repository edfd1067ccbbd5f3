"""Token files must give the same batches as texts, and be made once, whatever is killed."""

import multiprocessing
import os
import re
import signal
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from manifests import write_scored
from tiny_run import pairs, write_tokenizer

from gaixie.training.data import token_files
from gaixie.training.data.corpus import Corpus
from gaixie.training.data.denoising import Sentences
from gaixie.training.data.stage_data import Position, StageStream, ahead
from gaixie.training.data.stage_loader import IGNORED, PairEncoder, StageLoader
from gaixie.training.data.token_files import TokenFiles
from gaixie.training.loop.step import MicroBatches
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.settings import DenoisingSettings, PairSettings, StreamSettings

MICRO = 2
FORK = multiprocessing.get_context("fork")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    """Returns a corpus with judgements: two stages of 90 and 60 pairs."""
    folder = tmp_path_factory.mktemp("root") / "runs/monday"
    tables = {}
    for stage, count in ((1, 90), (2, 60)):
        source, paraphrase = zip(*pairs(stage, count), strict=True)
        change = [k / count for k in range(count)]
        table = {"source": source, "paraphrase": paraphrase, "structure": change}
        tables["parallel", stage] = pa.table(table | {"synonyms": change})
    return Corpus(write_scored(folder, tables, row_group_size=25), 0.1, 0.1)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> EntityAlignedTokenizer:
    folder = write_tokenizer(tmp_path_factory.mktemp("tokenizer"))
    return EntityAlignedTokenizer.from_pretrained(folder)


class Counting(PairEncoder):
    """Counts the files for which it makes tokens."""

    calls = 0

    def tokens(self, source, paraphrase):
        self.calls += 1
        return super().tokens(source, paraphrase)


@pytest.fixture
def encode(tokenizer, monkeypatch) -> Counting:
    """Returns a counting encoder; some sentences exceed its limit, and a file has ten pairs."""
    monkeypatch.setattr(token_files, "ROWS", 10)
    return Counting(tokenizer, max_length=24)


def stream(corpus: Corpus, files: TokenFiles | None, rank=0, world=1, **given) -> StageStream:
    settings = StreamSettings(batch_size=8, block_rows=50, **given)
    return StageStream(corpus, (given and 2) or 1, settings, rank, world, files)


KINDS = ["pairs", "degrees and a mix", "noise"]


def kind_of(kind: str, corpus: Corpus, tokenizer) -> tuple[Corpus, dict, PairEncoder]:
    """Returns the corpus, the stream's settings and the encoder of a case."""
    if kind == "noise":
        noise = DenoisingSettings()
        return Sentences(corpus, noise), {}, PairEncoder(tokenizer, 24, 8, noise)
    degrees = {"pairs": PairSettings(degrees=True, max_partners=1), "mix": 0.25}
    return corpus, {} if kind == "pairs" else degrees, PairEncoder(tokenizer, 24)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_those_of_the_texts(corpus, tokenizer, encode, tmp_path, kind, workers):
    """Batches and counts must equal those of the texts, over two epochs, from the middle, on two
    ranks."""
    data, given, own = kind_of(kind, corpus, tokenizer)
    start, count = Position(0, 1, 1), 24
    labels = [0] * count
    for rank in (0, 1):
        texts = stream(data, None, rank, 2, **given)
        loader = StageLoader(
            stream(data, TokenFiles(tmp_path, encode), rank, 2, **given),
            MicroBatches(own, MICRO),
            workers,
        )
        loader.position = start
        found = [*islice(loader, count)]
        for number, (work, batch) in enumerate(zip(found, texts.batches(start), strict=False)):
            tokens = 0
            for micro, a in zip(work.micro_batches, range(0, 4, MICRO), strict=True):
                cut = slice(a, a + MICRO)
                options = {name: values[cut] for name, values in batch.options.items()}
                expected = own(batch.source[cut], batch.paraphrase[cut], **options)
                assert {*micro} == {"input_ids", "attention_mask", "labels", "places"}
                assert all(torch.equal(micro[name], expected[name]) for name in micro)
                labels[number] += int((micro["labels"] != IGNORED).sum())
                tokens += int((micro["labels"] != IGNORED).sum() + micro["attention_mask"].sum())
            assert work.tokens == tokens
        last = next(islice(texts.batches(start), count - 1, None))
        assert loader.position == last.next
    assert [work.labels for work in found] == labels  # on both ranks


def test_files_are_made_once(corpus, encode, tmp_path):
    """Existing files must be reused, also for a stage that is mixed in and by another run with the
    same sentences."""
    first = stream(corpus, TokenFiles(tmp_path, encode))
    batches = [*islice(first.batches(), 20)]
    assert batches[-1].next.epoch > 0
    made = encode.calls
    assert len([*tmp_path.rglob("*.tokens")]) == made > 8
    assert not [*tmp_path.rglob("*.part")]
    [*islice(stream(corpus, TokenFiles(tmp_path, encode)).batches(), 20)]
    assert encode.calls == made
    [*islice(stream(corpus, TokenFiles(tmp_path, encode), mix=0.4).batches(), 10)]
    corpus_of_2 = sum(-(-len(corpus.read(group, "train")) // 10) for group in corpus.groups(2))
    assert encode.calls == made + corpus_of_2


def tables(corpus: Corpus) -> list[pa.Table]:
    return [corpus.read(group, "train") for group in corpus.groups(1)]


def tokens_of(files: TokenFiles, corpus: Corpus, turn: float = 0.0) -> list[list[list[int]]]:
    *_, tokens = files.of(tables(corpus), turn)
    every = tokens.take(torch.arange(sum(map(len, tables(corpus)))).numpy())
    return [[ids.tolist() for ids in side] for side in every]


def test_processes_share_the_work(corpus, encode, tmp_path):
    """Two processes must make each file once; both begin at the same file and wait for each
    other."""

    def make(answers) -> None:
        tokens = tokens_of(TokenFiles(tmp_path, encode), corpus)
        answers.send((encode.calls, tokens))

    ends = [FORK.Pipe(duplex=False) for _ in range(2)]
    processes = [FORK.Process(target=make, args=(there,)) for _, there in ends]
    for process in processes:
        process.start()
    (calls, tokens), (other_calls, other_tokens) = (here.recv() for here, _ in ends)
    for process in processes:
        process.join()
    assert calls + other_calls == len([*tmp_path.rglob("*.tokens")])
    assert tokens == other_tokens == tokens_of(TokenFiles(tmp_path, encode), corpus)


def test_a_maker_that_is_killed_gives_way(corpus, encode, tmp_path):
    """If a process is killed in the middle of a file, the next must replace the half file."""

    def make(answers) -> None:
        files = TokenFiles(tmp_path, encode)
        write = encode.tokens

        def tokens(*texts):
            if encode.calls == 2:
                [part] = files.folder.glob("*.part")
                part.write_bytes(b"half")
                answers.send(part.name)
                signal.pause()
            return write(*texts)

        encode.tokens = tokens
        tokens_of(files, corpus)

    here, there = FORK.Pipe(duplex=False)
    process = FORK.Process(target=make, args=(there,))
    process.start()
    name = here.recv()
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    files = TokenFiles(tmp_path, encode)
    assert [part.name for part in files.folder.iterdir() if part.suffix != ".tokens"] == [name]
    assert len([*files.folder.glob("*.tokens")]) == 2
    expected = tokens_of(TokenFiles(tmp_path / "other", encode), corpus)
    assert tokens_of(files, corpus) == expected
    assert not [*files.folder.glob("*.part")]


def test_the_folder_is_of_the_tokenizer_and_its_settings(tokenizer, tmp_path):
    def folder(of, max_length: int = 24) -> Path:
        return TokenFiles(tmp_path, PairEncoder(of, max_length)).folder

    tokenizer.save_pretrained(tmp_path / "same")
    same = EntityAlignedTokenizer.from_pretrained(str(tmp_path / "same"))
    assert folder(same) == folder(tokenizer)
    settings = tokenizer.codec.word_characters
    other = EntityAlignedTokenizer.from_pretrained(str(tmp_path / "same"))
    other._settings = other._settings | {"word_characters": settings + 1}
    assert len({folder(tokenizer), folder(tokenizer, 25), folder(other)}) == 3


def test_a_damaged_file_is_named(corpus, encode, tmp_path):
    files = TokenFiles(tmp_path, encode)
    tokens_of(files, corpus)
    for size in (5, -2):
        damaged = sorted(files.folder.iterdir())[0]
        whole = damaged.read_bytes()
        damaged.write_bytes(whole[:size])
        message = f"{damaged}: not a complete file of tokens; delete it, and it is made again"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            tokens_of(files, corpus)
        damaged.unlink()
        tokens_of(files, corpus)
        assert damaged.read_bytes() == whole


def test_ahead_breaks_off_where_it_may():
    """Closing must not wait until the next item is complete."""
    begun = []

    def items():
        for number in range(1_000_000):
            begun.append(number)
            yield number if number < 3 else None

    one = ahead(items())
    assert [next(one), next(one)] == [0, 1]
    one.close()
    assert len(begun) < 1_000_000


def test_an_error_comes_in_the_place_of_its_item():
    def items():
        yield 1
        yield 2
        raise ValueError("the third")

    one = ahead(items())
    assert [next(one), next(one)] == [1, 2]
    with pytest.raises(ValueError, match="the third"):
        next(one)

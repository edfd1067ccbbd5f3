"""Generation: entities come back, copies are dropped, batches change nothing, counts close."""

import io
import json
import shutil
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from tiny_models import tiny_bart, tiny_bert
from tiny_seq2seq import POSITIONS, tiny_seq2seq

from gaixie.training import evaluate, generate, tokenize_text
from gaixie.training.generate import main
from gaixie.training.modeling.generation import load_generator
from gaixie.training.modeling.generator import Decoding, Generator
from gaixie.udfs.spscore import OUTPUTS, SPScore

ROOT = Path(__file__).parents[2]
COPIED = "我们在公园看书"
PAIRS = [
    ("他2024年3月读了《三国》。", "《三国》他2024年3月读了。"),
    ("我们昨天花了300元", "昨天我们花了300元"),
    ("今天公园很好看", "公园今天很好看"),
    (COPIED, COPIED),
    ("他在看花", "花他在看"),
    ("他昨天读书", "书他昨天读了"),
]
SOURCES, TARGETS = (list(side) for side in zip(*PAIRS, strict=True))
DIFFERENT = [place for place, (source, target) in enumerate(PAIRS) if source != target]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    """Returns a model that knows PAIRS by heart; read-only."""
    return tiny_seq2seq(tmp_path_factory.mktemp("model"), PAIRS)


@pytest.fixture(scope="module")
def random_folder(tmp_path_factory) -> str:
    return tiny_seq2seq(tmp_path_factory.mktemp("random"))


@pytest.fixture
def generator(folder) -> Generator:
    return load_generator(folder)


def texts(found) -> list[list[str]]:
    return [[one.text for one in row] for row in found]


# Output


def test_what_it_learnt(generator):
    found = generator.candidates(SOURCES, Decoding())
    assert texts(found) == [[target] for target in TARGETS]
    assert generator.counts["unknown entities"] == generator.counts["no candidate"] == 0


def test_entities_it_never_saw_come_back(generator):
    """Unseen entities must come back from the source, where the model writes <date_1> and
    <title_1>."""
    found = generator.candidates(["他1998年12月读了《西游记》。"], Decoding())
    assert texts(found) == [["《西游记》他1998年12月读了。"]]


def test_an_entity_that_the_source_lacks_is_dropped_and_counted(generator):
    """An entity token that the source lacks must be dropped and counted; <date_1> and <title_1> are
    only in the first pair."""
    [ids] = generator.tokenizer([SOURCES[0]], text_target=[TARGETS[0]])["labels"]
    chosen = generator._chosen("今天很好看", "{}", [ids], Decoding(beams=1))
    assert chosen == {"他读了。": ids}
    assert generator.counts["unknown entities"] == 2


def test_half_a_character_gives_way(generator):
    """Bytes that are no character must be dropped, because a model may write any: the first line's
    are none, the second's are 晚."""
    lines = [
        [generator.tokenizer.convert_tokens_to_ids(f"<0x{byte:02X}>") for byte in data]
        for data in ("晚".encode()[:2], "晚".encode())
    ]
    assert [*generator._chosen("今天很好看", "{}", lines, Decoding())] == ["晚"]


def test_copies_give_way_to_the_next_beam(generator):
    kept = generator.candidates([COPIED], Decoding(beams=4, n_best=4))
    assert kept[0][0].text == COPIED
    dropped = generator.candidates([COPIED], Decoding(beams=4, drop_copies=True))
    assert dropped == [[kept[0][1]]]
    assert generator.counts["copies"] == 1


def test_sources_without_text(generator):
    sources = [None, "", " \t", "坏\ufffd的", SOURCES[2]]
    assert texts(generator.candidates(sources, Decoding())) == [[], [], [], [], [TARGETS[2]]]
    assert generator.counts["no text"] == 4
    assert generator.candidates([], Decoding()) == []
    assert generator.candidates([None], Decoding()) == [[]]


# Scores and order


def test_log_probability_is_the_models_own(generator):
    """Log-probability must equal teacher forcing on one sentence, token by token."""
    tokenizer, model = generator.tokenizer, generator.model
    [[one]] = generator.candidates([SOURCES[0]], Decoding())
    batch = tokenizer(SOURCES[0], text_target=TARGETS[0])
    labels = batch["labels"]
    start = model.config.decoder_start_token_id
    with torch.no_grad():
        logits = model(
            input_ids=torch.tensor([batch["input_ids"]]),
            decoder_input_ids=torch.tensor([[start, *labels[:-1]]]),
        ).logits[0]
    each = [row.log_softmax(0)[label].item() for row, label in zip(logits, labels, strict=True)]
    assert one.log_probability == pytest.approx(sum(each) / len(each), abs=1e-6)


@pytest.mark.parametrize("cells", [1, 2**12, 2**25])
def test_log_probability_in_any_number_of_parts(generator, cells, monkeypatch):
    expected = generator.candidates(SOURCES, Decoding(n_best=4))
    monkeypatch.setattr("gaixie.training.modeling.generator.LOGITS", cells)
    found = generator.candidates(SOURCES, Decoding(n_best=4))
    assert texts(found) == texts(expected)
    for row, other in zip(found, expected, strict=True):
        scores = [one.log_probability for one in row]
        assert scores == pytest.approx([one.log_probability for one in other], abs=1e-5)


def test_n_best_is_in_the_order_of_the_search(generator):
    """n-best must be in the search's order, all different, with one beam's best first."""
    found = generator.candidates(SOURCES, Decoding(beams=6, n_best=6))
    best = generator.candidates(SOURCES, Decoding(beams=6))
    assert [row[:1] for row in found] == best
    for row in texts(found):
        assert len(set(row)) == len(row) > 1
    fewer = generator.candidates(SOURCES, Decoding(beams=6, n_best=2))
    assert fewer == [row[:2] for row in found]


@pytest.mark.parametrize("beams", [1, 3])
def test_batches_change_nothing(random_folder, beams):
    """Batches must not change the output; tested with sources of many lengths and a random model,
    which writes up to its limits."""
    sources = ["".join(SOURCES[: n % 5 + 1]) * (n % 2 + 1) for n in range(10)]
    runs = []
    for batch_size in (1, 8):
        one = load_generator(random_folder)
        found = one.candidates(sources, Decoding(beams, n_best=beams, batch_size=batch_size))
        runs.append((texts(found), one.counts))
    assert all(run == runs[0] for run in runs)


def test_samples(generator):
    """A seed must repeat its samples, and another draw others; the likeliest come first, and
    torch's own state stays."""
    drawn = Decoding(sample=True, temperature=3.0, n_best=5, seed=1)
    state = torch.get_rng_state()
    found = generator.candidates(SOURCES, drawn)
    assert torch.equal(torch.get_rng_state(), state)
    assert found == generator.candidates(SOURCES, drawn)
    other = Decoding(sample=True, temperature=3.0, n_best=5, seed=2)
    assert texts(found) != texts(generator.candidates(SOURCES, other))
    for row in found:
        scores = [one.log_probability for one in row]
        assert scores == sorted(scores, reverse=True)
    greedy = generator.candidates(SOURCES, Decoding(sample=True, top_p=1e-6))
    assert texts(greedy) == texts(generator.candidates(SOURCES, Decoding(beams=1)))


def test_limits_of_length(random_folder, generator):
    """A source beyond the model's positions must be cut and counted, and a paraphrase must end at
    its limit."""
    one = load_generator(random_folder)
    one.candidates(["看花" * POSITIONS, "看花"], Decoding(beams=1))
    assert one.counts["cut"] == 1
    [[short]] = generator.candidates([SOURCES[2]], Decoding(beams=1, max_new_tokens=3))
    assert TARGETS[2].startswith(short.text)
    assert 0 < len(short.text) < len(TARGETS[2])


def test_a_loaded_model_is_kept_and_left_as_it_was(generator, folder):
    model = generator.model
    model.train()
    assert texts(generator.candidates([*SOURCES, ""], Decoding(1)))[-2:] == [[TARGETS[-1]], []]
    assert model.training
    model.eval()
    assert load_generator(folder).model is model


# The command


def write_input(path: Path, sources: list[str | None]) -> None:
    name = path.suffix
    if name == ".parquet":
        pq.write_table(pa.table({"id": range(len(sources)), "source": sources}), path)
    elif name == ".jsonl":
        path.write_text("".join(json.dumps({"source": one}) + "\n" for one in sources))
    else:
        head = {".tsv": "id\tsource", ".csv": "id,source"}.get(name)
        cells = [(one or "") if head is None else f"1{head[2]}{one or ''}" for one in sources]
        path.write_text("\n".join([*([head] if head else []), *cells]) + "\n", "utf-8")


def read_output(path: Path) -> list[dict]:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    lines = path.read_text("utf-8").splitlines()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in lines]
    head, *rows = (line.split("\t") for line in lines)
    kinds = {"row": int, "rank": int, **dict.fromkeys(("log_probability", *OUTPUTS), float)}
    return [
        {
            name: kinds.get(name, str)(cell) if cell else None
            for name, cell in zip(head, row, strict=True)
        }
        for row in rows
    ]


FORMATS = [("txt", "tsv"), ("tsv", "jsonl"), ("csv", "parquet"), ("jsonl", "tsv")]


@pytest.mark.parametrize(("kind", "out"), [*FORMATS, ("parquet", "jsonl")])
def test_every_format(folder, tmp_path, capsys, kind, out):
    sources = [SOURCES[0], None, *SOURCES[1:]]
    write_input(tmp_path / f"in.{kind}", sources)
    output = tmp_path / f"out.{out}"
    line = [folder, str(tmp_path / f"in.{kind}"), "--output", str(output), "--n-best", "2"]
    assert main(line) == 0
    rows = read_output(output)
    by_source = {number: list(group) for number, group in groupby(rows, lambda row: row["row"])}
    assert list(by_source) == list(range(1, len(sources) + 1))
    null = out == "tsv" or kind in ("jsonl", "parquet")  # text lines cannot tell empty from null
    nothing = dict.fromkeys(rows[0])
    assert by_source.pop(2) == [{**nothing, "row": 2, "source": None if null else ""}]
    assert [group[0]["paraphrase"] for group in by_source.values()] == TARGETS
    assert [row["rank"] for group in by_source.values() for row in group] == [1, 2] * len(TARGETS)
    metric = SPScore.load()
    written = [row for group in by_source.values() for row in group]
    pairs = [(row["source"], row["paraphrase"]) for row in written]
    judged = metric.outputs(*zip(*pairs, strict=True))
    found = [[row[name] for name in OUTPUTS] for row in written]
    np.testing.assert_allclose(found, judged, atol=1e-6)
    assert all(row["log_probability"] < 0 for group in by_source.values() for row in group)
    *_, signature, counts = capsys.readouterr().err.splitlines()
    assert signature == metric.signature()
    assert counts == (
        "7 sentences: 6 paraphrased, 0 left without a paraphrase, 1 without text; 12 paraphrases, "
        "0 copies dropped, 0 unknown entity indices, 0 sources cut"
    )
    if out == "parquet":
        metadata = pq.read_schema(output).metadata
        assert metadata[b"spscore_signature"].decode() == metric.signature()


def test_ranked_by_spscore(folder, tmp_path, capsys):
    """Ranking must keep each sentence's candidates, highest score first; tier paper scores what
    core does not."""
    (tmp_path / "in.txt").write_text("\n".join(SOURCES) + "\n", "utf-8")
    line = [folder, str(tmp_path / "in.txt"), "--n-best", "4", "--output"]
    assert main([*line, str(tmp_path / "model.jsonl")]) == 0
    ranked = str(tmp_path / "ranked.jsonl")
    assert main([*line, ranked, "--rank-by", "spscore", "--tier", "paper"]) == 0
    capsys.readouterr()
    first, second = (pd.read_json(path, lines=True) for path in (tmp_path / "model.jsonl", ranked))
    for (_, before), (_, after) in zip(first.groupby("row"), second.groupby("row"), strict=True):
        assert sorted(after["paraphrase"]) == sorted(before["paraphrase"])
        assert after["rank"].tolist() == before["rank"].tolist() == list(range(1, len(after) + 1))
        assert after["spscore"].is_monotonic_decreasing
        of = dict(zip(before["paraphrase"], before["log_probability"], strict=True))
        assert after["log_probability"].tolist() == [of[text] for text in after["paraphrase"]]
    scores = SPScore.load("paper").score(second["source"], second["paraphrase"])
    np.testing.assert_allclose(second["spscore"], scores, atol=1e-6)


def test_standard_input(folder, monkeypatch, capsys):
    text = "\n".join([*SOURCES[:2], "", SOURCES[2]])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main([folder, "-"]) == 0
    captured = capsys.readouterr()
    rows = [line.split("\t")[3] for line in captured.out.splitlines()[1:]]
    assert rows == [*TARGETS[:2], "", TARGETS[2]]
    assert captured.err.splitlines()[-1].startswith("4 sentences: 3 paraphrased")


def test_chunks_do_not_show(folder, tmp_path, monkeypatch, capsys):
    (tmp_path / "in.txt").write_text("\n".join(SOURCES) + "\n", "utf-8")
    assert main([folder, str(tmp_path / "in.txt")]) == 0
    whole = capsys.readouterr().out
    monkeypatch.setattr("gaixie.training.generate.CHUNK", 2)
    monkeypatch.setattr("gaixie.udfs.storage.progress.LINE_SECONDS", 0.0)
    assert main([folder, str(tmp_path / "in.txt")]) == 0
    captured = capsys.readouterr()
    assert captured.out == whole
    assert "generating: 6 of 6 sentences, " in captured.err
    assert " a second, 0 s left" in captured.err


MISTAKES = {
    "{tmp}/none {tmp}/a.txt": "none: no such folder",
    "{tmp}/bare {tmp}/a.txt": "bare: cannot be loaded: Error no file named",
    "{tmp}/mute {tmp}/a.txt": "mute: cannot be loaded: it has no tokenizer",
    "{tmp}/bert {tmp}/a.txt": "bert is not a sequence-to-sequence model",
    "{tmp}/misfit {tmp}/a.txt": "they do not belong together",
    "{model} {tmp}/t.parquet --column text": "no column 'text', it has: source",
    "{model} {tmp}/empty.txt": "empty.txt: no sentences",
    "{model} {tmp}/a.txt --output {tmp}/o.xlsx": "o.xlsx: expected a file of .tsv,",
    "{model} {tmp}/a.txt --n-best 9": "9 candidates need as many beams and draws, not 4",
    "{model} {tmp}/a.txt --device abacus": "device 'abacus'",
    "{model} {tmp}/a.txt --top-p 2": "--top-p: Input should be less than or equal to 1 (given: 2.0)",
}


@pytest.mark.parametrize(("line", "message"), MISTAKES.items())
def test_bad_input(folder, tmp_path, capsys, line, message):
    (tmp_path / "a.txt").write_text("今天很好看\n", "utf-8")
    (tmp_path / "empty.txt").write_text("")
    pq.write_table(pa.table({"source": ["今天"]}), tmp_path / "t.parquet")
    without(folder, tmp_path / "bare", "model.safetensors")
    without(folder, tmp_path / "mute", "vocabulary.txt")
    tiny_bert(tmp_path / "bert")
    tiny_bart(tmp_path / "misfit")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "misfit" / name).unlink()
    for name in ("tokenizer_config.json", "vocabulary.txt", "entities.json"):
        shutil.copy(Path(folder, name), tmp_path / "misfit")
    assert main(line.format(tmp=tmp_path, model=folder).split()) == 2
    [error] = [row for row in capsys.readouterr().err.splitlines() if row.startswith("generate")]
    assert error.startswith("generate: error: ")
    assert message in error
    assert not list(tmp_path.glob("*o.xlsx*"))


def without(folder: str, copy: Path, name: str) -> None:
    shutil.copytree(folder, copy)
    (copy / name).unlink()


def test_ctrl_c_is_one_line(folder, tmp_path, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    (tmp_path / "in.tsv").write_text("source\n今天很好看\n", "utf-8")
    table, output = str(tmp_path / "in.tsv"), str(tmp_path / "out")
    for script, what, line in (
        (generate, "load_generator", [folder, table]),
        (evaluate, "load_generator", [table, "--model", f"m={folder}", "--output", output]),
        (tokenize_text, "load", ["show", folder, "今天很好看"]),
    ):
        monkeypatch.setattr(script, what, interrupt)
        assert script.main(line) == 130
        name = script.__name__.rpartition(".")[2]
        assert capsys.readouterr().err.splitlines()[-1] == f"{name}: interrupted"

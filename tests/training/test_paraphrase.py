"""gaixie paraphrase must work as its users call it."""

import json
import sys
from pathlib import Path

import llm_server
import pyarrow.parquet as pq
import pytest
import tiny_seq2seq
from tiny_writer import KNOWN
from usage import output_of

from gaixie.training import paraphrase
from gaixie.udfs.spscore import OUTPUTS, SPScore

TEXT = KNOWN[0][0]
WRITTEN = {text for source, code, text in KNOWN if source == TEXT and code in "24"}


def test_one_or_several_paraphrases(known_writer, capsys) -> None:
    assert paraphrase.main([TEXT]) == 0
    assert {*capsys.readouterr().out.splitlines()} < WRITTEN
    assert paraphrase.main([TEXT, "OK.", "-n", "2"]) == 0
    out, err = capsys.readouterr()
    assert WRITTEN & {*out.splitlines()}
    assert len(set(out.splitlines())) == len(out.splitlines()) <= 2
    assert "OK.: no paraphrase good enough" in err


def test_a_file_keeps_its_rows(known_writer, tmp_path: Path, capsys) -> None:
    file, output = tmp_path / "in.jsonl", tmp_path / "out.parquet"
    rows = [{"text": TEXT}, {"text": None}, {"text": "OK."}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assert paraphrase.main([str(file), "--column", "text", "--output", str(output)]) == 0
    table = pq.read_table(output)
    assert table["row"].to_pylist() == [1, 2, 3]
    assert table["source"].to_pylist() == [TEXT, None, "OK."]
    written, *others = table["paraphrase"].to_pylist()
    assert written in WRITTEN
    assert others == [None, None]
    [judged] = SPScore.load("full").outputs([TEXT], [written])
    assert [table[name][0].as_py() for name in OUTPUTS] == pytest.approx(judged.tolist())
    assert table.schema.metadata[b"spscore_signature"].startswith(b"SPScore-zh|")
    assert "3 sentences: 1 paraphrased, 2 with no paraphrase" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (["--degree", "6", TEXT], "degree"),
        ([TEXT, "--output", "x.tsv"], "--output"),
        (["a.txt", "b.txt"], "b.txt"),
        ([TEXT, "--tone", "文言"], "tone"),
        ([TEXT], "gaixie writer"),
        ([TEXT, "--model", "no/such"], "no/such"),
        ([TEXT, "--endpoint", "http://127.0.0.1:9/v1", "--model", "m"], "127.0.0.1:9"),
    ],
)
def test_a_mistake_has_one_line(line, named, capsys, tmp_path, monkeypatch, known_writer) -> None:
    if "--endpoint" not in line:  # else the service is missing, and not what reads its drafts
        monkeypatch.setenv("GAIXIE_WRITER", str(tmp_path))
    monkeypatch.setattr("gaixie.udfs.paraphrase.endpoint.TRIES", 0)
    assert paraphrase.main(line) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert named in err


# A trained model

PAIRS = [pair for pair in tiny_seq2seq.PAIRS if pair[0] != pair[1]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    """Returns a model that knows PAIRS by heart."""
    return tiny_seq2seq.tiny_seq2seq(tmp_path_factory.mktemp("model"), PAIRS)


def test_a_model_paraphrases_sentences(folder, capsys) -> None:
    line = ["--model", folder, "--beams", "1"]
    assert paraphrase.main([*line, *(source for source, _ in PAIRS)]) == 0
    assert capsys.readouterr().out.splitlines() == [target for _, target in PAIRS]
    assert paraphrase.main([*line, "--keep", "公园很", PAIRS[2][0]]) == 1


def test_a_models_table(folder, tmp_path: Path, monkeypatch) -> None:
    """Every row must keep its place, in any number of chunks, with the metric's judgements."""
    monkeypatch.setattr(paraphrase, "CHUNK", 2)
    sources = [PAIRS[0][0], None, *(source for source, _ in PAIRS[1:])]
    table, output = tmp_path / "in.jsonl", tmp_path / "out.parquet"
    table.write_text("".join(json.dumps({"source": one}) + "\n" for one in sources), "utf-8")
    line = ["--model", folder, "-n", "2", "--rank-by", "model", str(table), "--output", str(output)]
    assert paraphrase.main(line) == 0
    rows = pq.read_table(output).to_pylist()
    first = {row["row"]: row for row in reversed(rows)}
    assert {row["row"] for row in rows} == {1, 2, 3, 4, 5}
    assert first[2] == dict.fromkeys(rows[0]) | {"row": 2}
    assert [first[k]["paraphrase"] for k in (1, 3, 4, 5)] == [target for _, target in PAIRS]
    assert [row["rank"] for row in rows if row["row"] == 3] in ([1], [1, 2])
    for row in (first[k] for k in (1, 3, 4, 5)):
        [judged] = SPScore.load().outputs([row["source"]], [row["paraphrase"]])
        assert [row[name] for name in OUTPUTS] == pytest.approx([*judged], abs=1e-6)
    signed = pq.read_schema(output).metadata[b"spscore_signature"].decode()
    assert signed == SPScore.load().signature()


# A service


def test_a_service_writes_and_the_checks_judge(known_writer, tmp_path: Path, capsys) -> None:
    source = "此外，卫生部门提醒，野生蘑菇煮熟后仍然可能有毒，因此切勿采食。"
    other = "由于大雨，会议推迟到了下周三，但是已经通知了所有人。"
    script = {"野生蘑菇": ["reworded", "english"], "会议推迟": ["english"] * 4}
    server = llm_server.Server(tmp_path, script)
    try:
        line = ["--endpoint", server.url, "--model", "m", "--draws", "2", "--degree", "2"]
        assert paraphrase.main([*line, source, other]) == 0
        out, err = capsys.readouterr()
        assert out.splitlines() == [source.replace("因此", "所以")]
        assert f"{other}: no paraphrase" in err
    finally:
        server.stop()


def test_it_needs_no_pytorch(known_writer) -> None:
    code = "import sys; sys.modules['torch'] = None; from gaixie.training import paraphrase; "
    code += f"sys.exit(paraphrase.main(['{TEXT}']))"
    assert output_of(sys.executable, "-c", code).strip()

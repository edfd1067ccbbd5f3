"""training/draw_drafts.py must judge drafts of each sentence once, and go on where it stopped."""

import json

from tiny_writer import KNOWN

from gaixie.training import draw_drafts
from gaixie.udfs.paraphrase.quality import Quality


def test_it_goes_on_where_it_stopped(known_writer, tmp_path, monkeypatch) -> None:
    sentences, output = tmp_path / "sentences.txt", tmp_path / "out/drafts.jsonl"
    one, other = sources = [*dict.fromkeys(source for source, *_ in KNOWN)]
    sentences.write_text("\n".join(sources * 2), "utf-8")
    line = [str(sentences), "--temperature", "0.1", "--output", str(output)]
    assert draw_drafts.main(line) == 0
    rows = [json.loads(row) for row in output.read_text("utf-8").splitlines()]
    assert KNOWN[0] in [(row["source"], row["code"], row["paraphrase"]) for row in rows]
    assert {row["source"] for row in rows} == {one, other}
    assert all(0 < row["accepted"] < 1 < row["overall"] < 5 for row in rows)
    output.write_text(json.dumps(rows[0]) + '\n{"source": "会议', "utf-8")
    read = []
    whole = Quality.__call__
    monkeypatch.setattr(Quality, "__call__", lambda *a: read.append({*a[1]}) or whole(*a))
    assert draw_drafts.main(line) == 0
    assert read == [{other}]
    again = [json.loads(row)["source"] for row in output.read_text("utf-8").splitlines()]
    assert again[0] == one
    assert {*again[1:]} == {other}


def test_another_file_stays_as_it_is(known_writer, tmp_path, capsys) -> None:
    for text in ("一句话。", '{"source": "一", "paraphrase": "二"}\n{"source'):
        path = tmp_path / "sentences.txt"
        path.write_text(text, "utf-8")
        assert draw_drafts.main([str(path), "--output", str(path)]) == 2
        assert path.read_text("utf-8") == text
        assert capsys.readouterr().err.count("\n") == 1

"""Scores over HTTP must equal the metric's, and tables must come back with their scores."""

import csv
import io
import json
from urllib.parse import quote

import numpy as np
import pytest
from shared import ROOT

from gaixie.service.app import make_app
from gaixie.service.scoring import ScoringPart, verdict
from gaixie.service.settings import ServiceSettings
from gaixie.service.uploads import XLSX
from gaixie.udfs.spscore import OUTPUTS, SPScore

PAIRS = [
    {name: json.loads(line)[name] for name in ("source", "paraphrase")}
    for line in (ROOT / "examples/pairs.jsonl").read_text("utf-8").splitlines()
]
LONG = "市图书馆将于下周二举办古籍修复体验活动，名额三十人。"


@pytest.fixture(scope="module")
def app():
    settings = ServiceSettings(max_rows=300)
    return make_app([ScoringPart("core", settings)], settings)


@pytest.fixture(scope="module")
def metric():
    return SPScore.load()


def test_scores_are_those_of_the_metric(service, metric):
    answer = service.ask("/v1/score", {"pairs": PAIRS}).json
    assert answer["signature"] == metric.signature()
    expected = metric.judge(*([pair[name] for pair in PAIRS] for name in ("source", "paraphrase")))
    assert len(answer["scores"]) == len(PAIRS) > 200
    found = [[row[name] for name in OUTPUTS] for row in answer["scores"]]
    np.testing.assert_allclose(found, expected.to_numpy(), rtol=0, atol=6e-7)
    assert {row["reason"] for row in answer["scores"]} == {None}
    assert set(answer["scores"][0]) == {*OUTPUTS, "verdict", "reason"}


def test_what_the_job_would_set_aside_has_its_reason(service):
    reasons = {
        (LONG, LONG[::-1]): None,
        ("今天天气好", "今天的天气不错"): "too_short",
        (LONG, LONG): "identical",
        (LONG, "　" + LONG.replace("，", ",") + " "): "identical",  # once normalised
        ("", LONG): "empty",
        ("a" * 20, LONG): "no_han",
        (LONG * 40, LONG): "too_long",
        (LONG, LONG + "\ufffd"): "undecodable",
    }
    pairs = [{"source": source, "paraphrase": paraphrase} for source, paraphrase in reasons]
    scores = service.ask("/v1/score", {"pairs": pairs, "explain": True}).json["scores"]
    for score, reason in zip(scores, reasons.values(), strict=True):
        judged = reason in (None, "too_short")
        assert score["reason"] == reason
        assert [score[name] is not None for name in OUTPUTS] == [judged] * len(OUTPUTS)
        assert isinstance(score.get("reasons"), list if judged else type(None))


def test_explanations_are_those_of_the_metric(service, metric):
    written = {"source": f"　{LONG[:4]} {LONG[4:17]}，！", "paraphrase": "ＡＢＣ周二办 "}
    given = {"pairs": (pairs := [*PAIRS[:10], written]), "explain": True, "changes": True}
    answer = service.ask("/v1/score", given).json["scores"]
    said = [metric.explain(pair["source"], pair["paraphrase"]) for pair in pairs]
    assert [score["reasons"] for score in answer] == said
    assert any(said)
    for side, text in written.items():
        assert "".join(segment["text"] for segment in answer[-1]["changes"][side]) == text


def test_a_verdict_puts_scores_into_a_word():
    for structure, meaning, score, word in (
        (0.0, 0.3, 0.05, "no_paraphrase"),
        (0.0, 0.9, 0.05, "near_copy"),
        (0.2, 0.9, 0.2, "near_copy"),
        (0.6, 0.9, 0.2, "poor"),
        (0.6, 0.4, 0.2, "other_meaning"),
        (0.6, 0.9, 0.3, "light"),
        (0.6, 0.9, 0.5, "clear"),
        (0.6, 0.9, 0.75, "thorough"),
    ):
        scores = (structure, min(structure, 0.2), meaning, 0.9, score)
        assert verdict(dict(zip(OUTPUTS, scores, strict=True))) == word
    assert verdict({"spscore": 0.2}) == "poor"  # of a run without judgements
    assert verdict({"spscore": None}) is None


ROWS = [
    ["7", PAIRS[0]["source"], 'with "quotes", and\nlines', PAIRS[0]["paraphrase"]],
    ["8", LONG, "", LONG],
    ["=1+1", PAIRS[1]["source"], "x", PAIRS[1]["paraphrase"]],
]
HEADER = ["id", "source", "备注", "paraphrase"]


def ask_table(service, body: bytes, kind: str = "text/csv", query: str = ""):
    return service.ask(f"/v1/score-table{query}", body, Content_Type=kind)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "gb18030", "utf-16"])
def test_a_table_comes_back_with_its_scores(service, encoding):
    file = io.StringIO()
    csv.writer(file).writerows([HEADER, *ROWS])
    body, name = file.getvalue().encode(encoding), encoding.removesuffix("-sig")
    answer = ask_table(service, body)  # the service detects the encoding
    assert answer.status == 200
    assert ask_table(service, body, query=f"?encoding={name}").body == answer.body
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.headers["X-Signature"].startswith("SPScore-zh|")
    found = [*csv.reader(io.StringIO(answer.body.decode(), newline=""))]
    assert found[0] == [*HEADER, *OUTPUTS, "verdict", "reason"]
    assert [[cell.replace("\r\n", "\n") for cell in row[:4]] for row in found[1:]] == ROWS
    pairs = [{"source": row[1], "paraphrase": row[3]} for row in ROWS]
    scores = service.ask("/v1/score", {"pairs": pairs}).json["scores"]
    for row, score in zip(found[1:], scores, strict=True):
        wanted = [score[name] for name in (*OUTPUTS, "verdict", "reason")]
        assert row[4:] == ["" if value is None else str(value) for value in wanted]


def test_a_tab_separated_table_with_rows_that_are_wrong(service):
    body = f"source\tparaphrase\n{LONG}\t{LONG[::-1]}\na\tb\tc\n{LONG}\t\n".encode()
    answer = ask_table(service, body, "text/tab-separated-values")
    _, good, malformed, empty = csv.reader(io.StringIO(answer.body.decode()))
    assert (good[0], good[-1], float(good[-3]) > 0) == (LONG, "", True)
    assert (malformed[0].rstrip(), malformed[-1]) == ("a\tb\tc", "malformed")
    assert empty[-1] == "null"


def test_a_wrong_table_gets_a_line_that_names_the_place(service):
    for body, named in {
        b"": "source",
        b"source,paraphrase\n": "no rows",
        b"source,paraphrase,meaning\n1,2,3\n": "column meaning",
        b"source,paraphrase,source\n1,2,3\n": "column source: the header has 2",
        b"PK\3\4 and no workbook": "workbook",
        b"\xd0\xcf\x11\xe0 by a name of CSV": "old Excel workbook",
        b"source,paraphrase\n" + b"1,2\n" * 301: "at most 300",
    }.items():
        assert named in ask_table(service, body).error()[2]
    same = ask_table(service, b"source\n1\n", query="?paraphrase=source")
    assert "as source and as paraphrase" in same.error()[2]


def test_a_workbook_with_columns_of_any_name(service):
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["编号", "原句", "甲", "改写"], [1, LONG, LONG[::-1], "乙"], [2, None, None, None]):
        book.active.append(row)
    book.create_sheet("more").append(["原文"])
    file = io.BytesIO()
    book.save(file)
    facts = service.ask("/v1/table-facts", file.getvalue(), Content_Type=XLSX).json
    assert (facts["encoding"], facts["rows"], facts["sheets"]) == ("xlsx", 2, ["Sheet", "more"])
    more = service.ask("/v1/table-facts?sheet=more", file.getvalue(), Content_Type=XLSX).json
    assert (facts["source"], facts["paraphrase"], more["source"]) == ("原句", "改写", "原文")
    assert "found Sheet, more" in ask_table(service, file.getvalue(), XLSX).error()[2]
    book.create_sheet("notes", 0).append(["说明", "说明"])  # its header cannot be used
    book.save(file := io.BytesIO())
    facts = service.ask("/v1/table-facts", file.getvalue(), Content_Type=XLSX).json
    assert (facts["sheet"], facts["sheets"]) == ("Sheet", ["notes", "Sheet", "more"])
    chosen = ask_table(service, file.getvalue(), XLSX, f"?sheet=Sheet&paraphrase={quote('甲')}")
    assert chosen.headers["Content-Type"].startswith("text/csv")
    header, row, empty = csv.reader(io.StringIO(chosen.body.decode()))
    given = {"pairs": [{"source": LONG, "paraphrase": LONG[::-1]}]}
    [expected] = service.ask("/v1/score", given).json["scores"]
    assert float(row[header.index("spscore")]) == expected["spscore"]
    assert empty[-1] == "null"

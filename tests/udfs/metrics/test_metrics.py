"""Shared by all metrics: the list, settings in a name, the reference-free form, the command."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gaixie.udfs.metrics import METRICS, Free, Pairs, load_metric
from gaixie.udfs.metrics.__main__ import main

SOURCES = ["他昨天去了北京。", "今天天气很好，我们出去走走。", "她买了两本新书。"]
PARAPHRASES = ["昨天他到北京去了。", "今天天气很好，我们出去走走。", "两本新书，她买下了。"]
REFERENCES = ["昨天，他去北京了。", "天气不错，我们去散散步。", "她买来两本新的书。"]
PLAIN = [name for name in METRICS if name not in ("weem4pg", "identification")]
MODELS = ("similarity", "bertscore", "parascore", "bert-ibleu")
SURFACE = [name for name in PLAIN if name not in MODELS]


@pytest.mark.parametrize("name", SURFACE)
def test_every_metric_keeps_the_common_form(name):
    metric = load_metric(name)
    assert metric.name == name
    assert metric.summary.endswith(".")
    low, high = metric.range
    pairs = Pairs.of(
        [*SOURCES, None, "好", ""], [*PARAPHRASES, "好", None, ""], [*REFERENCES, "好", "好", ""]
    )
    scores = metric.sentence_scores(pairs)
    assert scores.dtype == np.float64
    assert scores.shape == (6,)
    there = scores[~np.isnan(scores)]
    assert ((there >= low - 1e-9) & (there <= high + 1e-9)).all()
    assert np.isnan(scores[4])  # there is no paraphrase
    assert np.isnan(scores[3]) == metric.needs_source
    one = metric.sentence_scores(Pairs.of(SOURCES, PARAPHRASES, REFERENCES))
    np.testing.assert_allclose(one, scores[:3], rtol=1e-12)  # rows are independent
    assert isinstance(metric.corpus_score(Pairs.of(SOURCES, PARAPHRASES, REFERENCES)), float)
    assert len(metric.sentence_scores(Pairs.of([], [], []))) == 0
    assert "v:" in metric.signature()
    if metric.needs_reference:
        with pytest.raises(ValueError, match=f"{name} needs a reference"):
            metric.sentence_scores(Pairs.of(SOURCES, PARAPHRASES))


@pytest.mark.parametrize("name", [name for name in SURFACE if load_metric(name).needs_reference])
def test_free_is_the_source_in_the_references_place(name):
    free = load_metric(f"{name}-free")
    assert isinstance(free, Free)
    assert (free.name, free.needs_reference) == (f"{name}-free", False)
    expected = load_metric(name).sentence_scores(Pairs.of(SOURCES, PARAPHRASES, SOURCES))
    for pairs in (Pairs.of(SOURCES, PARAPHRASES), Pairs.of(SOURCES, PARAPHRASES, REFERENCES)):
        np.testing.assert_array_equal(free.sentence_scores(pairs), expected)
    assert free.signature().endswith("|ref:source")


def test_settings_in_a_name():
    assert load_metric("ibleu:alpha=0.5").alpha == 0.5
    assert load_metric("parascore:threshold=false").threshold is False
    assert load_metric("rouge-2:tokenize=word").variant == "2"
    assert load_metric("weem4pg:vectors=a.bin").vectors == "a.bin"
    parsed = load_metric("bleu:tokenize=zh-word:segmenter=ltp:models/ltp")
    assert (parsed.segmenter, parsed.tokenize) == ("ltp:models/ltp", "zh-word")
    assert load_metric("weem4pg", vectors="b.bin", model="other metrics'").vectors == "b.bin"


BAD_SPECS = {
    "blue": "did you mean bleu",
    "bleu:n=4": "expected SETTING=VALUE of tokenize, order",
    "bleu:order": "expected SETTING=VALUE",
    " blue": "did you mean bleu",
    "rouge-1:variant=2": "expected SETTING=VALUE of tokenize",
    **dict.fromkeys(["bleu:order=four", "bleu:order=0"], "order"),
    "parascore:threshold=maybe": "threshold",
    **dict.fromkeys(["pinc:tokenize=word", "rouge-l:tokenize=zh"], "tokenize"),
    **dict.fromkeys(["ibleu:alpha=1.5", "self-ibleu:alpha=-1"], "alpha"),
    "bert-ibleu:beta=0": "beta",
    **dict.fromkeys(["identification", "weem4pg"], "model|vectors"),
}


@pytest.mark.parametrize(("spec", "message"), BAD_SPECS.items())
def test_bad_specs(spec, message):
    with pytest.raises(ValueError, match=message) as refused:
        load_metric(spec)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("spec", "signature"),
    [
        ("bleu:tokenize=zh:order=5", "BLEU|case:mixed|eff:sentences|tok:zh|order:5|smooth:exp|"),
        ("ibleu:alpha=0.2", "iBLEU|alpha:0.2|case:mixed|"),
        ("chrf", "chrF2|case:mixed|eff:yes|nc:6|nw:0|space:no|sacrebleu:"),
        ("ter", "TER|case:lc|tok:tercom|norm:yes|punct:yes|asian:yes|sacrebleu:"),
        ("sari:tokenize=zh-word", "SARI|case:lc|tok:zh-word-jieba-rjieba-"),
        ("meteor", "METEOR|lang:zh|a:0.9|b:3.0|g:0.5|seg:jieba-rjieba-"),
    ],
)
def test_signatures(spec, signature):
    assert load_metric(spec).signature().startswith(signature)


def test_pairs_of_different_lengths():
    with pytest.raises(ValueError, match="3 sources, 2 paraphrases"):
        Pairs.of(SOURCES, PARAPHRASES[:2])
    with pytest.raises(ValueError, match="3 sources, 3 paraphrases, 1 references"):
        Pairs.of(SOURCES, PARAPHRASES, REFERENCES[:1])


@pytest.fixture
def files(tmp_path) -> dict[str, str]:
    """Writes the three columns as lines and as a table of each kind."""
    columns = {"source": SOURCES, "paraphrase": PARAPHRASES, "human": REFERENCES}
    for name, column in columns.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(column) + "\n", "utf-8")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = ["\t".join(columns), *("\t".join(row.values()) for row in rows)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    pq.write_table(pa.table(columns), tmp_path / "pairs.parquet")
    return {path.name: str(path) for path in tmp_path.iterdir()}


def scores_of(text: str) -> list[list[float]]:
    return [[float(cell) for cell in line.split("\t")] for line in text.splitlines()[1:]]


@pytest.mark.parametrize("kind", ["lines", "tsv", "parquet"])
def test_command_reads_files_and_tables(files, capsys, kind):
    if kind == "lines":
        line = [files["source.txt"], files["paraphrase.txt"], "--reference", files["human.txt"]]
    else:
        line = [files[f"pairs.{kind}"], "--reference", "human"]
    assert main(["--metrics", "rouge-l,self-bleu,pinc", *line]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0] == "rouge-l\tself-bleu\tpinc"
    pairs = Pairs.of(SOURCES, PARAPHRASES, REFERENCES)
    metrics = [load_metric(name) for name in ("rouge-l", "self-bleu", "pinc")]
    expected = np.column_stack([metric.sentence_scores(pairs) for metric in metrics])
    np.testing.assert_allclose(scores_of(captured.out), expected, atol=1e-6)
    for metric, row in zip(metrics, captured.err.splitlines(), strict=True):
        title, score, count, signature = row.split("\t")
        assert count == "n=3"
        assert title.startswith(metric.title)
        assert float(score) == pytest.approx(metric.corpus_score(pairs), abs=1e-4)
        assert signature == metric.signature()


@pytest.mark.parametrize("corpus", [[], ["--corpus"]])
def test_pairs_without_a_score_are_counted(tmp_path, capsys, corpus):
    rows = [
        ("他昨天去了北京。", "昨天他到北京去了。"),
        ("她买了书。", None),
        ("她买了书。", "哈\ufffd书。"),
    ]
    lines = [json.dumps(dict(zip(("source", "paraphrase"), row, strict=True))) for row in rows]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines), "utf-8")
    assert main(["--metrics", "spscore, pinc", str(tmp_path / "pairs.jsonl"), *corpus]) == 0
    said = "".join(capsys.readouterr())
    assert "\tn=1\tSPScore" in said
    assert "\tn=2\tPINC" in said
    assert "1 of 3 pairs scored; 2 have no sentence, or one with U+FFFD" in said


def test_another_encoding(tmp_path, capsys):
    path = tmp_path / "pairs.csv"
    path.write_text("source,paraphrase\n他昨天去了北京。,昨天他到北京去了。\n", "gb18030")
    assert main(["--metrics", "pinc", str(path)]) == 2
    assert "line 2: not UTF-8; name its encoding" in capsys.readouterr().err
    assert main(["--metrics", "pinc", str(path), "--encoding", "gbk"]) == 0


def test_command_reads_standard_input(files):
    line = [sys.executable, "-m", "gaixie.udfs.metrics", "--metrics", "pinc", "--json", "-"]
    with open(files["pairs.jsonl"], encoding="utf-8") as given:
        done = subprocess.run(line, stdin=given, capture_output=True, text=True, check=True)
    assert [list(json.loads(row)) for row in done.stdout.splitlines()] == [["pinc"]] * 3


BAD = {
    "pairs.tsv": ["pairs.tsv", "--source-column", "src"],
    "bleu": ["pairs.tsv", "--metrics", "bleu"],
    "tiers are paper, core, full": ["pairs.tsv", "--metrics", "spscore:tier=ful"],
}


@pytest.mark.parametrize("named", BAD)
def test_command_bad_input(files, tmp_path, capsys, monkeypatch, named):
    monkeypatch.chdir(tmp_path)
    assert main(BAD[named]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert named in error


def test_a_package_that_is_missing(files, capsys, monkeypatch):
    """One line must name the extra of a missing package; nothing may be printed before."""
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert main(["--metrics", "pinc,similarity:model=another", files["pairs.tsv"]]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "gaixie[metrics]" in captured.err

"""Shared by all metrics: the list, settings in a name, the reference-free form, the command."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from gaixie.udfs.metrics import METRICS, Free, Pairs, load_metric
from gaixie.udfs.metrics.__main__ import main
from gaixie.udfs.metrics.metric import ReferenceMetric
from gaixie.udfs.spscore import SPScore

SOURCES = ["他昨天去了北京。", "今天天气很好，我们出去走走。", "她买了两本新书。"]
PARAPHRASES = ["昨天他到北京去了。", "今天天气很好，我们出去走走。", "两本新书，她买下了。"]
REFERENCES = ["昨天，他去北京了。", "天气不错，我们去散散步。", "她买来两本新的书。"]
JUDGE = [name for name in METRICS if name.startswith("judge")]
PLAIN = [name for name in METRICS if name not in ("weem4pg", "identification", *JUDGE)]
MODELS = ("similarity", "bertscore", "parascore", "bert-ibleu")
SURFACE = [name for name in PLAIN if name not in MODELS]


def test_the_judge_is_a_metric(known_writer):
    metric = load_metric("judge-meaning")
    scores = metric.sentence_scores(Pairs.of([*SOURCES, None], [*PARAPHRASES, "好"]))
    assert scores == pytest.approx([1 / (1 + np.exp(-2.5))] * 3 + [np.nan], nan_ok=True)
    assert metric.signature().startswith("Judge meaning|model:")


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
    compared = isinstance(metric, ReferenceMetric) and name != "self-bleu"
    assert np.isnan(scores[3]) != (compared or name.startswith("hsk"))
    columns = [pa.array(["一", *side]) for side in (SOURCES, PARAPHRASES, REFERENCES)]
    for kind in (pa.string(), pa.large_string()):
        one = metric.sentence_scores(Pairs.of(*(side.cast(kind).slice(1) for side in columns)))
        np.testing.assert_allclose(one, scores[:3], rtol=1e-12)  # rows are independent
    assert isinstance(metric.corpus_score(Pairs.of(SOURCES, PARAPHRASES, REFERENCES)), float)
    assert len(metric.sentence_scores(Pairs.of([], [], []))) == 0
    assert "v:" in metric.signature()
    if metric.needs_reference:
        with pytest.raises(ValueError, match=f"{name} needs a reference"):
            metric.sentence_scores(Pairs.of(SOURCES, PARAPHRASES))
        free = load_metric(f"{name}-free")  # the source in the reference's place
        assert isinstance(free, Free)
        assert (free.name, free.needs_reference) == (f"{name}-free", False)
        expected = metric.sentence_scores(Pairs.of(SOURCES, PARAPHRASES, SOURCES))
        for references in ([], [REFERENCES]):
            found = free.sentence_scores(Pairs.of(SOURCES, PARAPHRASES, *references))
            np.testing.assert_array_equal(found, expected)
        assert free.signature().endswith("|ref:source")


def test_settings_in_a_name():
    assert load_metric("ibleu:alpha=0.5").alpha == 0.5
    assert load_metric("parascore:threshold=false").threshold is False
    assert load_metric("rouge-2:tokenize=word").variant == "2"
    parsed = load_metric("bleu:tokenize=zh-word:segmenter=ltp:models/ltp")
    assert (parsed.segmenter, parsed.tokenize) == ("ltp:models/ltp", "zh-word")
    assert "|tok:zh|order:5|" in load_metric("bleu:tokenize=zh:order=5").signature()
    assert load_metric("weem4pg", vectors="b.bin", model="other metrics'").vectors == "b.bin"


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        *[(" blue", "did you mean bleu"), ("bleu:n=4", "tokenize, order"), ("bleu:order", "order")],
        *[("bleu:order=0", "order"), ("rouge-1:variant=2", "tokenize"), ("weem4pg", "vectors")],
        *[("parascore:threshold=maybe", "threshold"), ("rouge-l:tokenize=zh", "tokenize")],
        *[("ibleu:alpha=-1", "alpha"), ("bert-ibleu:beta=0", "beta")],
    ],
)
def test_bad_specs(spec, named):
    with pytest.raises(ValueError, match=rf"^[^\n]*{named}[^\n]*$"):
        load_metric(spec)


def test_pairs_of_different_lengths():
    for columns in ([PARAPHRASES[:2]], [PARAPHRASES, REFERENCES[:1]]):
        with pytest.raises(ValueError, match="3 sources"):
            Pairs.of(SOURCES, *columns)


# The command


@pytest.fixture
def files(tmp_path) -> dict[str, str]:
    """Writes the three columns as lines and as a table."""
    columns = {"source": SOURCES, "paraphrase": PARAPHRASES, "human": REFERENCES}
    for name, column in columns.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(column) + "\n", "utf-8")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {path.name: str(path) for path in tmp_path.iterdir()}


@pytest.mark.parametrize("kind", ["lines", "table"])
def test_command_reads_files_and_tables(files, capsys, kind):
    line = [files["source.txt"], files["paraphrase.txt"], "--reference", files["human.txt"]]
    if kind == "table":
        line = [files["pairs.jsonl"], "--reference", "human"]
    assert main(["--metrics", "rouge-l,self-bleu,pinc", *line]) == 0
    captured = capsys.readouterr()
    header, *rows = (row.split("\t") for row in captured.out.splitlines())
    assert header == ["rouge-l", "self-bleu", "pinc"]
    pairs = Pairs.of(SOURCES, PARAPHRASES, REFERENCES)
    metrics = [load_metric(name) for name in header]
    expected = np.column_stack([metric.sentence_scores(pairs) for metric in metrics])
    np.testing.assert_allclose(np.array(rows, float), expected, atol=1e-6)
    for metric, row in zip(metrics, captured.err.splitlines(), strict=True):
        title, score, count, signature = row.split("\t")
        assert (count, signature) == ("n=3", metric.signature())
        assert title.startswith(metric.title)
        assert float(score) == pytest.approx(metric.corpus_score(pairs), abs=1e-4)


@pytest.mark.parametrize("corpus", [[], ["--corpus"]])
def test_pairs_without_a_score_are_counted(tmp_path, capsys, corpus):
    texts = {
        "他昨天去了北京。": "昨天他到北京去了。",
        "她买了书。": None,
        "她买了本书。": "哈\ufffd书。",
        "The cat sat.": "A cat sat.",
        "No one came.": None,
    }
    lines = [json.dumps({"source": a, "paraphrase": b}) for a, b in texts.items()]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines), "utf-8")
    assert main(["--metrics", "spscore, pinc", str(tmp_path / "pairs.jsonl"), *corpus]) == 0
    said = "".join(capsys.readouterr())
    for part in ("\tn=2\tSPScore", "\tn=3\tPINC", "SPScore-zh: 2 of 5 pairs", "(pair 2, 3, 5)"):
        assert part in said
    assert "SPScore-zh: 1 of the sources" in said  # the one that has a score, of 0


def test_figures_of_a_corpus_as_json_and_columns_that_people_call_otherwise(tmp_path, capsys):
    """The signature of the score must be that of the metric."""
    path = tmp_path / "pairs.csv"
    path.write_text("改寫,原句\n昨天他到北京去了。,他昨天去了北京。\n", "utf-8")
    names = "spscore:tier=paper,spscore-meaning:tier=paper"
    assert main(["--metrics", names, str(path), "--json", "--corpus"]) == 0
    whole, meaning = map(json.loads, capsys.readouterr().out.splitlines())
    scored = SPScore.load("paper").score(["他昨天去了北京。"], ["昨天他到北京去了。"])[0]
    assert whole["score"] == pytest.approx(scored, abs=1e-6)
    assert whole["signature"] == SPScore.load("paper").signature()
    assert meaning["signature"] == whole["signature"] + "|output:meaning"


def test_command_reads_standard_input(files):
    line = [sys.executable, "-m", "gaixie.udfs.metrics", "--metrics", "pinc", "--json", "-"]
    with open(files["pairs.jsonl"], encoding="utf-8") as given:
        done = subprocess.run(line, stdin=given, capture_output=True, text=True, check=True)
    assert [list(json.loads(row)) for row in done.stdout.splitlines()] == [["pinc"]] * 3


@pytest.mark.parametrize(
    ("named", "more"),
    [
        ("pairs.jsonl", ["--source-column", "src"]),
        ("tiers are paper, core, full", ["--metrics", "spscore:tier=ful"]),
        ("gb18030.csv", []),
        ("2 columns 'paraphrase'", ["twice"]),
        ("both source and paraphrase", ["--paraphrase-column", "source"]),
        ("similarity: the package tran", ["--metrics", "pinc,similarity:model=another"]),
    ],
)
def test_command_bad_input(files, tmp_path, refused, monkeypatch, named, more):
    monkeypatch.setitem(sys.modules, "transformers", None)
    other = tmp_path / "gb18030.csv"
    other.write_text("source,paraphrase\n他昨天去了北京。,昨天他到北京去了。\n", "gb18030")
    (tmp_path / "twice.csv").write_text("source,paraphrase,paraphrase\n一,一,一\n", "utf-8")
    given = str(other) if named == other.name else files["pairs.jsonl"]
    given, more = (tmp_path / f"{more[0]}.csv", []) if len(more) == 1 else (given, more)
    refused(main, [given, *more], named)
    assert main(["--metrics", "pinc", str(other), "--encoding", "gbk"]) == 0

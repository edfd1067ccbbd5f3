"""Evaluation: figures by hand, counts that close."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from tiny_models import tiny_bert
from tiny_seq2seq import tiny_seq2seq

from gaixie.training.evaluate import main
from gaixie.training.evaluation.measures import REFERENCE_METRICS
from gaixie.udfs.metrics import Pairs, load_metric
from gaixie.udfs.text.entities import EntityFinder, load_settings
from gaixie.udfs.text.entities_kept import ENTITIES, entities_kept
from gaixie.udfs.text.normalise import normalise

FINDER = EntityFinder(load_settings(ENTITIES))

# The source, a system and a person. The system's rows: a copy, a null, one entity kept of two, a
# copy except for the width of its comma.
SOURCES = ["我们昨天在公园看花", "他在看书", "他2024年3月读了《三国》。", "今天，公园很好看"]
SYSTEM = ["我们昨天在公园看花", None, "他2024年3月读了书。", "今天,公园很好看"]
HUMAN = ["昨天我们看花在公园", "书他在看", "《三国》他2024年3月读了。", "公园今天很好看"]
PAIRS = [(source, target) for source, target in zip(SOURCES, HUMAN, strict=True)]


def write_table(path: Path, columns: dict[str, list[str | None]]) -> str:
    pd.DataFrame(columns).to_json(path, orient="records", lines=True)
    return str(path)


@pytest.fixture
def pairs(tmp_path) -> str:
    return write_table(tmp_path / "pairs.jsonl", {"source": SOURCES, "mt": SYSTEM, "human": HUMAN})


def run(tmp_path: Path, *line: str) -> dict:
    """Returns evaluation.json of a run, with SPScore-zh and Self-BLEU unless told otherwise."""
    metrics = () if "--metrics" in line else ("--metrics", "self-bleu")
    assert main([*line, *metrics, "--output", str(tmp_path / "out")]) == 0
    return json.loads((tmp_path / "out/evaluation.json").read_text("utf-8"))


def system(result: dict, name: str) -> dict:
    [found] = [one for one in result["systems"] if one["name"] == name]
    return found


# Figures by hand


def test_figures_by_hand(tmp_path, pairs):
    result = run(tmp_path, pairs, "--system", "mt", "--system", "human")
    found = system(result, "copy")
    assert (found["rows"], found["left_out"]) == (4, 0)
    whole = {"self-bleu": 100, "copies": 100, "entities": 100, "length-ratio": 1}
    for name, value in whole.items():
        one = found["measures"][name]
        assert one["mean"] == one["low"] == one["high"] == pytest.approx(value)
        assert one["sd"] == (None if name == "entities" else pytest.approx(0))  # of one row
    found = system(result, "mt")
    assert (found["rows"], found["left_out"]) == (3, 1)
    own = found["measures"]
    # Rows 1 and 4 are copies, row 4 because NFKC makes full-width commas ASCII:
    # (100 + 0 + 100) / 3, and sd² with n - 1 is (33.3² + 66.7² + 33.3²) / 2 = 3333.3.
    assert own["copies"]["mean"] == pytest.approx(200 / 3)
    assert own["copies"]["sd"] == pytest.approx(math.sqrt(10000 / 3))
    # Only row 3 has entities: 2024年3月 is kept, 《三国》 is not. One row has no sd.
    assert own["entities"] == {"mean": 50, "sd": None, "low": 50, "high": 50, "rows": 1}
    # Row 3 has 15 characters, its paraphrase 12.
    assert own["length-ratio"]["mean"] == pytest.approx((1 + 12 / 15 + 1) / 3)
    normal = [(normalise(a), normalise(b)) for a, b in zip(SOURCES, SYSTEM, strict=True) if b]
    scores = load_metric("spscore").sentence_scores(Pairs.of(*zip(*normal, strict=True)))
    assert own["spscore"]["mean"] == pytest.approx(scores.mean())
    assert own["spscore"]["sd"] == pytest.approx(scores.std(ddof=1))


@pytest.mark.parametrize(
    ("source", "paraphrase", "kept"),
    [
        ("他2024年3月读了《三国》。", "他3月读了《三国》。", 50),
        ("花了300元,又花了300元", "又花了300元", 100),  # equal entities count once
        ("买了3台X5手机", "买了13台X5手机", 50),
        ("今天很好看", "公园很好看", math.nan),
        *[("付了£20n就走", "付了£20n就走", 100), ("付了£20n就走", "付了就走", 0)],
        *[("一共3台", "一共3.5台", 0), ("一共5台", "一共3.5台", 0)],  # part of something longer
        *[("数字3好", "是3.", 100), ("买了X5", "买了X50", 0)],
    ],
)
def test_entities_kept(source, paraphrase, kept):
    assert entities_kept(source, paraphrase, FINDER) == pytest.approx(kept, nan_ok=True)


# Systems


def test_a_model(tmp_path, pairs):
    """A model knows the person's paraphrases by heart."""
    folder = tiny_seq2seq(tmp_path / "model", PAIRS)
    line = ["--system", "human", "--model", f"now={folder}", "--rank-by", "model"]
    result = run(tmp_path, pairs, *line)
    assert [one["name"] for one in result["systems"]] == ["copy", "human", "now"]
    assert system(result, "now")["measures"] == system(result, "human")["measures"]
    assert system(result, "now")["made_by"].startswith(f"model {Path(folder).name}@")


def test_counts_close(tmp_path):
    """Counts must close with two rows without source, two without the system's paraphrase, and a
    repeated source."""
    sources = [*SOURCES, SOURCES[0], None, "  "]
    columns = {"source": sources, "mt": ["甲", None, "\t", "丙", "丁", "戊", "己"]}
    path = write_table(tmp_path / "pairs.jsonl", columns)
    result = run(tmp_path, path, "--system", "mt")
    assert (result["rows"], result["without_source"], result["evaluated"]) == (7, 2, 5)
    assert result["sources"] == 4
    for one in result["systems"]:
        assert one["rows"] + one["left_out"] == 5
        assert one["measures"]["spscore"]["rows"] == one["rows"]
    assert system(result, "mt")["left_out"] == 2
    table = pq.read_table(tmp_path / "out/scores.parquet")
    assert len(table) == 2 * 5
    assert table["spscore"].null_count == 2
    limited = run(tmp_path / "limited", path, "--system", "mt", "--limit", "2")
    assert (limited["rows"], limited["evaluated"]) == (2, 2)
    nothing = write_table(tmp_path / "none.jsonl", {"source": SOURCES[:2], "mt": [None, ""]})
    result = run(tmp_path / "nothing", nothing, "--system", "mt")
    none = dict.fromkeys(("mean", "sd", "low", "high")) | {"rows": 0}
    assert system(result, "mt")["measures"]["spscore"] == none
    assert result["cases"] == []


# The report


def test_the_report(tmp_path, pairs, capsys, refused):
    line = [pairs, "--system", "mt=mt", "--system", "person=human", "--cases", "2", "--seed", "3"]
    result = run(tmp_path, *line)
    assert "## SPScore-zh" in capsys.readouterr().out
    text = (tmp_path / "out/evaluation.md").read_text("utf-8")
    metric, measured = load_metric("spscore"), [one["signature"] for one in result["measures"]]
    assert measured[0] == metric.signature()
    assert all(signature in text for signature in measured)
    assert len(result["cases"]) == 2
    for case in result["cases"]:
        place = list(map(normalise, SOURCES)).index(case["source"])
        assert SYSTEM[place] is not None  # every system has one
        for one, column in zip(case["paraphrases"], (SYSTEM, HUMAN), strict=True):
            assert one["paraphrase"] == normalise(column[place])
            [score] = metric.sentence_scores(Pairs.of([case["source"]], [one["paraphrase"]]))
            assert one["spscore"] == pytest.approx(score)
            assert f"| {one['system']} | {one['paraphrase']} | {score:.3f} |" in text
    assert run(tmp_path, *line) == result
    refused(main, [*line[:-1], 4, "--output", tmp_path / "out"], "of another evaluation")
    assert (tmp_path / "out/evaluation.md").read_text("utf-8") == text


def test_metrics_that_need_an_encoder(tmp_path, pairs):
    encoder = tiny_bert(tmp_path / "encoder")
    asked = [f"{name}:model={encoder}" for name in ("parascore", "bertscore-free")]
    line = ["--system", "human", "--metrics", ",".join(asked)]
    own = system(run(tmp_path, pairs, *line), "copy")["measures"]
    assert list(own) == ["spscore", *asked, "copies", "entities", "length-ratio"]
    assert own[asked[1]]["mean"] == pytest.approx(1)
    assert own[asked[0]]["mean"] == pytest.approx(1 - 0.05)


MISTAKES = {
    "{pairs}": "--system",
    "{pairs} --system mt --metrics bleu": "bleu-free",
    "{pairs} --system copy=mt": "'copy'",
    "{pairs} --system x=source": "both source and paraphrase",
    "{gbk} --system 改写": "--encoding gb18030",
    "{pairs} --model m={tmp}/none": "none",
}


@pytest.mark.parametrize(("line", "named"), MISTAKES.items())
def test_bad_input(tmp_path, pairs, refused, line, named):
    (gbk := tmp_path / "gbk.csv").write_text("原句,改写\n他说的是这个。,他说了这个。\n", "gbk")
    words = line.format(tmp=tmp_path, pairs=pairs, gbk=gbk).split()
    metrics = [] if "--metrics" in words else ["--metrics", "self-bleu"]
    refused(main, [*words, *metrics, "--output", tmp_path / "out"], named)
    assert not (tmp_path / "out").exists()


# References


def test_against_references(tmp_path):
    columns = {
        "source": ["他罹患疾病。", "今天天气很好", "我们去公园看花"],
        "mt": ["他生病了。", None, "我们在公园看花"],
        "one": ["他生病了。", "今天天气不错", "我们在公园看花"],
        "two": ["他得病了。", "今天的天气很好", None],
    }
    table = write_table(tmp_path / "pairs.jsonl", columns)
    line = [table, "--system", "mt", "--reference", "one", "--reference", "two"]
    result = run(tmp_path, *line)["references"]
    assert result["columns"] == ["one", "two"]
    assert result["rows_with"] == 3
    assert {*result["systems"]} == {"copy", "mt", "a person"}
    texts = {name: [text and normalise(text) for text in rows] for name, rows in columns.items()}

    def scored(spec: str, *names: str) -> float:
        pairs = Pairs.of(*(texts[name] for name in ("source", *names)))
        return load_metric(spec).corpus_score(pairs)

    systems = result["systems"]
    for k, spec in enumerate(REFERENCE_METRICS):
        assert systems["mt"][k]["score"] == pytest.approx(scored(spec, "mt", "one", "two"))
        people = scored(spec, "one", "two"), scored(spec, "two", "one")
        assert systems["a person"][k]["score"] == pytest.approx(np.mean(people))
    assert {row["title"] for row in result["diversity"]} >= {"Self-BLEU"}
    assert "| a person |" in (tmp_path / "out/evaluation.md").read_text("utf-8")

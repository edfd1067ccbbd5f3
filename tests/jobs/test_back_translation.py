"""jobs/build_pairs.py with translators must make pairs from sentences, on Spark."""

import json

import pytest
from built_pairs import manifest, table
from tiny_translators import CORPUS

from gaixie.jobs.build_pairs import main
from gaixie.udfs.networks import model_signature

pytestmark = pytest.mark.torch


def test_back_translation(spark, translator, tmp_path):
    unknown = "此外一个词也没有学过的句子应当进到隔离区里面去，它太长了。" * 9
    lines = [text for text, _, _ in CORPUS] + [unknown, CORPUS[0][0]]
    (tmp_path / "zh.tsv").write_text("\n".join(["text", *lines]), "utf-8")
    line = ["back-translation", "--input", str(tmp_path / "zh.tsv"), "--model", str(translator)]
    line += ["--pivot", "en", "--piece-sentences", "4", "--output", str(tmp_path / "p")]
    assert main(line) == 0
    pairs, told = table(tmp_path / "p", "pairs"), manifest(tmp_path / "p")
    assert {*zip(pairs.source, pairs.paraphrase, strict=True)} == {(a, b) for a, _, b in CORPUS}
    assert told.quarantine == {"repeated": 1, "too_many_tokens": 1}
    row = pairs.iloc[0]
    assert (row.origin, row.method) == ("back_translation", "back-translation")
    assert (row.model, row.version) == (str(translator), model_signature(str(translator)))
    parameters = json.loads(row.parameters)
    assert (parameters["pivot"], parameters["beams"], parameters["seed"]) == ("en", 4, 1)
    assert "device" not in parameters


def test_parallel_whose_foreign_side_is_translated(spark, translator, tmp_path):
    again = "三楼有一间厨房着了火，火势很快蔓延开了。"
    rows = [(en, zh) for zh, en, _ in CORPUS] + [(CORPUS[0][1], again)]
    line = ["parallel", "--source-lang", "en", "--translator", str(translator)]
    for side, texts in zip(("foreign", "human"), zip(*rows, strict=True), strict=True):
        (tmp_path / side).write_text("\n".join(texts), "utf-8")
        line += [f"--{side}", str(tmp_path / side)]
    assert main([*line, "--output", str(tmp_path / "p")]) == 0
    pairs, told = table(tmp_path / "p", "pairs"), manifest(tmp_path / "p")
    one = {(zh, made) for zh, _, made in CORPUS} | {(again, CORPUS[0][2])}
    assert {*zip(pairs.source, pairs.paraphrase, strict=True)} == one
    assert (told.read, told.used, told.pairs, told.groups) == (7, 7, 7, 6)
    assert [*set(pairs.origin), *set(pairs.model)] == ["parallel", str(translator)]

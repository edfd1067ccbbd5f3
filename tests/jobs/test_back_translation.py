"""jobs/build_pairs.py with translators must make pairs from sentences, on Spark."""

import json
from pathlib import Path

import pandas as pd
import pytest
from built_pairs import manifest, on_cluster, table
from tiny_translators import CORPUS

from gaixie.jobs.build_pairs import main
from gaixie.jobs.errors import JobError
from gaixie.udfs.metrics.encoder import model_signature
from gaixie.udfs.storage.manifest import PairsManifest

pytestmark = pytest.mark.torch


def made(output: Path) -> tuple[pd.DataFrame, PairsManifest]:
    return table(output, "pairs"), manifest(output)


def test_back_translation(spark, translator, tmp_path, capsys):
    unknown = "此外一个词也没有学过的句子应当进到隔离区里面去，它太长了。" * 9
    lines = [text for text, _, _ in CORPUS] + [unknown, CORPUS[0][0]]
    (tmp_path / "zh.tsv").write_text("\n".join(["text", *lines]), "utf-8")
    line = ["back-translation", "--input", str(tmp_path / "zh.tsv"), "--model", str(translator)]
    line += ["--pivot", "en", "--set", "piece_sentences=4", "--output", str(tmp_path / "p")]
    assert main([*line, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert CORPUS[0][2] in said
    assert "estimate: " in said
    with pytest.raises(JobError, match="no language 'ar'"):
        main([*line, "--pivot", "ar"])
    assert main(line) == 0
    pairs, told = made(tmp_path / "p")
    assert {*zip(pairs.source, pairs.paraphrase, strict=True)} == {(a, b) for a, _, b in CORPUS}
    assert told.quarantine == {"repeated": 1, "too_many_tokens": 1}
    row = pairs.iloc[0]
    assert (row.origin, row.method) == ("back_translation", "back-translation")
    assert (row.model, row.version) == (str(translator), model_signature(str(translator)))
    parameters = json.loads(row.parameters)
    assert (parameters["pivot"], parameters["beams"], parameters["seed"]) == ("en", 4, 1)
    assert "batch_tokens" not in parameters


def test_on_the_cluster_from_the_store_to_the_store(store, spark_submit, jars, translator):
    """Sentences and model are in the store, and each executor must fetch the model."""
    text = "\n".join(["text", *(zh for zh, _, _ in CORPUS)])
    store.put("back/zh.tsv", text.encode())
    for file in translator.iterdir():
        store.put(f"m2m/{file.name}", file.read_bytes())
    words = "back-translation --input s3://gaixie/back/zh.tsv --model s3://gaixie/m2m --pivot en"
    words += " --set piece_sentences=2 --output s3a://gaixie/back-made"
    on_cluster(spark_submit, jars, store, f"build_pairs.py {words}")
    told = json.loads(store.read("back-made/manifest.json"))
    assert (told["read"], told["used"], told["pairs"]) == (6, 6, 6)


def write_tmx(path: Path) -> Path:
    """Writes CORPUS with two Chinese versions of the first sentence, and a unit without Chinese."""
    rows = [*((en, [zh]) for zh, en, _ in CORPUS), ("No Chinese at all.", [])]
    rows[0][1].append(SECOND)
    variants = [
        f'<tuv xml:lang="{name}"><seg>{text}</seg></tuv>'
        for en, zh in rows
        for name, text in [("<tu>", ""), ("en-GB", en), *(("zh-CN", text) for text in zh)]
    ]
    body = "".join(variants).replace('<tuv xml:lang="<tu>"><seg></seg></tuv>', "</tu><tu>")
    path.write_text(f"<tmx version='1.4'><body><tu>{body}</tu></body></tmx>", "utf-8")
    return path


SECOND = "三楼有一间厨房着了火，火势很快蔓延开了。"


def test_parallel_of_a_tmx_whose_foreign_side_is_translated(spark, translator, tmp_path):
    memory = write_tmx(tmp_path / "memory.tmx")
    line = ["parallel", "--input", str(memory), "--source-lang", "en"]
    line += ["--translator", str(translator), "--output", str(tmp_path / "p")]
    assert main(line) == 0
    pairs, told = made(tmp_path / "p")
    expected = {(zh, again) for zh, _, again in CORPUS} | {(SECOND, CORPUS[0][2])}
    assert {*zip(pairs.source, pairs.paraphrase, strict=True)} == expected
    assert pairs.groupby("group").size().tolist().count(2) == 1
    assert (told.rows, told.read, told.used, told.groups) == (9, 9, 7, 6)
    assert told.quarantine == {"null": 2}
    assert [*set(pairs.origin), *set(pairs.model)] == ["parallel", str(translator)]
    (tmp_path / "en").write_text("\n".join(en for _, en, _ in CORPUS), "utf-8")
    (tmp_path / "zh").write_text("\n".join(zh for zh, _, _ in CORPUS), "utf-8")
    line[1:3] = ["--foreign", str(tmp_path / "en"), "--human", str(tmp_path / "zh")]
    assert main([*line[:-1], str(tmp_path / "q"), "--directions", "both"]) == 0
    pairs, told = made(tmp_path / "q")
    one = {(zh, again) for zh, _, again in CORPUS}
    assert {*zip(pairs.source, pairs.paraphrase, strict=True)} == one | {(b, a) for a, b in one}
    assert (told.used, told.pairs) == (6, 12)


def test_versions_of_a_tmx(spark, tmp_path):
    memory = write_tmx(tmp_path / "memory.tmx")
    line = ["versions", "--input", str(memory), "--source-lang", "en", "--output"]
    assert main([*line, str(tmp_path / "p")]) == 0
    pairs, told = made(tmp_path / "p")
    assert {pairs.source[0], pairs.paraphrase[0]} == {CORPUS[0][0], SECOND}
    assert (told.pairs, told.quarantine) == (1, {"alone": 5, "null": 2})
    assert [entry.format for entry in told.inputs] == ["tmx"]

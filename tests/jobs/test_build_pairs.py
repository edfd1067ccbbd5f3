"""jobs/build_pairs.py must turn translations into pairs for the scoring job, and count all."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from built_pairs import manifest, table

from gaixie.jobs.build_pairs import CONFIG, METHODS, main
from gaixie.jobs.pairs.versions import Versions
from gaixie.udfs.command_line import UserError

COLUMNS = ["source", "paraphrase", "origin", "group"]
COLUMNS += ["method", "model", "version", "parameters"]


def pairs(output: Path) -> pd.DataFrame:
    made = table(output, "pairs")
    assert list(made.columns) == COLUMNS
    return made.sort_values(["group", "source", "paraphrase"], ignore_index=True)


@pytest.fixture(scope="module")
def groups(examples) -> dict[str, list[str | None]]:
    """Returns versions by foreign sentence: three groups of four, and some for quarantine."""
    texts = [*examples["source"][:6], *examples["paraphrase"][:6]]
    versions: dict[str, list[str | None]] = {f"Sentence {n}.": list(texts[n::3]) for n in range(3)}
    versions["Sentence 0."] += [versions["Sentence 0."][0] + " ", "太短了。", None]
    versions["Sentence 1."] += ["No Chinese in this version at all."]
    versions["Alone."] = [texts[0]]
    versions["None."] = []
    return versions


REASONS = {"repeated": 1, "too_short": 1, "null": 2, "no_han": 1, "alone": 1}


@pytest.fixture(scope="module")
def lists(groups, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("lists") / "lists.parquet"
    columns = {"year": [2024] * len(groups), "en": [*groups], "zh": [*groups.values()]}
    pq.write_table(pa.table(columns), path)
    return path


def versions(source: Path | str, output: Path | str, *given: str) -> list[str]:
    line = ["versions", "--input", str(source), "--output", str(output)]
    return [*line, "--foreign-column", "en", "--text-column", "zh", *given]


@pytest.fixture(scope="module")
def made(spark, lists, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("made") / "p"
    assert main(versions(lists, output)) == 0
    return output


def test_versions_in_lists(made, groups):
    rows, told = pairs(made), manifest(made)
    stripped = rows[["source", "paraphrase"]].map(str.strip)
    fit = (texts[:4] for texts in groups.values() if len(texts) >= 4)
    expected = {frozenset(pair) for texts in fit for pair in combinations(texts, 2)}
    assert set(map(frozenset, stripped.to_numpy())) == expected
    assert (told.pairs, told.groups, told.rows, told.read, told.used) == (18, 3, 5, 18, 12)
    assert told.quarantine == REASONS
    assert Counter(table(made, "quarantine")["reason"]) == REASONS
    assert not (made / "_work").exists()
    row = rows.iloc[0]
    assert (row.origin, row.method, row.model, row.version) == ("parallel", "versions", None, None)
    parameters = {"max_pairs": None, "seed": 1, "min_characters": 15}
    assert json.loads(row.parameters).items() >= parameters.items()


def test_the_scoring_job_takes_them_with_their_columns(made, tmp_path, score):
    run = score(tmp_path, "--input", made, "--origin-column", "origin")
    assert run.code == 0, run.stderr
    expected = pairs(made).set_index(["source", "paraphrase"]).sort_index()
    scored = run.scored.set_index(["source", "paraphrase"]).sort_index()
    names = [name for name in COLUMNS if name in expected]
    pd.testing.assert_frame_equal(scored[names], expected[names], check_dtype=False)
    assert scored["spscore"].notna().all()


@pytest.fixture(scope="module")
def corpus(examples) -> pd.DataFrame:
    """Returns human and machine translations, some of them for quarantine."""
    texts = examples[["source", "paraphrase"]][:5].to_numpy()
    rows = [(f"Sentence {n}.", *pair) for n, pair in enumerate(texts)]
    same = ("The same.", rows[0][1], rows[0][1])
    rows += [rows[0], same, ("Short.", rows[0][1], "短"), ("", *rows[1][1:])]
    return pd.DataFrame(rows, columns=["source", "human", "machine"])


def same_pairs(made: pd.DataFrame, corpus: pd.DataFrame) -> bool:
    expected = zip(corpus["human"][:5], corpus["machine"][:5], strict=True)
    return {*zip(made.source, made.paraphrase, strict=True)} == {*expected}


def test_parallel_of_a_table(spark, compiled, corpus, tmp_path):
    corpus.to_csv(tmp_path / "corpus.tsv", sep="\t", index=False)
    with open(tmp_path / "corpus.tsv", "ab") as lines:
        lines.write(b"one\tcolumn\ttoo\tmany\n")
        lines.write(b"Broken.\t" + "火势从三楼的一间厨房".encode()[:-1] + b"\t\xff\n")
    line = ["parallel", "--input", str(tmp_path / "corpus.tsv"), "--foreign-column", "source"]
    line += ["--model", "opus-mt-en-zh", "--model-version", "2020-07-17", "--origin", "parallel"]
    assert main([*line, "--output", str(tmp_path / "p")]) == 0
    made, told = pairs(tmp_path / "p"), manifest(tmp_path / "p")
    assert same_pairs(made, corpus)
    reasons = ("identical", "too_short", "no_foreign", "malformed", "undecodable")
    assert told.quarantine == dict.fromkeys(reasons, 1)
    assert (told.rows, told.read, told.used, told.pairs, told.groups) == (11, 11, 6, 6, 5)
    assert {*zip(made.model, made.version, strict=True)} == {("opus-mt-en-zh", "2020-07-17")}
    broken = table(tmp_path / "p", "quarantine").set_index("reason").loc["undecodable"]
    assert broken.foreign == "Broken."


def test_parallel_of_files_of_lines(spark, corpus, tmp_path, capfd):
    """Without a foreign side, the human sentence makes the group."""
    line = ["parallel"]
    for name in ("human", "machine"):
        path = tmp_path / f"news[1].{name}"
        path.write_text("".join(f"{text}\n" for text in corpus[name]), "utf-8")
        line += [f"--{name}", str(path)]
    assert main([*line, "--output", str(tmp_path / "p"), "--dry-run"]) == 0
    said = capfd.readouterr().out
    assert all(part in said for part in ("7 items can be in a pair", "1 cannot: identical"))
    assert not (tmp_path / "p").exists()
    assert main([*line, "--output", str(tmp_path / "p")]) == 0
    made, told = pairs(tmp_path / "p"), manifest(tmp_path / "p")
    assert same_pairs(made, corpus)
    assert told.quarantine == {"identical": 1, "too_short": 1}
    assert (told.read, told.used, told.pairs, told.groups) == (9, 7, 7, 5)
    path.write_text("少了几行。\n", "utf-8")
    with pytest.raises(UserError, match=r"news\[1\]\.machine: expected"):
        main([*line, "--output", str(tmp_path / "q")])
    assert not (tmp_path / "q" / "manifest.json").exists()


def test_the_shipped_settings_are_the_defaults():
    sections = yaml.safe_load(CONFIG.read_text("utf-8"))
    for name, method in METHODS.items():
        settings = {"output": "out", "input": "in", "model": "m"} | {
            key: "x" for key, field in method.model_fields.items() if field.is_required()
        }
        given = {key: value for key, value in settings.items() if key in method.model_fields}
        shipped = sections["all"] | sections[name] | given
        assert method.model_validate(shipped) == method.model_validate(given), name


def test_what_is_there_is_kept_but_for_what_a_killed_process_left(made, lists, tmp_path):
    with pytest.raises(UserError, match=str(made)):
        main(versions(lists, made))
    output = tmp_path / "p"
    (output / "pairs").mkdir(parents=True)
    (output / "pairs" / "mine.parquet").write_bytes(b"mine")
    with pytest.raises(UserError, match="p/pairs"):
        main(versions(lists, output))
    assert (output / "pairs" / "mine.parquet").exists()
    (output / "_work").mkdir()
    (output / "_work" / "started.json").write_text("{}")
    assert main(versions(lists, output, "--limit", "1")) == 0
    assert (manifest(output).rows, manifest(output).groups) == (1, 1)
    assert not (output / "pairs" / "mine.parquet").exists()


def test_accounts_that_do_not_close(spark, lists, tmp_path, monkeypatch):
    make = Versions.make
    lossy = lambda *given: make(*given).where("reason IS NULL")  # noqa: E731
    monkeypatch.setattr(Versions, "make", lossy)
    with pytest.raises(RuntimeError, match="18 items read"):
        main(versions(lists, tmp_path / "p"))
    assert not (tmp_path / "p" / "manifest.json").exists()


MISTAKES = {
    "versions --input {0} --foreign-column en --text-column year": "year",
    "versions --input {0} --foreign-column en --origin web": "--origin",
    "versions --input {0}": "--foreign-column",
    "versions --input {1} --foreign-column en": "lies in the input",
    "parallel --human {0}": "human",
    "simplify --input {0} --model m": "--simplifier",
    "llm --input {0} --model m --prompt three": "--prompt",
    "cluster --input {0} --text-column en --key-column topic": "topic",
    "cluster --input {0} --text-column en --clusters {0}/none": "none",
}
"""For each command line, what its error names."""


def test_mistakes(spark, lists):
    output = lists.parent / "p"
    for line, named in MISTAKES.items():
        with pytest.raises(UserError, match=rf"^[^\n]*{named}[^\n]*$"):
            main([*line.format(lists, lists.parent).split(), "--output", str(output)])
        assert not (output / "manifest.json").exists()

"""jobs/build_pairs.py with a method where a model writes: pieces, resumption, counts."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from built_pairs import manifest, table
from pyspark import cloudpickle

from gaixie.jobs.build_pairs import main
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.settings import METHODS
from gaixie.jobs.pairs.writing import Sentences, Written

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@dataclass(frozen=True)
class Swapped(Sentences):
    """Swaps the halves of a sentence; fails at sentences that contain "broken"."""

    origin = "back_translation"
    groups = ("back_translation", "translation")
    decides = ("seed", *groups)
    log: str
    broken: str = ""

    def write(self, sentences: Sequence[str]) -> Iterator[Written]:
        for text in sentences:
            if self.broken and self.broken in text:
                raise ValueError(f"broken: {text}")
            with open(self.log, "a", encoding="utf-8") as log:
                log.write(text + "\n")
            half = len(text) // 2
            yield Written(None, text, text[half:] + text[:half], {"half": half})
            yield Written("refused", text, None)


@pytest.fixture(scope="module")
def sentences(examples, tmp_path_factory) -> Path:
    texts = [*dict.fromkeys(examples["source"][:40])]
    path = tmp_path_factory.mktemp("sentences") / "zh.parquet"
    texts = [*texts, texts[0] + " ", "太短了。", "Latin letters only, no Han."]
    pd.DataFrame({"text": [*texts, None]}).to_parquet(path)
    return path


@pytest.fixture
def build(spark, sentences, tmp_path, monkeypatch):
    """Returns a function that builds pairs with Swapped, about four sentences per piece."""

    def call(*given: str, broken: str = "") -> int:
        monkeypatch.setitem(METHODS, "back-translation", Swapped)
        monkeypatch.setattr(Swapped, "of", lambda _: Swapped(str(tmp_path / "log"), broken))
        line = ["back-translation", "--input", str(sentences), "--output", str(tmp_path / "p")]
        return main([*line, "--model", "swap", "--set", "piece_sentences=4", *given])

    return call


def test_a_killed_building_goes_on_with_the_pieces_that_are_missing(
    build, sentences, tmp_path, capsys
):
    texts = pd.read_parquet(sentences)["text"][:-4]
    broken = texts[17][:12]
    with pytest.raises(Exception, match="broken"):
        build(broken=broken)
    before = set((tmp_path / "p/_work/pieces").glob("*.parquet"))
    kept = {path: path.read_bytes() for path in before}
    assert before
    (tmp_path / "log").unlink()
    with pytest.raises(JobError, match=r"cannot be resumed: pivots was \[\"ar\"\], now \[\"en\"\]"):
        build("--resume", "--pivot", "en")
    with pytest.raises(JobError, match="cannot be resumed: limit was null, now 5"):
        build("--resume", "--limit", "5")
    assert {path: path.read_bytes() for path in before} == kept
    assert build("--resume") == 0
    written = (tmp_path / "log").read_text("utf-8").splitlines()
    assert len(written) == len(set(written)) < len(texts)
    told, made = manifest(tmp_path / "p"), table(tmp_path / "p", "pairs")
    assert set(made.source) == set(texts)
    assert (made.paraphrase.str.len() == made.source.str.len()).all()
    row = made.iloc[0]
    assert (row.origin, row.method, row.model) == ("back_translation", "back-translation", "swap")
    assert json.loads(row.parameters)["half"] == len(row.source) // 2
    assert (told.used, told.groups, told.pairs) == (len(texts),) * 3
    assert told.quarantine == {"repeated": 1, "too_short": 1, "no_han": 1, "null": 1}
    assert told.dropped == {"refused": len(texts)}
    assert build("--resume") == 0
    assert "nothing to do" in capsys.readouterr().out


def test_dry_run(build, tmp_path, capsys):
    assert build("--dry-run") == 0
    said = capsys.readouterr().out
    assert "sentences for back-translation" in said
    assert "estimate: " in said
    assert not (tmp_path / "p").exists()


def test_versions_go_on_too(spark, examples, tmp_path, monkeypatch):
    from gaixie.jobs.pairs import build

    table = pd.DataFrame({"en": ["A.", "A."], "zh": examples["source"][:2]})
    table.to_parquet(tmp_path / "in.parquet")
    line = ["versions", "--input", str(tmp_path / "in.parquet"), "--foreign-column", "en"]
    line += ["--text-column", "zh", "--output", str(tmp_path / "p"), "--resume"]
    with monkeypatch.context() as patch:
        patch.setattr(build.BuildPairs, "write_pairs", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            main(line)
    with monkeypatch.context() as patch:
        patch.setattr(build.BuildPairs, "judged", lambda *_: 1 / 0)
        patch.setattr(build, "make_pairs", lambda *_: 1 / 0)
        assert main(line) == 0
    assert manifest(tmp_path / "p").pairs == 1

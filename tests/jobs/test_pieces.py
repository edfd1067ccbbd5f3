"""jobs/build_pairs.py with a method where a model writes: pieces, resumption, counts."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pytest
from built_pairs import manifest, table
from pyspark import cloudpickle

from gaixie.jobs.build_pairs import METHODS, main
from gaixie.jobs.pairs.back_translation import BackTranslation
from gaixie.jobs.pairs.method import Candidate
from gaixie.udfs.command_line import UserError

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Swapped(BackTranslation):
    """Swaps the halves of a sentence; fails at the one that the file broken begins."""

    def check(self) -> None:
        pass

    def candidates(self, sentences: Sequence[str]) -> Iterator[Candidate]:
        path = Path(self.model, "broken")
        broken = path.read_text("utf-8") if path.exists() else "?"
        for text in sentences:
            if text.startswith(broken):
                raise ValueError(f"broken: {text}")
            with open(Path(self.model, "log"), "a", encoding="utf-8") as log:
                log.write(text + "\n")
            half = len(text) // 2
            yield Candidate(None, text, text[half:] + text[:half], {"half": half})
            yield Candidate("refused", text, None)


def test_a_killed_building_goes_on_with_the_pieces_that_are_missing(
    spark, examples, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(METHODS, "back-translation", Swapped)
    texts = [*dict.fromkeys(examples["source"][:40])]
    more = [texts[0] + " ", "太短了。", "Latin letters only, no Han.", None]
    pd.DataFrame({"text": [*texts, *more]}).to_parquet(tmp_path / "zh.parquet")
    (tmp_path / "model").mkdir()

    def build(*given: str) -> int:
        line = ["back-translation", "--input", str(tmp_path / "zh.parquet")]
        line += ["--output", str(tmp_path / "p"), "--model", str(tmp_path / "model")]
        line += ["--model-version", "1", "--piece-sentences", "4"]
        return main([*line, *given])

    (tmp_path / "model/broken").write_text(texts[17][:12], "utf-8")
    with pytest.raises(Exception, match="broken"):
        build()
    before = set((tmp_path / "p/_work/pieces").glob("*.parquet"))
    kept = {path: path.read_bytes() for path in before}
    done = {text for path in before for text in pd.read_parquet(path)["source"]}
    assert before
    (tmp_path / "model/log").unlink()
    for other in (["--pivot", "en"], ["--limit", "5"]):
        with pytest.raises(UserError, match="cannot be resumed"):
            build("--resume", *other)
    assert {path: path.read_bytes() for path in before} == kept
    (tmp_path / "model/broken").unlink()
    assert build("--resume", "--threads", "2") == 0
    written = {*(tmp_path / "model/log").read_text("utf-8").splitlines()}
    assert not written & done
    assert written | done == {*texts}
    told, made = manifest(tmp_path / "p"), table(tmp_path / "p", "pairs")
    assert set(made.source) == set(texts)
    assert (made.paraphrase.str.len() == made.source.str.len()).all()
    row = made.iloc[0]
    assert (row.origin, row.method, row.version) == ("back_translation", "back-translation", "1")
    assert json.loads(row.parameters)["half"] == len(row.source) // 2
    assert (told.used, told.groups, told.pairs) == (len(texts),) * 3
    assert told.quarantine == {"repeated": 1, "too_short": 1, "no_han": 1, "null": 1}
    assert told.dropped == {"refused": len(texts)}
    assert build("--resume") == 0
    assert "nothing to do" in capsys.readouterr().out

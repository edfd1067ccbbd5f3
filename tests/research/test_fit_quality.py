"""research/fit_quality.py must learn from the writer's likelihoods which drafts readers accept."""

import json

import pandas as pd
from tiny_writer import KNOWN

from gaixie.research import fit_quality
from gaixie.research.ratings.rated import RATINGS
from gaixie.udfs.paraphrase.quality import COLUMNS


def test_what_the_writer_knows_is_accepted(known_writer, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(fit_quality, "FOLDS", 2)
    drafts, output = tmp_path / "rated.jsonl", tmp_path / "quality.json"
    asked = [[source, code, text] for source, code, known in KNOWN for text in (known, known[::-1])]
    rated = pd.DataFrame(asked, columns=["source", "code", "paraphrase"])
    rated[[*RATINGS]] = [[5.0] * 5, [1.0] * 5] * len(KNOWN)
    rated.to_json(drafts, orient="records", lines=True)
    assert fit_quality.main([str(drafts), "--output", str(output)]) == 0
    weights = json.loads(output.read_text("utf-8"))
    assert min(weights["written"]["accepted"][:2]) > 0  # of the writer's two columns
    assert weights["other"]["columns"] == [*COLUMNS[2:]]

"""research/rank_translations.py: what is ranked, and what is left out."""

from __future__ import annotations

import json

from gaixie.research.rank_translations import JUDGED, main

TEXTS = ["他昨天去了北京。", "昨天他到北京去了。", "他前天去了上海。"]


def test_a_metric_that_fails_is_left_out(tmp_path, capsys):
    """It is announced, and no tau is printed for it."""
    rows = [
        {"document": f"d{d}", "segment": d, "system": str(k), "text": text, "score": 90 - 20 * k}
        for d in range(40)
        for k, text in enumerate(TEXTS)
    ]
    (tmp_path / JUDGED).write_text("\n".join(map(json.dumps, rows)), "utf-8")
    metrics = ["--metric", "pinc", "--metric", "weem4pg", "--word-vectors", f"{tmp_path}/none"]
    assert main(["--data", str(tmp_path), *metrics]) == 0
    shown = capsys.readouterr()
    assert "weem4pg: left out: " in shown.err
    assert "pinc  " in shown.out
    assert "weem4pg" not in shown.out

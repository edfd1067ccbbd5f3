"""Drift between runs: the index, its limit, and where it is reported."""

import http.server
import threading

import numpy as np
import pandas as pd
import pytest
from manifests import run_manifest
from prometheus_client.parser import text_string_to_metric_families

from gaixie.jobs import diff_runs
from gaixie.jobs.errors import JobError
from gaixie.jobs.scoring.drift import LARGE, baseline, compare, index_of
from gaixie.jobs.scoring.metrics import exposition, push
from gaixie.udfs.spscore import OUTPUTS


def manifest(run_id="r", signature="s", reasons=(15, 5), score=(10, 60, 30), **changes):
    rows = {"read": 12_000, "scored": 10_000, "quarantined": 2_000, "duplicates": 0}
    return run_manifest(
        run_id=run_id,
        signature=signature,
        rows={"llm": rows},
        stages={"llm": dict(enumerate(map(int, np.array([10, 40, 30, 20]) * 100)))},
        quarantine={"llm": dict(zip(("null", "too_short"), np.array(reasons) * 100, strict=True))},
        histograms={"llm": {"spscore": [100 * n for n in score]}},
        **changes,
    )


def test_the_index_by_hand():
    """From shares 0.5 and 0.5 to 0.2 and 0.8, the index must be 0.3 ln 2.5 + 0.3 ln 1.6."""
    found = index_of([500_000, 500_000], [200_000, 800_000])
    assert found.psi == pytest.approx(0.3 * np.log(2.5) + 0.3 * np.log(1.6), abs=1e-3)
    assert found.limit == LARGE
    assert index_of([5, 5], [5, 5]).psi == 0
    assert index_of([5, 0], [0, 0]) is None
    assert np.isfinite(index_of([1000, 0], [0, 1000]).psi)


@pytest.mark.parametrize("rows", [30, 200, 5_000])
def test_chance_alone_is_no_drift(rows):
    """Of 1,000 pairs of samples of one population, at most a few may count as drift."""
    random, shares = np.random.default_rng(0), [0.02, 0.08, 0.2, 0.3, 0.25, 0.1, 0.05]
    samples = random.multinomial(rows, shares, (1000, 2))
    indices = [index_of(*pair) for pair in samples]
    assert sum(index.psi > index.limit for index in indices) <= 5
    shifted = random.multinomial(rows, np.roll(shares, 2), 1000)
    caught = [index_of(before, now) for (before, _), now in zip(samples, shifted, strict=True)]
    assert np.mean([index.psi > index.limit for index in caught]) > (0.05 if rows < 100 else 0.95)


def test_what_is_compared():
    before = manifest("before")
    same = compare(before, manifest("now"))
    assert (same.against, same.shifted) == ("before", [])
    assert {*same.indices["llm"]} == {"spscore", "stages", "quarantine"}
    worse = compare(before, manifest(score=(60, 30, 10)))
    assert [name.split()[1] for name in worse.shifted] == ["spscore"]
    empty = compare(before, manifest(reasons=(300, 0)))
    assert [name.split()[1] for name in empty.shifted] == ["quarantine"]
    other = compare(before, manifest(signature="other", score=(60, 30, 10)))
    assert {*other.indices["llm"]} == {"quarantine"}


def test_the_run_to_compare_with():
    runs = [manifest("a"), manifest("b"), manifest("c", signature="other")]
    assert baseline(runs, "s", "").run_id == "b"
    assert baseline(runs, "s", "a").run_id == "a"
    assert baseline(runs, "new", "") is None
    with pytest.raises(JobError, match="c: has another signature, other"):
        baseline(runs, "s", "c")
    with pytest.raises(JobError, match="d: not a published run; published: a, b, c"):
        baseline(runs, "s", "d")


def test_metrics_are_what_prometheus_reads():
    before, now = manifest("before", seconds={"score": 4.0}), manifest("now", signature='a"b\\')
    now = now.model_copy(update={"drift": compare(before, now), "seconds": {"score": 2.0}})
    families = {f.name: f.samples for f in text_string_to_metric_families(exposition(now))}
    assert families["gaixie_run_info"][0].labels["signature"] == 'a"b\\'
    assert families["gaixie_run_pairs_per_second"][0].value == 6000
    rows = {s.labels["outcome"]: s.value for s in families["gaixie_run_rows"]}
    assert rows == {"scored": 10_000, "quarantined": 2_000, "duplicates": 0}
    assert {s.labels["of"] for s in families["gaixie_run_drift"]} == {"quarantine"}
    assert sum(s.value for s in families["gaixie_run_stage_pairs"]) == 10_000


def test_metrics_are_pushed(capsys):
    taken = []

    class Gateway(http.server.BaseHTTPRequestHandler):
        def do_PUT(self):
            taken.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

    with http.server.HTTPServer(("127.0.0.1", 0), Gateway) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        push(f"http://127.0.0.1:{server.server_port}/", "gaixie_run_rows 1\n")
    assert taken == [("/metrics/job/gaixie_score", b"gaixie_run_rows 1\n")]
    capsys.readouterr()
    push("nowhere", "")
    assert "--push-metrics nowhere: the run is published" in capsys.readouterr().err


def test_a_run_that_drifts_is_published_and_says_so(score, examples, tmp_path, capsys):
    """A drifting run must be published and say so: here, pairs get the paraphrases of others."""
    examples = pd.concat([examples] * 4, ignore_index=True)[["source", "paraphrase"]]
    examples["paraphrase"] += [f"（{k}）" for k in range(len(examples))]
    other = examples.assign(paraphrase=examples["paraphrase"].to_numpy()[::-1])
    runs = {}
    for name, pairs in (("a", examples[::2]), ("b", examples[1::2]), ("c", other[::2])):
        pairs.to_csv(tmp_path / f"{name}.csv", index=False)
        given = ("--input", tmp_path / f"{name}.csv", "--origin", "llm", "--fail-on-drift")
        runs[name] = score(tmp_path / "out", *given, run_id=name, report=name == "c")
    assert [run.code for run in runs.values()] == [0, 0, 3], runs["c"].stdout
    assert "nothing to compare" in runs["a"].stderr
    assert "drift against" not in runs["a"].stdout
    assert "drift against a: none" in runs["b"].stdout
    assert "drift against b: llm" in runs["c"].stdout
    drift = runs["c"].manifest["drift"]["indices"]["llm"]
    assert {*drift} == {*OUTPUTS, "stages", "quarantine"}
    assert drift["meaning"]["psi"] > drift["meaning"]["limit"]
    assert f"{drift['meaning']['psi']:.3f}" in (runs["c"].folder / "report.html").read_text("utf-8")
    assert 'gaixie_run_drift{origin="llm",of="meaning"}' in (
        runs["c"].folder / "metrics.prom"
    ).read_text("utf-8")
    counts = runs["c"].manifest["histograms"]["llm"]
    scored = len(runs["c"].scored)
    assert {name: sum(bins) for name, bins in counts.items()} == dict.fromkeys(counts, scored)
    tenths = np.minimum(runs["c"].scored["meaning"] * 10, 9).astype(int)
    assert counts["meaning"] == np.bincount(tenths, minlength=10).tolist()

    capsys.readouterr()
    assert diff_runs.main([str(runs["a"].folder), str(runs["c"].folder)]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("run a -> c", "llm meaning", "shifted"))

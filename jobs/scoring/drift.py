"""Compares two runs by the population stability index of their contents, by origin.

The index of counts by bin is Σ (p − q) ln (p / q) over their shares p and q: 0 if the shares are
equal, more than 0.25 for a large shift (Siddiqi, Credit Risk Scorecards, 2006). Small samples also
differ by chance: between samples of n and m of one population the index is about (1/n + 1/m) χ²,
with one degree of freedom less than there are bins (Yurdakul and Naranjo, Statistical properties of
the population stability index, 2020). So a shift must also exceed what chance exceeds once in a
thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gaixie.jobs.errors import JobError
from gaixie.udfs.command_line import say
from gaixie.udfs.spscore.stages import STAGES
from gaixie.udfs.storage.manifest import Drift, Index, RunManifest

LARGE, BY_CHANCE = 0.25, 0.001

DRIFTED = 3
"""Exit code of a run that is published but has drifted."""


def index_of(before: Sequence[int], now: Sequence[int]) -> Index | None:
    """Compares two counts by bin; returns None if one of them counted nothing.

    Adds half a row to every bin in which either counted something, so that no bin is empty.
    """
    counts = np.array([before, now], float)
    counts = counts[:, counts.any(axis=0)]
    totals = counts.sum(axis=1)
    if not totals.all():
        return None
    p, q = (counts + 0.5) / (totals + counts.shape[1] / 2)[:, None]
    psi = float(((p - q) * np.log(p / q)).sum())
    limit = max(LARGE, _chance(counts.shape[1] - 1) * float((1 / totals).sum()))
    return Index(psi=round(psi, 4), limit=round(limit, 4))


def _chance(freedom: int) -> float:
    """Returns the value that χ² exceeds with a probability of BY_CHANCE."""
    from scipy.stats import chi2  # takes half a second to import

    return float(chi2.isf(BY_CHANCE, freedom)) if freedom else 0.0


def compare(before: RunManifest, now: RunManifest) -> Drift:
    """Compares quarantine and, if the signatures are equal, scores, judgements and stages."""
    found = {
        origin: {
            name: index
            for name, *counts in _counts(before, now, origin)
            if (index := index_of(*counts))
        }
        for origin in now.rows
        if origin in before.rows
    }
    return Drift(against=before.run_id, indices=found)


def _counts(
    before: RunManifest, now: RunManifest, origin: str
) -> Iterator[tuple[str, Sequence[int], Sequence[int]]]:
    """Yields (name, counts, counts) of everything that is compared."""
    runs = before, now
    if before.signature == now.signature:
        histograms = [run.histograms.get(origin, {}) for run in runs]
        for name in histograms[0].keys() & histograms[1].keys():
            yield name, histograms[0][name], histograms[1][name]
        first, second = ([run.stages.get(origin, {}).get(s, 0) for s in STAGES] for run in runs)
        yield "stages", first, second
    reasons = sorted({reason for run in runs for reason in run.quarantine.get(origin, {})})
    fit = [run.rows[origin].read - run.rows[origin].quarantined for run in runs]
    aside = [[run.quarantine.get(origin, {}).get(reason, 0) for reason in reasons] for run in runs]
    yield "quarantine", [fit[0], *aside[0]], [fit[1], *aside[1]]


def baseline(runs: Sequence[RunManifest], signature: str, run_id: str | None) -> RunManifest | None:
    """Returns the run to compare with: the one named; the last of a signature for an empty name; no
    run for None.

    runs: the published runs, oldest first. Raises JobError if the named run is not among them, or
    has another signature, so that its scores do not compare.
    """
    if run_id is None:
        return None
    alike = [run for run in runs if run.signature == signature]
    if not run_id:
        if not alike:
            say("--fail-on-drift: no published run has this signature: nothing to compare")
        return alike[-1] if alike else None
    for run in runs:
        if run.run_id == run_id and run in alike:
            return run
        if run.run_id == run_id:
            raise JobError(f"--fail-on-drift {run_id}: has another signature, {run.signature}")
    known = ", ".join(run.run_id for run in runs[-20:]) or "none"
    raise JobError(f"--fail-on-drift {run_id}: not a published run; published: {known}")

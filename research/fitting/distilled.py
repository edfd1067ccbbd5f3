"""Unrated pairs that the pair encoder judges: what tier core learns from beside the ratings.

Translations of one sentence as they come, the same with the meaning or the Chinese broken by a program, and
written groups with their counterparts. No sentence of a rated pair is among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from gaixie.research.fitting.data import Distilled, Rows, extract
from gaixie.research.fitting.ratings import RATINGS, read_json_lines
from gaixie.research.pair_encoder.broken import Breaker
from gaixie.research.pair_encoder.examples import held_out
from gaixie.udfs.meaning.pair_encoder import PairEncoder
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import Segmenter

LENGTHS = range(12, 111)
BROKEN = 0.25
"""Share of the pairs of translations that are broken."""


def read_distilled(
    settings: Distilled, folder: Path, rated: pd.DataFrame, segmenter: Segmenter
) -> Rows:
    """Rows whose targets are what the pair encoder that ships says of them."""
    banned = set(rated["source"]) | set(rated["paraphrase"])
    random = Random(0)
    pairs = list(_translations(settings, folder, banned, random))
    if settings.written:
        pairs += list(_written(folder))
    encoder = PairEncoder.load()
    sources, paraphrases = (pd.Series(side) for side in zip(*pairs, strict=True))
    targets = encoder.predict(sources.tolist(), paraphrases.tolist())[:, : len(RATINGS)]
    weight = settings.weight * len(rated) / len(pairs)
    return Rows(
        extract(sources, paraphrases, segmenter),
        targets.astype(float),
        np.full(len(pairs), weight),
        np.array([f"distilled {k}" for k in range(len(pairs))], object),
        np.full(len(pairs), "distilled", object),
        np.full(len(pairs), -1),
    )


def _translations(
    settings: Distilled, folder: Path, banned: set[str], random: Random
) -> Iterator[tuple[str, str]]:
    lists = [
        row
        for name in settings.translations
        for row in pq.read_table(folder / name, columns=["translations_zh"])[0].to_pylist()
    ]
    breaker = Breaker([texts[0] for texts in lists if texts and texts[0]], random)
    left = settings.pairs
    while left:
        texts = [normalise(text) for text in random.choice(lists) if text]
        texts = [text for text in texts if len(text) in LENGTHS and text not in banned]
        if len(set(texts)) < 2:
            continue
        source, paraphrase = random.sample(sorted(set(texts)), 2)
        if random.random() < BROKEN:
            way = breaker.meaning if random.random() < 0.7 else breaker.salad
            paraphrase = way(paraphrase) or paraphrase
        left -= 1
        yield source, paraphrase


def _written(folder: Path) -> Iterator[tuple[str, str]]:
    broken = {row["group"]: row for row in read_json_lines(folder / "written_broken.jsonl")}
    for row in read_json_lines(folder / "written_groups.jsonl"):
        if held_out(row["group"]):
            continue
        source, *others = map(normalise, row["texts"])
        yield from ((source, text) for text in others)
        counterparts = broken.get(row["group"], {})
        for kind in ("negation", "roles", "fact", "scope", "salad"):
            if kind in counterparts:
                yield source, normalise(counterparts[kind])

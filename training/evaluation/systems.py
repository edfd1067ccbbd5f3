"""Loads the compared systems: columns of a table, files of paraphrases, models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from gaixie.training.modeling.generator import has_text
from gaixie.training.modeling.trained_paraphraser import TrainedParaphraser
from gaixie.training.settings import Decoding, Ranking
from gaixie.udfs.command_line import say
from gaixie.udfs.networks import model_signature
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.text_tables import check_extension, read_columns
from gaixie.udfs.text.normalise import normalise

TABLES = (".tsv", ".csv", ".jsonl", ".parquet")

COPY = "copy"


@dataclass(frozen=True)
class System:
    """A system and its paraphrases."""

    name: str
    made_by: str
    """The maker of the paraphrases, in the report's words."""
    paraphrases: list[str | None]
    """The paraphrase of each row, normalised; None if there is none."""

    @property
    def rows(self) -> int:
        """Returns the number of rows that have a paraphrase."""
        return len(self.paraphrases) - self.paraphrases.count(None)


def read_table(
    path: str, source: str, columns: Sequence[str], limit: int | None
) -> tuple[list[str], dict[str, list[str | None]], int]:
    """Returns the sources, the texts of the other columns, and the number of rows left out for lack
    of a source."""
    check_extension(path, TABLES)
    names = [*dict.fromkeys([source, *columns])]
    rows = [*islice(read_columns(path, names), limit)]
    if not rows:
        raise ValueError(f"{path}: no rows")
    cleaned = ([clean(text) for text in row] for row in rows)
    kept = [row for row in cleaned if row[0] is not None]
    if not kept:
        raise ValueError(f"{path}: no row has text in column '{source}'")
    texts = dict(zip(names, map(list, zip(*kept, strict=True)), strict=True))
    return [str(text) for text in texts[source]], texts, len(rows) - len(kept)


def from_columns(named: Sequence[str], texts: dict[str, list[str | None]]) -> list[System]:
    """Returns the systems NAME=COLUMN of --system."""
    pairs = map(split_name, named)
    return [System(name, f"column {column}", texts[column]) for name, column in pairs]


def clean(text: str | None) -> str | None:
    """Returns the normalised text; None if it is empty."""
    return normalise(text) if text is not None and has_text(text) else None


def from_generations(text: str, sources: Sequence[str]) -> System:
    """Returns the system NAME=FILE of --generations. Raises ValueError if no source matches."""
    name, file = split_name(text)
    check_extension(file, TABLES)
    best: dict[str | None, str | None] = {}
    for source, paraphrase in read_columns(file, ["source", "paraphrase"]):
        best.setdefault(clean(source), clean(paraphrase))
    paraphrases = [best.get(source) for source in sources]
    if not any(paraphrases):
        raise ValueError(f"{file}: has no paraphrase of any source")
    return System(name, f"file {file}", paraphrases)


def from_model(text: str, sources: Sequence[str], decoding: Decoding, ranking: Ranking) -> System:
    """Returns the system NAME=FOLDER of --model, which writes its paraphrases now."""
    name, folder = split_name(text)
    paraphraser = TrainedParaphraser.load(folder, ranking)
    different = [*dict.fromkeys(sources)]
    with Progress(name, len(different), "sentences") as shown:
        made = paraphraser(different, decoding, shown.add)
    best = {
        source: clean(row[0].text) if row else None
        for source, row in zip(different, made, strict=True)
    }
    say(f"{name}: {paraphraser.generator.in_words()}")
    made_by = f"model {model_signature(folder)}, {_in_words(decoding, ranking)}"
    return System(name, made_by, [best[source] for source in sources])


def _in_words(decoding: Decoding, ranking: Ranking) -> str:
    """Describes how a model wrote, for the report."""
    drawn = f"{decoding.draws} draws of temperature {decoding.temperature:g}"
    by_metric = ranking.rank_by == "spscore"
    parts = (
        (True, drawn if decoding.draws else f"{decoding.beams} beams"),
        (True, ranking.precision),
        (decoding.code, f"code {decoding.code}"),
        (by_metric, f"ranked by SPScore-zh, tier {ranking.tier}"),
        (by_metric and ranking.min_meaning, f"meaning from {ranking.min_meaning:g}"),
        (decoding.max_new_tokens, f"{decoding.max_new_tokens} new tokens"),
    )
    return ", ".join(text for there, text in parts if there)


def split_name(text: str) -> tuple[str, str]:
    """Returns (name, rest) of NAME=REST; for other text, its last part and the text itself."""
    name, equals, rest = text.partition("=")
    return (name, rest) if equals else (Path(text).name, text)


def check_names(names: Sequence[str], people: bool = False) -> None:
    """Raises ValueError for a name that is missing, taken or repeated, and if there is no system.

    people: there are references, which can be evaluated without a system.
    """
    if not names and not people:
        raise ValueError("nothing to evaluate: give --system, --generations or --model")
    for name, times in Counter([COPY, *names]).items():
        if not name or times > 1:
            raise ValueError(f"the name {name!r} is taken, or empty: each system needs one")

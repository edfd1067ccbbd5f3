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
from gaixie.udfs.networks import model_signature
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.text_tables import check_extension, read_columns
from gaixie.udfs.text.normalise import normalise

TABLES = (".tsv", ".csv", ".jsonl", ".parquet")
COPY = "copy"
Named = tuple[str, str]
"""(name of a system, its column, file or folder)."""


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
    rows = [[clean(text) for text in row] for row in islice(read_columns(path, names), limit)]
    kept = [row for row in rows if row[0] is not None]
    if not kept:
        raise ValueError(f"{path}: no row has text in column '{source}'")
    texts = dict(zip(names, map(list, zip(*kept, strict=True)), strict=True))
    return [str(text) for text in texts[source]], texts, len(rows) - len(kept)


def clean(text: str | None) -> str | None:
    """Returns the normalised text; None if it is empty."""
    return normalise(text) if text is not None and has_text(text) else None


def from_file(given: Named, sources: Sequence[str]) -> System:
    """Returns a system of --generations. Raises ValueError if no source matches."""
    name, file = given
    check_extension(file, TABLES)
    best: dict[str | None, str | None] = {}
    for source, paraphrase in read_columns(file, ["source", "paraphrase"]):
        best.setdefault(clean(source), clean(paraphrase))
    paraphrases = [best.get(source) for source in sources]
    if not any(paraphrases):
        raise ValueError(f"{file}: has no paraphrase of any source")
    return System(name, f"file {file}", paraphrases)


def from_model(
    given: Named, sources: Sequence[str], decoding: Decoding, ranking: Ranking
) -> System:
    """Returns a system of --model, which writes its paraphrases now."""
    name, folder = given
    paraphraser = TrainedParaphraser.load(folder, ranking)
    different = [*dict.fromkeys(sources)]
    with Progress(name, len(different), "sentences") as shown:
        made = paraphraser(different, decoding, shown.add)
    texts = [clean(row[0].text) if row else None for row in made]
    best = dict(zip(different, texts, strict=True))
    how = decoding.model_dump(exclude_defaults=True) | ranking.model_dump(exclude_defaults=True)
    made_by = [f"model {model_signature(folder)}", *(f"{key} {how[key]}" for key in how)]
    return System(name, ", ".join(made_by), [best[source] for source in sources])


def named(texts: Sequence[str]) -> list[Named]:
    """Returns (NAME, REST) of each NAME=REST; of other text, its last part and the text itself."""
    parted = (text.partition("=") for text in texts)
    return [(name, rest) if equals else (Path(name).name, name) for name, equals, rest in parted]


def check_names(names: Sequence[str]) -> None:
    """Raises ValueError for a name that is missing, taken or repeated."""
    for name, times in Counter([COPY, *names]).items():
        if not name or times > 1:
            raise ValueError(f"the name {name!r} is taken, or empty: each system needs one")

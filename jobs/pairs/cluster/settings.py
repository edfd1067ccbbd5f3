"""Settings of the method cluster: a group of conf/pairs.yaml."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from gaixie.jobs.corpus.settings import Uri
from gaixie.jobs.pairs.writer_settings import WriterSettings

UNITS = ("hour", "day", "week", "month")


def _known_key(key: str) -> str:
    for part in key.split("+"):
        if not re.fullmatch(rf"[^:]+(:({'|'.join(UNITS)}))?", part):
            raise ValueError(
                f"expected columns joined by +, a time as COLUMN:{'|'.join(UNITS)}, such as "
                "topic+created:day"
            )
    return key


class ClusterSettings(WriterSettings):
    """cluster in conf/pairs.yaml."""

    FREE: ClassVar[frozenset[str]] = frozenset({"references"})

    key_columns: tuple[Annotated[str, AfterValidator(_known_key)], ...] = ()
    """compare only within these: topic, url, topic+created:day; by default all sentences"""
    clusters: Uri | None = None
    """output of the months before, which these sentences join"""
    references: int | None = Field(default=None, ge=2)
    """also write sources with so many paraphrases or more"""
    ngram: int = Field(default=2, ge=1, le=10)
    near_duplicate: float = Field(default=0.8, gt=0, le=1)
    near_duplicate_bands: int = Field(default=10, ge=1, le=500)
    near_duplicate_rows: int = Field(default=6, ge=1, le=50)
    overlap: float = Field(default=0.2, ge=0, lt=1)
    encoder: str | None = None
    """a folder: candidates by embedding, not by overlap"""
    cosine: float = Field(default=0.8, ge=-1, le=1)
    bands: int | None = Field(default=None, ge=1, le=500)
    rows: int | None = Field(default=None, ge=1, le=63)
    neighbours: int = Field(default=16, ge=1, le=1000)
    identify: str = "core"
    """core | full | a classifier's folder: what decides that two say the same; by default core"""
    min_meaning: float = Field(default=0.6, ge=0, le=1)
    min_probability: float = Field(default=0.5, ge=0, le=1)
    min_share: float = Field(default=0.5, ge=0, le=1)
    compared: int = Field(default=50, ge=2, le=1000)

    @property
    def columns(self) -> dict[str, str]:
        """Columns of the input that keys are made of, and their names among what is read."""
        names = [part.partition(":")[0] for key in self.key_columns for part in key.split("+")]
        return {name: f"key_{number}" for number, name in enumerate(dict.fromkeys(names))}

    @property
    def banding(self) -> tuple[int, int]:
        """(bands, rows) that bring candidates together: stricter where there is no key.

        Of n-grams: sentences with an overlap of 0.3 meet within a key with probability 0.95, of 0.5 without
        one with 0.88. Of embeddings a row is a bit: a cosine of 0.8 meets with 0.97 and 0.77.
        """
        defaults = {
            (False, True): (32, 2),
            (False, False): (32, 4),
            (True, True): (32, 10),
            (True, False): (32, 16),
        }
        bands, rows = defaults[self.encoder is not None, bool(self.key_columns)]
        return self.bands or bands, self.rows or rows

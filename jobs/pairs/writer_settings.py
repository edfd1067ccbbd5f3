"""Settings of the methods whose pairs a model writes: the groups of conf/pairs.yaml.

Apart from the methods themselves, which import for a second what a user's mistake need not wait for.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import ConfigDict, Field

from gaixie.jobs.corpus.settings import Uri
from gaixie.udfs.storage.settings import Strict


class WriterSettings(Strict):
    """Settings of one method, a group of conf/pairs.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    FREE: ClassVar[frozenset[str]] = frozenset()
    """Those that decide no pair, such as batch sizes: a building may go on with others."""

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


class BackTranslationSettings(WriterSettings):
    """back_translation in conf/pairs.yaml."""

    pivots: tuple[str, ...] = Field(default=("ar",), min_length=1)
    """languages to translate through, a pair for each; by default ar"""
    samples: int = Field(default=1, ge=1)
    """Of each pivot, where translation.sample is set."""


class TranslationSettings(WriterSettings):
    """translation in conf/pairs.yaml."""

    FREE: ClassVar = frozenset({"batch_tokens", "device", "threads"})

    beams: int = Field(default=4, ge=1)
    sample: bool = False
    """Draw from the nucleus, in place of a search with beams."""
    temperature: float = Field(default=1.0, gt=0)
    top_p: float = Field(default=0.9, gt=0, le=1)
    max_tokens: int = Field(default=200, ge=1)
    max_ratio: float = Field(default=3.0, gt=0)
    """Tokens of a translation are at most so many times those of its source, and 20."""
    prefix: str = ""
    languages: dict[str, str] = Field(default_factory=dict)
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    batch_tokens: int | None = Field(default=None, ge=1)
    device: str = "auto"
    threads: int = Field(default=1, ge=1)


class SimplifySettings(WriterSettings):
    """simplify in conf/pairs.yaml."""

    simplifier: Uri | None = None
    """the model that simplifies English sentences"""
    through: str = "en"
    prefix: str = ""
    min_level_fall: float = 0.1
    max_perplexity: float = Field(default=200, gt=0)
    similarity: str = "spscore-meaning"
    min_similarity: float = 0.5

"""Settings of what a job reads: its inputs and the format of their files."""

from __future__ import annotations

import codecs
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage.settings import Strict
from gaixie.udfs.storage.tables import Form

ONE_OF_ORIGINS = f"expected one of {', '.join(ORIGINS)}"


def _known_origin(name: str) -> str:
    if name not in ORIGINS:
        raise ValueError(f"unknown, {ONE_OF_ORIGINS}")
    return name


Origin = Annotated[str, AfterValidator(_known_origin)]

Uri = Annotated[str, AfterValidator(lambda uri: re.sub("^s3://", "s3a://", uri))]
"""A local path or any URI that Hadoop knows; s3:// means s3a://."""


def _known_encoding(name: str) -> str:
    try:
        known = codecs.lookup(name).name
        "".encode(name)  # refuses base64 and its like
    except LookupError:
        raise ValueError("unknown encoding, expected one such as utf-8, gb18030 or big5") from None
    return "utf-8" if known == "utf-8-sig" else known  # a byte order mark is never part of the text


class Csv(Strict):
    """How CSV and TSV files are written; the encoding also applies to JSON lines."""

    quote: str | None = Field(default=None, max_length=1)
    """quote character: by default " in CSV and none in TSV; empty means none"""
    delimiter: str | None = Field(default=None, min_length=1, max_length=1)
    """field delimiter: in CSV by default what its header has most of, in TSV a tab"""
    encoding: Annotated[str, AfterValidator(_known_encoding)] = "utf-8"
    """encoding of text files, such as gb18030; by default utf-8, or utf-16 if its mark says so"""
    columns: tuple[str, ...] | None = Field(default=None, min_length=1)
    """column names of files without a header"""

    def form(self, kind: str) -> Form:
        """Returns how files of a kind are written, for gaixie.udfs.storage.tables."""
        return Form(kind, self.encoding, self.delimiter, self.quote, self.columns)


LICENSE = "license"
"""Column that stores the licence of an input."""


class Input(Strict):
    """Pairs to read, and where they come from."""

    path: Uri
    origin: Origin | None = None
    """parallel | back_translation | llm | human"""
    origin_column: str | None = None
    """column that holds each row's origin; by default origin, if no origin is given"""
    format: Literal["parquet", "jsonl", "csv", "tsv", "xlsx"] | None = None
    """by default from the file's name"""
    source_column: str = "source"
    """by default source"""
    paraphrase_column: str = "paraphrase"
    """by default paraphrase"""
    license: str | None = Field(default=None, min_length=1)
    """licence of these pairs, for the card of a release"""
    csv: Csv = Field(default_factory=Csv)

    @property
    def text_columns(self) -> list[str]:
        """Returns the columns that must exist and hold text."""
        return [*filter(None, (self.source_column, self.paraphrase_column, self.origin_column))]

    @property
    def plain_columns(self) -> list[str]:
        """Returns those of text_columns that do not hold lists."""
        return [name for name in self.text_columns if name != self.list_column]

    @property
    def carried(self) -> dict[str, str] | None:
        """Maps further columns to carry through to their new names; None carries all."""
        return None

    @property
    def list_column(self) -> str | None:
        """Returns the text column that may also hold lists of texts."""
        return None

    @model_validator(mode="after")
    def _one_origin(self) -> Input:
        if self.origin is not None and self.origin_column is not None:
            raise ValueError("an input needs either an origin or an origin_column")
        if self.origin is None and self.origin_column is None:
            self.origin_column = "origin"
        return self

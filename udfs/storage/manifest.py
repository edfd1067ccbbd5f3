"""The manifests of runs and releases: what jobs write last, and what every reader begins with.

A run is ROOT/runs/RUN_ID, a release ROOT/releases/VERSION; neither exists for readers without its
manifest.json; neither do pairs that jobs/build_pairs.py makes. docs/*-manifest.schema.json state
the same for other languages; `python -m gaixie.udfs.storage.manifest docs` writes them.

A manifest states the version of its format, and one that states none has version 1. Keys that a
version does not know are passed over, so a key may be added within a version; a new version comes
with every other change.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gaixie.udfs.storage import storage
from gaixie.udfs.storage.names import Below, RunId
from gaixie.udfs.storage.names import check_run_id as check_run_id

FORMAT_VERSION = 1
"""The newest format of both manifests: what is written, and the last one that can be read."""

NAME = "manifest.json"


class ManifestError(ValueError):
    """A manifest that cannot be read: one line that names the file."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class InputFile(_Part):
    """A file as it was when a run read it."""

    path: str
    """As Spark names it, with its scheme."""
    bytes: int
    modified: str
    """ISO 8601 in UTC, to the millisecond."""


class RunInput(_Part):
    """One input of a run."""

    path: str
    format: str
    files: int
    """That were read."""
    bytes: int
    corrupt_files: dict[str, str]
    """Files that were set aside, and what is wrong with each."""
    corrupt_rows: dict[str, int] = {}
    """Rows of those of them whose footer could be read."""
    listing: list[InputFile] = []
    """The files that were read; none of an earlier Gaixie."""


class RunRows(_Part):
    """Rows of one origin; read is the sum of the others."""

    read: int
    scored: int
    quarantined: int
    duplicates: int


class RunFile(_Part):
    path: Below
    """Below the run's folder."""
    bytes: int
    sha256: str | None = None
    """Null where an earlier Gaixie wrote the run, or on a file system that Spark alone knows."""


class Index(_Part):
    """A population stability index, and what it is a shift above."""

    psi: float
    limit: float


class Drift(_Part):
    """How a run differs from an earlier one; see gaixie.jobs.scoring.drift."""

    against: RunId
    indices: dict[str, dict[str, Index]]
    """By origin, and output, "stages" or "quarantine"."""

    @property
    def shifted(self) -> list[str]:
        """What has shifted: llm meaning 0.41."""
        return [
            f"{origin} {name} {index.psi:.2f}"
            for origin, indices in self.indices.items()
            for name, index in indices.items()
            if index.psi > index.limit
        ]


class _Manifest(_Part):
    format_version: int = Field(default=1, ge=1, strict=True)

    def to_json(self) -> str:
        """The file's text, in the format of today."""
        return storage.to_json(self.model_dump(by_alias=True) | {"format_version": FORMAT_VERSION})


class RunManifest(_Manifest):
    """What jobs/score_corpus.py publishes of a run."""

    run_id: RunId
    created: str
    """Time of publication, ISO 8601 in UTC."""
    gaixie: str
    spark: str
    signature: str
    """Of the metric: scores compare only under one signature."""
    settings: dict[str, Any]
    """As conf/score.yaml has them, after the command line."""
    limit: int | None
    """Rows that were read at most."""
    inputs: list[RunInput]
    rows: dict[str, RunRows]
    """By origin."""
    known_pairs: dict[str, int] = {}
    """Of the duplicates, rows whose pair an earlier run has, by origin: of --new-only."""
    earlier_runs: list[str] = []
    """Those whose files and pairs --new-only left out."""
    rescored: list[RunId] = []
    """Those whose pairs --rescore scored again, and those whose pairs these had scored again."""
    stages: dict[str, dict[int, int]]
    """Scored rows by origin and stage."""
    quarantine: dict[str, dict[str, int]]
    """Quarantined rows by origin and reason."""
    thresholds: dict[str, list[float | None]] = Field(alias="cuts")
    """Scores at which stages 1, 2 and 3 begin, by origin; null where a quantile had no pairs."""
    min_meaning: dict[str, float] = {}
    """Least judged meaning in stages 2 and 3, by origin."""
    quantiles: dict[str, dict[float, float]]
    """Score by origin and share of the pairs below it."""
    histograms: dict[str, dict[str, list[int]]] = {}
    """Scored pairs by origin, output and bin, of equal width from 0 to 1."""
    drift: Drift | None = None
    """Against the run of --fail-on-drift."""
    seconds: dict[str, float]
    """Wall time by step, in order."""
    files: dict[Literal["scored", "quarantine"], list[RunFile]]

    @property
    def total(self) -> RunRows:
        """Rows of all origins."""
        names = RunRows.model_fields
        return RunRows(
            **{name: sum(getattr(rows, name) for rows in self.rows.values()) for name in names}
        )

    @property
    def set_aside(self) -> str:
        """What was set aside, in words; empty where nothing was."""
        files = sum(source.files for source in self.inputs)
        corrupt = sum(len(source.corrupt_files) for source in self.inputs)
        known = [rows for source in self.inputs for rows in source.corrupt_rows.values()]
        if not corrupt:
            return ""
        rows = f"about {sum(known):,} rows" if known else "an unknown number of rows"
        unknown = corrupt - len(known)
        rest = (
            f" and those of {unknown} files without a readable footer" if known and unknown else ""
        )
        return f"{corrupt} of {files + corrupt} input files with {rows}{rest}"

    @property
    def segmenter(self) -> str:
        return self.settings["segmenter"]


class PairsManifest(_Manifest):
    """What jobs/build_pairs.py writes beside the pairs."""

    method: str
    created: str
    """Time of publication, ISO 8601 in UTC."""
    gaixie: str
    spark: str
    settings: dict[str, Any]
    """As conf/pairs.yaml has them, after the command line."""
    limit: int | None
    """Rows that were read at most."""
    inputs: list[RunInput]
    rows: int
    """Rows that were read."""
    read: int
    """What the method counts: sentences or rows; the sum of used and of all in quarantine."""
    used: int
    """Of these, how many are in a pair."""
    quarantine: dict[str, int]
    """Of these, how many are in none, by reason."""
    dropped: dict[str, int] = {}
    """Candidates that became no pair, by reason, of sentences that are in another or counted
    already."""
    figures: dict[str, Any] = {}
    """What the method says of its work, such as requests and tokens."""
    groups: int
    """That have a pair."""
    pairs: int
    seconds: float
    files: dict[Literal["pairs", "quarantine", "clusters", "references"], list[RunFile]]


class ReleaseSettings(_Part):
    """What decides the rows of a release and their files."""

    stages: list[int]
    split: dict[str, int | float]
    """Share of the sources by split."""
    seed: int
    shards_mb: int | float
    shards: int | None
    keep_columns: list[str]


class SourceRunEntry(_Part):
    """A run that pairs were taken from."""

    run_id: RunId
    created: str
    manifest_sha256: str
    rows: int
    """Of the released stages, duplicates included."""


class ReleaseRows(_Part):
    """Rows of one origin: in_runs = duplicates + released."""

    in_runs: int
    duplicates: int
    released: int


class ReleaseLineage(_Part):
    """Pairs of a release that came about alike; null is what their input did not say."""

    run_id: str
    origin: str
    method: str | None
    model: str | None
    license: str | None
    pairs: dict[int, int]
    """By stage."""


class ReleaseFile(_Part):
    path: Below
    """Below the build folder."""
    bytes: int
    sha256: str


class DataFile(ReleaseFile):
    """A Parquet file."""

    rows: int


class ReleaseManifest(_Manifest):
    """What jobs/release_dataset.py publishes of a release."""

    version: Below
    name: str
    title: str
    license: str
    created: str
    """Time of publication, ISO 8601 in UTC."""
    gaixie: str
    spark: str
    signature: str
    build: Below
    """Folder of this release's files, beside the manifest."""
    moves_latest: bool
    """Whether latest.json may name this release."""
    settings: ReleaseSettings
    runs: list[SourceRunEntry]
    columns: dict[str, str]
    """Spark's types by column."""
    rows: dict[str, ReleaseRows]
    """By origin."""
    counts: dict[str, dict[int, dict[str, int]]]
    """Pairs by split, stage and origin."""
    quantiles: dict[str, dict[float, float]]
    """Score by origin and share of the pairs below it."""
    judgements: dict[int, dict[str, float]] = {}
    """Means by stage."""
    lineage: list[ReleaseLineage] = []
    """Pairs by run, origin, method, model and licence; none of an earlier Gaixie."""
    seconds: dict[str, float]
    files: list[Annotated[DataFile | ReleaseFile, Field(union_mode="left_to_right")]]

    @property
    def data_files(self) -> list[DataFile]:
        return [file for file in self.files if isinstance(file, DataFile)]

    @property
    def pairs(self) -> int:
        return sum(rows.released for rows in self.rows.values())

    def pairs_of(
        self, split: str | None = None, stage: int | None = None, origin: str | None = None
    ) -> int:
        """Pairs of a split, a stage and an origin; None takes all of them."""
        return sum(
            pairs
            for one, stages in self.counts.items()
            for two, origins in stages.items()
            for three, pairs in origins.items()
            if split in (None, one) and stage in (None, two) and origin in (None, three)
        )


M = TypeVar("M", RunManifest, ReleaseManifest)


def read_run(folder: str, files: Any = storage, name: str = NAME) -> RunManifest:
    """The manifest of a run's folder.

    files: what has read_json, such as a Storage of gaixie.jobs.corpus.storage. Raises
    FileNotFoundError where the run is not published, other OSErrors of gaixie.udfs.storage.storage,
    and ManifestError.
    """
    return _validated(*_read(folder, "run", files, name), RunManifest)


def read_release(folder: str) -> ReleaseManifest:
    """The manifest of a release's folder; raises as read_run does."""
    return _validated(*_read(folder, "release"), ReleaseManifest)


def read_manifest(folder: str) -> RunManifest | ReleaseManifest:
    """The manifest of a run's or a release's folder; raises as read_run does."""
    uri, values = _read(folder, "run or release")
    if isinstance(values, dict) and "version" in values:
        return _validated(uri, values, ReleaseManifest)
    return _validated(uri, values, RunManifest)


def _read(folder: str, kind: str, files: Any = storage, name: str = NAME) -> tuple[str, Any]:
    uri = storage.join(folder, name)
    try:
        return uri, files.read_json(uri)
    except FileNotFoundError:
        raise FileNotFoundError(f"{uri}: no such file: the {kind} is not published") from None


def _validated(uri: str, values: Any, model: type[M]) -> M:
    stated = values.get("format_version", 1) if isinstance(values, dict) else 1
    if isinstance(stated, int) and stated > FORMAT_VERSION:
        raise ManifestError(
            f"{uri}: a manifest of format_version {stated}, this Gaixie reads up to "
            f"{FORMAT_VERSION}; a newer Gaixie reads it"
        )
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        fault = f"no '{key}' in it" if first["type"] == "missing" else f"{key}: {first['msg']}"
        raise ManifestError(f"{uri}: not of a run or release: {fault}") from None


# The schemas

SCHEMAS: dict[str, type[BaseModel]] = {
    "run-manifest.schema.json": RunManifest,
    "pairs-manifest.schema.json": PairsManifest,
    "release-manifest.schema.json": ReleaseManifest,
}


def schema_of(model: type[BaseModel]) -> str:
    """JSON Schema (draft 2020-12) of a manifest."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return storage.to_json(schema | model.model_json_schema())


if __name__ == "__main__":
    for file, manifest in SCHEMAS.items():
        Path(sys.argv[1], file).write_text(schema_of(manifest), encoding="utf-8")

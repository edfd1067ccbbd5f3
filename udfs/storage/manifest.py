"""Defines the manifests of runs, pairs and releases: jobs write them last, readers read them first.

A run is ROOT/runs/RUN_ID, a release ROOT/releases/VERSION. Neither exists for readers without its
manifest.json, and neither do the pairs of jobs/build_pairs.py. `RunManifest.model_json_schema()`
and its like give the JSON Schema.

A manifest states the version of its format; without one, it has version 1. Readers ignore unknown
keys, so a key may be added within a version. Any other change needs a new version.
"""

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from gaixie.udfs.storage import storage
from gaixie.udfs.storage.settings import first_fault

FORMAT_VERSION = 2
"""The format that is written, and the newest that can be read."""

MANIFEST = "manifest.json"


class ManifestError(ValueError):
    """Raised for a manifest that cannot be read, with one line that names the file."""


# Names that are joined to folders: none may lead out of its folder.

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def check_run_id(run_id: str) -> str:
    """Returns the id. Raises ValueError if it could name anything but a folder below runs/."""
    if not RUN_ID.fullmatch(run_id):
        raise ValueError(f"{run_id}: expected letters, digits and . _ -, first a letter or digit")
    return run_id


def check_below(path: str) -> str:
    """Returns the path. Raises ValueError if it could lead out of the folder it is joined to."""
    if not path or {"", ".", ".."} & {*path.split("/")} or ":" in path.split("/")[0]:
        raise ValueError(f"{path!r}: expected a path below the folder")
    return path


RunId = Annotated[str, AfterValidator(check_run_id)]
Below = Annotated[str, AfterValidator(check_below)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class InputFile(_Part):
    """A file as it was when a run read it."""

    path: str
    """URI of the file as Spark names it, with its scheme."""
    bytes: int
    modified: str
    """Time of the last change, ISO 8601 in UTC, to the millisecond."""


class RunInput(_Part):
    """One input of a run."""

    path: str
    format: str
    files: int
    """Number of files that were read."""
    bytes: int
    left_out: list[str] = []
    """Files below the path that were not read: of another format, empty, or not data by name."""
    listing: list[InputFile] = []
    """The files that were read; empty in runs of an earlier Gaixie."""


class RunRows(_Part):
    """Rows of one origin; read is the sum of the others."""

    read: int
    scored: int
    quarantined: int
    duplicates: int


class RunFile(_Part):
    path: Below
    """Path below the run's folder."""
    bytes: int
    sha256: str | None = None
    """Null if an earlier Gaixie wrote the run, or the file system is one that only Spark reads."""


class _Manifest(_Part):
    format_version: int = Field(default=1, ge=1, strict=True)

    def to_json(self) -> str:
        """Returns the file's text in the current format."""
        return storage.to_json(self.model_dump(by_alias=True) | {"format_version": FORMAT_VERSION})


class RunManifest(_Manifest):
    """The manifest of a run, published by jobs/score_corpus.py."""

    run_id: RunId
    created: str
    """Time of publication, ISO 8601 in UTC."""
    gaixie: str
    spark: str
    signature: str
    """Signature of the metric; only scores with the same signature are comparable."""
    settings: dict[str, Any]
    """The settings of conf/score.yaml, after the command line."""
    limit: int | None
    """Maximum number of rows to read (--limit)."""
    inputs: list[RunInput]
    rows: dict[str, RunRows]
    """Rows by origin."""
    earlier_runs: list[str] = []
    """Runs whose files --new-only left out."""
    stages: dict[str, dict[int, int]]
    """Scored rows by origin and stage."""
    quarantine: dict[str, dict[str, int]]
    """Quarantined rows by origin and reason."""
    cuts: dict[str, list[float | None]]
    """Scores at which stages 1, 2 and 3 begin, by origin; null if a quantile had no pairs."""
    min_meaning: dict[str, float] = {}
    """Minimum judged meaning in stages 2 and 3, by origin."""
    quantiles: dict[str, dict[float, float]]
    """Score by origin, and by the share of its pairs below that score."""
    histograms: dict[str, dict[str, list[int]]] = {}
    """Scored pairs by origin, output and bin; bins have equal width from 0 to 1."""
    seconds: dict[str, float]
    """Wall time by step, in order."""
    files: dict[Literal["scored", "quarantine"], list[RunFile]]

    @property
    def total(self) -> RunRows:
        """Rows of all origins."""
        rows = [one.model_dump() for one in self.rows.values()]
        return RunRows(**{name: sum(one[name] for one in rows) for name in RunRows.model_fields})

    @property
    def segmenter(self) -> str:
        return self.settings["segmenter"]


class PairsManifest(_Manifest):
    """The manifest of pairs, written by jobs/build_pairs.py."""

    method: str
    created: str
    """Time of publication, ISO 8601 in UTC."""
    gaixie: str
    spark: str
    settings: dict[str, Any]
    """The settings of conf/pairs.yaml, after the command line."""
    limit: int | None
    """Maximum number of rows to read (--limit)."""
    inputs: list[RunInput]
    rows: int
    """Rows that were read."""
    read: int
    """Sentences or rows, as the method counts; the sum of used and quarantine."""
    used: int
    """How many of these are in a pair."""
    quarantine: dict[str, int]
    """How many of these are in no pair, by reason."""
    dropped: dict[str, int] = {}
    """Candidates without a pair, by reason, whose sentence is in another pair or already
    counted."""
    figures: dict[str, Any] = {}
    """The method's figures about its work, such as requests and tokens."""
    groups: int
    """Groups with a pair."""
    pairs: int
    seconds: float
    files: dict[Literal["pairs", "quarantine", "clusters"], list[RunFile]]


class ReleaseSettings(_Part):
    """The settings that decide the rows of a release and their files."""

    stages: list[int]
    split: dict[str, int | float]
    """Share of the sources by split."""
    seed: int
    shards_mb: int | float
    keep_columns: list[str]


class SourceRunEntry(_Part):
    """A run that pairs were taken from."""

    run_id: RunId
    created: str
    manifest_sha256: str
    rows: int
    """Rows in the released stages, duplicates included."""
    cuts: dict[str, list[float | None]] = {}
    """Scores at which its stages begin, by origin; empty in releases of an earlier Gaixie."""


class ReleaseRows(_Part):
    """Rows of one origin: in_runs = duplicates + released."""

    in_runs: int
    duplicates: int
    released: int


class ReleaseFile(_Part):
    path: Below
    """Path below the build folder."""
    bytes: int
    sha256: str


class DataFile(ReleaseFile):
    """A Parquet file."""

    rows: int


class ReleaseManifest(_Manifest):
    """The manifest of a release, published by jobs/release_dataset.py."""

    version: Below
    name: str
    title: str
    license: str
    license_note: str = ""
    """Why pairs may be released whose inputs declare another licence."""
    input_licenses: list[str] = []
    """Licences that the pairs' inputs declare."""
    created: str
    """Time of publication, ISO 8601 in UTC."""
    gaixie: str
    spark: str
    signature: str
    build: Below
    """Folder of this release's files, beside the manifest."""
    settings: ReleaseSettings
    runs: list[SourceRunEntry]
    columns: dict[str, str]
    """Maps columns to Spark's types."""
    rows: dict[str, ReleaseRows]
    """Rows by origin."""
    counts: dict[str, dict[int, dict[str, int]]]
    """Pairs by split, stage and origin."""
    quantiles: dict[str, dict[float, float]]
    """Score by origin and share of the pairs below it."""
    judgements: dict[int, dict[str, float]] = {}
    """Mean judgements by stage."""
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
        """Returns the pairs of a split, a stage and an origin; None includes all."""
        return sum(
            pairs
            for one, stages in self.counts.items()
            for two, origins in stages.items()
            for three, pairs in origins.items()
            if split in (None, one) and stage in (None, two) and origin in (None, three)
        )


M = TypeVar("M", bound=_Manifest)


def read_run(folder: str, name: str = MANIFEST) -> RunManifest:
    """Returns the manifest in a run's folder.

    Raises FileNotFoundError if the run is not published, other OSErrors of
    gaixie.udfs.storage.storage, and ManifestError.
    """
    uri = storage.join(folder, name)
    return _validated(uri, _values(uri), RunManifest)


def read_release(folder: str) -> ReleaseManifest:
    """Returns the manifest in a release's folder; raises as read_run does."""
    uri = storage.join(folder, MANIFEST)
    return _validated(uri, _values(uri), ReleaseManifest)


def read_manifest(folder: str) -> RunManifest | ReleaseManifest:
    """Returns the manifest in a run's or a release's folder; raises as read_run does."""
    uri = storage.join(folder, MANIFEST)
    values = _values(uri)
    if isinstance(values, dict) and "version" in values:
        return _validated(uri, values, ReleaseManifest)
    return _validated(uri, values, RunManifest)


def _values(uri: str) -> Any:
    try:
        return storage.read_json(uri)
    except FileNotFoundError:
        raise FileNotFoundError(f"{uri}: no such file: it is not published") from None


def _validated(uri: str, values: Any, model: type[M]) -> M:
    stated = values.get("format_version", 1) if isinstance(values, dict) else 1
    if isinstance(stated, int) and stated > FORMAT_VERSION:
        fault = f"this Gaixie reads up to {FORMAT_VERSION}; use a newer Gaixie"
        raise ManifestError(f"{uri}: its format_version is {stated}, but {fault}")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        fault = f"not the manifest of a run or release: {first_fault(error, 'all of it')}"
        raise ManifestError(f"{uri}: {fault}") from None

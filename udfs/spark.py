"""SPScore-zh as Spark functions.

Pandas UDFs over string columns, and an expression, for any Spark user:

    from gaixie.udfs.spark import features, judgements, spscore, stage
    df.select(spscore("source", "paraphrase"))             # float in [0, 1]
    df.select(judgements("source", "paraphrase").alias("j")).select("j.meaning", "j.reason")
    df.select(features("source", "paraphrase").alias("f")).select("f.acs", "f.spa")
    df.select(stage("spscore", "origin", "meaning"))       # 0, 1, 2 or 3
    df.select(metric("rouge-l-free")("source", "paraphrase"))   # any of gaixie.udfs.metrics

    from gaixie.udfs.spark import register
    register(spark)                                        # the UDFs in SQL
    spark.sql("SELECT spscore(source, paraphrase) FROM pairs")

All of these also work under Spark Connect if the server's Python has gaixie.

The scoring job runs :func:`score_columns`. This one Arrow UDF returns the quarantine reason, the
pair id, the features, the judgements and the score, so each sentence crosses to Python once.

Each worker process loads the model, the segmenter's dictionary and the compiled kernels once. The
vector tables and the language model are memory-mapped from the installed package, so the workers
of a machine share them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce, wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StringType, StructField, StructType
from pyspark.sql.utils import is_remote

from gaixie.udfs.defaults import MAX_CHARACTERS, MIN_CHARACTERS
from gaixie.udfs.features import FEATURES, extract
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.spscore.stages import RATED_CUTS, RATED_MIN_MEANING, SCORE_BINS
from gaixie.udfs.text.pair_id import pair_ids
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter
from gaixie.udfs.text.validate import REASONS

if TYPE_CHECKING:
    from gaixie.udfs.metrics import Metric

FEATURE_FIELDS = [StructField(name, FloatType()) for name in FEATURES]
OUTPUT_FIELDS = [StructField(name, FloatType()) for name in OUTPUTS]
JUDGED_FIELDS = StructType([*OUTPUT_FIELDS, StructField("reason", StringType())])


def use_this_python() -> None:
    """Makes the workers of a local session run this Python, unless PYSPARK_PYTHON names one.

    By default they run the python3 of PATH, which lacks gaixie if no environment is activated. Data
    frames that the session made from rows before this call keep the old Python.
    """
    context = SparkContext._active_spark_context
    if not context or "PYSPARK_PYTHON" in os.environ:
        return
    if str(context.master).startswith("local"):
        context.pythonExec = sys.executable


def _in_this_python(kind: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps pandas_udf and its like, so that the workers run a Python that has gaixie."""

    def decorate(returned: Any, **options: Any) -> Callable[[Any], Callable[..., Column]]:
        def make(function: Any) -> Callable[..., Column]:
            @cache
            def made(remote: bool) -> Callable[..., Column]:
                return kind(returned, **options)(function)  # Spark Connect has its own kind

            @wraps(made(is_remote()))  # with the attributes that spark.udf.register reads
            def call(*columns: Any) -> Column:
                use_this_python()
                return made(is_remote())(*columns)

            return call

        return make

    return decorate


arrow_udf = _in_this_python(F.arrow_udf)
pandas_udf = _in_this_python(F.pandas_udf)
udf = _in_this_python(F.udf)
use_this_python()


@cache
def worker_segmenter(spec: str) -> Segmenter:
    """Loads a segmenter once in each worker process."""
    return load_segmenter(spec)


_default_model = cache(SPScore.load)


@pandas_udf(StructType(FEATURE_FIELDS))
def features(source: pd.Series, paraphrase: pd.Series) -> pd.DataFrame:
    """Returns the eight features of each pair as a struct of floats, null for missing."""
    values = extract(_strings(source), _strings(paraphrase), worker_segmenter("jieba"))
    return pd.DataFrame(values, columns=list(FEATURES))


def judgements_udf(
    model: SPScore | None = None,
    segmenter: str = "jieba",
    min_characters: int = MIN_CHARACTERS,
    max_characters: int = MAX_CHARACTERS,
) -> Callable[..., Column]:
    """Returns a pandas UDF (source, paraphrase) -> struct of JUDGED_FIELDS, as the job scores.

    model: by default the one that ships. A pair that the job would quarantine has a reason, one of
    gaixie.udfs.text.validate.REASONS, and no judgements.
    """

    @pandas_udf(JUDGED_FIELDS)
    def judge(source: pd.Series, paraphrase: pd.Series) -> pd.DataFrame:
        return _judge(source, paraphrase, model, segmenter, (min_characters, max_characters))

    return judge


judgements = judgements_udf()
"""UDF (source, paraphrase) -> judgements and reason, with the default model and segmenter."""


@pandas_udf(FloatType())
def spscore(source: pd.Series, paraphrase: pd.Series) -> pd.Series:
    """Scores each pair with the defaults of judgements_udf; null for a pair that is not fit."""
    return _judge(source, paraphrase, None, "jieba", (MIN_CHARACTERS, MAX_CHARACTERS))["spscore"]


def _judge(
    source: pd.Series,
    paraphrase: pd.Series,
    model: SPScore | None,
    segmenter: str,
    limits: tuple[int, int],
) -> pd.DataFrame:
    """Returns a row of JUDGED_FIELDS for each pair. limits: minimum and maximum of characters."""
    model, cut = model or _default_model(), worker_segmenter(segmenter)
    codes, fit, values = model.validated(_strings(source), _strings(paraphrase), cut, *limits)
    outputs = np.full((len(codes), len(OUTPUTS)), np.nan, np.float32)
    outputs[fit] = model.predict(values)
    judged = pd.DataFrame(outputs, columns=list(OUTPUTS))
    return judged.assign(reason=np.array([None, *REASONS], object)[codes])


def stage(
    score: Column | str,
    origin: Column | str,
    meaning: Column | str | None = None,
    cuts: Mapping[str, Sequence[float]] = RATED_CUTS,
    min_meaning: Mapping[str, float] = RATED_MIN_MEANING,
) -> Column:
    """Returns gaixie.udfs.spscore.stages.stage as an expression: an integer.

    cuts, min_meaning: by origin; any other origin gets null. By default they are those for ratings,
    the same for any table; a run of the scoring job has cut points of its own. min_meaning has no
    effect without meaning.
    """
    score, origin, found = _column(score), _column(origin), F.lit(None).cast("int")
    for name, points in cuts.items():
        reached = [(score >= F.lit(point).cast("float")).cast("int") for point in points]
        found = F.when(origin == name, reduce(Column.__add__, reached)).otherwise(found)
    if meaning is None:
        return found
    held = held_back(origin, meaning, min_meaning)
    return F.when(held, F.least(found, F.lit(1))).otherwise(found)


def held_back(
    origin: Column | str, meaning: Column | str, min_meaning: Mapping[str, float]
) -> Column:
    """Tells whether a low meaning keeps a pair out of stages 2 and 3. min_meaning: by origin."""
    held = F.lit(False)
    for name, least in min_meaning.items():
        low = _column(meaning) < F.lit(least).cast("float")
        held = F.when(_column(origin) == name, low).otherwise(held)
    return held


def _column(given: Column | str) -> Column:
    return F.col(given) if isinstance(given, str) else given


def score_bin_column() -> Column:
    """Returns the bin of the column spscore: its product with SCORE_BINS, rounded."""
    return F.floor(F.col("spscore").cast("double") * SCORE_BINS + 0.5).cast("int")


def metric(spec: str, **defaults: str) -> Callable[..., Column]:
    """Returns a pandas UDF (source, paraphrase, *references) -> score of a metric.

    The score is null if the metric gives none. spec, defaults: as for
    gaixie.udfs.metrics.load_metric, whose ValueError this call raises. The executors read the model
    files.
    """
    _worker_metric(spec, **defaults)

    @pandas_udf(DoubleType())
    def score(*columns: pd.Series) -> pd.Series:
        from gaixie.udfs.metrics import Pairs

        metric = _worker_metric(spec, **defaults)
        return pd.Series(metric.sentence_scores(Pairs.of(*map(_strings, columns))))

    return score


@cache
def _worker_metric(spec: str, **defaults: str) -> Metric:
    from gaixie.udfs.metrics import load_metric  # not needed to score SPScore-zh

    return load_metric(spec, **defaults)


@udf(StringType(), useArrow=False)
def escape_bytes(data: bytes | None) -> str | None:
    """Decodes bytes as text; undecodable bytes become \\xNN, so that nothing is lost."""
    return None if data is None else bytes(data).decode("utf-8", "backslashreplace")


def _strings(column: pd.Series) -> pa.Array:
    return pa.array(column, pa.string(), from_pandas=True)


IDENTITY = [StructField(name, StringType()) for name in ("reason", "pair_id")]
SCORED_FIELDS = StructType([*IDENTITY, *FEATURE_FIELDS, *OUTPUT_FIELDS])
"""The columns that score_columns adds. A scored pair has a null reason; in a quarantined pair all
other columns are null."""


def score_columns(
    model: SPScore, segmenter: str, min_characters: int, max_characters: int
) -> Callable[..., Column]:
    """Returns an Arrow UDF (source, paraphrase, origin) -> struct of SCORED_FIELDS, which
    validates, identifies and scores pairs."""

    @arrow_udf(SCORED_FIELDS)
    def score(source: pa.Array, paraphrase: pa.Array, origin: pa.Array) -> pa.Array:
        limits = worker_segmenter(segmenter), min_characters, max_characters
        codes, fit, values = model.validated(source, paraphrase, *limits)
        if not fit.all():
            kept = pa.array(fit)
            source, paraphrase, origin = (c.filter(kept) for c in (source, paraphrase, origin))
        columns = [pair_ids(source, paraphrase, origin)]
        columns += [pa.array(column) for column in values[:, : len(FEATURES)].T]
        columns += [pa.array(column) for column in model.predict(values).T]
        if not fit.all():
            places = pa.array(np.cumsum(fit) - 1, mask=~fit)  # null for pairs that are not fit
            columns = [column.take(places) for column in columns]
        reasons = pa.array(REASONS).take(pa.array(codes.astype(np.int32) - 1, mask=fit))
        return pa.StructArray.from_arrays([reasons, *columns], names=SCORED_FIELDS.names)

    return score


def register(spark: SparkSession) -> None:
    """Registers ``features``, ``judgements`` and ``spscore`` for SQL in this session.

    From then on the workers of a local session run this Python, unless PYSPARK_PYTHON names one.
    """
    use_this_python()
    functions = {"features": features, "judgements": judgements, "spscore": spscore}
    for name, function in functions.items():
        spark.udf.register(name, function)

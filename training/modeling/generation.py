"""A model of a folder that writes paraphrases, its progress, and what became of the sentences.

On Spark, where all that a pandas UDF needs is a function that takes lists:

    @pandas_udf("string")
    def paraphrase(source: pd.Series) -> pd.Series:
        return pd.Series(paraphrase_list("/models/gaixie", source.tolist()))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

from gaixie.training.modeling.exported import ExportedGenerator, is_exported, load_exported
from gaixie.training.modeling.generator import LENGTH_STEP, Decoding, Generator
from gaixie.training.modeling.vocabulary import DEGREES, VOCABULARY_FILE
from gaixie.udfs.metrics.encoder import (
    PRECISIONS,
    VOCABULARIES,
    choose_device,
    load_network,
    loading,
)


def add_decoding(add: Callable[..., Any]) -> None:
    """The options of decoding that scripts share. add: a parser's add_argument."""
    add("--beams", type=int, default=4, metavar="N", help="of the search (%(default)s)")
    drawn = "candidates drawn beside the search (%(default)s)"
    add("--draws", type=int, default=0, metavar="N", help=drawn)
    add("--top-p", type=float, default=0.95, metavar="P", help="nucleus of draws (%(default)s)")
    add("--temperature", type=float, default=1.0, metavar="T", help="of draws (%(default)s)")
    degree = f"of change, 1 to {DEGREES}, from a model that has learned them"
    add("--degree", type=int, choices=range(1, DEGREES + 1), help=degree)
    add(
        "--rank-by",
        choices=["model", "spscore"],
        default="model",
        help="what decides the order of a sentence's candidates: the model's own order, or SPScore-zh, "
        "those that have lost an entity behind the others (%(default)s)",
    )
    floor = (
        "by spscore: judged meaning, 0 to 1, below which a candidate stands behind (%(default)s)"
    )
    add("--min-meaning", type=float, default=0.0, metavar="M", help=floor)
    reverse = "by spscore: weight of log p(sentence | candidate) beside it (%(default)s)"
    add("--reverse", type=float, default=0.0, metavar="W", help=reverse)
    forward = "by spscore: weight of log p(candidate | sentence) beside it (%(default)s)"
    add("--forward", type=float, default=0.0, metavar="W", help=forward)
    tier = "of SPScore-zh that ranks: paper, core, full, or a model's folder (%(default)s)"
    add("--tier", default="core", help=tier)
    most = f"of a paraphrase; without it twice its source's, rounded up to {2 * LENGTH_STEP}s"
    add("--max-new-tokens", type=int, metavar="N", help=most)
    copies = "pass over candidates that equal their source; both normalised"
    add("--drop-copies", action="store_true", help=copies)
    add("--batch-size", type=int, default=32, metavar="N", help="sentences at once (%(default)s)")
    add("--device", default="auto", help="auto: the GPU where there is one; cpu, cuda:1")
    add("--precision", choices=PRECISIONS, default=PRECISIONS[0], help="(%(default)s)")


def paraphrases(
    model: Any,
    tokenizer: Any,
    sources: Sequence[str],
    *,
    num_beams: int = 1,
    max_new_tokens: int | None = None,
    degree: int | None = None,
    batch_size: int = 32,
) -> list[str]:
    """The best paraphrase of each source; "" where the source or what the model writes is empty.

    max_new_tokens: None is relative to the source, see Decoding. The model stays in the mode, training
    or not, that it was in.
    """
    decoding = Decoding(
        num_beams, max_new_tokens=max_new_tokens, degree=degree, batch_size=batch_size
    )
    rows = Generator(model, tokenizer).candidates(sources, decoding, scored=False)
    return [row[0].text if row else "" for row in rows]


def load_generator(folder: str, device: str = "auto", precision: str = "float32") -> Generator:
    """The model of a folder, which is loaded once in a process; the counts start anew.

    device: auto is the GPU where there is one. precision: float32, or bfloat16, in which the weights
    are then held; an exported model has its own. Raises OSError or ValueError, in one line, where there is no such folder, it has no
    sequence-to-sequence model, weights or tokenizer, or the tokenizer has more tokens than the model.
    """
    if is_exported(folder):
        return ExportedGenerator(*load_exported(folder, device))
    return Generator(*_load(folder, device, precision))


@cache
def _load(folder: str, device: str, precision: str) -> tuple[Any, Any]:
    return load_model(folder, device, precision)


def load_model(folder: str, device: str = "cpu", precision: str = "float32") -> tuple[Any, Any]:
    """(model, tokenizer) of a folder, anew; see load_generator."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision {precision!r}: expected {' or '.join(PRECISIONS)}")
    try:
        target = torch.empty(0, device=choose_device(device)).device
    except (RuntimeError, AssertionError):  # the latter: torch without CUDA
        raise ValueError(f"device {device!r}: there is none here") from None
    with loading(folder):
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        if not config.is_encoder_decoder:
            raise ValueError(f"{config.model_type} is no sequence-to-sequence model")
        files = (*VOCABULARIES, VOCABULARY_FILE)
        if Path(folder).is_dir() and not any(any(Path(folder).glob(name)) for name in files):
            raise ValueError("it has no tokenizer")
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        if tokenizer.pad_token_id is None:
            raise ValueError("its tokenizer has no padding token")
        model = load_network(AutoModelForSeq2SeqLM, folder, config)
        tokens = model.get_input_embeddings().num_embeddings
        if len(tokenizer) > tokens:
            raise ValueError(
                f"its tokenizer has {len(tokenizer):,} tokens, but the model only {tokens:,}: the "
                "two were not made for each other"
            )
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    return model.to(target, dtype), tokenizer


def paraphrase_list(
    folder: str, sources: Sequence[str | None], decoding: Decoding | None = None
) -> list[str | None]:
    """The best paraphrase of each source by the model of a folder; null where there is none."""
    rows = load_generator(folder).candidates(sources, decoding or Decoding(), scored=False)
    return [row[0].text if row else None for row in rows]


def in_words(counts: Counter[str]) -> str:
    """What became of the sentences: the first number is the sum of the three behind it."""
    written = counts["sentences"] - counts["no text"] - counts["no candidate"]
    return (
        f"{counts['sentences']:,} sentences: {written:,} paraphrased, {counts['no candidate']:,} left "
        f"without a paraphrase, {counts['no text']:,} without text; {counts['paraphrases']:,} "
        f"paraphrases, {counts['copies']:,} copies dropped, {counts['unknown entities']:,} unknown "
        f"entity indices, {counts['cut']:,} sources cut"
    )

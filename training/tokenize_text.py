"""Makes the tokenizer, shows what it does, tokenises files, and reports on a corpus.

  python training/tokenize_text.py make vocabulary/vocabulary.tsv --output tokenizer/
  python training/tokenize_text.py show tokenizer/ "他2024年3月读完了《三国演义》。"
  python training/tokenize_text.py show tokenizer/ SOURCE --target PARAPHRASE
  python training/tokenize_text.py file tokenizer/ sentences.txt --output tokens.jsonl
  python training/tokenize_text.py report tokenizer/ corpus.parquet --column text
  python training/tokenize_text.py pairs tokenizer/ pairs.parquet --column source --target paraphrase

Text files are lines; .jsonl, .csv and .parquet have a column (--column, by default text). report
compares with a tokenizer of characters, and a BPE of the same size trained on the same text.
Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.vocabulary import BYTES, VOCABULARY_FILE, WORD, kind_of
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.text_tables import read_columns
from gaixie.udfs.text.entities import load_settings
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.places import gazetteer

CONFIG = Path(__file__).parents[1] / "conf/entities.yaml"
BATCH = 1_000
PLACES = "geographical name"
"""The class of place names in a vocabulary."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script; its exit code."""
    args = _arguments(argv)
    return run_command("tokenize_text", partial(args.command, args))


def make(args: argparse.Namespace) -> None:
    """A tokenizer folder from the vocabulary of jobs/build_vocabulary.py; either may be in a store."""
    with local_copy(args.output, args.vocabulary) as (output, vocabulary):
        tokenizer, words = make_tokenizer(args, vocabulary)
        tokenizer.save_pretrained(output)
    print(
        f"{args.output}: {len(tokenizer):,} tokens, {min(len(words), args.words):,} of them words"
    )


def make_tokenizer(
    args: argparse.Namespace, vocabulary: Path
) -> tuple[EntityAlignedTokenizer, list[str]]:
    """(tokenizer, all words of the vocabulary)."""
    words = read_vocabulary(vocabulary)
    characters = {character for word in words for character in word}  # of those left out too
    if args.common_characters:
        characters |= gb2312_level_1()
    settings = args.word_characters, args.indices, characters, locations(args, vocabulary)
    kept, entities = words[: args.words], load_settings(args.entities)
    return EntityAlignedTokenizer.from_words(kept, entities, *settings), words


def locations(args: argparse.Namespace, vocabulary: Path) -> list[str]:
    """The place names of --locations. Raises ValueError or OSError where it is none of its values."""
    if args.locations == "none":
        return []
    if args.locations == "gazetteer":
        return sorted(gazetteer())
    if args.locations == "vocabulary":
        rows = read_columns(str(vocabulary), ["word", "class"])
        return [word for word, name in rows if word and name == PLACES and len(word) > 1]
    return [normalise(word) for (word,) in read_columns(args.locations, ["word"]) if word]


def gb2312_level_1() -> set[str]:
    """The 3,755 most common characters, of the standard GB 2312-80: rows 16 to 55 of 94 cells."""
    rows = range(0xB0, 0xD8)
    cells = range(0xA1, 0xFF)
    codes = (bytes([row, cell]) for row in rows for cell in cells if (row, cell) <= (0xD7, 0xF9))
    return {code.decode("gb2312") for code in codes}


def read_vocabulary(path: Path) -> list[str]:
    """Words of a table with the columns word, class and count, separated by tabs."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    head, *lines = path.read_text("utf-8").split("\n")
    if head.split("\t")[0] != "word":
        raise ValueError(f"{path}: no column 'word' in its first line, expected word, class, count")
    return [line.split("\t")[0] for line in lines if line]


def show(args: argparse.Namespace) -> None:
    """One sentence, or a pair, as coloured tokens, and what the indexed ones stand for."""
    tokenizer = load(args.tokenizer)
    console = Console(highlight=False)
    batch = tokenizer(args.sentence, text_target=args.target)
    for name in ("input_ids", "labels"):
        if name in batch:
            tokens = tokenizer.convert_ids_to_tokens(batch[name][1:-1])
            console.print(
                coloured(tokens) if console.is_terminal else " ".join(tokens), markup=False
            )
    table = Table("token", "stands for", "ids")
    for token, text in json.loads(batch["entities"]).items():
        table.add_row(token, text, str(tokenizer.convert_tokens_to_ids(token)))
    if table.row_count:
        console.print(table)
    back = tokenizer.decode(batch["input_ids"], entities=batch["entities"])
    console.print(f"{len(batch['input_ids'])} ids; decoded: {back}", markup=False)


def coloured(tokens: Sequence[str]) -> Text:
    """Tokens side by side: entities green, bytes red, words and characters in turn grey and plain."""
    text = Text()
    for number, token in enumerate(tokens):
        style = "on grey23" if number % 2 else "on grey35"
        if token in BYTES:
            style = "white on red"
        elif token.startswith("<") and token.endswith(">") and len(token) > 2:
            style = "black on green"
        text.append(token, style)
    return text


def file(args: argparse.Namespace) -> None:
    """A JSON line for each sentence: ids, tokens and entity table."""
    tokenizer = load(args.tokenizer)
    count = 0
    parts = batches(args.text, args.column, args.limit)
    with args.output.open("w", encoding="utf-8") as out:
        for rows, tables in encode(args.tokenizer, parts, args.processes):
            for ids, entities in zip(rows, tables, strict=True):
                row = {"input_ids": ids, "tokens": tokenizer.convert_ids_to_tokens(ids)}
                row["entities"] = json.loads(entities)
                out.write(json.dumps(row, ensure_ascii=True) + "\n")
                count += 1
    print(f"{args.output}: {count:,} sentences")


def report(args: argparse.Namespace) -> None:
    """Statistics over a corpus, beside a tokenizer of characters and a BPE of the same size."""
    tokenizer = load(args.tokenizer)
    parts = batches(args.text, args.column, args.limit)
    texts = [normalise(text) for part in parts for text in part]
    if not texts:
        raise ValueError(f"{args.text}: no sentences")
    ours, sorts, entities = count_tokens(tokenizer, texts, args)
    rows = [("entity-aligned", len(tokenizer), ours, sorts["byte"] / ours)]
    for name, other in others(texts, len(tokenizer)):
        encoded = [row.ids for part in _parts(texts) for row in other.encode_batch(part)]
        unknown = other.token_to_id("<unk>")
        total = sum(map(len, encoded))
        lost = sum(row.count(unknown) for row in encoded)
        rows.append((name, other.get_vocab_size(), total, lost / total))

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 100)
    table = Table("tokenizer", "tokens", "a sentence", "characters a token", "unknown or bytes")
    characters = sum(map(len, texts))
    for name, size, total, lost in rows:
        table.add_row(
            name,
            f"{size:,}",
            f"{total / len(texts):.2f}",
            f"{characters / total:.2f}",
            f"{lost:.3%}",
        )
    console.print(table)
    counted = [tokenizer.count_words(part) for part in _parts(texts)]
    words, kept = (sum(column) for column in zip(*counted, strict=True))
    console.print(
        f"{len(texts):,} sentences, {characters:,} characters; of the entity-aligned tokens"
    )
    for sort in ("word", "character", "byte", "entity"):
        console.print(f"  {sort:<10}{sorts[sort] / ours:>8.2%}")
    console.print(f"words kept: {kept / words:.2%} of {words:,} outside entities")
    table = Table("entity", "number", "a thousand sentences")
    for kind, number in entities.most_common():
        table.add_row(kind, f"{number:,}", f"{1000 * number / len(texts):.1f}")
    console.print(table)


def count_tokens(
    tokenizer: EntityAlignedTokenizer, texts: list[str], args: argparse.Namespace
) -> tuple[int, Counter[str], Counter[str]]:
    """Tokens in all, by sort (word, character, byte, entity), and entities by kind."""
    sorts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    names = {}
    for token, index in tokenizer.get_vocab().items():
        if token in BYTES:
            names[index] = "byte"
        elif kind_of(token) == WORD or kind_of(token) in tokenizer.entity_kinds:
            names[index] = "entity"
        else:
            names[index] = "character" if len(token) == 1 else "word"
    with Progress("counting", len(texts), "sentences") as shown:
        for ids, tables in encode(args.tokenizer, _parts(texts), args.processes):
            for row, table in zip(ids, tables, strict=True):
                sorts.update(names[index] for index in row[1:-1])
                kinds.update(kind_of(token) for token in json.loads(table))
            shown.add(len(ids))
    return sum(sorts.values()), sorts, kinds


_worker: EntityAlignedTokenizer
"""Of a worker process, set as it starts."""


def _start_worker(folder: str) -> None:
    global _worker
    _worker = load(folder)


def _encode_part(texts: list[str]) -> tuple[list[list[int]], list[str]]:
    batch = _worker(texts)
    return batch["input_ids"], batch["entities"]


def encode(
    folder: str, parts: Iterable[list[str]], processes: int
) -> Iterator[tuple[list[list[int]], list[str]]]:
    """Ids and entity tables of parts of a corpus, in order, on several cores."""
    if processes == 1:
        _start_worker(folder)
        yield from map(_encode_part, parts)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, _start_worker, (folder,)) as pool:
        yield from pool.imap(_encode_part, parts)


def pairs(args: argparse.Namespace) -> None:
    """How many entities of the sources their paraphrases keep, and how many of those come back."""
    tokenizer = load(args.tokenizer)
    counts_of: dict[str, Counter[str]] = {}
    columns = read_columns(str(args.text), [args.column, args.target], "surrogateescape")
    rows = islice((row for row in columns if None not in row), args.limit)
    count = 0
    while part := list(islice(rows, BATCH)):
        sources, targets = zip(*part, strict=True)
        batch = tokenizer(list(sources), text_target=list(targets))
        written = tokenizer.decode(batch["labels"], entities=batch["entities"])
        for target, labels, table, text in zip(
            targets, batch["labels"], batch["entities"], written, strict=True
        ):
            for token, entity in json.loads(table).items():
                counts = counts_of.setdefault(kind_of(token), Counter())
                kept = entity in normalise(target)
                counts["source"] += 1
                counts["kept"] += kept
                counts["token"] += kept and tokenizer.convert_tokens_to_ids(token) in labels
                counts["back"] += kept and entity in text
        count += len(part)
    if not count:
        raise ValueError(f"{args.text}: no pairs")
    table = Table("entity", "in sources", "kept by the target", "as its token", "back verbatim")
    total = sum(counts_of.values(), Counter())
    for kind, counts in [
        *sorted(counts_of.items(), key=lambda item: -item[1]["source"]),
        ("all", total),
    ]:
        whole = max(counts["kept"], 1)
        table.add_row(
            *(kind, f"{counts['source']:,}"),
            f"{counts['kept']:,} ({counts['kept'] / max(counts['source'], 1):.1%})",
            f"{counts['token'] / whole:.1%}",
            f"{counts['back'] / whole:.1%}",
        )
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 100)
    console.print(table)
    console.print(f"{count:,} pairs")


def others(texts: list[str], size: int):
    """(name, tokenizer) of the two that the report compares with."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    characters = Counter(character for text in texts for character in text)
    alphabet = {c: k for k, (c, _) in enumerate(characters.most_common(size - 1), 1)} | {"<unk>": 0}
    single = Tokenizer(models.WordLevel(alphabet, unk_token="<unk>"))
    single.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    yield "characters", single
    bpe = Tokenizer(models.BPE(unk_token="<unk>"))
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>"], show_progress=False)
    bpe.pre_tokenizer = pre_tokenizers.Punctuation()
    bpe.train_from_iterator(texts, trainer)
    yield "BPE", bpe


def load(folder: str) -> EntityAlignedTokenizer:
    """The tokenizer of a folder. Raises FileNotFoundError where there is none."""
    if not Path(folder, VOCABULARY_FILE).is_file():
        raise FileNotFoundError(f"{folder}: no tokenizer, expected a {VOCABULARY_FILE} in it")
    return EntityAlignedTokenizer.from_pretrained(folder)


def batches(path: Path, column: str, limit: int | None) -> Iterator[list[str]]:
    """Sentences of a file, BATCH at a time; nulls are passed over."""
    column_of = read_columns(str(path), [column], "surrogateescape")
    texts = islice((text for (text,) in column_of if text is not None), limit)
    while part := list(islice(texts, BATCH)):
        yield part


def _parts(texts: list[str]) -> Iterator[list[str]]:
    return (texts[start : start + BATCH] for start in range(0, len(texts), BATCH))


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("tokenize_text.py", __doc__)
    commands = parser.add_subparsers(required=True, metavar="make | show | file | report | pairs")

    def command(work: Callable[[argparse.Namespace], None], about: str) -> Callable[..., Any]:
        added = commands.add_parser(work.__name__, help=about)
        added.set_defaults(command=work)
        return added.add_argument

    uri = "a path, s3:// or s3a://"
    add = command(make, "a tokenizer from a vocabulary")
    add("vocabulary", help=f"vocabulary.tsv of jobs/build_vocabulary.py: {uri}")
    add("--output", required=True, metavar="FOLDER", help=uri)
    add("--entities", default=str(CONFIG), metavar="YAML")
    add("--words", type=int, default=60_000, help="at most so many, the most frequent")
    add(
        "--common-characters",
        action="store_true",
        help="the 3,755 of GB 2312's first level too, beside those of all the words: other characters "
        "are spelled in bytes, and a small model does not spell well",
    )
    unknown = "unknown words from K characters on are entities"
    add("--word-characters", type=int, default=4, metavar="K", help=unknown)
    add(
        "--locations",
        default="gazetteer",
        metavar="NAMES",
        help="place names, which become <location_1>: gazetteer (built in; the default), vocabulary (its"
        " geographical names, by the tagger that it was made with: LTP's), a FILE of them, or none",
    )
    add("--indices", type=int, default=16, help="entities of one kind in a sentence")

    add = command(show, "one sentence as coloured tokens")
    add("tokenizer")
    add("sentence")
    add("--target", help="its paraphrase, to see how the pair is aligned")

    for work in (file, report, pairs):
        add = command(work, (work.__doc__ or "").splitlines()[0])
        add("tokenizer")
        add("text", type=Path)
        add("--column", default="source" if work is pairs else "text")
        add("--limit", type=int, metavar="N")
        if work is pairs:
            add("--target", default="paraphrase", metavar="COLUMN")
        else:
            add("--processes", type=int, default=os.cpu_count(), metavar="N")
        if work is file:
            add("--output", type=Path, required=True, metavar="JSONL")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())

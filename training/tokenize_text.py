"""Makes the tokenizer, shows what it does, and reports on a corpus.

  python training/tokenize_text.py make vocabulary/vocabulary.tsv --output tokenizer/
  python training/tokenize_text.py show tokenizer/ "他2024年3月读完了《三国演义》。"
  python training/tokenize_text.py show tokenizer/ SOURCE --target PARAPHRASE
  python training/tokenize_text.py report tokenizer/ corpus.parquet --column text

Text files are lines; .jsonl, .csv and .parquet files have a column (--column, by default text).
report compares with a tokenizer of characters, and a BPE of the same size trained on the same text.
Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import Field
from rich.console import Console
from rich.table import Table

from gaixie.training.modeling.entities_kept import ENTITIES
from gaixie.training.modeling.model import load_tokenizer
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.vocabulary import BYTES, WORD, kind_of
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.options import add_command, options_of
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.settings import Options
from gaixie.udfs.storage.text_tables import read_columns
from gaixie.udfs.text.entities import load_settings
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.places import gazetteer

BATCH = 1_000
PLACES = "geographical name"  # the class of place names in a vocabulary


class Make(Options):
    """Makes a tokenizer from a vocabulary."""

    vocabulary: str
    """vocabulary.tsv of jobs/build_vocabulary.py: a path, s3:// or s3a://."""
    output: str = Field(title="FOLDER")
    """Folder of the tokenizer: a path, s3:// or s3a://."""
    entities: str = Field(default=str(ENTITIES), title="YAML")
    """Kinds of entities of fixed form."""
    words: int = Field(default=60_000, ge=0)
    """Maximum number of words, the most frequent ones."""
    common_characters: bool = False
    """Also make the 3,755 characters of GB 2312's first level tokens, besides those of the words.
    Other characters are spelled in bytes, and a small model does not spell well."""
    word_characters: int = Field(default=4, ge=1, title="K")
    """Unknown words of K characters or more are entities."""
    locations: str = Field(default="gazetteer", title="NAMES")
    """Place names, which become <location_1>: gazetteer (built in), vocabulary (names that its
    tagger marked as geographical), a file with a column word, or none."""
    indices: int = Field(default=16, ge=1)
    """Maximum entities of one kind in a sentence; further ones are spelled."""


class Show(Options):
    """Shows the tokens of one sentence."""

    tokenizer: str
    """Folder of the tokenizer."""
    sentence: str
    """A sentence."""
    target: str | None = Field(default=None, title="SENTENCE")
    """Its paraphrase, to see how the pair is aligned."""


class Report(Options):
    """Reports statistics of a corpus, beside a tokenizer of characters and a BPE of equal size."""

    tokenizer: str
    """Folder of the tokenizer."""
    text: Path
    """A text file of lines, or a table: .jsonl, .csv, .tsv, .parquet."""
    column: str = "text"
    """Column of the sentences in a table."""
    limit: int | None = Field(default=None, ge=1)
    """Only the first N sentences."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("tokenize_text.py", __doc__)
    commands = parser.add_subparsers(required=True, metavar=" | ".join(COMMANDS), dest="command")
    for name, (settings, _) in COMMANDS.items():
        added = commands.add_parser(name, help=settings.__doc__, description=settings.__doc__)
        add_command(added, settings, ("vocabulary", "tokenizer", "sentence", "text"))
    args = parser.parse_args(argv)
    settings, command = COMMANDS[args.command]
    return run_command("tokenize_text", lambda: command(options_of(settings, args)))


def make(options: Make) -> None:
    """Makes a tokenizer folder from the vocabulary of jobs/build_vocabulary.py; either may be in a
    store."""
    with local_copy(options.output, options.vocabulary) as (output, vocabulary):
        words = [word for (word,) in read_columns(str(vocabulary), ["word"]) if word]
        characters = {character for word in words for character in word}  # of words left out too
        if options.common_characters:
            characters |= gb2312_level_1()
        kept = words[: options.words]
        tokenizer = EntityAlignedTokenizer.from_words(
            *(kept, load_settings(options.entities), options.word_characters, options.indices),
            *(characters, locations(options.locations, vocabulary)),
        )
        tokenizer.save_pretrained(output)
    print(f"{options.output}: {len(tokenizer):,} tokens, {len(kept):,} of them words")


def locations(given: str, vocabulary: Path) -> list[str]:
    """Returns the place names of --locations. Raises ValueError or OSError for an invalid value."""
    if given == "none":
        return []
    if given == "gazetteer":
        return sorted(gazetteer())
    if given == "vocabulary":
        rows = read_columns(str(vocabulary), ["word", "class"])
        return [word for word, name in rows if word and name == PLACES and len(word) > 1]
    return [normalise(word) for (word,) in read_columns(given, ["word"]) if word]


def gb2312_level_1() -> set[str]:
    """Returns the 3,755 most common characters, of the standard GB 2312-80: rows 16 to 55 of 94
    cells."""
    codes = (bytes([row, cell]) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF))
    return {code.decode("gb2312") for code in codes if code <= b"\xd7\xf9"}


def show(options: Show) -> None:
    """Prints a sentence or a pair as tokens, and what the indexed ones stand for."""
    tokenizer = load(options.tokenizer)
    console = Console(highlight=False)
    batch = tokenizer(options.sentence, text_target=options.target)
    for name in ("input_ids", "labels"):
        if name in batch:
            tokens = tokenizer.convert_ids_to_tokens(batch[name][1:-1])
            console.print(" ".join(tokens), markup=False)
    table = Table("token", "stands for", "ids")
    for token, text in json.loads(batch["entities"]).items():
        table.add_row(token, text, str(tokenizer.convert_tokens_to_ids(token)))
    if table.row_count:
        console.print(table)
    back = tokenizer.decode(batch["input_ids"], entities=batch["entities"])
    console.print(f"{len(batch['input_ids'])} ids; decoded: {back}", markup=False)


def report(options: Report) -> None:
    """Prints the statistics."""
    tokenizer = load(options.tokenizer)
    found = islice(read_columns(str(options.text), [options.column]), options.limit)
    texts = [normalise(text) for (text,) in found if text is not None]
    if not texts:
        raise ValueError(f"{options.text}: no sentences")
    sorts, entities = count_tokens(tokenizer, texts)
    ours, characters = sorts.total(), sum(map(len, texts))
    table = Table("tokenizer", "tokens", "a sentence", "characters a token", "unknown or bytes")
    rows = [("entity-aligned", len(tokenizer), ours, sorts["byte"])]
    for name, size, total, lost in rows + others(texts, len(tokenizer)):
        numbers = f"{total / len(texts):.2f}", f"{characters / total:.2f}", f"{lost / total:.3%}"
        table.add_row(name, f"{size:,}", *numbers)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 100)
    console.print(table)
    words, kept = tokenizer.codec.count_words(texts)
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
    tokenizer: EntityAlignedTokenizer, texts: list[str]
) -> tuple[Counter[str], Counter[str]]:
    """Counts tokens by sort (word, character, byte, entity), and entities by kind."""
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
        for start in range(0, len(texts), BATCH):
            part = texts[start : start + BATCH]
            batch = tokenizer(part)
            for row, table in zip(batch["input_ids"], batch["entities"], strict=True):
                sorts.update(names[index] for index in row[1:-1])
                kinds.update(kind_of(token) for token in json.loads(table))
            shown.add(len(part))
    return sorts, kinds


def others(texts: list[str], size: int) -> list[tuple[str, int, int, int]]:
    """Returns name, size, tokens and unknown tokens of what the report compares with."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    characters = Counter(character for text in texts for character in text)
    alphabet = {c: k for k, (c, _) in enumerate(characters.most_common(size - 1), 1)} | {"<unk>": 0}
    single = Tokenizer(models.WordLevel(alphabet, unk_token="<unk>"))
    single.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    bpe = Tokenizer(models.BPE(unk_token="<unk>"))
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>"], show_progress=False)
    bpe.pre_tokenizer = pre_tokenizers.Punctuation()
    bpe.train_from_iterator(texts, trainer)
    found = []
    for name, other in (("characters", single), ("BPE", bpe)):
        rows = [row.ids for row in other.encode_batch(texts)]
        unknown: Any = other.token_to_id("<unk>")
        lost = sum(row.count(unknown) for row in rows)
        found.append((name, other.get_vocab_size(), sum(map(len, rows)), lost))
    return found


def load(folder: str) -> EntityAlignedTokenizer:
    """Loads a tokenizer of ours. Raises ValueError if the folder has none."""
    tokenizer = load_tokenizer(folder)
    if not isinstance(tokenizer, EntityAlignedTokenizer):
        raise ValueError(f"{folder}: not a tokenizer of `tokenize_text.py make`")
    return tokenizer


COMMANDS: dict[str, tuple[type[Any], Any]] = {
    "make": (Make, make),
    "show": (Show, show),
    "report": (Report, report),
}
"""Each command's options, and what it does."""


if __name__ == "__main__":
    sys.exit(main())

"""Makes the tokenizer, and shows what it does.

  python training/tokenize_text.py make vocabulary/vocabulary.tsv --output tokenizer/
  python training/tokenize_text.py show tokenizer/ "他2024年3月读完了《三国演义》。"
  python training/tokenize_text.py show tokenizer/ SOURCE --target PARAPHRASE

Exit codes: 0 done, 2 something to fix (one line says what).
"""

import json
import sys
from typing import Any

from pydantic import Field

from gaixie.training.modeling.model import load_tokenizer
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.reports import print_table
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.settings import Options, add_options, options_of
from gaixie.udfs.storage.text_columns import read_columns
from gaixie.udfs.text.entities import load_settings
from gaixie.udfs.text.entities_kept import ENTITIES
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.places import gazetteer


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
    """Place names, which become <location_1>: gazetteer (built in), a file with a column word, or
    none."""
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


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("tokenize_text.py", __doc__)
    commands = parser.add_subparsers(required=True, metavar=" | ".join(COMMANDS), dest="command")
    for name, (settings, _) in COMMANDS.items():
        added = commands.add_parser(name, help=settings.__doc__, description=settings.__doc__)
        add_options(added, settings, positional=("vocabulary", "tokenizer", "sentence"))
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
            *(characters, locations(options.locations)),
        )
        tokenizer.save_pretrained(output)
    print(f"{options.output}: {len(tokenizer):,} tokens, {len(kept):,} of them words")


def locations(given: str) -> list[str]:
    """Returns the place names of --locations. Raises ValueError or OSError for an invalid value."""
    if given == "none":
        return []
    if given == "gazetteer":
        return sorted(gazetteer())
    return [normalise(word) for (word,) in read_columns(given, ["word"]) if word]


def gb2312_level_1() -> set[str]:
    """Returns the 3,755 most common characters, of the standard GB 2312-80: rows 16 to 55 of 94
    cells."""
    codes = (bytes([row, cell]) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF))
    return {code.decode("gb2312") for code in codes if code <= b"\xd7\xf9"}


def show(options: Show) -> None:
    """Prints a sentence or a pair as tokens, and what the indexed ones stand for."""
    tokenizer = load_tokenizer(options.tokenizer)
    if not isinstance(tokenizer, EntityAlignedTokenizer):
        raise ValueError(f"{options.tokenizer}: not a tokenizer of `tokenize_text.py make`")
    batch = tokenizer(options.sentence, text_target=options.target)
    for name in ("input_ids", "labels"):
        if name in batch:
            print(*tokenizer.convert_ids_to_tokens(batch[name][1:-1]))
    entities = json.loads(batch["entities"])
    ids = [str(tokenizer.convert_tokens_to_ids(token)) for token in entities]
    rows = [*zip(entities, entities.values(), ids, strict=True)]
    print_table(("token", "stands for", "id"), rows)
    back = tokenizer.decode(batch["input_ids"], entities=batch["entities"])
    print(f"{len(batch['input_ids'])} ids; decoded: {back}")


COMMANDS: dict[str, tuple[type[Any], Any]] = {
    "make": (Make, make),
    "show": (Show, show),
}
"""Each command's options, and what it does."""


if __name__ == "__main__":
    sys.exit(main())

"""Reads and writes a tokenizer's files, vocabulary.txt and entities.json, and names its tokens.

vocabulary.txt has one token a line, in the order of their ids: SPECIAL, indexed tokens, BYTES, then
characters and words. entities.json has the entity settings, k, the number of indices,
and the segmenter and normalisation for which the vocabulary was made.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from gaixie.udfs.storage.settings import Strict, first_fault
from gaixie.udfs.text.entities import EntitySettings
from gaixie.udfs.text.segmenters import load_segmenter

VOCABULARY_FILE = "vocabulary.txt"
SETTINGS_FILE = "entities.json"
FILES = {"vocabulary_file": VOCABULARY_FILE, "settings_file": SETTINGS_FILE}
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "<mask>")
PAD, BOS, EOS, UNK, MASK = range(len(SPECIAL))
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
CHARACTERS = "".join(map(chr, range(0x20, 0x7F))) + "。、…—·“”‘’「」『』《》〈〉【】〔〕〇"
"""Characters that are always tokens: printable ASCII, and punctuation under NFKC."""

WORD = "word"
"""The kind of an unknown long word."""
LOCATION = "location"
"""The kind of a place name, in tokenizers that know some."""


class TokenizerSettings(Strict):
    """The content of entities.json."""

    word_characters: int
    """k, the length from which an unknown word is an entity."""
    indices: int
    """Maximum entities of a kind in a sentence; the rest is spelled."""
    entities: EntitySettings
    locations: str
    """Place names, separated by spaces: a list would take thousands of lines."""
    normalisation: str
    segmenter: str

    def fixed_tokens(self) -> dict[str, None]:
        """Returns the tokens before the first character, in the order of their ids."""
        kinds = [*self.entities.kinds, WORD, *[LOCATION] * bool(self.locations)]
        indexed = (f"<{kind}_{number}>" for kind in kinds for number in range(1, self.indices + 1))
        return dict.fromkeys((*SPECIAL, *indexed, *BYTES))


def segmenter_name() -> str:
    """Returns name and version of the segmenter that cuts the text between entities."""
    segmenter = load_segmenter("jieba")
    return f"{segmenter.name}-{segmenter.version}"


def write_files(
    folder: Path, tokens: Iterable[str], settings: TokenizerSettings
) -> tuple[str, str]:
    """Writes vocabulary.txt and entities.json; returns their names."""
    paths = folder / VOCABULARY_FILE, folder / SETTINGS_FILE
    paths[0].write_text("\n".join(tokens) + "\n", "utf-8")
    paths[1].write_text(settings.model_dump_json(indent=2) + "\n", "utf-8")
    return str(paths[0]), str(paths[1])


def read_settings(path: Path) -> TokenizerSettings:
    """Reads an entities.json. Raises ValueError, in one line that names the file, if it is
    invalid."""
    try:
        return TokenizerSettings.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ValueError(f"{path}: {first_fault(error)}") from None


def read_tokens(path: Path, fixed: dict[str, None]) -> list[str]:
    """Reads the tokens of a vocabulary.txt that begins with the fixed ones.

    Raises ValueError, in one line that names the file, if it does not, or if a token is empty or
    repeated.
    """
    tokens = path.read_text("utf-8").split("\n")[:-1]
    if tokens[: len(fixed)] != list(fixed):
        fault = f"does not begin with the {len(fixed)} fixed tokens of its settings"
        raise ValueError(f"{path}: {fault}")
    for token, times in Counter(tokens).items():
        if not token or times > 1:
            raise ValueError(f"{path}: {token!r} is empty, or occurs twice")
    return tokens

"""Limits of a service, and who may use it."""

import os
from pathlib import Path

from pydantic import Field

from gaixie.udfs.defaults import MAX_CHARACTERS, MIN_CHARACTERS
from gaixie.udfs.storage.settings import Strict

TOKENS, TOKENS_FILE = "GAIXIE_TOKENS", "GAIXIE_TOKENS_FILE"
"""Environment variables: NAME=TOKEN entries, separated by spaces or commas; or a file of them."""
SHORTEST_TOKEN = 16


class ServiceSettings(Strict):
    """What a service accepts, and from whom. Limits are for one request unless they say
    otherwise."""

    tokens: dict[str, str] = Field(default_factory=dict, repr=False)
    """name -> bearer token; without tokens, everyone who can reach the port may send requests"""
    max_body: int = Field(default=4_000_000, ge=1_000)
    """maximum bytes of a request's body"""
    max_pairs: int = Field(default=1_000, ge=1)
    """maximum pairs to score"""
    max_rows: int = Field(default=10_000, ge=1)
    """maximum rows of a table"""
    max_texts: int = Field(default=64, ge=1)
    """maximum texts to paraphrase"""
    min_characters: int = Field(default=MIN_CHARACTERS, ge=1)
    """minimum characters of a normalised sentence; a pair with fewer is too_short"""
    max_characters: int = Field(default=MAX_CHARACTERS, ge=1)
    """maximum characters of a normalised sentence"""
    queue: int = Field(default=50_000, ge=1)
    """pairs that may wait in a process; a text to paraphrase counts as 100"""
    timeout: float = Field(default=60.0, gt=0)
    """seconds from a request's arrival to its answer"""


def read_tokens() -> dict[str, str]:
    """Reads the tokens of the environment. Raises one-line OSError or ValueError that show no
    token.
    """
    path, where, text = os.environ.get(TOKENS_FILE), TOKENS, os.environ.get(TOKENS, "")
    if path:
        where, text = f"{TOKENS_FILE}: {path}", Path(path).read_text("utf-8")
    tokens: dict[str, str] = {}
    for number, entry in enumerate(text.replace(",", " ").split(), 1):
        name, equals, token = entry.partition("=")
        if not (name and equals):
            raise ValueError(f"{where}: entry {number}: expected NAME=TOKEN")
        if len(token) < SHORTEST_TOKEN or not token.isascii():
            raise ValueError(f"{where}: {name}: expected {SHORTEST_TOKEN} or more ASCII characters")
        if name in tokens or token in tokens.values():
            raise ValueError(f"{where}: {name}: the name or its token is given twice")
        tokens[name] = token
    return tokens

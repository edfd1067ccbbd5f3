"""Asks an endpoint for paraphrases without Spark, as a process that a test can kill.

  python ask_endpoint.py FOLDER URL SENTENCES [SETTING=VALUE ...]

Reads FOLDER/sentences.txt in pieces of SENTENCES lines, keeps the answers in FOLDER/answers, and
writes FOLDER/pieces/NUMBER.json for each piece: [reason, source, paraphrase, parameters] of every
candidate.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from gaixie.jobs.pairs.llm.ask import Asking
from gaixie.jobs.pairs.llm.method import LlmSettings
from gaixie.jobs.pairs.llm.record import Record
from gaixie.jobs.pairs.writing import Written
from gaixie.udfs.command_line import run_command

FAST = {"backoff_seconds": 0.001, "max_backoff_seconds": 0.01}
"""Settings that all tests use."""


def ask(folder: Path, url: str, size: int, **given: object) -> Asking[int]:
    """Asks for the pieces that are missing; raises what Asking.run raises."""
    lines = (folder / "sentences.txt").read_text("utf-8").splitlines()
    (folder / "pieces").mkdir(exist_ok=True)

    def missing() -> Iterator[tuple[int, list[str]]]:
        for number, start in enumerate(range(0, len(lines), size)):
            if not (folder / f"pieces/{number}.json").exists():
                yield number, lines[start : start + size]

    def write(number: int, written: Sequence[Written]) -> None:
        part = folder / f"pieces/{number}.part"
        part.write_text(json.dumps(written), "utf-8")
        part.rename(part.with_suffix(".json"))

    record = Record(str(folder / "answers"), "a building")
    record.begin()
    try:
        settings = LlmSettings(base_url=url, **(FAST | given))
        asking = Asking[int](settings, "a-model", record)
        asking.run(missing(), write)
    finally:
        record.close()
    return asking


def written(folder: Path) -> list[Written]:
    """Returns the candidates of all pieces."""
    paths = sorted((folder / "pieces").glob("*.json"), key=lambda path: int(path.stem))
    return [Written(*row) for path in paths for row in json.loads(path.read_text("utf-8"))]


if __name__ == "__main__":
    values = {
        name: yaml.safe_load(value) for name, value in (w.split("=", 1) for w in sys.argv[4:])
    }

    def main() -> int:
        ask(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), **values)
        return 0

    sys.exit(run_command("ask_endpoint", main, mistakes=()))

"""Options of the method llm on the command line of jobs/build_pairs.py."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(parser: argparse.ArgumentParser) -> None:
    """Adds the common ones; --set llm.NAME=VALUE takes every setting."""
    group = parser.add_argument_group("llm")

    def add(option: str, metavar: str | None, help: str, **given: Any) -> None:
        dest = f"llm.{option[2:].replace('-', '_')}"
        group.add_argument(option, **({"dest": dest, "metavar": metavar, "help": help} | given))

    add("--base-url", "URL", "of an OpenAI-compatible endpoint; the key is in OPENAI_API_KEY")
    switch: dict[str, Any] = {"action": "store_const", "const": True}
    group.add_argument(
        "--local",
        dest="llm.local",
        help="load the model with transformers, on the executors",
        **switch,
    )
    add("--prompt", "NAME", "zero_shot (default), few_shot, degree, or a template NAME.j2")
    add("--degree", "N", "of change, 1 to 5; one or more", dest="llm.degrees", type=int, nargs="+")
    add("--paraphrases", "N", "of a sentence", type=int)
    add("--sentences-per-request", "N", "default 1", type=int)
    add("--temperature", "T", "default 0.9", type=float)
    add("--cache", "FOLDER", "of answers, to be used again; default OUTPUT/answers")
    add("--concurrency", "N", "requests at a time; default 16", type=int)
    add("--requests-per-minute", "N", "at most", type=float)
    add("--tokens-per-minute", "N", "at most", type=float)
    add("--max-tokens-total", "N", "of prompts and answers: stops before it is exceeded", type=int)
    add("--max-cost", "MONEY", "the same, by price-in and price-out", type=float)
    add("--price-in", "MONEY", "of a million tokens of prompts", type=float)
    add("--price-out", "MONEY", "of a million tokens of answers", type=float)
    group.add_argument(
        "--publish-partial",
        dest="llm.publish_partial",
        help="what the budget was enough for, the rest in quarantine",
        **switch,
    )

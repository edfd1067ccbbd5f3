"""Every argument of the scripts for segmenters, annotation and papers says what it is for."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module

import pytest

SCRIPTS = (
    *("annotate", "analyse_human_evaluation", "identify_paraphrases", "make_language_model"),
    *("make_vectors", "report_simplifications", "reproduce_papers", "train_segmenter"),
)


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name in action.choices:
                yield from actions(action.choices[name])
        else:
            yield action


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_argument_is_explained(name, monkeypatch):
    found = []

    def stop(parser, *_):
        found.append(parser)
        raise SystemExit

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    with pytest.raises(SystemExit):
        import_module(f"gaixie.research.{name}").main([])
    assert [a.dest for a in actions(found[0]) if not a.help] == []

"""Fine-tunes an encoder to identify paraphrases, and says how well it does.

  python research/identify_paraphrases.py train --data DATA --encoder models/minilm \\
      --output models/identifier
  … train … --members 3                      several models, whose seeds differ, averaged
  … train … --noisy Twitter-Para             noisy labels that a first model filters or turns round
  python research/identify_paraphrases.py matrix --data DATA --encoder models/minilm \\
      --sets MultiPIT,Twitter-Para --output matrix

conf/identification.yaml names the sets. Any encoder of transformers will do, a folder or a model of
the hub's cache. Killed, or stopped by --minutes (exit code 75), the same call goes on where it was.

train   writes a folder that transformers' AutoModelForSequenceClassification loads, which also is a
        model of the metric identification:model=FOLDER. Thresholds and λ are chosen on held-out
        sources of the training part, or on the other half of the sources: never on what is
        reported. From few sources one model is a matter of luck: --members averages several
matrix  trains on each of some sets and tests on all of them

  OUTPUT/identification.md     F1 and accuracy with intervals; identification.json has the same
  OUTPUT/…                     the model, further members in OUTPUT/member-1, …; teacher and
                               students in OUTPUT.parts, as the models of a matrix

Source: Dou, Jiang & Xu 2022, *Improving Large-scale Paraphrase Acquisition and Generation*
(MultiPIT), section 3.

Exit codes: 0 done, 2 something to fix (one line says what), 75 stopped by --minutes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gaixie.research.identification.data import (
    Config,
    Labelled,
    PairSet,
    Parts,
    limited,
    read_pairs,
    read_parts,
)
from gaixie.research.identification.noise import LIMITS, learn_from_noise
from gaixie.research.identification.scores import best_threshold, f1, figures, report
from gaixie.research.identification.train import Recipe, fit
from gaixie.udfs.command_line import Clock, make_parser, positive, run_command
from gaixie.udfs.metrics.encoder import load_encoder, model_signature
from gaixie.udfs.metrics.identification import Ensemble, Identifier, log_odds, member_folders
from gaixie.udfs.reports import render, write_json
from gaixie.udfs.storage.settings import load_settings

SETTINGS = Path(__file__).parents[1] / "conf/identification.yaml"
TEMPLATE = Path(__file__).parent / "identification/identification.md.j2"
SIMILARITY_SCALE = 5.0
"""Its range is then that of the logits, so that both are penalised alike."""
FOLDS = 5


def main(argv: list[str] | None = None) -> int:
    """Runs the job and gives its exit code."""
    args = _arguments(argv)
    work = train if args.command == "train" else matrix
    return run_command("identify_paraphrases", partial(work, args))


def train(args: argparse.Namespace) -> None:
    """One model or several, with or without noisy labels."""
    clock, recipe = Clock(args.minutes), _recipe(args)
    own = [args.output / name for name in ("training.json", "identification.json")]
    if (args.output / "config.json").is_file() and not any(path.is_file() for path in own):
        raise ValueError(f"--output {args.output}: is another model's folder")
    sets = _sets(args.config)
    name = args.set or next(iter(sets))
    parts = read_parts(_named(sets, name, "--set"), args.data, args.limit)
    noisy = _named(sets, args.noisy, "--noisy") if args.noisy else None
    limits = [float(text) for text in args.limits.split(",")]
    if not all(0 < limit < 1 for limit in limits):
        raise ValueError(f"--limits {args.limits}: expected numbers between 0 and 1")
    if noisy and args.members > 1:
        raise ValueError("--members: not together with --noisy")
    folder = args.output.with_name(f"{args.output.name}.parts")
    teacher = folder / "teacher" if noisy else args.output
    members = [
        fit(args.encoder, parts.train, replace(recipe, seed=seed), path, clock)
        for seed, path in _members(teacher, args.members, recipe.seed)
    ]
    first, noise = members[0], None

    def reported(held_out: np.ndarray, test: np.ndarray) -> dict[str, Any]:
        both = (parts.held_out, held_out), (parts.test, test)
        return report(*both, args.samples, recipe.seed)

    def judged(by: Identifier | Ensemble) -> dict[str, Any]:
        sides = [(own.source.tolist(), own.paraphrase.tolist()) for own in parts[1:]]
        return reported(*(by.probabilities(*side) for side in sides))

    if noisy:
        pairs, named = limited(read_pairs(noisy, args.data), args.limit), (first, str(teacher))
        given = limits, replace(recipe, epochs=args.student_epochs or recipe.epochs), folder, clock
        first, noise = learn_from_noise(named, parts.train, pairs, *given, judged)
        noise["name"] = args.noisy
        first.network.save_pretrained(args.output)
        first.tokenizer.save_pretrained(args.output)
    model = Ensemble(members) if len(members) > 1 else first

    result = {
        "set": name,
        "encoder": model_signature(args.encoder),
        "train": len(parts.train),
        "held_out": len(parts.held_out),
        "held_out_paraphrases": int(parts.held_out.label.sum()),
        "report": judged(model),
        "members": [judged(member) for member in members] if len(members) > 1 else [],
        "combined": reported(*combined(model, args.encoder, parts)),
        "noise": noise,
        "matrix": None,
    }
    _write(args.output, result)


def _members(folder: Path, count: int, seed: int) -> list[tuple[int, Path]]:
    """(seed, folder) of each member; those that an earlier call left beyond them are removed."""
    wanted = [folder, *(folder / f"member-{k}" for k in range(1, count))]
    for path in member_folders(str(folder)):
        if path not in wanted and (path / "training.json").is_file():
            shutil.rmtree(path)
    return [*enumerate(wanted, seed)]


def combined(
    model: Identifier | Ensemble, encoder: str, parts: Parts
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of the held-out part and of the test part, fitted on the former.

    A classifier that learned from few sources forgets some of what its encoder knew: a logistic
    regression weighs the classifier in both orders with the encoder's similarity. Probabilities of
    the held-out part are cross-validated by source, so that they compare with the classifier's own;
    but not where a class has one source alone.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict

    def numbers(pairs: Labelled) -> np.ndarray:
        a, b = pairs.source.tolist(), pairs.paraphrase.tolist()
        logits = log_odds(model.probabilities(a, b)) + log_odds(model.probabilities(b, a))
        vectors = load_encoder(encoder)
        similarity = (vectors.sentence_vectors(a) * vectors.sentence_vectors(b)).sum(axis=1)
        return np.column_stack([logits, SIMILARITY_SCALE * similarity])

    held_out, test = numbers(parts.held_out), numbers(parts.test)
    label, source = parts.held_out.label >= 0.5, parts.held_out.source.astype(str)
    fitted = LogisticRegression().fit(held_out, label)
    own = fitted.predict_proba(held_out)
    folds = min(FOLDS, *(len({*source[label == kind]}) for kind in (False, True)))
    if folds > 1:
        by = {"groups": source, "cv": StratifiedGroupKFold(folds), "method": "predict_proba"}
        own = cross_val_predict(LogisticRegression(), held_out, label, **by)
    return own[:, 1], fitted.predict_proba(test)[:, 1]


def matrix(args: argparse.Namespace) -> None:
    """A model trained on each set, tested on each, with thresholds of its own held-out part."""
    sets, recipe, clock = _sets(args.config), _recipe(args), Clock(args.minutes)
    parts = {
        name: read_parts(_named(sets, name, "--sets"), args.data, args.limit)
        for name in args.sets.split(",")
    }
    folder = args.output.with_name(f"{args.output.name}.parts")
    rows = {}
    for name, own in parts.items():
        model = fit(args.encoder, own.train, recipe, folder / name, clock)

        def said(pairs: Labelled, by: Identifier = model) -> np.ndarray:
            return by.probabilities(pairs.source.tolist(), pairs.paraphrase.tolist())

        threshold = best_threshold(own.held_out.label >= 0.5, said(own.held_out))
        tested = {
            other: figures(part.test, said(part.test) > threshold, args.samples, recipe.seed)
            for other, part in parts.items()
        }
        rows[name] = {"threshold": threshold, "pairs": len(own.train), "tested": tested}
    labels = {name: part.test.label >= 0.5 for name, part in parts.items()}
    # Beside them what calling every pair a paraphrase would have.
    every = {name: f1(label, label | True) for name, label in labels.items()}
    found = {"rows": rows, "all": every}
    encoder = model_signature(args.encoder)
    _write(args.output, {"encoder": encoder, "report": None, "noise": None, "matrix": found})


def _sets(config: Path) -> dict[str, PairSet]:
    return {pairs.name: pairs for pairs in load_settings(Config, config).sets}


def _named(sets: dict[str, PairSet], name: str, option: str) -> PairSet:
    if name not in sets:
        raise ValueError(f"{option} {name}: no such set, expected one of {', '.join(sets)}")
    return sets[name]


def _recipe(args: argparse.Namespace) -> Recipe:
    return Recipe(**{field.name: getattr(args, field.name) for field in fields(Recipe)})


def _write(folder: Path, result: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "identification.json", result)
    text = render(TEMPLATE, **result)
    (folder / "identification.md").write_text(text, "utf-8")
    print(text)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("identify_paraphrases.py", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("train", "matrix"):
        add = commands.add_parser(name).add_argument
        add("--config", type=Path, default=SETTINGS, metavar="YAML", help="of the sets")
        add("--data", type=Path, required=True, metavar="FOLDER", help="of the sets' files")
        add("--encoder", required=True, metavar="MODEL", help="folder, or cached name")
        add("--output", type=Path, required=True, metavar="FOLDER", help="model and report")
        if name == "train":
            add("--set", metavar="NAME", help="the first of the settings, unless told otherwise")
            add("--members", type=positive, default=1, metavar="N", help="(%(default)s)")
            add("--noisy", metavar="NAME", help="a set with noisy labels")
            limits = ",".join(map(str, LIMITS))
            add("--limits", default=limits, metavar="NUMBERS", help="values of λ (%(default)s)")
            help_text = "of students on noisy labels; --epochs unless told otherwise"
            add("--student-epochs", type=positive, metavar="N", help=help_text)
        else:
            add("--sets", required=True, metavar="NAMES", help="separated by commas")
        add("--limit", type=int, default=0, metavar="N", help="pairs of a set; 0 is all")
        for field in fields(Recipe):
            option, kind = f"--{field.name.replace('_', '-')}", type(field.default)
            add(option, type=kind, default=field.default, metavar="N", help="(%(default)s)")
        add("--samples", type=positive, default=1000, metavar="N", help="resamples (%(default)s)")
        add("--minutes", type=float, metavar="N", help="stop after them; call again to go on")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())

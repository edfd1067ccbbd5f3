"""Fine-tunes an encoder to identify paraphrases, and says how well it does.

  python research/identify_paraphrases.py train --data DATA --encoder models/minilm --output models/identifier
  python research/identify_paraphrases.py train --data DATA --encoder models/minilm --members 3 --output models/identifier
  python research/identify_paraphrases.py train --data DATA --encoder models/minilm --noisy Twitter-Para --output models/identifier
  python research/identify_paraphrases.py matrix --data DATA --encoder models/minilm --sets MultiPIT,Twitter-Para --output matrix

conf/identification.yaml names the sets. Any encoder of transformers will do, a folder or a model of the
hub's cache. Killed, or stopped by --minutes (exit code 75), the same call goes on where it was.

train   writes a folder that transformers' AutoModelForSequenceClassification loads, which also is a model of the
        metric identification:model=FOLDER. Thresholds and λ are chosen on held-out sources of the training
        part, or on the other half of the sources: never on what is reported. --members: so many models,
        whose seeds differ, averaged; from few sources one model is a matter of luck. --noisy: a set whose
        labels the first model filters, or turns round, before a second one learns from it
matrix  trains on each of some sets and tests on all of them

  OUTPUT/identification.md     F1 and accuracy with intervals; identification.json has the same
  OUTPUT/…                     the model, further members in OUTPUT/member-1, …; teacher and students in
                               OUTPUT.parts, as the models of a matrix

Source: Dou, Jiang & Xu 2022, *Improving Large-scale Paraphrase Acquisition and Generation* (MultiPIT).

Exit codes: 0 done, 2 something to fix (one line says what), 75 stopped by --minutes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gaixie.research.identification.combine import combined
from gaixie.research.identification.data import Config, PairSet, Parts, read_pairs, read_parts
from gaixie.research.identification.matrix import cross_matrix
from gaixie.research.identification.noise import learn_from_noise
from gaixie.research.identification.scores import report
from gaixie.research.identification.train import Recipe, fit
from gaixie.udfs.command_line import Clock, make_parser, positive, run_command
from gaixie.udfs.metrics.encoder import model_signature
from gaixie.udfs.metrics.identification import Ensemble, Identifier, member_folders
from gaixie.udfs.reports import render, write_json
from gaixie.udfs.storage.settings import load_settings

SETTINGS = Path(__file__).parents[1] / "conf/identification.yaml"
TEMPLATE = Path(__file__).parent / "identification/identification.md.j2"


def main(argv: list[str] | None = None) -> int:
    """Runs the job; its exit code."""
    args = _arguments(argv)
    return run_command("identify_paraphrases", partial(COMMANDS[args.command], args))


def train(args: argparse.Namespace) -> None:
    """One model, with or without noisy labels."""
    clock, recipe = Clock(args.minutes), _recipe(args)
    own = ("training.json", "identification.json")
    if (args.output / "config.json").is_file() and not any(
        (args.output / n).is_file() for n in own
    ):
        raise ValueError(f"--output {args.output}: is another model's folder")
    sets = _sets(args.config)
    name = args.set or next(iter(sets))
    parts = read_parts(_named(sets, name, "--set"), args.data, args.limit)
    noisy = _named(sets, args.noisy, "--noisy") if args.noisy else None
    limits = [float(text) for text in args.limits.split(",")]
    if not all(0 < limit < 1 for limit in limits):
        raise ValueError(f"--limits {args.limits}: expected numbers between 0 and 1")
    result: dict[str, Any] = {"set": name, "encoder": model_signature(args.encoder)}
    result |= {"train": len(parts.train), "held_out": len(parts.held_out)}
    result["held_out_paraphrases"] = int(parts.held_out.label.sum())
    folder = args.output.with_name(f"{args.output.name}.parts")
    teacher = folder / "teacher" if noisy else args.output
    if noisy and args.members > 1:
        raise ValueError("--members: not together with --noisy")
    members = [
        fit(args.encoder, parts.train, replace(recipe, seed=seed), path, clock)
        for seed, path in _members(teacher, args.members, recipe.seed)
    ]
    first, noise = members[0], None
    if noisy:
        pairs, named = read_pairs(noisy, args.data), (first, str(teacher))
        first, noise = learn_from_noise(named, parts, pairs, limits, recipe, folder, clock)
        noise["name"] = args.noisy
        first.network.save_pretrained(args.output)
        first.tokenizer.save_pretrained(args.output)
    model = Ensemble(members) if len(members) > 1 else first
    result["report"] = _reported(model, parts, args.samples, recipe.seed)
    result["members"] = [
        _reported(member, parts, args.samples, recipe.seed)
        for member in (members if args.members > 1 else ())
    ]
    held_out, test = combined(model, args.encoder, parts)
    both = (parts.held_out, held_out), (parts.test, test)
    result["combined"] = report(*both, args.samples, recipe.seed)
    _write(args.output, result | {"noise": noise, "matrix": None})


def _members(folder: Path, count: int, seed: int) -> list[tuple[int, Path]]:
    """(seed, folder) of each member; those that an earlier call left beyond them are removed."""
    wanted = [folder, *(folder / f"member-{k}" for k in range(1, count))]
    for path in member_folders(str(folder)):
        if path not in wanted and (path / "training.json").is_file():
            shutil.rmtree(path)
    return [*enumerate(wanted, seed)]


def _reported(
    model: Identifier | Ensemble, parts: Parts, samples: int, seed: int
) -> dict[str, Any]:
    held_out, test = (
        (part, model.probabilities(part.source.tolist(), part.paraphrase.tolist()))
        for part in (parts.held_out, parts.test)
    )
    return report(held_out, test, samples, seed)


def matrix(args: argparse.Namespace) -> None:
    """A model for each set."""
    sets = _sets(args.config)
    names = args.sets.split(",")
    parts: dict[str, Parts] = {
        name: read_parts(_named(sets, name, "--sets"), args.data, args.limit) for name in names
    }
    folder = args.output.with_name(f"{args.output.name}.parts")
    found = cross_matrix(
        parts, args.encoder, _recipe(args), folder, Clock(args.minutes), args.samples
    )
    encoder = model_signature(args.encoder)
    _write(args.output, {"encoder": encoder, "report": None, "noise": None, "matrix": found})


COMMANDS = {"train": train, "matrix": matrix}


def _sets(config: Path) -> dict[str, PairSet]:
    return {pairs.name: pairs for pairs in load_settings(Config, config).sets}


def _named(sets: dict[str, PairSet], name: str, option: str) -> PairSet:
    if name not in sets:
        raise ValueError(f"{option} {name}: no such set, expected one of {', '.join(sets)}")
    return sets[name]


def _recipe(args: argparse.Namespace) -> Recipe:
    return Recipe(
        epochs=args.epochs,
        learning_rate=args.learning_rate,
        batch=args.batch,
        max_tokens=args.max_tokens,
        freeze=args.freeze,
        transitive=args.transitive,
        seed=args.seed,
    )


def _write(folder: Path, result: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "identification.json", result)
    text = render(TEMPLATE, **result)
    (folder / "identification.md").write_text(text, "utf-8")
    print(text)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("identify_paraphrases.py", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recipe = Recipe()
    for name in COMMANDS:
        add = commands.add_parser(name).add_argument
        add("--config", type=Path, default=SETTINGS, metavar="YAML")
        add("--data", type=Path, required=True, metavar="FOLDER", help="of the sets")
        add("--encoder", required=True, metavar="MODEL", help="folder, or cached name")
        add("--output", type=Path, required=True, metavar="FOLDER")
        if name == "train":
            add("--set", metavar="NAME", help="the first of the settings, unless told otherwise")
            add("--members", type=positive, default=1, metavar="N", help="(%(default)s)")
            add("--noisy", metavar="NAME", help="a set with noisy labels")
            add("--limits", default="0.5,0.8", metavar="NUMBERS", help="values of λ (%(default)s)")
        else:
            add("--sets", required=True, metavar="NAMES", help="separated by commas")
        add("--limit", type=int, default=0, metavar="N", help="training pairs of a set; 0 is all")
        add("--epochs", type=positive, default=recipe.epochs, metavar="N", help="(%(default)s)")
        add("--learning-rate", type=float, default=recipe.learning_rate, help="(%(default)s)")
        add("--batch", type=positive, default=recipe.batch, metavar="N", help="(%(default)s)")
        add("--max-tokens", type=positive, default=recipe.max_tokens, help="(%(default)s)")
        add(
            "--freeze",
            type=int,
            default=recipe.freeze,
            metavar="N",
            help="lowest layers (%(default)s)",
        )
        add(
            "--transitive",
            type=float,
            default=recipe.transitive,
            metavar="SHARE",
            help="of an epoch's pairs, made of two of one source (%(default)s)",
        )
        add("--seed", type=int, default=0, metavar="N")
        add("--samples", type=positive, default=1000, metavar="N", help="resamples (%(default)s)")
        add("--minutes", type=float, metavar="N", help="stop after them; call again to go on")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())

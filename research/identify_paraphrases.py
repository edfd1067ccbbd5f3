"""Fine-tunes an encoder to identify paraphrases, and reports how well it does.

  python research/identify_paraphrases.py --data DATA --encoder models/minilm \\
      --output models/identifier
  … --members 3                      averages three models with different seeds

conf/identification.yaml names the sets. The encoder is any transformers encoder: a folder, or a
model in the hub's cache. The script writes a folder that transformers'
AutoModelForSequenceClassification loads and that the metric identification:model=FOLDER uses.
Thresholds are chosen on held-out sources of the training part, or on the other half of the
sources, never on the reported pairs. With few sources, a single model depends on luck; --members
averages several.

  OUTPUT/identification.md     F1 and accuracy with intervals; identification.json has the same
  OUTPUT/…                     the model; further members are in OUTPUT/member-1, …

Source: Dou, Jiang & Xu 2022, *Improving Large-scale Paraphrase Acquisition and Generation*
(MultiPIT), section 3.

Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from gaixie.research.identification.data import (
    Config,
    read_parts,
    report,
)
from gaixie.research.identification.train import Recipe, fit
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.metrics.identification import Ensemble, Identifier, member_folders
from gaixie.udfs.networks import model_signature
from gaixie.udfs.reports import render, write_json
from gaixie.udfs.storage.settings import load_settings

SETTINGS = Path(__file__).parents[1] / "conf/identification.yaml"
TEMPLATE = Path(__file__).parent / "identification/identification.md.j2"


def main(argv: list[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    return run_command("identify_paraphrases", partial(train, _arguments(argv)))


def train(args: argparse.Namespace) -> None:
    """Trains one model or several, and writes the report."""
    recipe = Recipe(**{field.name: getattr(args, field.name) for field in fields(Recipe)})
    own = [args.output / name for name in ("training.json", "identification.json")]
    if (args.output / "config.json").is_file() and not any(path.is_file() for path in own):
        raise ValueError(f"--output {args.output}: is another model's folder")
    sets = {pairs.name: pairs for pairs in load_settings(Config, args.config).sets}
    name = args.set or next(iter(sets))
    if name not in sets:
        raise ValueError(f"--set {name}: no such set, expected one of {', '.join(sets)}")
    parts = read_parts(sets[name], args.data, args.limit)
    for path in member_folders(str(args.output)):  # of an earlier call
        shutil.rmtree(path)
    folders = [args.output, *(args.output / f"member-{k}" for k in range(1, args.members))]
    members = [
        fit(args.encoder, parts.train, replace(recipe, seed=seed), path)
        for seed, path in enumerate(folders, recipe.seed)
    ]

    def judged(by: Identifier | Ensemble) -> dict[str, Any]:
        said = [by.probabilities(own.source.tolist(), own.paraphrase.tolist()) for own in parts[1:]]
        both = (parts.held_out, said[0]), (parts.test, said[1])
        return report(*both, args.samples, recipe.seed)

    model = Ensemble(members) if len(members) > 1 else members[0]
    result = {
        "set": name,
        "encoder": model_signature(args.encoder),
        "train": len(parts.train),
        "held_out": len(parts.held_out),
        "held_out_paraphrases": int(parts.held_out.label.sum()),
        "report": judged(model),
        "members": [judged(member) for member in members] if len(members) > 1 else [],
    }
    args.output.mkdir(parents=True, exist_ok=True)
    write_json(args.output / "identification.json", result)
    text = render(TEMPLATE, **result)
    (args.output / "identification.md").write_text(text, "utf-8")
    print(text)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("identify_paraphrases.py", __doc__)
    add = parser.add_argument
    add("--config", type=Path, default=SETTINGS, metavar="YAML", help="of the sets")
    add("--data", type=Path, required=True, metavar="FOLDER", help="of the sets' files")
    add("--encoder", required=True, metavar="MODEL", help="folder, or cached name")
    add("--output", type=Path, required=True, metavar="FOLDER", help="model and report")
    add("--set", metavar="NAME", help="the first of the settings, unless told otherwise")
    add("--members", type=positive, default=1, metavar="N", help="(%(default)s)")
    add("--limit", type=int, default=0, metavar="N", help="pairs of a set; 0 is all")
    for field in fields(Recipe):
        option, kind = f"--{field.name.replace('_', '-')}", type(field.default)
        add(option, type=kind, default=field.default, metavar="N", help="(%(default)s)")
    add("--samples", type=positive, default=1000, metavar="N", help="resamples (%(default)s)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())

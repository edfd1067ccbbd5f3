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

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from pydantic import Field
from sklearn.metrics import accuracy_score, roc_auc_score
from transformers import AutoModelForSequenceClassification
from transformers.utils import logging

from gaixie.research.comparison.datasets import DataSet, read_data_set
from gaixie.research.ratings.resampling import bootstrap_interval
from gaixie.research.ratings.tables import source_share
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.metrics.identification import Ensemble, Identifier
from gaixie.udfs.networks import choose_device, load_tokenizer, loading, model_signature
from gaixie.udfs.reports import write_report
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.settings import Strict, load_settings

SETTINGS = Path(__file__).parents[1] / "conf/identification.yaml"
TEMPLATE = Path(__file__).with_name("identification.md.j2")
HELD_OUT, TEST = 0.15, 0.2
"""Shares of the sources: to choose thresholds; to test on, if a set has no test file."""
CLASSES = {0: "different", 1: "paraphrase"}
EPOCHS, BATCH, MAX_TOKENS = 4, 16, 96
RATE, HEAD_RATE = 1e-4, 1e-3
"""AdamW's highest learning rates, of the encoder and of the head."""
FROZEN = 2
"""Number of lowest layers that are not trained; the embeddings never are."""
POOL = 512
"""Pairs that are sorted by length together, so that batches have even lengths but random order."""
WARM_UP = 0.1
"""Share of the steps in which the learning rate rises; it falls linearly in the rest."""
Judged = tuple[pd.DataFrame, np.ndarray]
"""Pairs, and the probability of each."""


class PairSet(DataSet):
    """A set of labelled pairs. ``path`` is all of it, or the training part beside ``test``."""

    test: str | None = None
    positive: float = 1.0
    """Human score from which a pair counts as a paraphrase: of six crowd judgements, 4 (MultiPIT,
    section 3.1)."""
    tie: float | None = None
    """Human score of pairs that are left out, such as 3 of six judgements."""


class Config(Strict):
    """conf/identification.yaml."""

    sets: list[PairSet] = Field(min_length=1)


def main(argv: list[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    parser = make_parser("identify_paraphrases.py", __doc__)
    add = parser.add_argument
    add("--config", type=Path, default=SETTINGS, metavar="YAML", help="of the sets")
    add("--data", type=Path, required=True, metavar="FOLDER", help="of the sets' files")
    add("--encoder", required=True, metavar="MODEL", help="folder, or cached name")
    add("--output", type=Path, required=True, metavar="FOLDER", help="a new one")
    add("--set", metavar="NAME", help="the first of the settings, unless told otherwise")
    add("--members", type=positive, default=1, metavar="N", help="(%(default)s)")
    return run_command("identify_paraphrases", partial(train, parser.parse_args(argv)))


def train(args: argparse.Namespace) -> None:
    """Trains one model or several, and writes the report."""
    if args.output.is_dir() and any(args.output.iterdir()):
        raise ValueError(f"--output {args.output}: the folder is not empty")
    sets = {pairs.name: pairs for pairs in load_settings(Config, args.config).sets}
    name = args.set or next(iter(sets))
    if name not in sets:
        raise ValueError(f"--set {name}: no such set, expected one of {', '.join(sets)}")
    learned, held_out, test = read_parts(sets[name], args.data)
    folders = [args.output, *(args.output / f"member-{k}" for k in range(1, args.members))]
    members = [fit(args.encoder, learned, seed, path) for seed, path in enumerate(folders)]

    def judged(by: Identifier | Ensemble) -> dict[str, Any]:
        sides = ([[*pairs["source"]], [*pairs["paraphrase"]]] for pairs in (held_out, test))
        read = [by.probabilities(*both) for both in sides]
        return report((held_out, read[0]), (test, read[1]))

    result = {
        "set": name,
        "encoder": model_signature(args.encoder),
        "train": len(learned),
        "held_out": len(held_out),
        "held_out_paraphrases": int(held_out["label"].sum()),
        "report": judged(Ensemble(members) if len(members) > 1 else members[0]),
        "members": [judged(member) for member in members] if len(members) > 1 else [],
    }
    print(write_report(TEMPLATE, args.output, result))


# Tables of pairs: columns source, paraphrase, label (true for a paraphrase)


def read_parts(pairs: PairSet, folder: Path) -> list[pd.DataFrame]:
    """Returns pairs to train on, to choose thresholds on, and to report; they share no source.

    Raises FileNotFoundError, or ValueError that names the file, if a part cannot be read or has
    only one class.
    """
    whole = read_pairs(pairs, folder)
    if pairs.test:
        test = read_pairs(pairs.model_copy(update={"path": pairs.test}), folder)
        whole = whole[~whole["source"].isin(test["source"])]
    else:
        on_test = source_share(whole["source"], "test") < TEST
        whole, test = whole[~on_test], whole[on_test]
    whole = whole.iloc[np.argsort(source_share(whole["source"], "limit"), kind="stable")]
    out = source_share(whole["source"], "held-out") < HELD_OUT
    parts = [whole[~out], whole[out], test]
    for name, part in zip(("train", "held-out", "test"), parts, strict=True):
        if part["label"].nunique() < 2:
            fault = f"{len(part)} {name} pairs, expected some of both classes"
            raise ValueError(f"{folder / pairs.path}: {fault}")
    return parts


def read_pairs(pairs: PairSet, folder: Path) -> pd.DataFrame:
    """Reads all pairs of a file except ties. Raises FileNotFoundError or ValueError."""
    table = read_data_set(pairs, folder)
    table = table[table["human"] != pairs.tie]
    return table.assign(label=table["human"] >= pairs.positive)


# Training


def fit(encoder: str, pairs: pd.DataFrame, seed: int, folder: Path) -> Identifier:
    """Trains a classifier from an encoder's or a classifier's weights, and saves it in the folder.

    encoder: folder or cached name. Raises OSError or ValueError if it cannot be loaded.
    """
    torch.manual_seed(seed)  # of a new head
    with loading(encoder, "python research/make_encoder.py makes one"):
        network = AutoModelForSequenceClassification.from_pretrained(
            encoder,
            id2label=CLASSES,
            label2id={name: k for k, name in CLASSES.items()},
            dtype=torch.float32,
            local_files_only=True,
        )
        identifier = Identifier(network, load_tokenizer(encoder), MAX_TOKENS)
    network.to(choose_device("auto"))
    logging.disable_progress_bar()  # saving takes no time, so it needs no bar
    steps = plan(pairs, seed)
    optimizer = torch.optim.AdamW(_trained(network), weight_decay=0.01)
    warm = max(1, WARM_UP * len(steps))
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / warm) * (1 - step / len(steps))
    )
    torch.manual_seed(seed)
    with Progress(f"training {folder.name}", len(steps), "steps") as shown:
        for step, rows in enumerate(steps):
            _loss(identifier, pairs.iloc[rows], swap=bool(step % 2)).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            shown.add(1)
    network.eval().save_pretrained(folder)
    identifier.tokenizer.save_pretrained(folder)
    return identifier


def _trained(network: Any) -> list[dict[str, Any]]:
    """Freezes the lowest layers. Returns the trained parameters, those of the head apart."""
    base = network.base_model
    getattr(base, "embeddings", base.get_input_embeddings()).requires_grad_(False)
    for layer in getattr(getattr(base, "encoder", base), "layer", ())[:FROZEN]:
        layer.requires_grad_(False)
    encoder = [weight for weight in base.parameters() if weight.requires_grad]
    known = {*map(id, base.parameters())}
    head = [weight for weight in network.parameters() if id(weight) not in known]
    return [{"params": encoder, "lr": RATE}, {"params": head, "lr": HEAD_RATE}]


def plan(pairs: pd.DataFrame, seed: int) -> list[np.ndarray]:
    """Returns the rows of each step: similar in length, in random order, each once per epoch."""
    rng = np.random.default_rng(seed)
    lengths = (pairs["source"].str.len() + pairs["paraphrase"].str.len()).to_numpy()
    steps: list[np.ndarray] = []
    for _ in range(EPOCHS):
        order = rng.permutation(len(pairs))
        batches = []
        for pool in np.split(order, range(POOL, len(order), POOL)):
            pool = pool[np.argsort(lengths[pool], kind="stable")]
            batches += np.split(pool, range(BATCH, len(pool), BATCH))
        steps += [batches[k] for k in rng.permutation(len(batches))]
    return steps


def _loss(identifier: Identifier, pairs: pd.DataFrame, swap: bool) -> torch.Tensor:
    identifier.network.train()
    sides = pairs["source"].tolist(), pairs["paraphrase"].tolist()
    logits = identifier.network(**identifier.encode(*sides[:: -1 if swap else 1])).logits
    target = torch.tensor(pairs["label"].to_numpy(), dtype=torch.long, device=logits.device)
    return torch.nn.functional.cross_entropy(logits, target)


# Figures


def best_threshold(label: np.ndarray, probability: np.ndarray) -> float:
    """Returns the threshold with the highest F1, midway between two probabilities; the lowest of
    equals."""
    values = np.unique(probability)
    middles = np.concatenate([values[:1] - 1e-6, (values[1:] + values[:-1]) / 2])
    return float(middles[np.argmax([f1(label, probability > threshold) for threshold in middles])])


def f1(label: np.ndarray, said: np.ndarray) -> float:
    """Returns F1 of the class of paraphrases; 0 without a true positive."""
    both = float(np.sum(said * label))
    return 2 * both / (said.sum() + label.sum()) if both else 0.0


def crossed(pairs: pd.DataFrame, probability: np.ndarray) -> np.ndarray:
    """Classifies each half of the sources by the other's best threshold: bool, shape (rows,)."""
    label = pairs["label"].to_numpy()
    first = source_share(pairs["source"], "halves") < 0.5
    said = np.zeros(len(label), bool)
    for own, other in ((first, ~first), (~first, first)):
        if own.any() and other.any():
            said[own] = probability[own] > best_threshold(label[other], probability[other])
    return said


def auc(label: np.ndarray, probability: np.ndarray) -> float:
    """Returns the area under the ROC curve; NaN if a class is missing."""
    return float(roc_auc_score(label, probability)) if 0 < label.sum() < len(label) else np.nan


def report(held_out: Judged, test: Judged, samples: int = 1000) -> dict[str, Any]:
    """Returns test figures at thresholds: 0.5, the held-out part's best, the other half's; with
    95 % intervals, by bootstrap over sources."""
    pairs, probability = test
    label, sources = pairs["label"].to_numpy(), pairs["source"].to_numpy(str)

    def figure(of, said: np.ndarray) -> dict[str, float]:
        low, high = bootstrap_interval(of, (label, said), sources, samples)
        return {"score": float(of(label, said)), "low": low, "high": high}

    apart = held_out[0]["label"].to_numpy()
    threshold = best_threshold(apart, held_out[1])
    found = {
        "threshold": threshold,
        "held_out_auc": auc(apart, held_out[1]),
        "auc": figure(auc, probability),
        "pairs": len(label),
        "paraphrases": int(label.sum()),
    }
    ways = {"half": probability > 0.5, "held_out": probability > threshold}
    for name, said in (ways | {"crossed": crossed(pairs, probability)}).items():
        found[name] = {"f1": figure(f1, said), "accuracy": figure(accuracy_score, said)}
    return found


if __name__ == "__main__":
    sys.exit(main())

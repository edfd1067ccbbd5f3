"""Real pairs for a first paraphraser, and sentences held out to judge it.

  python examples/paraphraser/prepare.py ../shared/data out/paraphraser/data

DATA has wmt_en_zh_translations.parquet (several Chinese translations of each English sentence),
mlqe_pe_en_zh.train.jsonl (machine translations and their post-edits), cip_idiom.in_domain.csv
(sentences with an idiom, and without) and zh_sentences.parquet (plain sentences).

  OUTPUT/parallel/pairs.parquet   translations of one English sentence, in both directions
  OUTPUT/human/pairs.parquet      post-edits and idioms
  OUTPUT/sentences.parquet        all sentences, for the vocabulary and for denoising
  OUTPUT/held-out.parquet         source, and mt: another translation; of English without a pair

Pairs have the column group, by which every later split goes.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.training.modeling.generator import SPACE_BESIDE_CHINESE
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.text.normalise import normalise

FILES = (
    "wmt_en_zh_translations.parquet",
    "mlqe_pe_en_zh.train.jsonl",
    "cip_idiom.in_domain.csv",
    "zh_sentences.parquet",
)
SEED = 7
HELD_OUT = 1_000
SHORTEST, LONGEST, LONGEST_HELD_OUT = 15, 50, 40
"""Characters of a sentence."""


def main() -> int:
    parser = make_parser("prepare.py", __doc__)
    parser.add_argument("data", metavar="DATA", type=Path)
    parser.add_argument("output", metavar="OUTPUT", type=Path)
    args = parser.parse_args()
    return run_command("prepare", partial(prepare, args.data, args.output))


def prepare(data: Path, output: Path) -> None:
    """The command: reads DATA, writes OUTPUT."""
    for name in FILES:
        if not (data / name).is_file():
            raise FileNotFoundError(
                f"{data / name}: no such file; DATA is a folder with {', '.join(FILES)}"
            )
    wmt = pq.read_table(data / "wmt_en_zh_translations.parquet").to_pandas()
    texts = [sorted({*map(normalise, filter(None, row))}) for row in wmt.translations_zh]
    held_out = _held_out(texts)
    pq.write_table(pa.Table.from_pylist(held_out), _new(output / "held-out.parquet"))
    apart = {wmt.source_en[row["row"]] for row in held_out}
    known = {text for row in held_out for text in texts[row["row"]]}

    pairs = [
        (source, paraphrase, f"wmt-{row}")
        for row, own in enumerate(texts)
        if wmt.source_en[row] not in apart
        for source in own
        for paraphrase in own
        if source != paraphrase
    ]
    parallel = _usable(pd.DataFrame(pairs, columns=["source", "paraphrase", "group"]), known)
    human = _usable(pd.concat([_post_edits(data), _idioms(data)]), known)
    for name, frame in (("parallel", parallel), ("human", human)):
        _write(frame, output / name / "pairs.parquet")
    plain = pd.read_parquet(data / "zh_sentences.parquet").text.map(normalise)
    pools = [plain[plain.map(_fits)], *(f[c] for f in (parallel, human) for c in f.columns[:2])]
    sentences = pd.concat(pools).drop_duplicates().sample(frac=1, random_state=SEED)
    _write(sentences[~sentences.isin(known)].to_frame("text"), output / "sentences.parquet")
    print(
        f"{len(parallel):,} parallel and {len(human):,} human pairs, {len(sentences):,} sentences"
    )


def _held_out(texts: list[list[str]]) -> list[dict[str, object]]:
    """Two translations each of some English sentences, drawn by SEED."""
    random = np.random.default_rng(SEED)
    lists = {k: [t for t in own if _fits(t, LONGEST_HELD_OUT)] for k, own in enumerate(texts)}
    lists = {k: own for k, own in lists.items() if len(own) > 1}
    drawn = random.permutation(list(lists))[:HELD_OUT].tolist()
    both = [random.permutation(lists[k])[:2].tolist() for k in drawn]
    return [{"source": a, "mt": b, "row": k} for k, (a, b) in zip(drawn, both, strict=True)]


def _post_edits(data: Path) -> pd.DataFrame:
    frame = pd.read_json(data / "mlqe_pe_en_zh.train.jsonl", lines=True)[["mt_zh", "pe_zh"]]
    frame = frame.map(lambda text: SPACE_BESIDE_CHINESE.sub("", normalise(text)))
    return _grouped(frame, "mlqe")


def _idioms(data: Path) -> pd.DataFrame:
    frame = pd.read_csv(data / "cip_idiom.in_domain.csv")[["src", "dst"]].dropna()
    return _grouped(frame.map(normalise), "idiom")


def _grouped(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    frame = frame.set_axis(["source", "paraphrase"], axis=1)
    return frame.assign(group=[f"{name}-{row}" for row in range(len(frame))])


def _usable(frame: pd.DataFrame, known: set[str]) -> pd.DataFrame:
    """Pairs of two different sentences that fit and are not held out, shuffled."""
    sides = frame[["source", "paraphrase"]]
    fit = sides.map(lambda text: _fits(text) and text not in known).all(axis=1)
    return frame[fit & (frame.source != frame.paraphrase)].sample(frac=1, random_state=SEED)


def _fits(text: str, longest: int = LONGEST) -> bool:
    return SHORTEST <= len(text) <= longest


def _write(frame: pd.DataFrame, path: Path) -> None:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, _new(path), row_group_size=100_000, compression="zstd")


def _new(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


if __name__ == "__main__":
    sys.exit(main())

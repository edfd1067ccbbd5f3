"""Makes a small published run of three stages, a tokenizer, and settings that train in seconds."""

from itertools import chain, islice, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from manifests import write_scored
from shared import ROOT
from tiny_models import bart_sizes

from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.udfs.text.entities import load_settings

TIMES = [("早上", "清晨"), ("下午", "午后"), ("晚上", "夜里"), ("周末", "周六和周日")]
PEOPLE = [("老师", "教员"), ("孩子", "小朋友"), ("医生", "大夫"), ("爸爸", "父亲")]
PLACES = [("学校", "校园"), ("公园", "花园"), ("医院", "诊所"), ("商店", "铺子")]
DEEDS = [("看书", "读书"), ("散步", "走一走"), ("唱歌", "唱几首歌"), ("休息", "歇一会儿")]
WORDS = sorted({*chain(*TIMES, *PEOPLE, *PLACES, *DEEDS)})


SENTENCES = {
    1: (
        "{year}年{time[0]}，{who[0]}在{where[0]}里{deed[0]}。",
        "{year}年{time[0]}，{who[0]}在{where[0]}里{deed[1]}。",
    ),
    2: (
        "{who[0]}在{year}年的{time[0]}去{where[0]}里{deed[0]}，大家都很高兴。",
        "{who[1]}在{year}年的{time[1]}去{where[0]}里{deed[1]}，大家都很高兴。",
    ),
    3: (
        "因为天气好，{who[0]}说{year}年{time[0]}要到{where[0]}里{deed[0]}，我们也一起去。",
        "{where[1]}里会很热闹：天气好，{who[1]}说{year}年{time[1]}去那里{deed[1]}，我们同去。",
    ),
}
"""By stage: a pair. Later stages have longer and more different pairs."""


def pairs(stage: int, count: int) -> list[tuple[str, ...]]:
    """Returns pairs with distinct sources."""
    found = []
    for year, *words in product(range(2001, 2121), TIMES, PEOPLE, PLACES, DEEDS):
        given = dict(zip(("time", "who", "where", "deed"), words, strict=True))
        found.append(tuple(text.format(year=year, **given) for text in SENTENCES[stage]))
    step = (len(found) - 6_000) // count | 1  # odd, so every part of the sentence changes
    return [*islice(found[::step], count)]


def write_run(
    root: Path, run_id: str = "tiny", stages: dict[int, int] | None = None, rows_a_group: int = 40
) -> str:
    """Publishes a run like jobs/score_corpus.py, one file per stage. Returns its URI.

    stages: pairs of each.
    """
    tables = {}
    for stage, count in (stages or {1: 240, 2: 160, 3: 120}).items():
        source, paraphrase = zip(*pairs(stage, count), strict=True)
        ids = [f"{stage}-{number}" for number in range(len(source))]
        columns = {"pair_id": ids, "source": source, "paraphrase": paraphrase}
        tables["parallel", stage] = pa.table(columns)
    return write_scored(root / "runs" / run_id, tables, row_group_size=rows_a_group)


def write_tokenizer(folder: Path) -> str:
    """Writes a tokenizer with a few hundred tokens: the sentences' words, characters, and bytes."""
    rest = {*"".join(chain(*(chain(*pairs(stage, 400)) for stage in SENTENCES)))}
    words = [*WORDS, *sorted(rest - set("".join(WORDS)) - set("0123456789，。："))]
    entities = load_settings(ROOT / "conf/entities.yaml")
    EntityAlignedTokenizer.from_words(words, entities, indices=2).save_pretrained(folder)
    return str(folder)


MODEL = bart_sizes(32, 64) | {"dropout": 0.0, "attention_dropout": 0.0, "init_std": 0.05}


def settings(run: str, tokenizer: str, output: Path, /, **changes: Any) -> dict[str, Any]:
    """Returns settings like conf/curriculum.yaml's, with three stages of 8 steps.

    changes: keys of the top level; those of ``trainer`` are added to the others there.
    """
    trainer = {
        "bf16": False,
        "learning_rate": 0.005,
        "warmup_steps": 2,
        "max_steps": 8,
        "eval_steps": 4,
        "save_steps": 4,
        "logging_steps": 1,
        "dataloader_num_workers": 0,
        "report_to": "none",
    }
    values: dict[str, Any] = {
        "data": {"uri": run, "validation": 0.1, "test": 0.05},
        "tokenizer": tokenizer,
        "output": str(output),
        "model": {"config": MODEL},
        "batch": {"pairs": 16, "micro_pairs": 8},
        "max_length": 64,
        "controller": {"accuracy": 0.9, "patience": 2},
        "evaluation": {"pairs": 12, "generate": 4, "max_new_tokens": 12},
    }
    return values | changes | {"trainer": trainer | changes.get("trainer", {})}


def write_settings(path: Path, values: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump(values, allow_unicode=True), "utf-8")
    return str(path)

"""The experiment: splits, noise, equal conditions for every arm, intervals, and a small run."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from accelerate.state import AcceleratorState, GradientState, PartialState
from manifests import write_scored
from tiny_run import pairs
from tiny_seq2seq import tiny_seq2seq

from gaixie.research.benchmarks import experiment
from gaixie.research.benchmarks.experiment import ARMS, Experiment
from gaixie.research.benchmarks.experiment_data import noised, write_experiment
from gaixie.research.benchmarks.experiment_report import SAMPLES, SEED, _line, crossed_means
from gaixie.training import curriculum, evaluate
from gaixie.udfs.metrics import bootstrap
from gaixie.udfs.storage.settings import load_settings
from gaixie.udfs.text.normalise import normalise

CONFIG = Path(experiment.__file__).with_suffix(".yaml")
SMALL = CONFIG.with_name("experiment_small.yaml")
SENTENCE = "第{}个学生昨天下午在图书馆里安静地读完了一本很厚的书，第{}页也没有漏。"


def load(path: Path = CONFIG) -> Experiment:
    return load_settings(Experiment, path)


# The data


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Returns miniature shared data: 30 English sentences, two with a common translation."""
    folder = tmp_path_factory.mktemp("data")
    lists = [[SENTENCE.format(k, j) for j in range(3)] for k in range(30)]
    lists[7].append(lists[3][0])
    english = [f"Student {k}  read it." for k in range(30)]
    # The first sentence occurs twice, with another system's translation and other spaces.
    table = {
        "source_en": [*english, "Student 0 read it."],
        "translations_zh": [*lists, [SENTENCE.format(0, 9)]],
    }
    pq.write_table(pa.table(table), folder / "wmt_en_zh_translations.parquet")
    rows = [
        {"mt_zh": SENTENCE.format(100 + k, 1), "pe_zh": SENTENCE.format(100 + k, 2)}
        for k in range(9)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "mlqe_pe_en_zh.train.jsonl").write_text(text)
    for place, part in enumerate(("in_domain", "out_domain")):
        start = 200 + 100 * place
        columns = {
            n: [SENTENCE.format(start + k, j) for k in range(9)]
            for j, n in enumerate(("src", "dst"))
        }
        pd.DataFrame(columns).to_csv(folder / f"cip_idiom.{part}.csv")
    return folder


@pytest.fixture(scope="module")
def written(data, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    write_experiment(data, folder, tested=4, validated=3, noise=0.2)
    return folder


def test_splits_go_by_english_sentence(data, written):
    test, validation = (
        pd.read_parquet(written / f"{name}.parquet") for name in ("test", "validation")
    )
    train = pd.concat([pd.read_parquet(p) for p in sorted((written / "pairs").glob("*/*.parquet"))])
    assert test["table"].value_counts().to_dict() == {"wmt": 4, "mlqe": 4, "idioms": 4}
    assert len(validation) == 3
    groups = [{*frame["group"]} for frame in (train, test, validation)]
    assert not groups[0] & groups[1]
    assert not groups[0] & groups[2]
    assert not groups[1] & groups[2]
    # A translation of a held-out English sentence is excluded even where another sentence has it.
    table = pq.read_table(data / "wmt_en_zh_translations.parquet").to_pylist()
    numbers = {" ".join(row["source_en"].split()): None for row in table}
    name_of = {text: f"wmt-{k}" for k, text in enumerate(numbers)}
    apart = {
        normalise(text)
        for row in table
        for text in row["translations_zh"]
        if name_of[" ".join(row["source_en"].split())] in groups[1] | groups[2]
    }
    apart |= {text for name in ("source", "mt", "human") for text in test[name].dropna()}
    assert apart
    assert apart.isdisjoint({*train["source"], *train["paraphrase"]})


def test_noise():
    texts = [SENTENCE.format(k, k) for k in range(200)]
    made = noised(texts, 0.2)
    assert made == noised(texts, 0.2)
    assert all(a != b for a, b in zip(texts, made, strict=True))
    lengths = np.array([len(b) / len(a) for a, b in zip(texts, made, strict=True)])
    assert lengths.min() < 1 < lengths.max()  # some words are dropped, some doubled
    assert lengths.mean() == pytest.approx(1, abs=0.03)
    assert all(text.count("，") == 1 for text in made)


# The arms


@pytest.mark.parametrize("config", [CONFIG, SMALL])
def test_all_arms_have_the_same_chances(tmp_path, config):
    own = load(config)
    asked = [own.training_of(arm, 1, tmp_path, "start") for arm in ARMS]
    for settings in asked:
        budgets = [settings.stage(number).max_steps for number in settings.numbers]
        assert sum(budgets) == sum(own.stages)
        assert all(budget % settings.evaluation.steps == 0 for budget in budgets)
        assert settings.evaluation.steps == own.evaluate_every
        assert settings.controller.patience >= sum(own.stages)  # only the budget ends a stage
    # Apart from these, arms differ only by their definition.
    plain = [s.model_dump(exclude={"output", "curriculum", "stages"}) for s in asked]
    for values, arm in zip(plain, ARMS, strict=True):
        floors = [values["data"].pop(name) for name in ("min_meaning", "min_fluency")]
        assert floors == ([None, None] if arm == "unfiltered" else [*own.floors.values()])
        assert values == plain[0]


def test_bad_settings(tmp_path, refused):
    line = ["--data", tmp_path, "--output", tmp_path / "out", "--set", "stages=[100, 150, 200]"]
    refused(experiment.main, line, "expected multiples of evaluate_every")
    assert not (tmp_path / "out").exists()


# Intervals


def test_intervals_over_seeds_and_sources():
    """Means over counts must equal means over the drawn rows themselves."""
    random = np.random.default_rng(0)
    values = random.normal(size=(3, 12))
    values[1, 5] = np.nan
    groups = np.arange(12) // 2
    found = crossed_means(values, groups, seed=4)
    seeds = bootstrap.resamples(3, SAMPLES, SEED + 5)
    drawn = zip(seeds, bootstrap.resamples(6, SAMPLES, SEED), strict=True)
    for mean, (of_seeds, of_groups) in [*zip(found, drawn, strict=True)][:50]:
        rows = np.concatenate([np.flatnonzero(groups == g) for g in of_groups])
        assert mean == pytest.approx(np.nanmean(values[np.ix_(of_seeds, rows)]))


def test_differences_from_the_curriculum():
    """A difference must equal the one set by hand, and be bold only if its interval excludes 0."""
    noise = np.random.default_rng(1).normal(scale=0.01, size=(2, 40))
    curriculum, together, third = (
        {"score": base + noise, "other": np.full((2, 40), np.nan)} for base in (0.5, 0.3, 0.5)
    )
    measures = [{"name": "score", "digits": 2}, {"name": "other", "digits": 2}]
    rows = [
        _line("name", measures, np.arange(40), [(curriculum, 0), (other, place)])
        for place, other in ((1, together), (2, third))
    ]
    assert rows[0] == ["name", "**0.20 (0.20 to 0.20)**", "–"]
    assert rows[1][1].startswith(("0.00 (", "-0.00 ("))
    assert _line("one", measures[:1], np.arange(40), [(together, 1)])[1].startswith("0.30 (")


# To its end


def scored(stage: int) -> pa.Table:
    """Returns pairs of a stage with judgements and groups."""
    rows = pairs(max(stage, 1), 160 + stage)[stage:]
    columns = {
        "pair_id": [f"{stage}-{k}" for k in range(len(rows))],
        "source": [a for a, _ in rows],
        "paraphrase": [b for _, b in rows],
        "group": [f"g{stage}-{k // 2}" for k in range(len(rows))],
    }
    judged = ("structure", "synonyms", "meaning", "fluency")
    return pa.table(columns | {name: [0.5] * len(rows) for name in judged})


@pytest.fixture(scope="module")
def prepared(written, tmp_path_factory) -> tuple[Path, Path]:
    """Returns (experiment's folder with data and run, start model), as the arms need them."""
    root = tmp_path_factory.mktemp("experiment")
    for name in ("test.parquet", "validation.parquet"):
        shutil.copyfile(written / name, root / name)
    write_scored(root / "runs/pairs", {("parallel", stage): scored(stage) for stage in range(4)})
    return root, Path(tiny_seq2seq(tmp_path_factory.mktemp("start")))


def in_this_process(calls: list[str]):
    """Returns a replacement of run_script that works in this process and saves the imports."""

    def run_script(script: str, *arguments: str) -> None:
        calls.append(script)
        for state in (AcceleratorState, GradientState, PartialState):
            state._reset_state()
        main = {"training/curriculum.py": curriculum.main, "training/evaluate.py": evaluate.main}[
            script
        ]
        assert main([*arguments]) == 0, arguments

    return run_script


def test_a_small_one(prepared, tmp_path, monkeypatch, capsys, refused):
    root, start = prepared
    calls: list[str] = []
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    torch.set_num_threads(1)
    monkeypatch.setattr(experiment, "run_script", in_this_process(calls))
    monkeypatch.setattr("gaixie.training.loop.plots.draw", lambda output: None)
    line = ["--data", str(tmp_path), "--config", str(SMALL), "--output", str(root)]
    line += ["--start", str(start), "--set", "training.workers=0", "--seeds", "1"]
    line += ["--set", "stages=[2, 2, 4]", "--set", "evaluate_every=2"]
    monkeypatch.setattr(experiment, "JUDGES", ("spscore:tier=paper", "self-bleu"))
    assert experiment.main(line) == 0
    assert calls == [
        "training/evaluate.py",
        *["training/curriculum.py", "training/evaluate.py"] * 4,
    ]
    text = (root / "experiment.md").read_text("utf-8")
    for arm in ARMS:
        folder = root / arm / "seed-1"
        assert [json.loads(row)["step"] for row in (folder / "history.jsonl").open()] == [
            2,
            4,
            6,
            8,
        ]
        assert not (folder / "checkpoints").exists()
        assert f"| {arm} | 1 | 8 | 4 |" in text
        # Once in the trainings, and in means and differences of three tables.
        assert text.count(f"\n| {arm} |") == 1 + (3 if arm == "curriculum" else 6)
    for part in (
        "\n| noised |",
        "\n| copy |",
        "\n## wmt",
        "\n## mlqe",
        "\n## idioms",
        "SPScore-zh paper ↑",
    ):
        assert part in text
    assert text.count("\n| mt |") == 1  # only one table has it
    assert text.count("\n| human |") == 2
    _, outputs = text.split("## Outputs")
    assert outputs.count("\n| ") == 2 + 4
    assert "nan" not in text

    # A second call does nothing but the report.
    calls.clear()
    assert experiment.main(line) == 0
    assert (root / "experiment.md").read_text("utf-8") == text
    capsys.readouterr()
    assert experiment.main([*line, "--dry-run", "--seeds", "2"]) == 0
    assert capsys.readouterr().out.count(", finished") == 4
    assert calls == []

    # Other settings are refused in the same folder.
    other = [*line, "--set", "floors.min_meaning=0.1"]
    refused(experiment.main, other, "what is there differs in floors")
    assert calls == []

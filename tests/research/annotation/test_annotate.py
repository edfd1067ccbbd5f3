"""research/annotate.py must write tasks, read answers, name careless people, and make ratings."""

import json
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gaixie.research import annotate
from gaixie.research.annotation.sampling import sample
from gaixie.research.annotation.tasks import FIELDS, RATINGS, read_plan
from gaixie.research.fitting.data import Rated, read_rated
from gaixie.udfs.storage import storage

EXAMPLES = Path(__file__).parents[3] / "examples/pairs.jsonl"
NAMES = ["anna", "bo", "chen"]
CHECKS = {"copy": [0, 0, 5, 5, 0, 1], "unrelated": [5, 5, 0, 5, 0, 0]}
COLUMNS = ["source", "paraphrase", "origin", "spscore"]


@pytest.fixture(scope="module")
def known() -> pd.DataFrame:
    """Returns the example pairs with ratings, indexed by both texts."""
    pairs = pd.read_json(EXAMPLES, lines=True)
    pairs["structure"], pairs["synonyms"] = pairs["rated_structure"], pairs["rated_synonym"]
    pairs["meaning"], pairs["fluency"] = pairs["rated_consistency"], 4
    pairs["overall"] = pairs["rated"].round().astype(int)
    pairs["is_paraphrase"] = (pairs["meaning"] >= 4).astype(int)
    pairs["spscore"] = pairs["rated"] / 5
    return pairs.set_index(["source", "paraphrase"])


@pytest.fixture(scope="module")
def folder(known, tmp_path_factory) -> Path:
    """Returns a folder with tasks of 40 pairs for three people, two people per pair."""
    folder = tmp_path_factory.mktemp("annotation")
    known.reset_index()[COLUMNS].to_parquet(folder / "pairs.parquet")
    line = ["export", str(folder / "pairs.parquet"), "--output", str(folder / "tasks")]
    assert annotate.main([*line, "--pairs", "40", "--annotators", *NAMES]) == 0
    return folder


@pytest.fixture(scope="module")
def plan(folder) -> pd.DataFrame:
    return read_plan(str(folder / "tasks"))


def right(known: pd.DataFrame, task: pd.Series) -> list[int]:
    """Returns the answers of a careful annotator."""
    if task.kind in CHECKS:
        return CHECKS[task.kind]
    return [int(known.loc[(task.source, task.paraphrase), name]) for name in FIELDS]


def export(
    plan: pd.DataFrame, known: pd.DataFrame, path: Path, name: str, kind: str, answer
) -> Path:
    """Writes an annotator's project as Label Studio exports it."""
    rows = []
    for number, task in enumerate(plan[plan["annotator"] == name].itertuples()):
        values = [str(v) for v in answer(name, number, right(known, task))]
        data = {"task": task.task, "source": task.source, "paraphrase": task.paraphrase}
        if kind != "json":
            rows.append(
                {"id": number} | data | dict(zip(FIELDS, values, strict=True)) | {"annotator": 7}
            )
            continue
        result = [
            {"from_name": f, "type": "choices", "value": {"choices": [v]}}
            for f, v in zip(FIELDS, values, strict=True)
        ]
        result[4] = {"from_name": "overall", "type": "rating", "value": {"rating": int(values[4])}}
        done = {"completed_by": 7, "was_cancelled": False, "result": result}
        skipped = {"was_cancelled": True, "result": []}
        rows.append({"id": number, "data": data, "annotations": [skipped, done]})
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    else:
        path.write_text(json.dumps(rows), "utf-8")
    return path


def fill(plan, known, output: Path, answer=lambda name, number, values: values) -> Path:
    """Writes the exports of all annotators.

    answer: makes answers from (annotator, number of the task, right answers).
    """
    for name in NAMES:
        export(plan, known, output / f"{name}.json", name, "min", answer)
    return output


@pytest.fixture(scope="module")
def filled(plan, known, folder) -> Path:
    """Returns answers: Anna is right, Bo is often one step milder, Chen answers at random."""
    draw = np.random.default_rng(5)

    def answer(name, number, values):
        if name == "chen":
            return [*draw.integers(0, 6, 5), draw.integers(0, 2)]
        if name == "bo" and number % 3 == 0:
            return [min(value + 1, 5) for value in values[:5]] + values[5:]
        return values

    return fill(plan, known, folder / "filled", answer)


def read_back(folder: Path, output: Path, *more: object) -> pd.DataFrame:
    line = ["import", str(folder / "tasks"), "--output", str(output), *map(str, more)]
    assert annotate.main(line) == 0
    return pd.read_parquet(output / "ratings.parquet")


def told_of(output: Path) -> dict:
    return json.loads((output / "annotation.json").read_text("utf-8"))


def test_the_plan_is_balanced_and_hides_its_checks(plan, folder):
    kinds = Counter(zip(plan["annotator"], plan["kind"], strict=True))
    of_pair = plan[plan["kind"] == "pair"].groupby("pair")["annotator"].agg(frozenset)
    assert len(of_pair) == 40
    assert set(of_pair.map(len)) == {2}
    for name in NAMES:
        assert 26 <= kinds[name, "pair"] <= 27
        assert [kinds[name, kind] for kind in ("repeat", "copy", "unrelated")] == [3, 3, 3]
    met = of_pair.value_counts()
    assert len(met) == 3
    assert met.max() - met.min() <= 2
    own = plan[plan["annotator"] == "bo"].reset_index()
    for repeat in own[own["kind"] == "repeat"].itertuples():
        [first, second] = own.index[own["pair"] == repeat.pair]
        assert second - first >= 8
    tasks = json.loads((folder / "tasks/label_studio/bo.json").read_text("utf-8"))
    assert [task["data"]["task"] for task in tasks] == [*own["task"]]
    assert {*tasks[0]["data"]} == {"task", "source", "paraphrase"}
    config = ET.fromstring((folder / "tasks/label_studio/config.xml").read_text("utf-8"))
    assert [element.get("name") for element in config.iter("Choices")] == FIELDS
    assert len(config.findall("Choices[@name='meaning']/Choice")) == 6


def test_strata_are_sampled_evenly(plan, known):
    chosen = plan[plan["kind"] == "pair"].drop_duplicates("pair")
    strata, there = (
        table.groupby(["origin", np.minimum(table["spscore"] * 5, 4).astype(int)]).size()
        for table in (chosen, known.reset_index())
    )
    assert len(chosen["origin"].unique()) == 4
    assert (strata.reindex(there.index, fill_value=0) >= np.minimum(2, there)).all()


def test_the_sample_does_not_depend_on_the_order_of_rows(known, plan, tmp_path):
    shuffled = known.reset_index()[COLUMNS].sample(frac=1, random_state=3)
    shuffled.to_csv(tmp_path / "pairs.csv", index=False)
    pairs, _ = sample(str(tmp_path / "pairs.csv"), 40, 6, 1)
    assert {*pairs["pair"]} == {*plan["pair"]}
    assert {*sample(str(tmp_path / "pairs.csv"), 40, 6, 2)[0]["pair"]} != {*plan["pair"]}


def test_one_pair_of_a_group(tmp_path):
    rows = [
        (f"第{k}个句子是这样写的，没有别的。", f"这就是第{k}个句子的写法。", str(k % 4))
        for k in range(40)
    ]
    pd.DataFrame(rows, columns=["source", "paraphrase", "group"]).to_parquet(tmp_path / "p.parquet")
    pairs, _ = sample(str(tmp_path / "p.parquet"), 10, 0, 1)
    assert sorted(pairs["group"]) == ["0", "1", "2", "3"]


def test_the_careless_one_is_named_with_the_reason(folder, filled):
    rated = read_back(folder, folder / "rated", filled, "--drop-careless")
    told = told_of(folder / "rated")
    assert told["dropped"] == ["chen"]
    reasons = "; ".join(told["people"]["chen"]["careless"])
    assert "attention pairs" in reasons
    assert "repeated pairs" in reasons
    everybody, others = told["agreements"].values()
    assert everybody["meaning"]["value"] < 0.8 < others["meaning"]["value"]
    assert "chen: failed" in (folder / "rated/annotation.md").read_text("utf-8")
    assert len(rated) == told["rated"]
    assert set(rated["passes"]) == {1, 2}


@pytest.mark.parametrize(
    "answer", [lambda value: 3, lambda value: 5 - value], ids=["one answer", "turned round"]
)
def test_who_answers_unlike_the_others_is_careless(plan, known, folder, tmp_path, answer):
    def own(name, number, values):
        if values in CHECKS.values() or name != "bo":
            return values
        return [answer(value) for value in values[:5]] + values[5:]

    read_back(folder, tmp_path / "out", fill(plan, known, tmp_path / "filled", own))
    people = told_of(tmp_path / "out")["people"]
    assert [sign.partition(" is")[0] for sign in people["bo"]["careless"]] == [
        "Spearman with the others"
    ]


@pytest.mark.parametrize("name", ["anna.json", "anna-min.json", "anna.csv"])
def test_every_export_of_label_studio(folder, plan, known, tmp_path, name):
    kind = "json" if name == "anna.json" else "min"
    path = export(plan, known, tmp_path / name, "anna", kind, lambda *given: given[-1])
    rated = read_back(folder, tmp_path / "r", path).set_index(["source", "paraphrase"])
    assert len(rated) >= 26
    expected = known.loc[rated.index, FIELDS]
    pd.testing.assert_frame_equal(
        rated[FIELDS], expected, check_dtype=False, check_index_type=False
    )


def test_fit_spscore_reads_the_ratings(folder, filled, tmp_path):
    read_back(folder, tmp_path, filled, "--drop-careless")
    rated = read_rated(Rated(name="r", path="ratings.parquet"), tmp_path)
    assert rated[RATINGS].to_numpy().max() <= 1
    assert (rated["passes"] > 1).any()


def test_medians_and_disputes(folder, plan, known, tmp_path):
    """Bo reverses every other answer: only those pairs may be disputed, rated the mean of both."""

    def answer(name, number, values):
        turned = [5 - value for value in values[:5]] + values[5:]
        return turned if (name, number % 2) == ("bo", 0) else values

    rated = read_back(folder, tmp_path / "a", fill(plan, known, tmp_path / "filled", answer))
    both = set(plan[(plan["annotator"] == "bo") & (plan["kind"] == "pair")]["pair"])
    turned = set(plan[plan["annotator"] == "bo"].iloc[::2]["pair"]) & both
    disputed = set(rated[rated["disputed"]]["pair_id"])
    assert disputed
    assert disputed <= turned
    assert (rated[rated["disputed"]]["overall"] == 2.5).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"structure": "6"}, "structure is '6', expected a whole number from 0 to 5"),
        ({"meaning": "好"}, "meaning is '好', expected a whole number from 0 to 5"),
        ({"is_paraphrase": "2"}, "is_paraphrase is '2', expected a whole number from 0 to 1"),
        ({"fluency": ""}, "fluency is '', expected a whole number from 0 to 5"),
        ({"task": "x-1"}, "task 'x-1' is not in the plan"),
        ({"task": "anna-0001"}, "task 'anna-0001' is answered twice"),
    ],
)
def test_an_answer_that_is_none(folder, filled, tmp_path, refused, change, message):
    rows = json.loads((filled / "anna.json").read_text("utf-8"))
    rows[3] |= change
    (tmp_path / "anna.json").write_text(json.dumps(rows), "utf-8")
    line = ["import", str(folder / "tasks"), str(tmp_path), "--output", str(tmp_path / "r")]
    assert f"{tmp_path / 'anna.json'}: task " in refused(annotate.main, line, message)
    assert not (tmp_path / "r").exists()


def test_mistakes_are_one_line(folder, tmp_path, refused):
    tasks, pairs = str(folder / "tasks"), str(folder / "pairs.parquet")
    for name, text in (("p.csv", "source,text\na,b\n"), ("no.json", "[]"), ("x.json", "{3}")):
        (tmp_path / name).write_text(text, "utf-8")
    to = ["--output", str(tmp_path / "t")]
    out = ["export", pairs, *to, "--annotators"]
    cases = [
        (["import", str(tmp_path), "x.json", *to], "plan.json: no such file; annotate.py export"),
        (["import", tasks, str(tmp_path / "no.json"), *to], "no column 'task'"),
        (["import", tasks, str(tmp_path / "x.json"), *to], "not what Label Studio exports"),
        (["import", tasks, str(tmp_path / "no.csv"), *to], "no.csv: no such file"),
        ([*out, "a", "a"], "--annotators a: expected different names"),
        ([*out, "a"], "--overlap 2: there are 1 annotators"),
        (["export", pairs, "--output", tasks, "--annotators", "a", "b"], "has a plan already"),
        (["export", str(tmp_path / "p.csv"), *out[2:], "a", "b"], "no column 'paraphrase'"),
    ]
    for line, message in cases:
        refused(annotate.main, line, message)


def test_in_an_object_store(folder, plan, known, admin, tmp_path):
    root = f"s3://{admin.BUCKET}/annotation"
    storage.copy(str(folder / "pairs.parquet"), f"{root}/pairs.parquet")
    line = ["export", f"{root}/pairs.parquet", "--output", f"{root}/tasks", "--pairs", "40"]
    assert annotate.main([*line, "--annotators", *NAMES]) == 0
    pd.testing.assert_frame_equal(read_plan(f"{root}/tasks"), plan)
    for path in fill(plan, known, tmp_path / "filled").iterdir():
        storage.copy(str(path), f"{root}/filled/{path.name}")
    line = ["import", f"{root}/tasks", f"{root}/filled", "--output", f"{root}/rated"]
    assert annotate.main(line) == 0
    with storage.open_file(f"{root}/rated/ratings.parquet") as file:
        assert len(pd.read_parquet(file)) == 40

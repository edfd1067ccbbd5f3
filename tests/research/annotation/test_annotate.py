"""research/annotate.py: sheets out, answers back, careless people named, and a table that fit_spscore takes."""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gaixie.research import annotate, fit_spscore
from gaixie.research.annotation.plan import FIELDS, RATINGS, Plan, read_plan
from gaixie.research.annotation.sampling import sample
from gaixie.research.annotation.sheets import read_lines
from gaixie.research.fitting.data import Rated, read_rated
from gaixie.udfs.storage import storage

EXAMPLES = Path(__file__).parents[3] / "examples/pairs.jsonl"
NAMES = ["anna", "bo", "chen"]


@pytest.fixture(scope="module")
def known() -> pd.DataFrame:
    """The example pairs with ratings, by both texts."""
    pairs = pd.read_json(EXAMPLES, lines=True)
    pairs["structure"], pairs["synonyms"] = pairs["rated_structure"], pairs["rated_synonym"]
    pairs["meaning"], pairs["fluency"] = pairs["rated_consistency"], 4
    pairs["overall"] = pairs["rated"].round().astype(int)
    pairs["is_paraphrase"] = (pairs["meaning"] >= 4).astype(int)
    pairs["spscore"] = pairs["rated"] / 5
    return pairs.set_index(["source", "paraphrase"])


@pytest.fixture(scope="module")
def folder(known, tmp_path_factory) -> Path:
    """Tasks of 40 pairs for three people, two for each pair."""
    folder = tmp_path_factory.mktemp("annotation")
    table = known.reset_index()[["source", "paraphrase", "origin", "spscore"]]
    table.to_parquet(folder / "pairs.parquet")
    line = ["export", str(folder / "pairs.parquet"), "--output", str(folder / "tasks")]
    assert annotate.main([*line, "--pairs", "40", "--annotators", *NAMES]) == 0
    return folder


@pytest.fixture(scope="module")
def plan(folder) -> Plan:
    return read_plan(str(folder / "tasks"))


def right(plan: Plan, known: pd.DataFrame, task: str) -> list[int]:
    """What a careful annotator answers."""
    [entry] = [t for t in plan.tasks if t.task == task]
    pair = plan.pairs[entry.pair]
    if entry.kind == "copy":
        return [0, 0, 5, 5, 0, 1]
    if entry.kind == "unrelated":
        return [5, 5, 0, 5, 0, 0]
    return [int(known.loc[(pair.source, pair.paraphrase), name]) for name in FIELDS]


def sheet_rows(path: Path) -> list[list[str]]:
    return [*csv.reader(io.StringIO(path.read_text("utf-8-sig"), newline=""))]


def fill(plan, known, folder: Path, output: Path, answer=lambda name, task, values: values) -> Path:
    """Fills the sheets; answer(annotator, number of the task, right answers) -> answers."""
    output.mkdir()
    for name in NAMES:
        header, *rows = sheet_rows(folder / f"tasks/sheets/{name}.csv")
        for number, row in enumerate(rows):
            row[3:9] = map(str, answer(name, number, right(plan, known, row[0])))
        with open(output / f"{name}.csv", "w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    return output


@pytest.fixture(scope="module")
def filled(plan, known, folder) -> Path:
    """Anna is right, Bo often a step milder, and Chen draws lots."""
    draw = np.random.default_rng(5)

    def answer(name, number, values):
        if name == "chen":
            return [*draw.integers(0, 6, 5), draw.integers(0, 2)]
        if name == "bo" and number % 3 == 0:
            return [min(value + 1, 5) for value in values[:5]] + values[5:]
        return values

    return fill(plan, known, folder, folder / "filled", answer)


def test_the_plan_is_balanced_and_hides_its_checks(plan, folder):
    kinds = Counter((task.annotator, task.kind) for task in plan.tasks)
    pairs = Counter(task.pair for task in plan.tasks if task.kind == "pair")
    assert len(pairs) == 40
    assert set(pairs.values()) == {2}
    for name in NAMES:
        assert 26 <= kinds[name, "pair"] <= 27
        assert kinds[name, "repeat"] == 3
        assert kinds[name, "copy"] + kinds[name, "unrelated"] == 6
        assert kinds[name, "unrelated"] == 3
    met = Counter(
        frozenset(t.annotator for t in plan.tasks if t.pair == key and t.kind == "pair")
        for key in pairs
    )
    assert len(met) == 3
    assert max(met.values()) - min(met.values()) <= 2
    own = [task for task in plan.tasks if task.annotator == "bo"]
    place = {(task.pair, task.kind): number for number, task in enumerate(own)}
    for task in own:
        if task.kind == "repeat":
            assert place[task.pair, "repeat"] - place[task.pair, "pair"] >= 8
    for path in (folder / "tasks/sheets").iterdir():
        text = path.read_text("utf-8-sig")
        assert not any(word in text for word in ("copy", "repeat", "unrelated", "spscore", "llm"))


def test_strata_are_sampled_evenly(folder, plan, known):
    chosen = {task.pair for task in plan.tasks if task.kind == "pair"}
    pairs = [plan.pairs[key] for key in chosen]
    strata = Counter((pair.origin, min(int(pair.spscore * 5), 4)) for pair in pairs)
    assert {origin for origin, _ in strata} == {"parallel", "back_translation", "llm", "human"}
    table = known.reset_index()
    there = table.groupby(["origin", np.minimum(table["spscore"] * 5, 4).astype(int)]).size()
    assert len(strata) == len(there)
    assert all(count >= min(2, there[key]) for key, count in strata.items())


def test_the_sample_does_not_depend_on_the_order_of_rows(folder, known, plan, tmp_path):
    table = known.reset_index()[["source", "paraphrase", "origin", "spscore"]].sample(
        frac=1, random_state=3
    )
    table.to_csv(tmp_path / "pairs.csv", index=False)
    pairs, kinds, _ = sample(str(tmp_path / "pairs.csv"), 40, 6, 1)
    assert pairs.keys() == plan.pairs.keys()
    assert sample(str(tmp_path / "pairs.csv"), 40, 6, 2)[0].keys() != pairs.keys()
    assert Counter(kinds.values()) == {"copy": 3, "unrelated": 3}


def test_one_pair_of_a_group(tmp_path):
    rows = [
        (f"第{k}个句子是这样写的，没有别的。", f"这就是第{k}个句子的写法。", str(k % 4))
        for k in range(40)
    ]
    pd.DataFrame(rows, columns=["source", "paraphrase", "group"]).to_parquet(tmp_path / "p.parquet")
    pairs, kinds, _ = sample(str(tmp_path / "p.parquet"), 10, 0, 1)
    assert sorted(pair.group for pair in pairs.values()) == ["0", "1", "2", "3"]
    assert not kinds


def test_sheets_open_in_excel(folder, tmp_path):
    data = (folder / "tasks/sheets/anna.csv").read_bytes()
    assert data.startswith(codecs.BOM_UTF8 + b"task,source,paraphrase,structure,")
    assert data.count(b"\r\n") == data.count(b"\n")
    rows = [("=1+1是一个算式，写在这里。", "-这里写着一个算式：1+1。")]
    pd.DataFrame(rows, columns=["source", "paraphrase"]).to_parquet(tmp_path / "p.parquet")
    line = ["export", str(tmp_path / "p.parquet"), "--output", str(tmp_path / "t")]
    assert annotate.main([*line, "--annotators", "a", "--overlap", "1", "--attention", "0"]) == 0
    assert sheet_rows(tmp_path / "t/sheets/a.csv")[1][1:3] == ["'" + rows[0][0], "'" + rows[0][1]]


def test_the_careless_one_is_named_with_the_reason(folder, filled, capsys):
    output = folder / "rated"
    line = [
        "import",
        str(folder / "tasks"),
        str(filled),
        "--output",
        str(output),
        "--samples",
        "50",
    ]
    assert annotate.main([*line, "--drop-careless"]) == 0
    told = json.loads((output / "annotation.json").read_text("utf-8"))
    assert [*told["careless"]] == told["dropped"] == ["chen"]
    assert any("attention pairs" in reason for reason in told["careless"]["chen"])
    assert any("repeated pairs" in reason for reason in told["careless"]["chen"])
    assert told["alpha"]["meaning"]["ordinal"]["value"] > 0.8
    page = (output / "annotation.md").read_text("utf-8")
    assert "chen: failed" in page
    assert "chen: failed" in capsys.readouterr().out
    rated = pd.read_parquet(output / "ratings.parquet")
    assert len(rated) == told["pairs"]
    assert set(rated["passes"]) == {1, 2}


def test_the_ratings_are_those_of_the_careful(folder, filled, known, tmp_path):
    line = ["import", str(folder / "tasks"), str(filled / "anna.csv"), "--output", str(tmp_path)]
    assert annotate.main([*line, "--samples", "10"]) == 0
    rated = pd.read_parquet(tmp_path / "ratings.parquet").set_index(["source", "paraphrase"])
    fields = [*FIELDS]
    pd.testing.assert_frame_equal(
        rated[fields], known.loc[rated.index, fields], check_dtype=False, check_index_type=False
    )


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_fit_spscore_reads_the_ratings(folder, filled, tmp_path, ending):
    line = ["import", str(folder / "tasks"), str(filled), "--output", str(tmp_path)]
    assert annotate.main([*line, "--drop-careless", "--samples", "10"]) == 0
    test = tmp_path / f"ratings.{ending}"
    rated = read_rated(Rated(name="r", path=test.name), test.parent)
    assert rated[list(RATINGS)].to_numpy().max() <= 1
    assert (rated["passes"] > 1).any()
    if ending == "csv":
        line = ["--input", str(test), "--output", str(tmp_path), "--tier", "paper"]
        assert fit_spscore.main([*line, "--folds", "2", "--seeds", "1"]) == 0
        assert (tmp_path / "paper/card.md").exists()


def test_a_third_person_decides(folder, plan, known, tmp_path):
    def answer(name, number, values):
        return (
            [5 - value for value in values[:5]] + values[5:]
            if (name, number % 2) == ("bo", 0)
            else values
        )

    filled = fill(plan, known, folder, tmp_path / "filled", answer)
    line = ["import", str(folder / "tasks"), str(filled), "--samples", "10"]
    assert annotate.main([*line, "--output", str(tmp_path / "a"), "--adjudicate", "third"]) == 0
    rated = pd.read_parquet(tmp_path / "a/ratings.parquet")
    third = tmp_path / "a/third"
    rows = sheet_rows(third / "sheets/third.csv")
    assert len(rows) - 1 + len(rated) == 40
    assert len(rows) > 5
    for row in rows[1:]:
        row[3:9] = list("111110")
    with open(third / "sheets/third.csv", "w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)
    line += ["--third", str(third), "--adjudicate", "third"]
    assert annotate.main([*line, "--output", str(tmp_path / "b")]) == 0
    final = pd.read_parquet(tmp_path / "b/ratings.parquet")
    assert len(final) == 40
    decided = final[final["decided_by"] == "third"]
    assert len(decided) == len(rows) - 1
    assert (decided[list(RATINGS)] == 1).all(axis=None)
    assert set(decided["passes"]) == {3}


def studio(plan, known, name: str, kind: str) -> list[dict]:
    """An export of Label Studio, with a skipped annotation and an unanswered task."""
    tasks = []
    for entry in (task for task in plan.tasks if task.annotator == name):
        values = right(plan, known, entry.task)
        data = {"task": entry.task, "source": "…", "paraphrase": "…"}
        if kind == "min":
            tasks.append(
                data
                | {"id": 1, "annotator": 7}
                | {f: str(v) for f, v in zip(FIELDS, values, strict=True)}
            )
            continue
        result = [
            {"from_name": f, "type": "choices", "value": {"choices": [str(v)]}}
            for f, v in zip(FIELDS, values, strict=True)
        ]
        result[4] = {"from_name": "overall", "type": "rating", "value": {"rating": values[4]}}
        done = {"completed_by": 7, "was_cancelled": False, "result": result}
        tasks.append(
            {"id": 1, "data": data, "annotations": [{"was_cancelled": True, "result": []}, done]}
        )
    if kind != "min":
        tasks[0]["annotations"] = []
    return tasks


@pytest.mark.parametrize("kind", ["json", "min"])
def test_exports_of_label_studio(folder, plan, known, filled, tmp_path, kind):
    path = tmp_path / "anna.json"
    path.write_text(json.dumps(studio(plan, known, "anna", kind)), "utf-8")
    line = [
        "import",
        str(folder / "tasks"),
        str(path),
        "--output",
        str(tmp_path / "r"),
        "--samples",
        "10",
    ]
    assert annotate.main(line) == 0
    rated = pd.read_parquet(tmp_path / "r/ratings.parquet").set_index(["source", "paraphrase"])
    assert len(rated) >= 26
    assert (rated["meaning"] == known.loc[rated.index, "meaning"]).all()


def test_what_is_exported_for_label_studio(folder, plan):
    tasks = json.loads((folder / "tasks/label_studio/bo.json").read_text("utf-8"))
    assert [task["data"]["task"] for task in tasks] == [
        t.task for t in plan.tasks if t.annotator == "bo"
    ]
    config = (folder / "tasks/label_studio/config.xml").read_text("utf-8")
    import xml.etree.ElementTree as ET

    names = [element.get("name") for element in ET.fromstring(config).iter("Choices")]
    assert names == [*FIELDS]
    assert len(ET.fromstring(config).findall("Choices[@name='meaning']/Choice")) == 6


def test_what_a_chinese_excel_saves(tmp_path):
    rows = 'task;source;structure\r\n\r\na-0001;写道："你好"；第二行;３\r\n;;\r\n'
    (tmp_path / "s.csv").write_bytes(rows.encode("gb18030"))
    [line] = read_lines(str(tmp_path / "s.csv"), ["task"])
    assert line.where.endswith("s.csv, line 3")
    assert line.cells == {"task": "a-0001", "source": '写道："你好"；第二行', "structure": "３"}


def edited(filled: Path, tmp_path: Path, change) -> Path:
    rows = sheet_rows(filled / "anna.csv")
    change(rows)
    with open(tmp_path / "anna.csv", "w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)
    return tmp_path / "anna.csv"


def put(row: int, column: int, value: str):
    return lambda rows: rows[row].__setitem__(column, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put(4, 3, "6"), "line 5: structure is '6', expected a whole number from 0 to 5"),
        (put(4, 5, "好"), "line 5: meaning is '好', expected a whole number from 0 to 5"),
        (put(4, 5, "2.5"), "line 5: meaning is '2.5', expected a whole number from 0 to 5"),
        (put(2, 8, "2"), "line 3: is_paraphrase is '2', expected 0 or 1"),
        (put(2, 6, ""), "line 3: fluency is empty, expected a whole number from 0 to 5"),
        (put(2, 0, "x-1"), "line 3: no task 'x-1' in the plan"),
        (put(2, 0, "anna-0001"), "line 3: task 'anna-0001' is answered already, in "),
        (put(0, 4, "synonym"), "line 1: no column 'synonyms', it has: task, source"),
        (lambda rows: rows[3].append("more"), "line 4: 11 cells, the first line has 10"),
    ],
)
def test_an_answer_that_is_none(folder, filled, tmp_path, capsys, change, message):
    path = edited(filled, tmp_path, change)
    line = ["import", str(folder / "tasks"), str(path), "--output", str(tmp_path / "r")]
    assert annotate.main(line) == 2
    err = capsys.readouterr().err
    assert f"{path}, {message}" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "r").exists()


def test_mistakes_are_one_line(folder, tmp_path, capsys):
    tasks = str(folder / "tasks")
    (tmp_path / "s.xlsx").write_bytes(b"PK")
    (tmp_path / "two.json").write_text(
        json.dumps([{"data": {"task": "anna-0001"}, "annotations": [{"result": []}] * 2}])
    )
    (tmp_path / "p.csv").write_text("source,text\na,b\n", "utf-8")
    export = [
        "export",
        str(folder / "pairs.parquet"),
        "--output",
        str(tmp_path / "t"),
        "--annotators",
    ]
    for line, message in [
        (
            ["import", str(tmp_path), "--output", "r"],
            "plan.json: no such file; annotate.py export writes it",
        ),
        (
            ["import", tasks, "--output", "r"],
            "no answers; are these the sheets as they were exported?",
        ),
        (["import", tasks, str(tmp_path / "s.xlsx"), "--output", "r"], "save as CSV UTF-8"),
        (
            ["import", tasks, str(tmp_path / "no.csv"), "--output", "r"],
            "no.csv: no such file or folder",
        ),
        (
            ["import", tasks, str(tmp_path / "two.json"), "--output", "r"],
            "task 1 (anna-0001): 2 annotations, expected one",
        ),
        ([*export, "a", "a"], "--annotators a: expected different names"),
        ([*export, "a"], "--overlap 2: there are 1 annotators"),
        ([*export, "a", "b", "--repeats", "2"], "--repeats 2: expected a share from 0 to 0.5"),
        ([*export[:2], "--output", tasks, "--annotators", "a", "b"], "has a plan already"),
        (["export", str(tmp_path / "p.csv"), *export[2:], "a", "b"], "no column 'paraphrase'"),
    ]:
        assert annotate.main(line) == 2
        err = capsys.readouterr().err
        assert message in err
        assert err.count("\n") == 1


def test_in_an_object_store(folder, plan, known, store, tmp_path, monkeypatch):
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    root = f"s3://{store.BUCKET}/annotation"
    storage.copy(str(folder / "pairs.parquet"), f"{root}/pairs.parquet")
    line = ["export", f"{root}/pairs.parquet", "--output", f"{root}/tasks", "--pairs", "40"]
    assert annotate.main([*line, "--annotators", *NAMES]) == 0
    assert read_plan(f"{root}/tasks").tasks == plan.tasks
    filled = fill(plan, known, folder, tmp_path / "filled")
    for path in filled.iterdir():
        storage.copy(str(path), f"{root}/filled/{path.name}")
    line = ["import", f"{root}/tasks", f"{root}/filled", "--output", f"{root}/rated"]
    assert annotate.main([*line, "--samples", "10"]) == 0
    with storage.open_file(f"{root}/rated/ratings.parquet") as file:
        assert len(pd.read_parquet(file)) == 40
    assert b"Krippendorff" in storage.read_bytes(f"{root}/rated/annotation.md")

"""gaixie.score and paraphrase must return each kind of table, with the same judgements."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gaixie
from gaixie.udfs.spscore import OUTPUTS, SPScore

PAIRS = [
    ("他昨天去了北京。", "昨天他去了北京。"),
    ("会议推迟到了下周。", "会议延期到下个星期。"),
    ("今天很好。", None),
]
ONE = {"source": "一", "paraphrase": "一"}
EXPECTED = SPScore.load().outputs(*map(list, zip(*PAIRS, strict=True)))


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(PAIRS, columns=["原句", "改写"], index=[7, 9, 11]).assign(number=[1, 2, 3])


def judged(values: object) -> None:
    np.testing.assert_array_equal(np.array(values, np.float32), EXPECTED)


def test_a_list_of_pairs_or_of_dicts() -> None:
    rows = gaixie.score(PAIRS)
    judged([[np.nan if row[n] is None else row[n] for n in OUTPUTS] for row in rows])
    assert rows[2]["paraphrase"] is None
    named = gaixie.score([{"a": a, "b": b, "id": 1} for a, b in PAIRS], "a", "b")
    assert named[0]["spscore"] == rows[0]["spscore"]
    assert list(named[0])[:3] == ["a", "b", "id"]
    assert gaixie.score([]) == []
    chinese = gaixie.score([{"改写": b, "原句": a} for a, b in PAIRS])
    assert chinese[0]["spscore"] == rows[0]["spscore"]


def test_two_lists() -> None:
    expected = gaixie.score(PAIRS)
    sources, paraphrases = zip(*PAIRS, strict=True)
    for sides in (
        (list(sources), list(paraphrases)),
        (pd.Series(sources), pd.Series(paraphrases, dtype=object)),
        (pa.array(sources), pa.chunked_array([pa.array(paraphrases)])),
    ):
        assert gaixie.score(*sides) == expected
    with pytest.raises(ValueError, match="2 sources, but 3"):
        gaixie.score(sources[:2], paraphrases)


def test_half_a_surrogate_pair_costs_its_row_alone() -> None:
    broken = [*PAIRS[:2], ("今天很好。\ud83d", "今天真好。")]
    frame = pd.DataFrame(broken, columns=["source", "paraphrase"]).assign(id=["\udc00", "b", "c"])
    for data in (broken, frame):
        with pytest.warns(UserWarning, match="row 2: source has half"):
            found = gaixie.score(data)
        judged(pd.DataFrame(found)[list(OUTPUTS)])
    with pytest.warns(UserWarning, match="row 2: source has more than 20,000"):
        judged(pd.DataFrame(gaixie.score([*PAIRS[:2], ("长" * 20_001, "短")]))[list(OUTPUTS)])


def test_pandas_keeps_its_index(frame) -> None:
    found = gaixie.score(frame, "原句", "改写")
    judged(found[list(OUTPUTS)])
    pd.testing.assert_frame_equal(found[list(frame.columns)], frame)


def test_a_prefix_makes_room_beside_ratings(frame) -> None:
    found = gaixie.score(frame.assign(meaning=4.5), "原句", "改写", prefix="judged_")
    assert found["meaning"].eq(4.5).all()
    judged(found[[f"judged_{name}" for name in OUTPUTS]])


def test_arrow(frame) -> None:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    found = gaixie.score(table, "原句", "改写")
    assert found.select(table.column_names).equals(table)
    judged(found.select(OUTPUTS).to_pandas())


def test_every_other_kind_of_table_comes_back(frame) -> None:
    import datasets
    import duckdb
    import polars

    plain = frame.reset_index(drop=True)
    hub = datasets.Dataset.from_pandas(plain)
    for data, back in (
        (polars.from_pandas(plain), polars.DataFrame.to_pandas),
        (polars.from_pandas(plain).lazy(), lambda found: found.collect().to_pandas()),
        (duckdb.from_df(plain), duckdb.DuckDBPyRelation.df),
        (hub, datasets.Dataset.to_pandas),
    ):
        found = gaixie.score(data, "原句", "改写")
        assert type(found) is type(data)
        table = back(found)
        assert list(table) == [*plain, *OUTPUTS]
        judged(table[list(OUTPUTS)])
        pd.testing.assert_frame_equal(table[list(plain)], plain)
    with pytest.raises(TypeError, match=r"one split; choose it"):
        gaixie.score(datasets.DatasetDict(train=hub))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (5, "int: expected a list of pairs"),
        ([ONE, ("一", "一")], "row 1: expected a dict"),
        ([ONE, ONE | {"spscore": "一"}], "row 1:"),
        (pd.DataFrame({"source": ["一", "二"], "paraphrase": ["一", 5]}), "row 1: paraphrase is 5"),
        ((pd.DataFrame({"a": ["一"], "b": ["一"]}), "a", "a"), "'a' is both source and para"),
        ((["一"], ["一"], ["一"]), r"paraphrase=.*: expected a name"),
        ([("一句话",)], r"row 0: expected \(source, paraphrase\)"),
        ([{"source": "一句话"}], "row 0: no key 'paraphrase'"),
        ([ONE | {"meaning": 1}], "'meaning' already exists: give a pre"),
        (pd.DataFrame({"source": ["一"]}), "no column 'paraphrase', it has: source"),
        (pd.DataFrame({"source": ["一"], "paraphrase": [1]}), "'paraphrase' is of int64"),
        (pd.DataFrame([ONE | {"meaning": 1}]), "column 'meaning' already exists"),
    ],
)
def test_a_mistake_is_said_in_words(data, said) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        gaixie.score(*data) if isinstance(data, tuple) else gaixie.score(data)


def test_missing_texts_and_columns_of_any_kind() -> None:
    sources, paraphrases = map(list, zip(*PAIRS, strict=True))
    for data in (
        (sources, [*paraphrases[:2], pd.NA]),
        ([dict(zip("ab", pair, strict=True)) for pair in [*PAIRS[:2], ("x", np.nan)]], "a", "b"),
        (pd.DataFrame(PAIRS).astype("category"), 0, 1),
    ):
        judged(pd.DataFrame(gaixie.score(*data))[list(OUTPUTS)])
    assert gaixie.score(pd.DataFrame({"source": [], "paraphrase": []}))["spscore"].empty


def test_paraphrase(known_writer) -> None:
    from tiny_writer import KNOWN  # brings PyTorch

    text = KNOWN[0][0]
    [one] = gaixie.paraphrase(text)
    several, none = gaixie.paraphrase([text, "OK."], n=3)
    assert one == several[0] in {known for _, _, known in KNOWN}
    assert none == []
    assert all("原定" in own for own in gaixie.paraphrase(text, n=3, keep=["原定"]))

"""Ratings of several rounds must come onto one scale, and be split by group and source."""

import json
from pathlib import Path

import pandas as pd
import pytest

from gaixie.research.ratings import rated as reader


def row(number, group, source, value, **more):
    own = {"id": number, "group": group, "kind": "wmt", "source": source}
    return own | {"paraphrase": f"{source}。"} | dict.fromkeys(reader.RATINGS, value) | more


def write(path, rows):
    path.write_text("\n".join(json.dumps(own, ensure_ascii=False) for own in rows), "utf-8")
    return path


def read(tables, again=()) -> pd.DataFrame:
    given = {"tables": [reader.RatedTable(path=str(path)) for path in tables]}
    return reader.read_rated(reader.Rated(name="r", again=[*map(str, again)], **given), Path())


def test_an_offset_is_drawn_towards_the_mean_of_all_batches():
    first = pd.DataFrame([row(k, k, f"句{k}", 3.0) for k in range(60)])
    # 30 pairs each: the shares of a batch and of all are one half.
    again = [row(k, k, "", 2.0, rater="a") for k in range(30)]
    again += [row(k, k, "", 3.0, rater="b") for k in range(30, 60)]
    offsets = reader.round_offsets(first, pd.DataFrame(again))
    assert offsets.loc["a", "overall"] == pytest.approx(0.5 * 1.0 + 0.5 * 0.5)
    assert offsets.loc["b", "overall"] == pytest.approx(0.5 * 0.0 + 0.5 * 0.5)


def test_later_rounds_are_moved_and_stay_in_range(tmp_path):
    one = write(tmp_path / "one.jsonl", [row(k, f"g{k}", f"句子{k}", 4.0) for k in range(3)])
    later = [row(9, "h", "另外", 4.9, rater="a"), row(8, "i", "还有", 2.0, rater="unknown")]
    two = write(tmp_path / "two.jsonl", later)
    again = write(tmp_path / "again.jsonl", [row(k, "", "", 3.5, rater="a") for k in range(3)])
    rated = read([one, two], [again]).set_index("id")
    assert rated.loc[0, "overall"] == 0.8
    assert rated.loc[9, "overall"] == 1.0  # 4.9 + 0.5, limited to the highest rating
    assert rated.loc[8, "overall"] == 0.4  # a rater whose offset is unknown


def test_groups_sources_and_rewrites_decide_the_part(tmp_path):
    """A group and a source tie pairs together, and rated rewrites are never for the encoder."""
    found = reader.components(["a", "a", "b", "c"], ["一", "二", "二", "三"])
    assert found[0] == found[1] == found[2] != found[3]
    assert reader.part_of(found[0]) in ("test", "heads", "encoder")
    rows = [row(k, f"g{k}", f"句子{k}", 4.0, kind="written_rewrite_roles") for k in range(40)]
    assert set(read([write(tmp_path / "own.jsonl", rows)])["part"]) == {"heads", "test"}


def test_ratings_of_translations_find_their_sentences(tmp_path):
    texts = {"set": ["wmt", "wmt"], "line": [7, 8], "systems": [["x", "y"], ["x", "y"]]}
    texts["translations_zh"] = [["今天下雨。", "今日有雨。"], ["他走了。", "他离开了。"]]
    pd.DataFrame(texts).to_parquet(tmp_path / "texts.parquet")
    named = {"set": ["wmt"], "line": [8], "system_source": ["y"], "system_paraphrase": ["x"]}
    table = pd.DataFrame(named | {"rater": ["c0"]} | {name: [2.5] for name in reader.RATINGS})
    path = tmp_path / "translated.tsv"
    given = reader.RatedTable(path="translated.tsv", translations="texts.parquet")
    settings = reader.Rated(name="r", tables=[given])
    table.to_csv(path, sep="\t", index=False)
    last = reader.read_rated(settings, tmp_path).iloc[-1]
    assert (last["source"], last["paraphrase"]) == ("他离开了。", "他走了。")
    assert (last["overall"], last["kind"], last["origin"]) == (0.5, "translated", "parallel")
    assert (last["group"], last["rater"]) == ("wmt 8", "c0")
    for column, value in (("system_source", "z"), ("overall", 6), ("overall", "good")):
        table.assign(**{column: value}).to_csv(path, sep="\t", index=False)
        with pytest.raises(ValueError, match=r"translated\.tsv"):
            reader.read_rated(settings, tmp_path)

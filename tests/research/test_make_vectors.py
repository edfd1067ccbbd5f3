"""Making word vectors: counting, reducing, the folder, and messages about bad input."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tiny_models import tiny_bert

from gaixie.research import make_vectors
from gaixie.udfs.meaning.vectors import VectorTable, find_row

TEXTS = ["我今天去北京了。", "你知道今天天气很好吗", "他去上海了,是吗", "今天是好天气。", None]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    pq.write_table(pa.table({"text": TEXTS, "number": range(5)}), folder / "plain.parquet")
    lists = pa.array([TEXTS[:2], None, [TEXTS[2]]], pa.list_(pa.string()))
    pq.write_table(pa.table({"texts": lists}), folder / "lists.parquet")
    return folder


def line(corpus, output, *more, encoder):
    inputs = ["--input", corpus / "plain.parquet", "--encoder", encoder, "--output", output]
    return [str(word) for word in (*inputs, "--dimensions", 4, *more)]


def test_principal_components_keep_the_order_of_cosines():
    vectors = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    reduced = make_vectors.reduce(vectors, np.ones(50), 8)
    np.testing.assert_allclose(np.linalg.norm(reduced, axis=1), 1, atol=1e-5)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    unit -= unit.mean(0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    np.testing.assert_allclose(reduced @ reduced.T, unit @ unit.T, atol=1e-4)


def test_the_folder_is_a_table(corpus, tmp_path, capsys):
    encoder, more = tiny_bert(tmp_path / "bert"), f"{corpus / 'lists.parquet'}:texts"
    given = line(corpus, tmp_path / "vectors", "--input", more, encoder=encoder)
    assert make_vectors.main(given) == 0
    table = VectorTable.load(tmp_path / "vectors")
    assert table.digest in capsys.readouterr().out
    assert table.tables.vectors.shape[1] == 4
    assert find_row("北京", table) < len(table.tables.vectors)
    assert make_vectors.main(given) == 2  # no --overwrite


def test_a_mistake_is_one_line(corpus, tmp_path, refused):
    more = ["--input", f"{corpus / 'plain.parquet'}:number"]
    given = line(corpus, tmp_path / "v", *more, encoder=tiny_bert(tmp_path / "bert"))
    refused(make_vectors.main, given, "plain.parquet")
    assert not (tmp_path / "v").exists()

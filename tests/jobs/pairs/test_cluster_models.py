"""Clusters with models: candidates by embedding, pairs by a classifier."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from tiny_models import tiny_bert
from transformers import BertConfig, BertForSequenceClassification

from gaixie.jobs.pairs.cluster.candidates import (
    Candidates,
    Hyperplanes,
    load_identifier,
    vectors_of,
    with_vectors,
)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory) -> str:
    """Returns the folder of a classifier with random weights."""
    folder = tmp_path_factory.mktemp("models") / "classifier"
    tiny_bert(folder)
    torch.manual_seed(1)
    config = BertConfig.from_pretrained(folder, num_labels=2, initializer_range=1.0)
    BertForSequenceClassification(config).save_pretrained(folder)
    return str(folder)


def test_a_classifier_identifies(classifier):
    identifier = load_identifier(classifier, 0.3, 0.7)
    assert identifier.least == 0.7
    assert "classifier@" in identifier.describe()
    a, b = ["我不知道", "今天天气很好", "你去了吗"], ["我不清楚", "北京", "你是在上海吗"]
    scores = identifier.scores(a, b)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(identifier.scores(b, a), scores, rtol=1e-5)
    assert ((scores > 0) & (scores < 1)).all()
    assert not len(identifier.scores([], []))


def test_the_metric_identifies():
    identifier = load_identifier("core", 0.3, 0.7)
    scores = identifier.scores(
        ["今天下午所有的航班都被取消了。"] * 2, ["今天下午，航班全都取消了。", "她不喜欢吃苹果。"]
    )
    assert scores[0] > 0.3 > scores[1]
    assert not len(identifier.scores([], []))


def test_embeddings_meet_as_often_as_they_are_near():
    random = np.random.default_rng(2)
    a, noise = random.standard_normal((2, 300, 24))
    b = a + 0.7 * noise
    a, b = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (a, b))
    columns = [pa.array([row.astype(np.float16).tobytes() for row in v]) for v in (a, b)]
    hashes = [
        Hyperplanes(200, 1, seed=1)(pa.RecordBatch.from_arrays([column], ["vector"]))
        for column in columns
    ]
    angle = np.arccos(np.clip(np.einsum("ij,ij->i", a, b), -1, 1))
    assert abs((hashes[0] == hashes[1]).mean() - (1 - angle / np.pi).mean()) < 0.02
    texts = pa.array(["今天天气很好"] * 300)
    names = ["text_a", "text_b", "vector_a", "vector_b"]
    batch = pa.RecordBatch.from_arrays([texts, pa.array(["我不知道"] * 300), *columns], names)
    cosine = np.cos(angle)
    chosen = Candidates(2, (0, 0.8), float(np.median(cosine)))(batch)
    assert 140 < chosen.sum() < 160
    copies = pa.RecordBatch.from_arrays([texts, texts, *columns], names)
    assert not Candidates(2, (0, 0.8), -1)(copies).any()


def test_sentences_get_their_embedding_on_spark(spark, tmp_path):
    encoder = tiny_bert(tmp_path / "encoder")
    rows = [(n, text) for n, text in enumerate(["我不知道", "今天天气很好", "今天天气很好"])]
    sentences = spark.createDataFrame(rows, "node bigint, text string")
    found = with_vectors(sentences, encoder).orderBy("node").toArrow()
    assert found.column_names == ["node", "text", "vector"]
    vectors = vectors_of(found["vector"].combine_chunks())
    assert vectors.shape == (3, 16)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-2)
    np.testing.assert_array_equal(vectors[1], vectors[2])
    assert not np.allclose(vectors[0], vectors[1], atol=0.05)
    assert sentences.columns == ["node", "text"]

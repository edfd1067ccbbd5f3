"""Finds the connected components of a graph.

The driver joins a graph with few edges. Larger graphs go through alternating large-star and
small-star operations (Kiveris, Lattanzi, Mirrokni, Rastogi and Vassilvitskii, "Connected Components
in MapReduce and Beyond", 2014). Each keeps the components and the number of edges; after O(log² n)
rounds, in practice few, every node is linked to the least node of its component.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gaixie.jobs.corpus.beside import interruptible

DRIVER_EDGES = 2_000_000
"""Maximum edges that the driver joins: about 100 MB there."""

Keep = Callable[[str, DataFrame], DataFrame]
"""Writes a table under a name, and reads it back."""


def components(edges: DataFrame, keep: Keep, driver_edges: int = DRIVER_EDGES) -> DataFrame:
    """Returns columns (node, component), one row for each node of an edge.

    A component is named by its least node. edges: columns a, b (bigint); the table is read more
    than once, and an edge may repeat.
    """
    edges = edges.select("a", "b")
    if edges.limit(driver_edges + 1).count() <= driver_edges:
        table = interruptible(edges.toArrow)
        nodes, least = join_edges(table["a"].to_numpy(), table["b"].to_numpy())
        joined = pa.table({"node": nodes, "component": least})
        return edges.sparkSession.createDataFrame(joined, "node bigint, component bigint")
    stars = edges.where("a != b").distinct()
    before, number = None, 0
    while True:
        stars = keep(f"stars-{number}", _small_star(_large_star(stars)))
        state = stars.agg(F.count("a"), F.bit_xor(F.xxhash64("a", "b"))).first()
        if state == before:
            break
        before, number = state, number + 1
    members = stars.select(F.col("a").alias("node"), F.col("b").alias("component"))
    centres = members.select(F.col("component").alias("node"), "component").distinct()
    return members.unionByName(centres)


def join_edges(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns (nodes, least node of each one's component), both int64, ascending by node."""
    nodes, ends = np.unique(np.concatenate([a, b]).astype(np.int64), return_inverse=True)
    size = len(nodes)
    if not size:
        return nodes, nodes
    graph = coo_array((np.ones(len(a), np.int8), (ends[: len(a)], ends[len(a) :])), (size, size))
    count, label = connected_components(graph, directed=False)
    least = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(least, label, nodes)
    return nodes, least[label]


def _large_star(edges: DataFrame) -> DataFrame:
    """Links each neighbour larger than a node to the least of the node and its neighbours."""
    both = edges.unionByName(edges.select(F.col("b").alias("a"), F.col("a").alias("b")))
    least = F.least(F.min("b").over(Window.partitionBy("a")), F.col("a"))
    linked = both.select(F.col("b").alias("node"), least.alias("least"), "a").where("node > a")
    return linked.select(F.col("node").alias("a"), F.col("least").alias("b"))


def _small_star(edges: DataFrame) -> DataFrame:
    """Links a node and its smaller neighbours to the least of them."""
    down = edges.select(F.greatest("a", "b").alias("a"), F.least("a", "b").alias("b"))
    down = down.where("a != b").distinct()
    least = F.min("b").over(Window.partitionBy("a")).alias("least")
    linked = down.select("a", "b", least)
    rest = linked.select(F.col("b").alias("a"), F.col("least").alias("b"))
    own = linked.select("a", F.col("least").alias("b"))
    return rest.unionByName(own).where("a != b").distinct()

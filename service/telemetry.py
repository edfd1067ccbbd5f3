"""Provides GET /metrics in Prometheus' text format, over all processes of a service.

The processes share their counts through files in one folder. The command that starts them makes
the folder and sets PROMETHEUS_MULTIPROC_DIR before this module is imported.
"""

from __future__ import annotations

import os

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)

REQUESTS = Counter("gaixie_requests", "Requests answered", ["route", "status"])
LATENCY = Histogram(
    "gaixie_request_seconds", "Seconds from head to answer", ["route"], buckets=SECONDS
)
ITEMS = Counter("gaixie_items", "Pairs or texts worked on", ["part"])
BATCH = Histogram(
    "gaixie_batch_items", "Items in a batch", ["part"], buckets=(1, 4, 16, 64, 256, 1024, 4096)
)
BATCH_SECONDS = Histogram(
    "gaixie_batch_seconds", "Seconds of work on a batch", ["part"], buckets=SECONDS
)
QUEUE = Gauge("gaixie_queue_items", "Items waiting", ["part"], multiprocess_mode="livesum")
REJECTED = Counter("gaixie_rejected", "Requests without an answer of their part", ["status"])


def exposition() -> tuple[bytes, str]:
    """Returns (text, its content type) of all metrics."""
    registry: CollectorRegistry = REGISTRY
    if os.environ.get(FOLDER):
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
    return generate_latest(registry), CONTENT_TYPE_LATEST

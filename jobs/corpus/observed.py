"""What an Observation of Spark has counted, whatever became of the plan that it stood in."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import Observation


def observed(observation: Observation) -> dict[str, Any]:
    """Its values by name, once the first action has ended; waits for that.

    Empty where Spark left the counting out, as it does with one side of a join whose other side has no
    rows: ``Observation.get`` then ends in a Java assertion, for it has no row to give.
    """
    try:
        return observation.get
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != "java.lang.AssertionError":
            raise
        return {}

"""The running service of a file's fixture ``app``, and the loop of coroutines that are tests."""

from collections.abc import Iterator

import pytest
from services import Service, serving


@pytest.fixture(scope="module")
def service(app) -> Iterator[Service]:
    with serving(app) as service:
        yield service


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"

"""The service must survive heads that never arrive and too many connections, on real sockets."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
import uvicorn

from gaixie.service import connections
from gaixie.service.processes import OPTIONS

MOST, SECONDS = 4, 0.5
WHOLE, HALF = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: "


async def answer(scope, receive, send) -> None:
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]}
    )
    await send({"type": "http.response.body"})


@pytest.fixture
def port(monkeypatch) -> Iterator[int]:
    """Yields the port of a server that holds MOST connections and waits SECONDS for a head."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", SECONDS)
    monkeypatch.setattr(connections, "most_connections", lambda: MOST)
    monkeypatch.setattr(connections, "_said", {})
    server = uvicorn.Server(uvicorn.Config(answer, lifespan="off", log_config=None, **OPTIONS))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join()


def connect(port: int, sent: bytes) -> closing[socket.socket]:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(sent)
    return closing(connection)


def received(connection: socket.socket) -> bytes:
    """Returns the first bytes that arrive, or nothing if the other side closes."""
    try:
        return connection.recv(4096)
    except ConnectionResetError:
        return b""


def test_half_a_head_is_closed_and_logged_once(port, capfd):
    with connect(port, HALF) as one, connect(port, HALF) as other, connect(port, WHOLE) as third:
        assert received(third).startswith(b"HTTP/1.1 200")
        assert received(one) == received(other) == b""
        third.sendall(HALF)  # the next head on an answered connection
        assert received(third) == b""
    assert capfd.readouterr().err == "closed a connection that sent no complete request in 0.5 s\n"


def test_a_head_that_comes_in_pieces_is_answered(port):
    with connect(port, WHOLE[:9]) as connection:
        connection.sendall(WHOLE[9:])
        assert received(connection).startswith(b"HTTP/1.1 200")


def test_no_more_connections_than_the_process_has_files_for(port, capfd):
    held = [connect(port, HALF) for _ in range(MOST)]
    with connect(port, WHOLE) as one_more:
        assert received(one_more) == b""
    for one in held:
        with one as connection:
            assert received(connection) == b""
    with connect(port, WHOLE) as later:
        assert received(later).startswith(b"HTTP/1.1 200")
    assert "4 connections are open; no more are accepted\n" in capfd.readouterr().err

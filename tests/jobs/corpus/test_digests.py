"""SHA-256 of a run's files must be right, whether the driver or an executor computes it."""

import hashlib
import os
import socket
import threading
from types import SimpleNamespace

import pytest

from gaixie.jobs.corpus.written import digests
from gaixie.udfs.storage import storage

CONTENTS = {f"{number}.parquet": bytes([number]) * 1000 for number in range(3)}


def on_executors(spark, fails: bool = False) -> SimpleNamespace:
    """Returns a session that seems remote. fails: its tasks cannot reach the store."""

    def parallelize(links, slices):
        given = "\n".join(link for _, link in links)
        assert os.environ["AWS_SECRET_ACCESS_KEY"] not in given
        assert "X-Amz-Signature=" in given
        gone = [(uri, "nowhere" if fails else link) for uri, link in links]
        return spark.sparkContext.parallelize(gone, slices)

    context = SimpleNamespace(master="spark://host", parallelize=parallelize, defaultParallelism=2)
    return SimpleNamespace(sparkContext=context)


@pytest.mark.parametrize("where", ["driver", "executors", "neither"])
def test_of_files_in_a_store(spark, admin, where, capsys):
    """Python workers that started earlier lack the credentials, so links must be signed."""
    root = f"s3a://{admin.BUCKET}/digests"
    for name, data in CONTENTS.items():
        storage.write(f"{root}/{name}", data)
    session = spark if where == "driver" else on_executors(spark, where == "neither")
    found = digests(session, [f"{root}/{name}" for name in CONTENTS])
    expected = {f"{root}/{n}": hashlib.sha256(data).hexdigest() for n, data in CONTENTS.items()}
    assert found == expected
    assert ("executors cannot read" in capsys.readouterr().err) == (where == "neither")


def test_an_answer_that_breaks_off_is_asked_for_again():
    """A broken transfer must be repeated; http.client takes a closed connection for the file's
    end."""
    head = (
        b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-8/9\r\nContent-Length: 9\r\n\r\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            for body in (b"the whole", b"half", b"the whole"):  # the first tells the size
                connection, _ = server.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(head + body)

        threading.Thread(target=answer, daemon=True).start()
        link = f"http://127.0.0.1:{server.getsockname()[1]}/file"
        found = storage.sha256("s3a://b/file", link)
    assert found == hashlib.sha256(b"the whole").hexdigest()

"""Real servers on 127.0.0.1 for tests and benchmarks: a Spark cluster and an object store."""

import json
import os
import random
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import ClassVar

import psutil
import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
PATIENCE = 400
"""Seconds to wait before something that should happen counts as failed."""


def free_port() -> int:
    """Returns a free port below the range that the system gives to clients.

    From that range, a client could take the port of a server that is down, or connect to itself.
    """
    ports = random.SystemRandom()  # other test processes may have set the same seed
    while True:
        with suppress(OSError), socket.socket() as server:
            server.bind(("127.0.0.1", port := ports.randrange(10_000, 32_000)))
            return port


def wait_for(
    happened: Callable[[], bool],
    what: str,
    alive: subprocess.Popen | None = None,
    every: float = 0.05,
) -> None:
    """Waits until ``happened`` is true, asking every ``every`` seconds while the process lives."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        if alive is not None and alive.poll() is not None:
            raise AssertionError(f"ended before {what}:\n{alive.communicate()}")
        assert time.monotonic() < deadline, f"waited {PATIENCE} s for {what}"
        time.sleep(every)


def start(line: list[object], log: Path, **environment: str) -> subprocess.Popen:
    """Starts a server in its own process group."""
    with open(log, "w") as file:
        return subprocess.Popen(
            [*map(str, line)],
            env=os.environ | environment,
            cwd=log.parent,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class Cluster:
    """A master and two workers with one core each, on 127.0.0.1."""

    def __init__(self, folder: Path):
        self.folder, self.web_port, port = folder, free_port(), free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self.processes: list[subprocess.Popen] = []
        self._start("master.Master", "--port", port, "--webui-port", self.web_port)
        wait_for(lambda: self._workers() == 0, "the master", self.processes[0])
        for number in (1, 2):
            given = ("--cores", 1, "--memory", "1g", "--webui-port", 0)
            self._start("worker.Worker", *given, "--work-dir", folder / f"work-{number}", self.url)
        wait_for(lambda: self._workers() == 2, "the workers", self.processes[0])

    def _start(self, name: str, *given: object) -> None:
        line = [SPARK_HOME / "bin/spark-class", f"org.apache.spark.deploy.{name}"]
        line += ["--host", "127.0.0.1", *given]
        log = self.folder / f"{len(self.processes)}-{name}.log"
        settings = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
        settings |= {"SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable}
        self.processes.append(start(line, log, **settings))

    def _workers(self) -> int | None:
        """Returns how many workers the master knows; None while it does not answer."""
        try:
            address = f"http://127.0.0.1:{self.web_port}/json/"
            with urllib.request.urlopen(address, timeout=PATIENCE) as page:
                return json.load(page)["aliveworkers"]
        except OSError:
            return None

    def kill_worker(self) -> None:
        """Kills a worker and its executors, as if its machine died."""
        worker = psutil.Process(self.processes.pop().pid)
        for process in [worker, *worker.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        worker.wait()

    def stop(self) -> None:
        while self.processes:
            self.kill_worker()


class ObjectStore:
    """SeaweedFS with its S3 gateway, two accounts, and one bucket ``gaixie``.

    environment: all that a job gets, and needs, to reach the store. The account ``admin`` may do
    everything, ``reader`` may read and list.
    """

    BUCKET = "gaixie"
    ACCOUNTS: ClassVar = {
        "admin": ("AKIAGAIXIEADMIN00001", "admin-secret-7Qm2vXr9TbLw4Kz8"),
        "reader": ("AKIAGAIXIEREADER0001", "reader-secret-5Hn8cJp3YdFs6Gx1"),
    }
    ACTIONS: ClassVar = {
        "admin": ["Admin", "Read", "List", "Tagging", "Write"],
        "reader": [f"Read:{BUCKET}", f"List:{BUCKET}"],
    }

    def __init__(self, folder: Path):
        self.folder, self.port = folder, free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        identities = [
            {
                "name": name,
                "credentials": [{"accessKey": key, "secretKey": secret}],
                "actions": self.ACTIONS[name],
            }
            for name, (key, secret) in self.ACCOUNTS.items()
        ]
        (folder / "s3.json").write_text(json.dumps({"identities": identities}))
        (folder / "data").mkdir()
        line = [Path(sys.executable).parent / "weed", "server", f"-dir={folder / 'data'}"]
        line += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3", "-s3.iam=false"]
        line += ["-s3.port.lance=0", "-s3.port.iceberg=0", f"-s3.config={folder / 's3.json'}"]
        line += ["-master.volumeSizeLimitMB=512", "-volume.max=100", "-master.telemetry=false"]
        line += [f"-s3.port={self.port}", f"-s3.port.grpc={free_port()}"]
        for part in ("master", "volume", "filer"):
            line += [f"-{part}.port={free_port()}", f"-{part}.port.grpc={free_port()}"]
        self.process = start(line, folder / "log")
        wait_for(self._answers, "the object store", self.process)
        self.client().create_bucket(Bucket=self.BUCKET)

    def _answers(self) -> bool:
        try:
            self.client().list_buckets()
        except Exception:  # any error means that it is not up yet
            return False
        return True

    @cache  # making a client takes longer than its requests  # noqa: B019
    def client(self):
        """Returns a boto3 client of admin."""
        import boto3
        from botocore.config import Config

        key, secret = self.ACCOUNTS["admin"]
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            config=Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}),
        )

    def environment(self, account: str = "admin", endpoint: str | None = None) -> dict[str, str]:
        key, secret = self.ACCOUNTS[account]
        return {
            "AWS_ENDPOINT_URL_S3": endpoint or self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret,
        }

    def keys(self, prefix: str = "") -> list[str]:
        pages = self.client().get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=self.BUCKET, Prefix=prefix)
        return [entry["Key"] for page in found for entry in page.get("Contents", ())]

    def read(self, key: str) -> bytes:
        return self.client().get_object(Bucket=self.BUCKET, Key=key)["Body"].read()

    def put(self, key: str, body: bytes) -> None:
        self.client().put_object(Bucket=self.BUCKET, Key=key, Body=body)

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder / "data", ignore_errors=True)


class FaultProxy:
    """A proxy for an HTTP server on 127.0.0.1 that fails as object stores do.

    fault(number) decides about each request, numbered from 0: None passes it on, "slow down"
    answers 503 SlowDown, "reset" breaks the connection, "cut" breaks it in the middle of the
    answer. Clients must not send a request before the previous one is answered.
    """

    SLOW_DOWN = (
        b"<?xml version='1.0'?><Error><Code>SlowDown</Code>"
        b"<Message>Please reduce your request rate.</Message></Error>"
    )

    def __init__(self, port: int, fault: Callable[[int], str | None]):
        self.target, self.fault = port, fault
        self.faults: Counter[str] = Counter()
        self.requests = 0
        self._lock = threading.Lock()
        self._server = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.endpoint = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, socket.create_connection(("127.0.0.1", self.target)) as server:
                self._pump(client, server)
        except OSError:
            return  # one side closed, which is allowed

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        answered, cut = True, False
        with selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ)
            ready.register(server, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    data = key.fileobj.recv(1 << 16)
                    if not data:
                        return
                    if key.fileobj is server:
                        answered = not data.startswith(b"HTTP/1.1 100")
                        if cut and answered:
                            client.sendall(data[: len(data) // 2])
                            return self._reset(client)
                        client.sendall(data)
                        continue
                    if answered:  # a new request begins
                        answered = False
                        fault = self._next_fault()
                        if fault == "slow down":
                            return self._refuse(client)
                        if fault == "reset":
                            return self._reset(client)
                        cut = fault == "cut"
                    server.sendall(data)

    def _next_fault(self) -> str | None:
        with self._lock:
            fault = self.fault(self.requests)
            self.requests += 1
            if fault:
                self.faults[fault] += 1
            return fault

    def _refuse(self, client: socket.socket) -> None:
        head = b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nConnection: close\r\n"
        length = f"Content-Length: {len(self.SLOW_DOWN)}\r\n\r\n".encode()
        client.sendall(head + length + self.SLOW_DOWN)
        client.shutdown(socket.SHUT_WR)
        client.settimeout(1)
        while client.recv(1 << 16):  # reads the rest; closing now would reset the connection
            continue

    @staticmethod
    def _reset(client: socket.socket) -> None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def stop(self) -> None:
        self._server.close()

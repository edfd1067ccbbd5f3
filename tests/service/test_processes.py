"""A service's processes: several on one port, which are drained, killed or interrupted."""

import http.client
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import waiting_service
from servers import free_port, wait_for
from services import Service

from gaixie.service.processes import _Supervisor
from gaixie.service.telemetry import FOLDER


def all_end(family: list[psutil.Process]) -> None:
    """Waits until all processes have ended."""
    psutil.wait_procs(family, 60)
    assert not [process for process in family if process.is_running()]


class Running(Service):
    """A service in its own process group."""

    def __init__(self, folder: Path, workers: int, drain: int = 60, port: int | None = None):
        super().__init__(port or free_port())
        self.folder = folder
        self.log = folder / "log"
        line = [sys.executable, waiting_service.__file__, folder, self.port, workers, drain]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [str(word) for word in line],
                stderr=log,
                start_new_session=True,
                env=os.environ | {"TMPDIR": str(folder)},
            )

    def wait_until_ready(self) -> None:
        wait_for(self.is_ready, "the service", self.process)

    def is_ready(self) -> bool:
        try:
            return self.ask("/ready").status == 200
        except (OSError, http.client.HTTPException):
            return False

    def is_closed(self) -> bool:
        try:
            self.connect().close()
        except OSError:
            return True
        return False

    def family(self) -> list[psutil.Process]:
        """Returns its process and all descendants."""
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]

    def begin(self, name: str) -> tuple[threading.Thread, list[object], int]:
        """Sends a request that waits for a file. Returns (thread, outcome, process that has it)."""
        outcome: list[object] = []

        def ask() -> None:
            try:
                outcome.append(self.ask(f"/v1/wait/{name}").json)
            except (OSError, http.client.HTTPException) as error:
                outcome.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        begun = self.folder / f"{name}.begun"
        wait_for(lambda: begun.exists() and begun.read_text() != "", "the request", self.process)
        return thread, outcome, int(begun.read_text())

    def go(self, name: str) -> None:
        (self.folder / f"{name}.go").touch()

    def on_each_of(self, count: int) -> dict[int, tuple[str, threading.Thread, list[object]]]:
        """Sends requests until ``count`` processes work on one. Returns a request by process."""
        found: dict[int, tuple[str, threading.Thread, list[object]]] = {}
        for number in range(200):
            name = f"{len(found)}-{number}"
            thread, outcome, pid = self.begin(name)
            if pid in found:
                self.go(name)
                thread.join()
            else:
                found[pid] = name, thread, outcome
            if len(found) == count:
                return found
        raise AssertionError(f"{count} processes should answer, {[*found]} do")

    def said(self) -> list[str]:
        """Returns the lines of its log, without those about requests."""
        return [line for line in self.log.read_text().splitlines() if not line.startswith("{")]


@pytest.fixture
def start(tmp_path) -> Iterator:
    started: list[Running] = []

    def start(workers: int, drain: int = 60, port: int | None = None) -> Running:
        started.append(Running(tmp_path, workers, drain, port))
        return started[-1]

    yield start
    for running in started:
        try:
            os.killpg(running.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        finally:
            running.process.wait()


@pytest.mark.long
def test_a_term_answers_what_is_under_way_and_takes_no_more(start, tmp_path):
    """At SIGTERM, one process or two must answer open requests, accept none, and leave nothing;
    exit code 0, one line."""
    for workers in (1, 2):
        service = start(workers)
        service.wait_until_ready()
        under_way = service.on_each_of(workers)
        family = service.family()
        service.process.terminate()
        wait_for(service.is_closed, "the port to be closed", service.process)
        assert not any(outcome for _, _, outcome in under_way.values())
        for name, _, _ in under_way.values():
            service.go(name)
        for pid, (_, thread, outcome) in under_way.items():
            thread.join()
            assert outcome == [pid]
        assert service.process.wait(60) == 0
        all_end(family)
        many = "es" * (workers > 1)
        assert service.said() == [f"{service.url}  {workers} process{many}"]
        assert not [*tmp_path.glob("gaixie-metrics-*")]
        for file in tmp_path.glob("*.*"):
            file.unlink()


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_an_end_that_takes_too_long_is_cut_short(start, workers):
    service = start(workers, drain=1)
    service.wait_until_ready()
    thread, outcome, _ = service.begin("for-ever")
    service.process.terminate()
    assert service.process.wait(60) == 0
    thread.join()
    assert outcome[0]["error"] == {"code": "unavailable", "message": "the service has shut down"}


@pytest.mark.long
def test_a_worker_that_hangs_is_killed_at_the_end(start):
    service = start(2, drain=1)
    service.wait_until_ready()
    family = service.family()
    with service.connect() as connection:
        connection.sendall(b"GET /v1/hang HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: (service.folder / "hang.begun").exists(), "it to hang", service.process)
        service.process.terminate()
        assert service.process.wait(60) == 0
    all_end(family)
    assert "did not stop; killing it" in service.said()[1]


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interruption_leaves_one_line_and_no_process(start, workers):
    """Ctrl-C, which interrupts every process of the group, must leave one line and no process."""
    service = start(workers)
    service.wait_until_ready()
    interrupt(service)
    assert service.process.returncode == 0


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_interrupted_twice_it_leaves_one_line(start, workers):
    """A second Ctrl-C must end a service that waits for a request's body, still with one line."""
    service = start(workers)
    service.wait_until_ready()
    with service.connect() as slow:
        slow.sendall(b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        service.ask("/health")
        os.killpg(service.process.pid, signal.SIGINT)
        wait_for(service.is_closed, "its port to close", service.process)
        os.killpg(service.process.pid, signal.SIGINT)
        assert service.process.wait(60) == 0
    assert len(service.said()) == 1, service.said()


@pytest.mark.long
def test_an_interruption_while_workers_start_leaves_no_trace(start):
    """Ctrl-C while workers import must print no trace, whatever the moment."""
    for size in (20, 40, 60, 80):  # MB of both workers, which grow as they start
        service = start(2)
        wait_for(service.said, "the line that says where", service.process)

        def begun(service=service, size=size) -> bool:
            with suppress(psutil.Error):
                return sum(one.memory_info().rss for one in service.family()[1:]) > size * 1e6
            return False

        wait_for(begun, "workers", service.process, every=0.005)
        interrupt(service)


def test_a_worker_that_an_interruption_ends_has_not_died(monkeypatch, tmp_path, capsys):
    """The supervisor must not report a worker that Ctrl-C ended, though it may notice the end
    before its own signal."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    supervisor = object.__new__(_Supervisor)
    supervisor.should_exit, supervisor.signal_queue = threading.Event(), []
    worker = SimpleNamespace(pid=4_194_305)  # above the highest process id
    supervisor._gone(worker)
    assert capsys.readouterr().err == "worker 4194305 has died; starting another\n"
    supervisor.signal_queue.append(signal.SIGINT)
    supervisor._gone(worker)
    assert capsys.readouterr().err == ""


def interrupt(service: Running) -> None:
    """Interrupts all its processes, and asserts that no further line and no process is left."""
    family = service.family()
    os.killpg(service.process.pid, signal.SIGINT)
    service.process.wait(60)
    all_end(family)
    assert len(service.said()) == 1, service.said()


@pytest.mark.long
def test_a_killed_worker_loses_its_own_connections_alone(start):
    service = start(2)
    service.wait_until_ready()
    under_way = service.on_each_of(2)
    (killed, (_, thread, lost)), (other, (name, second, kept)) = under_way.items()
    assert "gaixie_queue_items" in service_metrics(service)
    os.kill(killed, signal.SIGKILL)
    thread.join()
    assert isinstance(lost[0], OSError | http.client.HTTPException)
    wait_for(lambda: "starting another" in "".join(service.said()), "the news")
    for _ in range(20):  # new requests are answered, with or without the new worker
        assert service.ask("/health").status == 200
    service.go(name)
    second.join()
    assert kept == [other]
    for file in service.folder.glob("*-*.*"):
        file.unlink()
    fresh = service.on_each_of(2)
    assert other in fresh
    assert killed not in fresh
    for name, thread, _ in fresh.values():
        service.go(name)
        thread.join()
    assert gauge(service_metrics(service)) == 0  # requests of the dead worker no longer count


def service_metrics(service: Service) -> str:
    return service.ask("/metrics").body.decode()


def gauge(text: str) -> float:
    found = re.search(r'^gaixie_queue_items\{part="wait"\} (\S+)$', text, re.MULTILINE)
    assert found, text
    return float(found[1])


@pytest.mark.long
def test_the_counters_are_those_of_all_processes(start):
    service = start(2)
    service.wait_until_ready()
    under_way = service.on_each_of(2)
    assert gauge(service_metrics(service)) == 2
    for name, thread, _ in under_way.values():
        service.go(name)
        thread.join()

    def answered() -> int:
        counted = re.search(
            r'^gaixie_requests_total\{route="/v1/wait/\{name\}",status="200"\} (\S+)$',
            service_metrics(service),
            re.MULTILINE,
        )
        return int(float(counted[1])) if counted else 0

    asked = len([*service.folder.glob("*.begun")])
    wait_for(lambda: answered() == asked, "what both have counted", service.process)
    os.kill(next(iter(under_way)), signal.SIGKILL)
    wait_for(lambda: "starting another" in "".join(service.said()), "the news")
    assert answered() == asked  # a counter must never fall


@pytest.mark.long
def test_workers_do_not_outlive_their_supervisor(start):
    service = start(2)
    service.wait_until_ready()
    service.on_each_of(2)
    for file in service.folder.glob("*.begun"):
        (service.folder / f"{file.stem}.go").touch()
    children = service.family()[1:]
    service.process.kill()
    _, alive = psutil.wait_procs(children, 60)
    assert alive == []
    again = start(1, port=service.port)
    again.wait_until_ready()


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_what_cannot_start_is_not_started_for_ever(start, tmp_path, workers):
    (tmp_path / "broken").touch()
    service = start(workers)
    assert service.process.wait(120) not in (0, None)
    assert "it cannot start" in service.log.read_text()


def test_a_port_that_is_taken_gets_one_line(start):
    service = start(1)
    service.wait_until_ready()
    with tempfile.TemporaryDirectory() as folder:
        other = Running(Path(folder), 1, port=service.port)
        assert other.process.wait(60) == 2
        assert other.said() == [
            f"serve: error: --host 127.0.0.1 --port {service.port}: Address already in use"
        ]

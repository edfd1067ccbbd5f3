"""udfs/storage/storage.py must behave the same on a file system and on a real S3 server."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from servers import FaultProxy, free_port

from gaixie.udfs.storage import storage


@pytest.fixture
def in_store(store, monkeypatch) -> Callable[..., None]:
    """Returns a function that sets an account's environment, all the module knows of the store."""

    def use(account: str = "admin", **changes: str) -> None:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        for name, value in (store.environment(account) | changes).items():
            if value:
                monkeypatch.setenv(name, value)

    use()
    return use


@pytest.fixture(params=["file", pytest.param("s3a", marks=pytest.mark.s3)])
def root(request, tmp_path) -> str:
    """Returns a new folder that does not exist yet, by each kind of URI."""
    if request.param == "file":
        return f"file://{tmp_path}/root"
    store = request.getfixturevalue("store")
    request.getfixturevalue("in_store")
    return f"s3a://{store.BUCKET}/storage/{tmp_path.name}"


def tree(root: str) -> dict[str, int]:
    """Returns file sizes by path below root."""
    return {file.uri.removeprefix(f"{root}/"): file.size for file in storage.list_files(root)}


def test_write_read_list_delete(root):
    assert not storage.exists(root)
    assert storage.list_files(root) == []
    assert storage.children(root) == []
    a, b = storage.join(root, "x", "a.json"), storage.join(root, "x", "b", "改写 ü.bin")
    storage.write(a, json.dumps({"n": 1}))
    storage.write(b, b"\x00" * 10)
    storage.write(storage.join(root, "x-other"), "beside x, not in it")
    assert storage.read_json(a) == {"n": 1}
    assert storage.read_bytes(b) == b"\x00" * 10
    assert all(storage.exists(f"{root}/{name}") for name in ("x", "x/b", "x/a.json"))
    assert not any(storage.exists(f"{root}/{name}") for name in ("x/c", "x/a"))
    assert tree(root) == {"x/a.json": 8, "x/b/改写 ü.bin": 10, "x-other": 19}
    assert [file.uri for file in storage.list_files(f"{root}/x")] == [a, b]
    assert [file.uri for file in storage.list_files(a)] == [a]
    assert abs(storage.list_files(a)[0].modified.timestamp() - time.time()) < 60
    assert storage.children(root) == ["x", "x-other"]
    assert storage.children(f"{root}/x") == ["a.json", "b"]
    storage.write(a, "other")
    assert storage.read_bytes(a) == b"other"
    with pytest.raises(OSError, match=r"a\.json: not JSON"):
        storage.read_json(a)
    storage.delete(f"{root}/x")
    storage.delete(f"{root}/x")
    assert tree(root) == {"x-other": 19}


def test_what_is_missing(root):
    for read in (storage.read_bytes, storage.read_json, storage.sha256):
        with pytest.raises(FileNotFoundError, match=r"^\S+/nothing: no such \w+") as caught:
            read(f"{root}/nothing")
        assert str(caught.value).startswith(root)
    storage.write(f"{root}/here", "x")
    with (
        pytest.raises(FileNotFoundError, match=r"^/not/my/file: gone$"),
        storage.open_file(f"{root}/here"),
    ):
        raise FileNotFoundError("/not/my/file: gone")  # the caller's own error stays unchanged


def test_open(root):
    uri = f"{root}/deep/large"
    block = bytes(range(256)) * 4096  # 1 MiB
    with storage.open_file(uri, "wb") as file:
        for _ in range(12):
            file.write(block)
        assert not storage.exists(uri)
    with storage.open_file(uri) as file:
        file.seek(len(block) * 11 + 5)
        assert file.read() == block[5:]
    assert storage.sha256(uri) == hashlib.sha256(block * 12).hexdigest()


def test_a_failed_write_leaves_nothing(root):
    def write_half(blocks: int) -> None:
        with storage.open_file(uri, "wb") as file:
            file.write(b"x" * blocks * 2**20)
            raise RuntimeError("on the way")

    uri = f"{root}/table"
    storage.write(uri, "old")
    for blocks in (1, 12):
        with pytest.raises(RuntimeError, match="on the way"):
            write_half(blocks)
        assert tree(root) == {"table": 3}


def test_copy(root, tmp_path, in_store, store):
    """Copies between every two kinds of place must be exact."""
    data = os.urandom(9 * 2**20)
    local = tmp_path / "local" / "file"
    local.parent.mkdir()
    local.write_bytes(data)
    storage.copy(str(local), f"{root}/a")
    storage.copy(f"{root}/a", f"{root}/b")
    storage.copy(f"{root}/b", str(tmp_path / "local" / "back"))
    storage.copy(f"{root}/b", f"s3://{store.BUCKET}/copied")
    assert (tmp_path / "local" / "back").read_bytes() == data
    digest = hashlib.sha256(data).hexdigest()
    for uri in (f"{root}/a", f"{root}/b", f"s3://{store.BUCKET}/copied"):
        assert storage.sha256(uri) == digest
    with pytest.raises(FileNotFoundError, match="nothing: no such"):
        storage.copy(f"{root}/nothing", f"{root}/c")


def test_of_eight_creators_one_wins(root):
    for attempt in range(2):
        uri = f"{root}/manifest-{attempt}"
        barrier = threading.Barrier(8)

        def race(n: int, uri=uri, barrier=barrier) -> str:
            barrier.wait()
            try:
                storage.create(uri, f"of {n}" * 100)
            except FileExistsError as error:
                return str(error)
            return f"of {n}" * 100

        with ThreadPoolExecutor(8) as pool:
            outcomes = Counter(pool.map(race, range(8)))
        assert outcomes.pop(f"{uri}: is already there") == 7
        assert [storage.read_bytes(uri).decode()] == [*outcomes]
    assert len(tree(root)) == 2  # no other file


@pytest.mark.parametrize("uri", ["ftp://host/x", "s3://", "gs://b/x"])
def test_other_uris(uri):
    for call in (storage.exists, storage.read_bytes):
        with pytest.raises(OSError, match=f"^{uri}: .*expected"):
            call(uri)


def test_a_killed_write_leaves_the_old_file(tmp_path):
    """A process killed between writing and renaming a file must leave the old file."""
    target = tmp_path / "manifest.json"
    target.write_text("old")
    code = """if True:
        import os, sys
        from gaixie.udfs.storage import storage
        storage.os.replace = storage.os.link = lambda *_: os.kill(os.getpid(), 9)
        getattr(storage, sys.argv[2])(sys.argv[1], "new")"""
    for name, path in (("write", target), ("create", tmp_path / "created.json")):
        assert subprocess.run([sys.executable, "-c", code, str(path), name]).returncode == -9
    assert target.read_text() == "old"
    assert not (tmp_path / "created.json").exists()
    storage.create(str(tmp_path / "created.json"), "next")


# Only in a store


def test_a_folder_s_marker_is_no_file_and_is_deleted_with_it(store, in_store):
    root = f"s3a://{store.BUCKET}/marked"
    store.put("marked/a/", b"")
    assert not storage.exists(root)
    store.put("marked/b", b"x")
    assert [file.uri for file in storage.list_files(root)] == [f"{root}/b"]
    storage.delete(root)
    assert store.keys("marked/") == []


def write_through(uri: str) -> None:
    with storage.open_file(uri, "wb") as file:
        file.write(b"x")


READS = (storage.list_files, storage.children, storage.read_bytes)
WRITES = (
    lambda uri: storage.write(uri, "x"),
    lambda uri: storage.create(uri, "x"),
    storage.delete,
    write_through,
    lambda uri: storage.copy(__file__, uri),
)


def test_a_link_needs_no_key(store, in_store):
    """A process without a key must read a file's ranges through a link, also after faults."""
    uri, content = f"s3://{store.BUCKET}/linked", os.urandom(300_000)
    faults = FaultProxy(store.port, lambda number: {5: "cut", 6: "slow down"}.get(number))
    in_store(AWS_ENDPOINT_URL_S3=faults.endpoint)
    storage.write(uri, content)
    storage.write(f"{uri}-empty", b"")
    link, empty = storage.link_to(uri), storage.link_to(f"{uri}-empty")
    in_store(AWS_ACCESS_KEY_ID="AKIANOBODY")
    with storage.open_file(uri, link=link) as file:
        assert file.read(10) == content[:10]
        file.seek(-20, os.SEEK_END)
        assert file.read() == content[-20:]
    assert storage.sha256(uri, link) == hashlib.sha256(content).hexdigest()
    assert storage.sha256(uri, empty) == hashlib.sha256(b"").hexdigest()
    with pytest.raises(OSError, match=f"^{uri}: the store answers 4"):
        storage.sha256(uri, link[:-3] + "abc")
    faults.stop()
    assert faults.faults == {"cut": 1, "slow down": 1}


def fails(action: Callable, uri: str, expected: type[OSError], words: str) -> None:
    """Asserts that an action fails soon, with this type and one line that begins with the URI."""
    started = time.monotonic()
    with pytest.raises(expected, match=words) as caught:
        action(uri)
    assert time.monotonic() - started < 20
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.startswith(f"{uri}: "), message


def test_wrong_credentials(in_store, store, monkeypatch, tmp_path):
    uri = f"s3://{store.BUCKET}/wrong"
    files = ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE")
    nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    nobody |= dict.fromkeys(files, str(tmp_path / "none")) | {"AWS_EC2_METADATA_DISABLED": "true"}
    for changes, said in (
        ({"AWS_ACCESS_KEY_ID": "AKIANOBODY"}, "credentials"),
        ({"AWS_SECRET_ACCESS_KEY": "not-the-secret"}, "credentials"),
        (nobody, "no credentials .*check AWS_"),
    ):
        in_store(**changes)
        for action in (storage.list_files, *WRITES[1:2], *WRITES[3:]):
            fails(action, uri, PermissionError, said)


def test_reader_may_not_write(in_store, store):
    uri = f"s3://{store.BUCKET}/reader"
    storage.write(uri, "of admin")
    in_store("reader")
    assert storage.read_bytes(uri) == b"of admin"
    assert [file.uri for file in storage.list_files(uri)] == [uri]
    for action in WRITES:
        fails(action, uri, PermissionError, "access denied")
    in_store()
    assert storage.read_bytes(uri) == b"of admin"


def test_no_such_bucket_and_no_store(in_store, monkeypatch):
    """A missing bucket must be named. Writes are not tried: the tests' server would create it."""
    for action in READS:
        fails(action, "s3://no-such-bucket/x", FileNotFoundError, "no such")
    monkeypatch.setattr(storage, "ATTEMPTS", 2)
    in_store(AWS_ENDPOINT_URL_S3=f"http://127.0.0.1:{free_port()}")
    for action in (storage.read_bytes, WRITES[1]):
        fails(action, "s3://gaixie/x", ConnectionError, "cannot be reached .*AWS_ENDPOINT_URL_S3")


def test_a_flaky_store_is_asked_again(store, in_store):
    """Requests must be repeated after a reset, a 503, a lost confirmation, and a cut answer."""
    faults = ["reset", "slow down", "cut", None, None]  # the last two find out who created it
    faults += [None, "slow down", "reset", None]
    faults += ["slow down", "cut", "reset", None]
    proxy = FaultProxy(store.port, lambda number: dict(enumerate(faults)).get(number))
    in_store(AWS_ENDPOINT_URL_S3=proxy.endpoint)
    uri, content = f"s3://{store.BUCKET}/flaky", os.urandom(300_000)
    storage.create(uri, content)
    assert proxy.requests == 5
    with pytest.raises(FileExistsError):
        storage.create(uri, "twice")
    assert proxy.requests == 9
    assert storage.read_bytes(uri) == content
    assert proxy.requests == len(faults)
    assert proxy.faults == {"reset": 3, "slow down": 3, "cut": 2}
    proxy.stop()

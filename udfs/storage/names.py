"""Checks names in manifests that are joined to folders: none may lead out of its folder."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator


def check_run_id(run_id: str) -> str:
    """Returns the id. Raises ValueError if it could name anything but a folder below runs/."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", run_id):
        raise ValueError(
            f"{run_id}: a run id has letters, digits and . _ -, and begins with a letter or digit"
        )
    return run_id


def check_below(path: str) -> str:
    """Returns the path. Raises ValueError if it could lead out of the folder it is joined to."""
    if not path or {"", ".", ".."} & {*path.split("/")} or ":" in path.split("/")[0]:
        raise ValueError(f"{path!r}: expected a path below the folder")
    return path


RunId = Annotated[str, AfterValidator(check_run_id)]
Below = Annotated[str, AfterValidator(check_below)]

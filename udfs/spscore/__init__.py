"""SPScore-zh: from a sentence pair to four judgements and one score, each in [0, 1].

The metric is in model.py, which loads when one of its names is first used: stages.py and its
constants do not need it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gaixie.udfs.spscore.files import Head
    from gaixie.udfs.spscore.model import JUDGEMENTS, OUTPUTS, SHIPPED, TIERS, VERSION, SPScore

__all__ = ["JUDGEMENTS", "OUTPUTS", "SHIPPED", "TIERS", "VERSION", "Head", "SPScore"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("gaixie.udfs.spscore.model"), name)

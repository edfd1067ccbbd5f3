"""Gaixie 改写: Chinese sentence paraphrases built, scored and learned at corpus scale.

    gaixie.score(data)           judgements of pairs, of any kind of table
    gaixie.paraphrase(text)      paraphrases of a sentence

The parts are gaixie.udfs, gaixie.jobs, gaixie.training, gaixie.service and gaixie.research;
gaixie/conf holds their settings. A checkout is the package itself, whatever its folder is called.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gaixie.udfs.library import paraphrase, score

__all__ = ["paraphrase", "score"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("gaixie.udfs.library"), name)

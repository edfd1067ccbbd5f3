"""Gaixie 改写: Chinese sentence paraphrases built, scored and learned at corpus scale.

The parts are gaixie.udfs, gaixie.jobs, gaixie.training, gaixie.service and gaixie.research; gaixie.conf
holds their settings. In a checkout they lie beside this folder, which links to them; an installed package has them in it.
"""

import sys
from pathlib import Path


def is_script_in(package: str) -> bool:
    """Whether what runs is a script of a package. package: its __file__."""
    script = getattr(sys.modules["__main__"], "__file__", None)
    return Path(script or ".").resolve().parent == Path(package).resolve().parent

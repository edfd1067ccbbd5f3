"""The scripts that train and use models, and what they call."""

if __name__ != "gaixie.training":  # under two names every class would be there twice
    raise ImportError("import gaixie.training, not training")

import sys
from pathlib import Path

from gaixie.udfs.command_line import name_missing_packages

if (
    Path(getattr(sys.modules["__main__"], "__file__", None) or ".").resolve().parent
    == Path(__file__).resolve().parent
):  # a script of ours: what it imports next may not be there
    name_missing_packages()

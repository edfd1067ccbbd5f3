"""The scripts that train and use models, and what they call."""

if __name__ != "gaixie.training":  # under two names every class would be there twice
    raise ImportError("import gaixie.training, not training")

from gaixie import is_script_in
from gaixie.udfs.command_line import name_missing_packages

if is_script_in(__file__):  # what it imports next may not be there
    name_missing_packages()

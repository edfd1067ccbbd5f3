"""HTTP over the metric, a model and a run, with a page and a client. Needs gaixie[serve], the
client nothing.
"""

if __name__ != "gaixie.service":  # under two names every class would be there twice
    raise ImportError("import gaixie.service, not service")

from gaixie import is_script_in
from gaixie.udfs.command_line import name_missing_packages

if is_script_in(__file__):  # what it imports next may not be there
    name_missing_packages()

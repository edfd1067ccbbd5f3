"""What is run once: fits, models that ship, comparisons, annotation, other papers, benchmarks."""

if __name__ != "gaixie.research":  # under two names every class would be there twice
    raise ImportError("import gaixie.research, not research")

from gaixie import is_script_in
from gaixie.jobs.errors import end_at_once_on_interrupt

if is_script_in(__file__):  # what it imports next takes a second, and may not be there
    end_at_once_on_interrupt()
    from gaixie.udfs.command_line import name_missing_packages

    name_missing_packages()

"""The scripts that spark-submit and cron start, and what they call."""

if __name__ != "gaixie.jobs":  # under two names every class would be there twice
    raise ImportError("import gaixie.jobs, not jobs")

from gaixie import is_script_in
from gaixie.jobs.errors import end_at_once_on_interrupt

if is_script_in(__file__):  # what it imports next takes a second, and may not be there
    end_at_once_on_interrupt()
    from gaixie.udfs.command_line import name_missing_packages

    name_missing_packages()

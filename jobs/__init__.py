"""Holds the scripts that spark-submit and cron start, and the code that they call."""

if __name__ != "gaixie.jobs":  # imported under two names, every class would exist twice
    raise ImportError("import gaixie.jobs, not jobs")

"""The scripts that spark-submit and cron start, and what they call."""

if __name__ != "gaixie.jobs":  # imported under two names, every class would exist twice
    raise ImportError("import gaixie.jobs, not jobs")

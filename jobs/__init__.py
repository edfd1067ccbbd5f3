"""The scripts that spark-submit and cron start, and what they call."""

if __name__ != "gaixie.jobs":  # under two names every class would be there twice
    raise ImportError("import gaixie.jobs, not jobs")

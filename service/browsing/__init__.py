"""Shows a published run or release in a browser, for jobs/show_run.py --serve.

Needs gaixie[browse].
"""

"""A published run or release, looked at in a browser: what jobs/show_run.py --serve calls. Needs
gaixie[browse].
"""

"""The command that shows a published run; tests/jobs/test_demo.py looks at what it prints."""

import pytest

from gaixie.jobs import show_run
from gaixie.udfs.command_line import UserError


def test_no_run_to_show(admin):
    with pytest.raises(UserError, match="no published run"):
        show_run.main([f"s3a://{admin.BUCKET}/nothing-here"])

"""The errors of jobs, under the name that their modules still use."""

from gaixie.udfs.command_line import UserError as JobError

__all__ = ["JobError"]

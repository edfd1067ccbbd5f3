"""Trains step by step: the controller, checkpoints, validation, the log."""

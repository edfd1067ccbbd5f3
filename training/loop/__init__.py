"""The steps of a training: the controller, checkpoints, validation, the log."""

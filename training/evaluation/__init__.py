"""What evaluate measures and reports."""

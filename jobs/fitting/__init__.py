"""What the jobs that make models call."""

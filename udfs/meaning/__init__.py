"""What sees meaning and fluency."""

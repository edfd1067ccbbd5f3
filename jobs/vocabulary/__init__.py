"""What build_vocabulary calls."""

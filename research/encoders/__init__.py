"""What make_encoder reads encoders from: packages that hold their weights."""

"""Reads encoders from packages that contain their weights, for make_encoder."""

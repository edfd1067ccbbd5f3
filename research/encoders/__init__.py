"""Reads an encoder from the package that contains its weights, for make_encoder."""

"""Writes the card of a trained model, and the folder to upload to a hub."""

"""The card of a trained model, and the folder that is ready for a hub."""

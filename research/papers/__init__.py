"""What reproduce_papers calls: how far people go, published figures, the page."""

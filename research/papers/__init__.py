"""What reproduce_papers calls: the parts that it runs, how far people go, the page."""

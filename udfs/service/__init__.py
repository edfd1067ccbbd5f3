"""HTTP over the metric, and what every server of the project shares. Needs gaixie[serve]."""

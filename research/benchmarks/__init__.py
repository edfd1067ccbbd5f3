"""How fast the parts are, and the experiment on the stages. They need a checkout: its tests/support."""

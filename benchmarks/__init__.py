"""Measurements; each script says how it is run."""

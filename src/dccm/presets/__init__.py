"""Presets of each method: `<method>.toml`, one table for each data set."""

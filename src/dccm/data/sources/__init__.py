"""Where images come from, one file for each kind."""

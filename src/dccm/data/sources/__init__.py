"""Where images come from, one kind a file."""

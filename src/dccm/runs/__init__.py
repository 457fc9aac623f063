"""Settings and images -> a fitted model -> a run directory."""

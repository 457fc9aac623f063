"""A run directory in the browser: look at the clusters, and correct them."""

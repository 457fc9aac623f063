"""What people say of clusters: a log of changes in the run directory, and the state that it leads to."""

"""The only loop, and what it needs: updates, checkpoints, clocks, the state of the clusters, workers."""

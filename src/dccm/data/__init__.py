"""Images in: reading, batching, perturbing."""

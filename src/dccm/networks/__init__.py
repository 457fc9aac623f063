"""The networks: images to features and predictions, and the critic of feature pairs."""

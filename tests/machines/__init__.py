"""What happens to a run on two machines: `make machines`."""

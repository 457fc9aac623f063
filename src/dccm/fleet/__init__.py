"""More images than one machine holds: each shard by itself, by processes or by the machines of a Ray cluster."""

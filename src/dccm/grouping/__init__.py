"""From features to clusters: what methods use to group, and nothing that knows of true labels."""

"""What the paper mines from unlabelled images, one file for each kind of correlation: target and loss together."""

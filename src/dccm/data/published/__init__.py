"""The image sets of the paper and their like, read from the files that their authors publish."""

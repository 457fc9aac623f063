"""The site of the pages in docs/: `make docs`."""

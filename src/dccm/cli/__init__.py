"""The command `dccm`."""

from dccm.cli import choose_k, encoders, gallery, lists, reproduce  # Their commands join those of the app.
from dccm.cli.app import app, main

__all__ = ["app", "choose_k", "encoders", "gallery", "lists", "main", "reproduce"]

"""The command `dccm`."""

from dccm.cli import cache, choose_k, compare, encoders, lists, reproduce  # Their commands join those of the app.
from dccm.cli.app import app, main

__all__ = ["app", "cache", "choose_k", "compare", "encoders", "lists", "main", "reproduce"]

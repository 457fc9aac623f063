"""The command `dccm`."""

from dccm.cli import encoders, lists  # Their commands join those of the app.
from dccm.cli.app import app, main

__all__ = ["app", "encoders", "lists", "main"]

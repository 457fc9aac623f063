"""The command `dccm`."""

from dccm.cli.app import app, main

__all__ = ["app", "main"]

"""The command `dccm`."""

from dccm.cli import (  # Their commands join those of the app.
    cache,
    choose_k,
    compare,
    encoders,
    export,
    gallery,
    judge,
    lists,
    predict,
    reproduce,
)
from dccm.cli.app import app, main

__all__ = [
    "app", "cache", "choose_k", "compare", "encoders", "export", "gallery", "judge", "lists", "main", "predict",
    "reproduce",
]  # fmt: skip

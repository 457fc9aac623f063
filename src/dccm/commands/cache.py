"""Look at the cache, check it, clear it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dccm.data.kept import cache_sizes, clear, kept, named, size_of
from dccm.errors import UserError
from dccm.files import amount, cache_folder

Rows = list[dict[str, Any]]


class Cleared(NamedTuple):
    """What became of entries that were to go."""

    removed: int
    in_use: int
    """By another process; they stay."""
    freed_bytes: int

    def sentence(self) -> str:
        """For people."""
        busy = f" In use by another process, so they stay: {self.in_use}." if self.in_use else ""
        return f"{self.removed} of {self.removed + self.in_use} removed, {amount(self.freed_bytes)} freed.{busy}"


def list_sizes(cache: str | Path | None = None) -> Rows:
    """How much of what there is."""
    sizes = cache_sizes(cache)
    return [{"kind": kind, "size": amount(size), "bytes": size} for kind, size in sizes.items()] + [
        {"kind": "all", "size": amount(sum(sizes.values())), "bytes": sum(sizes.values())}
    ]


def list_kept(cache: str | Path | None = None) -> Rows:
    """Prepared images and features, one row each."""
    return [
        {"key": entry.key[:12], "kind": entry.kind, "images": entry.manifest.get("images")}
        | {"size": amount(size_of(entry.folder)), "of": entry.what}
        for entry in kept(cache)
    ]


def check_kept(keys: Sequence[str] = (), cache: str | Path | None = None) -> Rows:
    """Compare every byte with the checksums; what is damaged is made anew by the next run that needs it."""
    return [
        {"key": entry.key[:12], "kind": entry.kind, "state": entry.state(), "of": entry.what}
        for entry in named(kept(cache), keys)
    ]


def clear_kept(keys: Sequence[str] = (), cache: str | Path | None = None) -> Cleared:
    """Delete prepared images and features; weights and downloads stay.

    Args:
        keys: Beginnings of keys; none: all.
        cache: Folder of the cache; None: the user's.
    """
    entries = named(kept(cache), keys)
    before = sum(size_of(entry.folder) for entry in entries)
    try:
        left = clear(entries)
    except OSError as error:
        where = cache or cache_folder()
        raise UserError(f"Cannot clear {where}: {error.strerror}. Choose a cache folder that is yours.") from error
    freed = before - sum(size_of(entry.folder) for entry in entries)
    return Cleared(len(entries) - len(left), len(left), freed)

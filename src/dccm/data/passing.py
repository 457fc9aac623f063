"""Errors that tell about the moment and not about an image: they are never remembered."""

import errno

from dccm.errors import UserError
from dccm.files import OUT_OF

_OF_THE_FILE = (None, 0, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR)
"""Numbers of system errors that say what a file is; Pillow's own errors about its bytes have none."""


def is_passing(error: Exception) -> bool:
    """Whether the system refused, as for a permission or a lost disk; all else may be remembered."""
    return isinstance(error, OSError) and error.errno not in _OF_THE_FILE


def require_means(error: Exception) -> None:
    """Stop where memory or open files are used up: going on would skip one sound image after the other."""
    what = _used_up(error)
    if what:
        raise UserError(
            f"Out of {what} while images were read; what is prepared so far is kept. "
            "Set fewer workers or allow more, and begin again."
        ) from error


def _used_up(error: Exception) -> str | None:
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return "memory or processes for another thread"
    return OUT_OF.get(error.errno or 0) if isinstance(error, OSError) else None

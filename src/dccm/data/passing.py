"""Errors that tell about the moment and not about an image: they are never remembered."""

import errno

from dccm.errors import UserError

_OUT_OF = {
    errno.EMFILE: "open files of this process (ulimit -n)",
    errno.ENFILE: "open files of this machine",
    errno.ENOMEM: "memory",
}
"""What no other image would have either."""


def is_passing(error: Exception) -> bool:
    """Whether the system refused, as for a permission or a lost disk; Pillow's own errors have no number."""
    return isinstance(error, OSError) and error.errno is not None


def require_means(error: Exception) -> None:
    """Stop where memory or open files are used up: going on would skip one sound image after the other."""
    what = "memory" if isinstance(error, MemoryError) else _OUT_OF.get(getattr(error, "errno", None) or 0)
    if what:
        raise UserError(
            f"Out of {what} while images were read; what is prepared so far is kept. "
            "Set fewer workers or allow more, and begin again."
        ) from error

"""Files that are written whole or not at all."""

import errno
import os
from pathlib import Path

from dccm.errors import UserError


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file under another name, flush it to the disk, then give it its name: it is never half there."""
    partial = path.with_name(path.name + ".partial")
    data = content.encode() if isinstance(content, str) else content
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"No room on disk to write {path} ({len(data)} bytes); what was there is unharmed. "
                "Free some space, then run the same command again, a training run with --resume."
            ) from error
        raise UserError(f"Cannot write {path}: {error.strerror}. Choose another output folder.") from error

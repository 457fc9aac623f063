"""A terminal that is closed while a command is at work: nobody is told any more, and nothing else changes."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO


class Lasting:
    """A stream into which writing fails no more once the terminal behind it is gone.

    Otherwise a line of progress would end the run before its checkpoint is written.

    Args:
        stream: Of the process.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        """All else is the stream's own."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text, or nothing."""
        with self._nowhere_if_gone():
            self._stream.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts, or nothing."""
        with self._nowhere_if_gone():
            self._stream.writelines(lines)

    def flush(self) -> None:
        """Hand on what was written."""
        with self._nowhere_if_gone():
            self._stream.flush()

    @contextmanager
    def _nowhere_if_gone(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            nowhere = os.open(os.devnull, os.O_WRONLY)
            # What is in buffers goes there too, also at the end of the process.
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            with suppress(OSError):
                self._stream.flush()


@contextmanager
def lasting_streams() -> Iterator[None]:
    """The streams of the process, in this way."""
    before: Any = sys.stdout, sys.stderr
    lasting: Any = [Lasting(stream) for stream in before]
    sys.stdout, sys.stderr = lasting
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before

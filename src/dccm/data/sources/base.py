"""What images of any origin have in common."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from dccm.data.images import Skipped
from dccm.data.names import Names
from dccm.errors import require

Item = Path | bytes | npt.NDArray[Any] | Image.Image
"""One image as its source has it: a file, the bytes of a file, pixels (H, W) or (H, W, C), or an open image."""


class Source(ABC):
    """Images that can be listed and read, one by one.

    A source lists when it is made and reads when it is asked. What cannot be read raises any `Exception`, whose text
    is the reason that the user sees; the others go on.
    """

    kind: str
    """In a word, for messages and manifests."""
    names: Names
    """A stable name for each image, such as its path below the folder."""
    labels: npt.NDArray[Any] | None = None
    """True classes, if known; for evaluation alone."""
    splits: npt.NDArray[np.str_] | None = None
    """`train` or `test` for each image, where a benchmark has both."""
    skipped: Sequence[Skipped] = ()
    """What was left out already when listing."""
    place: str | None = None
    """Where it is, so that what was prepared from it can be found again; None: nowhere but in memory."""
    in_order: bool = False
    """Reading is fast in rising order only, as in a compressed archive."""

    def __len__(self) -> int:
        return len(self.names)

    @abstractmethod
    def read(self, index: int) -> Item:
        """One image; called in rising order, from one thread at a time."""

    def label_by_folder(self) -> None:
        """Take the first folder of each name as the image's true class; for evaluation alone."""
        paths = (name.replace(os.sep, "/") for name in self.names)
        self.labels = np.array([path.split("/", 1)[0] if "/" in path else "" for path in paths])
        require(
            len(np.unique(self.labels)) > 1,
            f"class_folders wants one folder for each class in {self.place or self.kind}, and there is just one. "
            "Leave it out.",
        )

    def changed(self) -> bool:
        """Whether what it lists has changed since; cheap, so some sources cannot tell before they are listed again."""
        return False

    def close(self) -> None:  # noqa: B027 - most have nothing open
        """Let go of open files; nothing is read any more."""

    def fingerprint(self) -> str:
        """Changes when the source does; cheap, so made of sizes and times rather than of contents."""
        return ""

"""True classes in archives as webdataset writes them: `0001.cls` beside `0001.jpg`; for evaluation alone."""

from typing import Any

import numpy as np
import numpy.typing as npt

_SUFFIX = ".cls"
_LONGEST = 100
"""Bytes of a class."""


class Classes:
    """Gathers the class of each image of an archive; what belongs to one image stands together, in any order."""

    def __init__(self) -> None:
        self._of_images: list[str] = []
        self._key, self._class, self._first = "", "", 0

    def is_class(self, name: str, size: int) -> bool:
        """Whether a member says of which class an image is."""
        return name.endswith(_SUFFIX) and 0 < size <= _LONGEST

    def image(self, name: str) -> None:
        """The next image."""
        self._go_to(name)
        self._of_images.append(self._class)

    def note(self, name: str, content: bytes) -> None:
        """What a member says of the images that are called like it."""
        self._go_to(name)
        self._class = content.decode("utf-8", "replace").strip()
        images = len(self._of_images) - self._first
        self._of_images[self._first :] = [self._class] * images

    def _go_to(self, name: str) -> None:
        """All that stands before the first dot of a name is the same for what belongs together."""
        folder, _, last = name.rpartition("/")
        key = f"{folder}/{last.partition('.')[0]}"
        if key != self._key:
            self._key, self._class, self._first = key, "", len(self._of_images)

    def labels(self) -> npt.NDArray[Any] | None:
        """A class for each image, as numbers if all are; None if one has none."""
        if not all(self._of_images):
            return None
        numbers = all(found.isascii() and found.isdigit() and len(found) < 18 for found in self._of_images)
        return np.array([int(found) for found in self._of_images] if numbers else self._of_images)

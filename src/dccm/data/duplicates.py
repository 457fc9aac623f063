"""Images that are the same, pixel by pixel."""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dccm.arrays import Bytes
from dccm.data.images import Duplicate

Hashes = npt.NDArray[np.uint64]
HASH_BYTES = 8


def content_hash(pixels: Bytes) -> bytes:
    """Eight bytes that tell one image from another; among a million, two alike by chance are 1 in 30 million."""
    return hashlib.blake2b(np.ascontiguousarray(pixels).data, digest_size=HASH_BYTES).digest()


def content_hashes(images: Bytes) -> Hashes:
    """The hash of each image, (N,)."""
    return np.frombuffer(b"".join(content_hash(image) for image in images), dtype=np.uint64)


def find_duplicates(hashes: Hashes, names: Sequence[str]) -> list[Duplicate]:
    """Each image that has been there before, with the first that is the same."""
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    earliest = first[group]
    later = np.flatnonzero(earliest != np.arange(len(hashes)))
    return [Duplicate(names[int(place)], names[int(earliest[place])]) for place in later]

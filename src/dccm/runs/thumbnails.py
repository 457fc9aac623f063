"""Small pictures in a run directory: those that the report shows, as `thumbnails.npz`."""

import io
from pathlib import Path

import numpy as np

from dccm.arrays import Bytes
from dccm.documents import check
from dccm.files import write_atomically
from dccm.npy import read_arrays
from dccm.runs.contents import Assignments, Thumbnails

_SHOWN = 24
"""Most confident images of a cluster, and outliers, that the report shows."""
_LARGEST = 1_000_000_000
"""Bytes that all of them may have."""


def write_thumbnails(path: Path, images: Bytes, assignments: Assignments) -> None:
    """Keep the most confident images of each cluster, and some outliers."""
    clusters, confidences = assignments.clusters, assignments.confidences
    chosen = [np.flatnonzero(assignments.outliers)[:_SHOWN]]
    for cluster in np.unique(clusters):
        members = np.flatnonzero(clusters == cluster)
        chosen.append(members[np.argsort(-confidences[members], kind="stable")[:_SHOWN]])
    rows = np.array(list(dict.fromkeys(np.concatenate(chosen[1:] + chosen[:1]).tolist())), dtype=np.int64)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, images=images[rows], row=rows)
    write_atomically(path, buffer.getvalue())


def read_thumbnails(path: Path, n_images: int) -> Thumbnails:
    """What was kept; `ValueError` or `KeyError` if that makes no sense for a run of so many images."""
    arrays = read_arrays(path, _LARGEST)
    images, row = arrays["images"], arrays["row"]
    shaped = images.dtype == np.uint8 and images.ndim == 4 and 0 not in images.shape[1:]
    check(shaped, f"images must be uint8 (M, H, W, C), got {images.dtype} {images.shape}")
    fitting = row.shape == images.shape[:1] and row.dtype.kind in "iu"
    check(fitting, "row must give one whole number for each image")
    check(bool(((row >= 0) & (row < n_images)).all()), "a row that assignments.csv does not have")
    return Thumbnails(images, row.astype(np.int64))

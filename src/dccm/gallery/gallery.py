"""A run as the browser sees it: clusters, images, the map, and changes to them."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dccm.arrays import Bytes, Floats
from dccm.corrections.change import MARKS, Change, Entry
from dccm.corrections.of_run import open_log
from dccm.corrections.state import State
from dccm.errors import UserError, require
from dccm.files import cache_folder
from dccm.gallery.arranging import Arrangement
from dccm.gallery.choosing import Wanted, chosen
from dccm.gallery.example import Examples
from dccm.gallery.paths import Paths
from dccm.gallery.pictures import Pictures
from dccm.gallery.space import Space, scaled
from dccm.runs.contents import NO_CLUSTER, StoredSource
from dccm.runs.directory import RunDirectory
from dccm.runs.judgement import measures, read_judgement, trust

_SAMPLES = 8
"""Images that stand for a cluster."""
_MOST_PARTS = 12
_NEIGHBOURS = 24
_SHOWN_CHANGES = 200


class Gallery:
    """What a run directory holds, with its corrections.

    Args:
        directory: The run.
        cache: Folder of the cache; None: the user's.
        arranged: Whether a map on which neighbours stay neighbours is wanted, which takes minutes.
    """

    def __init__(self, directory: RunDirectory, cache: Path | None = None, *, arranged: bool = False) -> None:
        self._maps = (cache or cache_folder()) / "maps" if arranged else None
        self._arrangement: Arrangement | None = None
        directory.require()
        self.directory = directory
        self.result = directory.read_result()
        self.assignments = directory.read_assignments(self.result)
        self.log = open_log(directory, self.assignments, self.result.n_clusters)
        stored = directory.read_source() if directory.source.is_file() else StoredSource("", "", "", 0, (0, 0, 0), "")
        self.side = max(stored.shape[:2])
        self.checksum = stored.checksum
        self.pictures = Pictures(stored, self.assignments.paths, cache, _copies(directory, len(self)))
        self.examples = Examples(directory.path)
        self._by_confidence = np.argsort(-np.nan_to_num(self.assignments.confidences, nan=-1.0), kind="stable")
        self._lock = threading.Lock()
        self._described: tuple[int, dict[str, Any]] = (-1, {})

    def __len__(self) -> int:
        return len(self.assignments.paths)

    @cached_property
    def paths(self) -> Paths:
        """All paths, ready to be searched."""
        return Paths(self.assignments.paths)

    @property
    def space(self) -> Space:
        """The embedding, ready to be searched; the first who asks waits for it."""
        with self._lock:
            return self._space

    def warm(self) -> None:
        """Get ready what takes seconds, before anybody asks for it."""
        with suppress(UserError):  # A run without an embedding has no map.
            _ = self.space, self.paths
            if self._maps is not None:
                self._arrangement = Arrangement(self._maps, self.space.points)

    @property
    def map_kind(self) -> str:
        """Which map there is by now: `tsne`, or `pca` until that is computed."""
        return "pca" if self._arrangement is None or self._arrangement.places is None else "tsne"

    def map(self) -> bytes:
        """Two 32-bit numbers for each image."""
        places = self._arrangement.places if self._arrangement else None
        return (self.space.map() if places is None else scaled(places)).tobytes()

    @cached_property
    def _space(self) -> Space:
        return Space(self.directory.read_embedding(len(self)))

    def describe(self) -> dict[str, Any]:
        """The clusters and what can be undone, as of now."""
        with self.log.current() as replay:
            version, known = self._described
            if version != replay.version:
                known = self._clusters(replay.state)
                known |= {"undo": _spoken(replay.undoable), "redo": _spoken(replay.redoable)}
                self._described = replay.version, known
            return {"version": replay.version} | known

    def _clusters(self, state: State) -> dict[str, Any]:
        present = state.clusters - NO_CLUSTER  # From 0 up.
        sizes = np.bincount(present, minlength=1)
        confidences = self.assignments.confidences
        known = np.isfinite(confidences)
        sums = np.bincount(present[known], weights=confidences[known], minlength=len(sizes))
        counts = np.bincount(present[known], minlength=len(sizes))
        samples = self._samples(present)
        clusters = []
        for number in sorted(state.groups.alive | ({NO_CLUSTER} if sizes[0] else set())):
            place = number - NO_CLUSTER
            size = int(sizes[place]) if place < len(sizes) else 0
            mean = float(sums[place] / counts[place]) if size and counts[place] else None
            name = "No cluster" if number == NO_CLUSTER else state.groups.names.get(number, "")
            sample = samples.get(place, [])
            clusters.append({"id": number, "name": name, "size": size, "confidence": mean, "samples": sample})
        marks = np.bincount(state.marks, minlength=len(MARKS)).tolist()
        return {"clusters": clusters, "marks": dict(zip(MARKS, marks)), "images": len(self)}

    def _samples(self, present: npt.NDArray[np.int64]) -> dict[int, list[int]]:
        """The surest images of each cluster."""
        order = self._by_confidence[np.argsort(present[self._by_confidence], kind="stable")]
        places, starts = np.unique(present[order], return_index=True)
        ends = [*starts[1:], len(order)]
        return {
            int(place): order[start : min(start + _SAMPLES, end)].tolist()
            for place, start, end in zip(places, starts, ends)
        }

    def rows(self, wanted: Wanted, like: int | None = None, feature: Floats | None = None) -> npt.NDArray[np.int64]:
        """All images that are wanted, in their order.

        Args:
            wanted: What is asked for.
            like: Row of an image; those that are most like it come first.
            feature: The same for an image that is no part of the run.
        """
        distances = None
        if like is not None:
            distances = self.space.distances(self.row(like))
        elif feature is not None:
            distances = self.space.distances_of(feature)
        wanted = wanted if distances is None else replace(wanted, order="similar")
        holding = self.paths.holding(wanted.text) if wanted.text else None
        with self.log.current() as replay:
            return chosen(wanted, replay.state, self.assignments.confidences, holding, distances)

    def details(self, rows: Sequence[int]) -> dict[str, Any]:
        """What is known of some images."""
        with self.log.current() as replay:
            images = [self._image(self.row(row), replay.state) for row in rows]
            return {"version": replay.version, "images": images}

    def _image(self, row: int, state: State) -> list[Any]:
        """Row, path, cluster, confidence and mark: short, because there are many."""
        confidence = float(self.assignments.confidences[row])
        known = round(confidence, 4) if np.isfinite(confidence) else None
        path = self.assignments.paths[row].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return [row, path, int(state.clusters[row]), known, MARKS[state.marks[row]]]

    def thumbnail(self, number: int) -> str | None:
        """A small copy of an image as an address that holds it; None if it cannot be read."""
        row = self.row(number)
        try:
            return self.pictures.thumbnail(row).address()
        except UserError:
            return None

    def row(self, number: int) -> int:
        """A number of an image, if there is one."""
        require(0 <= number < len(self), f"There is no image {number}: the run has {len(self):,}, numbered from 0.")
        return number

    def neighbours(self, number: int) -> dict[str, Any]:
        """An image, and those that are most like it."""
        distances = self.space.distances(self.row(number))
        near = np.argpartition(distances, min(_NEIGHBOURS, len(self) - 1))[: _NEIGHBOURS + 1]
        near = near[np.argsort(distances[near], kind="stable")]
        with self.log.current() as replay:
            images = [self._image(int(row), replay.state) for row in near if row != number]
            return {"image": self._image(number, replay.state), "near": images[:_NEIGHBOURS]}

    def points(self) -> bytes:
        """The cluster of each image, as 32-bit numbers."""
        with self.log.current() as replay:
            return replay.state.clusters.astype("<i4").tobytes()

    def judgement(self) -> dict[str, Any]:
        """What the run is worth as far as that can be said without labels: the record, and its measures in words."""
        judged = read_judgement(self.directory.judgement)
        said = [measure._asdict() for measure in measures(judged)] if judged else []
        trusted = trust(judged, len(self.result.warnings))._asdict()
        return {"record": asdict(judged) if judged else None, "measures": said, "trust": trusted}

    def changes(self) -> list[dict[str, Any]]:
        """The newest entries of the log, the newest first."""
        version = self.log.sync()
        entries = list(self.log.entries(max(0, version - _SHOWN_CHANGES)))
        return [_spoken(entry) or {} for entry in reversed(entries)]

    def change(self, change: Change, who: str, key: str = "") -> dict[str, Any]:
        """Make a change; returns the version behind it, and the number of a cluster that was made.

        Args:
            change: What to change.
            who: In whose name.
            key: A word of the asker's own: a change that was made under it already is not made again.
        """
        if change.kind == "create":
            change = replace(change, cluster=self.log.next_cluster())
        entry = self.log.add(change, who, key)
        return {"version": self.log.sync(), "cluster": entry.change.cluster}

    def split(self, cluster: int, parts: int, who: str, key: str = "") -> dict[str, Any]:
        """Split a cluster by the embedding; the largest part keeps its number."""
        if made := self.log.made(key):
            return {"version": self.log.sync(), "clusters": [cluster, *(number for number, _ in made.change.parts)]}
        require(2 <= parts <= _MOST_PARTS, f"A cluster is split into 2 to {_MOST_PARTS} parts, got {parts}.")
        with self.log.current() as replay:
            rows = np.flatnonzero(replay.state.clusters == cluster)
        require(len(rows) >= parts, f"Cluster {cluster} has {len(rows)} images, too few for {parts} parts.")
        groups = self.space.parts(rows, parts)[1:]
        require(len(groups) > 0, f"The images of cluster {cluster} are all alike: nothing tells parts of it.")
        first = self.log.next_cluster()
        new = tuple((first + place, tuple(group.tolist())) for place, group in enumerate(groups))
        self.log.add(Change(kind="split", cluster=cluster, parts=new), who, key)
        return {"version": self.log.sync(), "clusters": [cluster, *(number for number, _ in new)]}


def _copies(directory: RunDirectory, count: int) -> dict[int, Bytes]:
    """The images that the run itself keeps, by row."""
    if not directory.thumbnails.is_file():
        return {}
    images, rows = directory.read_thumbnails(count)
    return {int(row): image for row, image in zip(rows, images)}


def _spoken(entry: Entry | None) -> dict[str, Any] | None:
    """An entry in a few words."""
    if entry is None:
        return None
    change = entry.change
    said = {"number": entry.number, "time": entry.time, "who": entry.who, "kind": change.kind}
    return said | {
        "images": _count(change),
        "cluster": change.cluster,
        "clusters": list(change.clusters) or [number for number, _ in change.parts],
        "name": change.name,
        "mark": change.mark,
        "change": change.change,
    }


def _count(change: Change) -> int:
    return sum((len(images) for _, images in change.parts), len(change.images))


def opened(run: Path, cache: Path | None = None, *, arranged: bool = False) -> Gallery:
    """The gallery of a run directory."""
    return Gallery(RunDirectory(run), cache, arranged=arranged)

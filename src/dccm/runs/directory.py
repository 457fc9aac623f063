"""A run directory: the only place that knows its files, their names and their formats.

Each file is written whole or not at all. What is missing or broken when it is read is named in one sentence.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dccm.arrays import Bytes, Floats
from dccm.config import Section
from dccm.data.images import Duplicate, ImageSet, Skipped
from dccm.documents import check, filled, named_if_broken, read_json, read_json_lines, read_small
from dccm.errors import UserError, require
from dccm.files import read_csv, whole_file, write_atomically, write_csv
from dccm.locks import held
from dccm.npy import map_array
from dccm.runs.columns import assignments_of
from dccm.runs.contents import (
    ASSIGNMENT_COLUMNS,
    Assignments,
    Begun,
    Record,
    StoredConfig,
    StoredSource,
    Thumbnails,
    assignment_columns,
    assignment_rows,
    checked_history,
    config_text,
    parse_config,
)
from dccm.runs.members import Rows, mapped_rows
from dccm.runs.parquet import as_text, row_groups, write_parquet
from dccm.runs.result import RunResult, result_from
from dccm.runs.thumbnails import for_map, read_thumbnails, write_thumbnails

_LOCK = "run.lock"
_REPAIR = "take a sound copy, or write the folder anew"


class RunDirectory:
    """The files of one run.

    Args:
        path: The directory; it need not exist yet.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.toml"
        self.source = self.path / "source.json"
        self.history = self.path / "history.jsonl"
        self.assignments = self.path / "assignments.csv"
        self.embedding = self.path / "embedding.npy"
        self.names = self.path / "names.csv"
        self.encoder = self.path / "encoder.json"
        self.thumbnails = self.path / "thumbnails.npz"
        self.map_thumbnails = self.path / "map_thumbnails.npz"
        self.skipped = self.path / "skipped.csv"
        self.duplicates = self.path / "duplicates.csv"
        self.near_duplicates = self.path / "near_duplicates.csv"
        self.labels = self.path / "labels.csv"
        self.result = self.path / "result.json"
        self.choice = self.path / "choice.json"
        self.judgement = self.path / "judgement.json"
        self.model = self.path / "model"
        self.checkpoints = self.path / "checkpoints"
        self.milestones = self.path / "milestones"
        self.report = self.path / "report.html"
        self.cluster_names = self.path / "clusters.csv"
        self.corrections = self.path / "corrections.sqlite"

    def __repr__(self) -> str:
        return f"RunDirectory({str(self.path)!r})"

    @property
    def holds_run(self) -> bool:
        """Whether a run was begun here."""
        return self.config.exists()

    def require_free(self) -> None:
        """Refuse a folder that something is in; it would be mixed up with the run, or lost."""
        if not self.path.exists():
            return
        require(self.path.is_dir(), f"output must be a folder, and {self.path} is a file. Choose another folder.")
        holds, way = ("a run already", ", or resume that run") if self.holds_run else ("other files", "")
        if not self.holds_run and (self.path / _LOCK).exists():  # Its holder had found the folder empty.
            holds, way = "what another command writes, or left when it was killed", ", or delete that one"
        require(
            not any(path.name != _LOCK for path in self.path.iterdir()),
            f"The output folder {self.path} holds {holds}, and nothing is overwritten. Choose another one{way}.",
        )

    @contextmanager
    def filling(self, *, resume: bool = False) -> Iterator[None]:
        """Make the folder and hold it for this process alone; unless a run is resumed it has to be empty."""
        self.require() if resume else self.create()
        with held(self.path / _LOCK, str(self.path)):
            if not resume:
                self.require_free()  # Another process may just be done.
            yield

    def create(self) -> None:
        """Make the folder, unless it is there and empty; any other is refused."""
        self.require_free()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"Cannot make the output folder {self.path}: {error.strerror}"
            raise UserError(f"{reason}. Choose another one.") from error

    def require(self) -> None:
        """Refuse a path that is no folder."""
        require(self.path.is_dir(), f'There is no run directory {self.path}; "dccm cluster" writes one.')

    def write_config(self, begun: Begun, sections: Sequence[Section]) -> None:
        """Write `config.toml`: what the run was begun with, and all settings."""
        write_atomically(self.config, config_text(begun, sections))

    def read_config(self) -> StoredConfig:
        """What `config.toml` holds."""
        require(self.config.is_file(), f"There is no run in {self.path} to resume: config.toml is missing. Begin one.")
        with named_if_broken(self.config, "begin anew in another output folder"):
            return parse_config(read_small(self.config).decode("utf-8"))

    def write_source(self, image_set: ImageSet) -> None:
        """Write `source.json`; places may hold any bytes, which JSON can spell."""
        origin, (count, *shape) = image_set.origin, image_set.images.shape
        stored = StoredSource(origin.kind, origin.place, origin.key, count, tuple(shape), origin.checksum)
        write_atomically(self.source, json.dumps(asdict(stored), indent=1) + "\n")

    def read_source(self) -> StoredSource:
        """What `source.json` holds."""
        with _reading(self.source):
            return filled(StoredSource, read_json(self.source))

    def source_folder(self) -> Path | None:
        """The folder below which names of images are paths; None where they are not, or where nobody noted it."""
        if not self.source.is_file():
            return None
        source = self.read_source()
        return {"folder": Path(source.place), "list of paths": Path(source.place).parent}.get(source.kind)

    def write_left_out(self, image_set: ImageSet) -> None:
        """Write skipped files with their reason, and images that are there twice."""
        self.write_skipped(image_set.skipped)
        write_csv(self.duplicates, Duplicate._fields, image_set.duplicates)

    def write_skipped(self, skipped: Iterable[Skipped]) -> None:
        """Write skipped files with their reason."""
        write_csv(self.skipped, Skipped._fields, skipped)

    def read_skipped(self) -> list[Skipped]:
        """The skipped files; none if nothing was noted."""
        return [Skipped(**row) for row in _left_out(self.skipped, Skipped._fields)]

    def read_duplicates(self, *, near: bool = False) -> list[Duplicate]:
        """The images that are there twice, or those that are nearly the same; none if nothing was noted."""
        path = self.near_duplicates if near else self.duplicates
        return [Duplicate(**row) for row in _left_out(path, Duplicate._fields)]

    def write_near_duplicates(self, pairs: Iterable[Duplicate]) -> None:
        """Write which images are nearly the same as an earlier one."""
        write_csv(self.near_duplicates, Duplicate._fields, pairs)

    def write_labels(self, names: Iterable[str], labels: Iterable[Any]) -> None:
        """Write true classes, for the report and for `evaluate`."""
        write_csv(self.labels, ("path", "label"), zip(names, labels))

    def write_history(self, history: Sequence[Mapping[str, Any]]) -> None:
        """Write one line of JSON for each epoch."""
        write_atomically(self.history, "".join(json.dumps(record) + "\n" for record in history))

    def read_history(self) -> list[Record]:
        """One record for each epoch."""
        with _reading(self.history):
            return checked_history(read_json_lines(self.history))

    def write_assignments(self, assignments: Assignments) -> None:
        """Write cluster and confidence of each image, as parquet too where pyarrow is installed."""
        paths = assignments.paths
        write_csv(self.assignments, ASSIGNMENT_COLUMNS, assignment_rows(assignments))
        blocks = (
            {"path": as_text(paths, rows)} | assignment_columns(assignments, rows) for rows in row_groups(len(paths))
        )
        write_parquet(self.path / "assignments.parquet", blocks)

    def write_cluster_names(self, names: Mapping[int, str]) -> None:
        """Write the names that people gave clusters, if they did."""
        if names:
            write_csv(self.cluster_names, ("cluster", "name"), sorted(names.items()))

    def forget_assignments(self) -> None:
        """Delete the assignments of another model, and what belongs to them."""
        for path in (self.assignments, self.path / "assignments.parquet", self.skipped, self.history):
            path.unlink(missing_ok=True)

    def read_assignments(self, result: RunResult | None = None) -> Assignments:
        """Cluster and confidence of each image.

        Args:
            result: What they must agree with; None: they stand alone, as after `dccm predict`.
        """
        with _reading(self.assignments):
            assignments = assignments_of(self.assignments, _REPAIR)
            count, found = len(assignments.paths), assignments.clusters
            if result is not None:
                check(count == result.n_images, f"{count} images, but result.json counts {result.n_images}")
                inside = bool(((found >= 0) & (found < result.n_clusters)).all())
                check(inside, f"a cluster number outside 0 to {result.n_clusters - 1}")
            return assignments

    def write_embedded(self, names: Sequence[str], encoder: Mapping[str, str]) -> None:
        """Write what the rows of an embedding without a run are of, and which encoder made them."""
        write_csv(self.names, ("path",), ((name,) for name in names))
        write_atomically(self.encoder, json.dumps(encoder, indent=1) + "\n")

    @contextmanager
    def writing_embedding(self, paths: Sequence[str]) -> Iterator[Callable[[Floats], None]]:
        """Write `embedding.npy` block by block, and as parquet too where pyarrow is installed.

        Args:
            paths: Of all images.

        Yields:
            What takes the features of the next images, (B, D).
        """
        with whole_file(self.embedding) as file:
            written = 0

            def add(features: Floats) -> None:
                nonlocal written
                if not written:
                    head = {"descr": "<f4", "fortran_order": False, "shape": (len(paths), features.shape[1])}
                    np.lib.format.write_array_header_1_0(file, head)
                file.write(np.ascontiguousarray(features, dtype="<f4").data)
                written += len(features)

            yield add
            assert written == len(paths), "Each image has a feature."
        embedding = self.read_embedding()
        write_parquet(
            self.path / "embedding.parquet",
            ({"path": as_text(paths, rows), "feature": list(embedding[rows])} for rows in row_groups(len(paths))),
        )

    def read_embedding(self, n_images: int | None = None) -> Floats:
        """The deep features of so many images, (N, D), in the order of the assignments, mapped from the file."""
        with _reading(self.embedding):
            features: Floats = map_array(self.embedding)
            sound = features.ndim == 2 and features.dtype == np.float32 and features.shape[1] > 0
            check(sound, f"features must be float32 (N, D), got {features.dtype} {features.shape}")
            check(n_images in (None, len(features)), f"it is of {len(features):,} images, and the run of {n_images}")
            return features

    def write_thumbnails(self, images: Bytes, rows: Rows) -> None:
        """Keep these images for the report, and others, smaller, for its map."""
        write_thumbnails(self.thumbnails, Thumbnails(images[rows], rows))
        write_thumbnails(self.map_thumbnails, for_map(images, mapped_rows(len(images))))

    def read_thumbnails(self, n_images: int, *, of_map: bool = False) -> Thumbnails:
        """The images that were kept; `n_images` is how many the run has."""
        path = self.map_thumbnails if of_map else self.thumbnails
        with _reading(path):
            return read_thumbnails(path, n_images)

    def write_result(self, result: RunResult) -> None:
        """Write `result.json`."""
        write_atomically(self.result, json.dumps(asdict(result), indent=1) + "\n")

    def read_result(self) -> RunResult:
        """The outcome in numbers."""
        with _reading(self.result):
            return result_from(read_json(self.result))


def _left_out(path: Path, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    return read_csv(path, columns, _REPAIR, exactly=True) if path.exists() else iter(())


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Name a file that is not there or broken."""
    require(path.is_file(), f'There is no {path.name} in {path.parent}; "dccm cluster" writes a run directory.')
    with named_if_broken(path, _REPAIR):
        yield

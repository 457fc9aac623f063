"""The folder of all results: an ordinary run directory for each run, and what was noted about them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dccm.documents import check, filled, named_if_broken, read_json
from dccm.errors import UserError, require
from dccm.experiments.measure import Found, Measure
from dccm.experiments.request import known_data_set
from dccm.experiments.spec import RunSpec
from dccm.files import disk_error, write_atomically
from dccm.locks import locked_file
from dccm.runs.directory import RunDirectory
from dccm.runs.result import RunResult

FORMAT = 1
"""Changes when runs of another version could not stand beside those of this one in a table."""
_REPAIR = "delete it, and run the same command again"


@dataclass(frozen=True)
class Record:
    """What was noted of a finished run."""

    spec: dict[str, Any]
    """Its description."""
    revision: str | None = None
    """Of the program; None: it was installed."""
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0


class Results:
    """What is known of the runs of a results folder.

    Args:
        path: The folder: `runs/<key>/` are run directories, `failed/<key>.json` says why one could not be made,
            `locks/<key>` is held by the process that makes it; tables, figures and `index.html` stand beside them.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.runs, self.failed, self.locks = (self.path / name for name in ("runs", "failed", "locks"))
        self.page = self.path / "index.html"
        self._mark = self.path / "results.json"

    def run(self, spec: RunSpec) -> RunDirectory:
        """The directory of a run, finished or not."""
        return RunDirectory(self.runs / spec.key)

    def is_finished(self, spec: RunSpec) -> bool:
        """Whether nothing of the run itself is left to do."""
        return self._record(spec).is_file() and bool(self.record(spec))

    def result(self, spec: RunSpec) -> RunResult | None:
        """The outcome of a finished run in numbers."""
        if not self.is_finished(spec):
            return None
        directory = self.run(spec)
        result = directory.read_result()
        with named_if_broken(directory.result, f"delete {directory.path}, and run the same command again"):
            for name, wanted in (("method", spec.method), ("preset", spec.preset), ("seed", spec.seed)):
                found = getattr(result, name)
                check(found == wanted, f"{name} must be {wanted}, as {directory.path.name} says, got {found!r:.40}")
            known = known_data_set(spec.dataset)
            check(
                (result.dataset or "") in ("", known), f"dataset must be {known or 'null'}, got {result.dataset!r:.40}"
            )
            many = spec.limit is not None and result.n_images > spec.limit
            check(not many, f"n_images must be {spec.limit} at most, got {result.n_images}")
        return result

    def scores(self, spec: RunSpec) -> dict[str, float]:
        """ACC, NMI, ARI of a finished run with labels; empty otherwise."""
        result = self.result(spec)
        return dict(result.scores or {}) if result else {}

    def measured(self, spec: RunSpec, measure: Measure[Found]) -> Found | None:
        """What a measure of a finished run found; None: it was not taken."""
        path = self.measure_file(spec, measure.name)
        if not path.is_file():
            return None
        with named_if_broken(path, _REPAIR):
            return filled(measure.found, read_json(path))

    def measure_file(self, spec: RunSpec, measure: str) -> Path:
        """Where a measure of a run is."""
        return self.run(spec).path / f"measure-{measure}.json"

    def note_measure(self, spec: RunSpec, measure: str, found: dict[str, Any]) -> None:
        """Keep what a measure found."""
        write_atomically(self.measure_file(spec, measure), json.dumps(found, indent=1) + "\n")

    def failure(self, spec: RunSpec) -> str | None:
        """Why a run could not be made, in one sentence."""
        path = self._failure(spec)
        if not path.is_file():
            return None
        with named_if_broken(path, _REPAIR):
            reason = _read(path).get("reason")
            check(isinstance(reason, str), "it has no reason")
            return str(UserError(str(reason)))  # Of a stranger it could be of any length, and act on a terminal.

    def note_failure(self, spec: RunSpec, reason: str, details: str = "") -> None:
        """Keep why a run could not be made."""
        document = {"run": spec.label(), "reason": reason, "details": details, "spec": spec.document()}
        write_atomically(self._failure(spec), json.dumps(document, indent=1) + "\n")

    def forget_failure(self, spec: RunSpec) -> None:
        """The run is tried again."""
        self._failure(spec).unlink(missing_ok=True)

    def note_finished(self, spec: RunSpec, record: dict[str, Any]) -> None:
        """Mark a run as finished; the last file of a run that is written."""
        write_atomically(self._record(spec), json.dumps({"spec": spec.document()} | record, indent=1) + "\n")
        self.forget_failure(spec)

    def record(self, spec: RunSpec) -> Record:
        """What was noted of a finished run; a later version may note more."""
        path = self._record(spec)
        with named_if_broken(path, f"delete {path.parent}, and run the same command again"):
            document = {name: value for name, value in _read(path).items() if name in Record.__dataclass_fields__}
            record = filled(Record, document)
            same = json.dumps(record.spec, sort_keys=True) == json.dumps(spec.document(), sort_keys=True)
            check(same, "it is of another run than its folder says")
            return record

    def _record(self, spec: RunSpec) -> Path:
        return self.run(spec).path / "experiment.json"

    def _failure(self, spec: RunSpec) -> Path:
        return self.failed / f"{spec.key}.json"

    def open(self) -> None:
        """Make the folder, or see that it is one of this kind and version."""
        if not self._mark.is_file():
            self._require_free()
        self._create()
        found = _read(self._mark).get("format")
        require(
            found == FORMAT,
            f"The results in {self.path} are of another version of dccm (format {found}, not {FORMAT}), and runs of "
            "both do not belong into one table. Choose another output folder.",
        )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Tables and figures are written by one process after the other."""
        try:
            with locked_file(self.locks / "page", lambda: True):
                yield
        except OSError as error:
            again = "then run the same command again"
            raise disk_error(error, f"write into {self.path}", "finished runs are kept", again, "output") from error

    def _require_free(self) -> None:
        folders = (self.runs, self.failed, self.locks)
        inside = {path.name for path in self.path.iterdir()} if self.path.is_dir() else set()
        known = {self._mark.name, f"{self._mark.name}.partial", *(folder.name for folder in folders)}
        require(
            (self.path.is_dir() or not self.path.exists()) and inside <= known,
            f"output must be a folder of results, and {self.path} holds something else. Choose another folder.",
        )

    def _create(self) -> None:
        """Make what is missing of the folder; another process may be at it too."""
        try:
            for folder in (self.runs, self.failed, self.locks):
                folder.mkdir(parents=True, exist_ok=True)
            if not self._mark.is_file():
                with locked_file(self.locks / "results", lambda: True):
                    write_atomically(self._mark, json.dumps({"format": FORMAT}) + "\n")
        except OSError as error:
            raise UserError(f"Cannot make {self.path}: {error.strerror}. Choose another output folder.") from error


def _read(path: Path) -> dict[str, Any]:
    """A JSON object of ours."""
    with named_if_broken(path, _REPAIR):
        document = read_json(path)
        check(isinstance(document, dict), "no object")
        return dict(document)

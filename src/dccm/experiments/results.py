"""The folder of all results: an ordinary run directory for each run, and what was noted about them."""

import json
from pathlib import Path
from typing import Any

from dccm.documents import check, named_if_broken, read_json
from dccm.errors import UserError, require
from dccm.experiments.spec import RunSpec
from dccm.files import write_atomically
from dccm.locks import locked_file
from dccm.runs.directory import RunDirectory
from dccm.runs.result import RunResult

FORMAT = 1
"""Changes when runs of another version could not stand beside those of this one in a table."""


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
        return self._record(spec).is_file()

    def result(self, spec: RunSpec) -> RunResult | None:
        """The outcome of a finished run in numbers."""
        return self.run(spec).read_result() if self.is_finished(spec) else None

    def scores(self, spec: RunSpec) -> dict[str, float]:
        """ACC, NMI, ARI of a finished run with labels; empty otherwise."""
        result = self.result(spec)
        return dict(result.scores or {}) if result else {}

    def measured(self, spec: RunSpec, measure: str) -> dict[str, Any] | None:
        """What a measure of a finished run found, by the measure's name; None: it was not taken."""
        path = self.measure_file(spec, measure)
        return _read(path) if path.is_file() else None

    def measure_file(self, spec: RunSpec, measure: str) -> Path:
        """Where a measure of a run is."""
        return self.run(spec).path / f"measure-{measure}.json"

    def note_measure(self, spec: RunSpec, measure: str, found: dict[str, Any]) -> None:
        """Keep what a measure found."""
        write_atomically(self.measure_file(spec, measure), json.dumps(found, indent=1) + "\n")

    def failure(self, spec: RunSpec) -> str | None:
        """Why a run could not be made, in one sentence."""
        path = self._failure(spec)
        return str(_read(path).get("reason", "it is not known")) if path.is_file() else None

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

    def record(self, spec: RunSpec) -> dict[str, Any]:
        """What was noted of a finished run: its description, revision of the program, wall time."""
        return _read(self._record(spec))

    def _record(self, spec: RunSpec) -> Path:
        return self.run(spec).path / "experiment.json"

    def _failure(self, spec: RunSpec) -> Path:
        return self.failed / f"{spec.key}.json"

    def open(self) -> None:
        """Make the folder, or see that it is one of this kind and version."""
        if not self._mark.is_file():
            self._create()
        found = _read(self._mark).get("format")
        require(
            found == FORMAT,
            f"The results in {self.path} are of another version of dccm (format {found}, not {FORMAT}), and runs of "
            "both do not belong into one table. Choose another output folder.",
        )

    def _create(self) -> None:
        """Make the folder; another process may be at it too."""
        folders = (self.runs, self.failed, self.locks)
        inside = {path.name for path in self.path.iterdir()} if self.path.is_dir() else set()
        known = {self._mark.name, f"{self._mark.name}.partial", *(folder.name for folder in folders)}
        require(
            (self.path.is_dir() or not self.path.exists()) and inside <= known,
            f"output must be a folder of results, and {self.path} holds something else. Choose another folder.",
        )
        try:
            for folder in folders:
                folder.mkdir(parents=True, exist_ok=True)
            with locked_file(self.locks / "results", lambda: True):
                if not self._mark.is_file():
                    write_atomically(self._mark, json.dumps({"format": FORMAT}) + "\n")
        except OSError as error:
            raise UserError(f"Cannot make {self.path}: {error.strerror}. Choose another output folder.") from error


def _read(path: Path) -> dict[str, Any]:
    """A JSON object of ours."""
    with named_if_broken(path, "delete it, and run the same command again"):
        document = read_json(path)
        check(isinstance(document, dict), "no object")
        return dict(document)

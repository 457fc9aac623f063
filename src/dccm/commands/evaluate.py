"""Score the clusters of a run against true labels."""

from pathlib import Path

from dccm.evaluation.labels import read_labels
from dccm.evaluation.metrics import scores
from dccm.runs.directory import RunDirectory


def evaluate(run: str | Path, labels: str | Path) -> dict[str, float]:
    """ACC, NMI, ARI and BCubed by name.

    Args:
        run: Run directory, or output folder of `predict`.
        labels: CSV with the columns path and label, or an .npy array in the order of the images.
    """
    assignments = RunDirectory(run).read_assignments()
    return scores(read_labels(Path(labels), assignments.paths), assignments.clusters)

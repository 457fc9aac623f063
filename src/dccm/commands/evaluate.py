"""Score the clusters of a run against true labels."""

from pathlib import Path

from dccm.evaluation.calibration import confidence_scores
from dccm.evaluation.labels import read_labels
from dccm.evaluation.metrics import scores
from dccm.runs.directory import RunDirectory


def evaluate(run: str | Path, labels: str | Path) -> dict[str, float]:
    """ACC, NMI, ARI and BCubed by name, of all images by their best cluster; then what labels say of confidences.

    Calibration error and ACC of the surest 80 %, where there are confidences; where images were rejected, coverage
    and ACC of the kept.

    Args:
        run: Run directory, or output folder of `predict`.
        labels: CSV with the columns path and label, or an .npy array in the order of the images. Paths may be those of
            `assignments.csv`, or lead to the same files from the folder of the CSV, the current one, or the root.
    """
    directory = RunDirectory(run)
    assignments = directory.read_assignments()
    _, clusters, confidences, rejected, _ = assignments
    true = read_labels(Path(labels), assignments.paths, directory.source_folder())
    return scores(true, clusters) | confidence_scores(true, clusters, confidences, rejected)

"""Assign new images to the clusters of a trained model."""

from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from dccm.commands.reading import Reading, read_for
from dccm.corrections.following import following_of
from dccm.corrections.of_run import corrected
from dccm.data.images import ImageSet
from dccm.errors import UserError
from dccm.progress import SILENT, Watcher
from dccm.report.assigned import Training, mean_of, write_assigned
from dccm.runs.confidence import graded_threshold, parse_reject, rejected_ones, require_graded
from dccm.runs.contents import NO_CLUSTER, Assignments
from dccm.runs.directory import RunDirectory
from dccm.runs.features import inputs_like
from dccm.runs.model import Model
from dccm.training.progress import Stage


class Predicted(NamedTuple):
    """New images and their clusters."""

    assignments: Assignments
    image_set: ImageSet
    directory: RunDirectory | None
    """Where it was written, if that was asked for."""
    names: dict[int, str]
    """Of clusters that people gave one."""


def predict(
    model: str | Path,
    images: Any,
    *,
    output: str | Path | None = None,
    device: str = "auto",
    reject: float | str | None = None,
    watcher: Watcher = SILENT,
    **reading: Unpack[Reading],
) -> Predicted:
    """Assign images to clusters as corrected by then, with confidence; memory grows by a few bytes per image only.

    Args:
        model: Run directory, or model folder.
        images: What `read_images` takes.
        output: Folder for assignments, lists of what was left out, and a page of it all; None: nothing is written.
        device: Where to compute.
        reject: Images that get no cluster: a share of the least sure of these images, 0.1, or a threshold,
            `below:0.6`; None: as the model was trained, with the threshold found there.
        watcher: Is told how it gets on.
        **reading: Which images, and how they are read; see `Reading`.
    """
    rejecting = parse_reject(reject)
    trained = Model.load(Path(model), device)
    if rejecting is not None:
        require_graded(trained.method, trained.config.method)
    following = following_of(RunDirectory(model), trained)
    look = following.look if following else None
    directory = None if output is None else RunDirectory(output)
    if directory is not None:
        directory.require_free()  # Before images are read, which can take long.
    image_set = read_for(trained, images, watcher, **reading)
    told: dict[str, Any] = {"on_progress": watcher.training, "say": watcher.say}
    inputs = inputs_like(trained.pretrained, image_set, device=device, cache=reading.get("cache"), **told)
    assigned = trained.assign(inputs, take_features=look, on_progress=watcher.training)
    below = graded_threshold(rejecting, trained.method, trained.config.method, assigned.confidences)
    rejected = rejected_ones(assigned.confidences, trained.reject_below if below is None else below)
    clusters = following.clusters(assigned.clusters) if following else assigned.clusters
    assignments = Assignments(image_set.names, clusters, assigned.confidences, rejected, assigned.outliers)
    names = following.names if following else {}
    if directory is not None:
        watcher.training(Stage("writing results", 0.0))
        with directory.filling():
            directory.write_assignments(assignments)
            directory.write_source(image_set)
            directory.write_left_out(image_set)
            directory.write_cluster_names(names)
            write_assigned(directory, assignments, image_set, names, _training_of(RunDirectory(model)), model)
        watcher.training(Stage("writing results", 1.0))
    return Predicted(assignments, image_set, directory, names)


def _training_of(model: RunDirectory) -> Training:
    """What a run tells of its images; a run that cannot be read is no reason to lose what was assigned."""
    if not model.result.is_file():
        return Training(unknown="The model stands alone, without its run.")
    try:
        result = model.read_result()
        assignments = model.read_assignments(result)
        state = corrected(model, assignments, result.n_clusters)
    except UserError as error:
        return Training(unknown=str(error))
    best = np.array([state.groups.of_predicted(cluster) for cluster in range(result.n_clusters)])
    clusters = np.where(state.clusters == NO_CLUSTER, best[assignments.clusters], state.clusters)
    numbers, counts = np.unique(clusters, return_counts=True)
    sizes = dict.fromkeys(sorted(state.groups.alive), 0) | dict(zip(numbers.tolist(), counts.tolist()))
    return Training(sizes, mean_of(assignments.confidences))

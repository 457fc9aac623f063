from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dccm.commands.cluster import cluster
from dccm.commands.predict import predict
from dccm.corrections.change import Change
from dccm.corrections.following import Following, following_of
from dccm.corrections.of_run import open_log
from dccm.corrections.state import replayed
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.runs.directory import RunDirectory
from dccm.runs.model import Model
from tests.corrections.runs import state_of
from tests.corrections.test_state import entries_of

PREDICTED = [0, 0, 0, 0, 1, 1]
FEATURES = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [-1, 0], [-1, 0]], np.float32)


def following(*changes: Change, n_clusters: int = 2) -> Following:
    state = replayed(state_of(*PREDICTED), entries_of(*changes)).state
    return Following(state, np.array(PREDICTED), n_clusters, FEATURES)


def where(found: Following, features: list[list[float]], predicted: list[int]) -> list[int]:
    for feature in features:  # A batch each: they are gathered.
        found.look(np.array([feature], np.float32))
    return found.clusters(np.array(predicted)).tolist()  # type: ignore[no-any-return]


def test_without_changes_all_stays() -> None:
    assert where(following(), [[1, 0], [0, 1]], [0, 1]) == [0, 1]


def test_new_images_of_merged_clusters_go_into_the_one_that_is_left() -> None:
    merged = following(Change(kind="merge", clusters=(0, 1), cluster=1))
    assert where(merged, [[1, 0], [0, 1]], [0, 1]) == [1, 1]


def test_new_images_of_a_split_cluster_go_to_the_nearer_part() -> None:
    split = following(Change(kind="split", cluster=0, parts=((2, (2, 3)),)))
    assert where(split, [[2, 1], [1, 2], [0, 1]], [0, 0, 1]) == [0, 2, 1]


def test_an_empty_cluster_of_the_model_follows_its_merge() -> None:
    state = replayed(state_of(0, 0, 2), entries_of(Change(kind="merge", clusters=(1, 2), cluster=2))).state
    found = Following(state, np.array([0, 0, 2]), 3, FEATURES[:3])
    assert where(found, [[1, 0]], [1]) == [2]


def test_one_image_of_many_that_is_moved_does_not_take_others_with_it() -> None:
    predicted = [0] * 20 + [1]
    state = replayed(state_of(*predicted), entries_of(Change(kind="move", images=(0,), cluster=1))).state
    features = np.ones((21, 2), np.float32)
    assert where(Following(state, np.array(predicted), 2, features), [[1, 1]], [0]) == [0]


def test_predict_gives_corrected_clusters_and_their_names(tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for name, pixels in zip(bars(24, side=16).names, bars(24, side=16).images):
        Image.fromarray(pixels[..., 0]).save(images / f"{name}.png")
    run = cluster(images, 3, "kmeans", output=tmp_path / "run", encoder="scratch", image_size=16).directory
    before = predict(tmp_path / "run", images).assignments.clusters
    assert before.tolist() == run.read_assignments().clusters.tolist()
    log = open_log(run, run.read_assignments(), 3)
    changes = Change(kind="merge", clusters=(0, 1), cluster=1), Change(kind="rename", cluster=1, name="bars, both")
    log.write([("ann", change) for change in changes])
    predicted = predict(tmp_path / "run", images, output=tmp_path / "new")  # While the log is open.
    assert predicted.assignments.clusters.tolist() == np.where(before == 0, 1, before).tolist()
    assert predicted.names == {1: "bars, both"}
    assert (tmp_path / "new" / "clusters.csv").read_text() == 'cluster,name\n1,"bars, both"\n'
    assert not (tmp_path / "run" / "clusters.csv").exists()


def test_a_model_folder_has_no_corrections(tmp_path: Path) -> None:
    assert following_of(RunDirectory(tmp_path), run_of(tmp_path / "run")) is None


def run_of(output: Path) -> Model:
    return cluster(bars(24, side=8), 3, "kmeans", output=output).model


@pytest.mark.parametrize("kept", [(24, 0), (24, 3), (20, 64)])
def test_an_embedding_that_is_not_of_the_run_is_refused(tmp_path: Path, kept: tuple[int, int]) -> None:
    model, run = run_of(tmp_path), RunDirectory(tmp_path)
    open_log(run, run.read_assignments(), 3).close()
    assert following_of(run, model) is not None
    np.save(run.embedding, np.zeros(kept, np.float32))
    with pytest.raises(UserError, match="features must be|and its model of 3 and 64|it is of 20 images"):
        following_of(run, model)


def test_a_run_that_counts_other_clusters_than_its_model_is_refused(tmp_path: Path) -> None:
    model, run = run_of(tmp_path), RunDirectory(tmp_path)
    open_log(run, run.read_assignments(), 3).close()
    run.result.write_text(run.result.read_text().replace('"n_clusters": 3', '"n_clusters": 4'))
    with pytest.raises(UserError, match="is of 4 clusters and features of 64 numbers, and its model of 3 and 64"):
        following_of(run, model)

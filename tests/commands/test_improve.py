"""A run goes on with what people said of its clusters."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dccm.commands.cluster import cluster, default_output
from dccm.commands.predict import predict
from dccm.corrections.change import Change
from dccm.corrections.of_run import corrected, open_log
from dccm.data.images import ImageSet
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.estimators import ImageClusterer
from dccm.gallery.gallery import opened
from dccm.runs.directory import RunDirectory
from tests.clusterers import files
from tests.commands.test_vectors import coloured
from tests.networks.weights import write_weights
from tests.test_cli import dccm

IMAGES = coloured(36)
CPU: dict[str, Any] = {"device": "cpu"}
QUICK: dict[str, Any] = {"mini_batch": 9, "threads": 1, "fewest_steps": 1}
SHORT: dict[str, Any] = {"budget": "passes:2"}
SAME = ("history.jsonl", "assignments.csv", "model/weights.safetensors", "model/model.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache, weights that nobody trained, and a run of four clusters on them, of three colours."""
    folder = tmp_path_factory.mktemp("improve")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DCCM_CACHE", str(folder / "cache"))
        encoder = f"file:{write_weights(folder / 'own.safetensors')}"
        cluster(IMAGES, 4, encoder=encoder, output=folder / "run", settings=QUICK, epochs=2, **CPU)
        yield folder


def copied(folder: Path, tmp_path: Path, *changes: Change) -> Path:
    run = Path(shutil.copytree(folder / "run", tmp_path / "run"))
    change(run, *changes)
    return run


def change(run: Path, *changes: Change) -> None:
    directory = RunDirectory(run)
    result = directory.read_result()
    log = open_log(directory, directory.read_assignments(result), result.n_clusters)
    log.write([("ann", one) for one in changes])
    log.close()


def clusters_of(run: Path) -> npt.NDArray[np.int64]:
    return RunDirectory(run).read_assignments().clusters


def contents(run: Path) -> dict[str, bytes]:
    files = (path for path in run.rglob("*") if path.is_file() and "sqlite" not in path.name)
    return {str(path.relative_to(run)): path.read_bytes() for path in files}


def moved(run: Path) -> Change:
    """Six images into the cluster that the first one is in."""
    return Change(kind="move", images=(0, 3, 6, 9, 12, 15), cluster=int(clusters_of(run)[0]))


def test_a_merge_makes_clusters_one_and_all_numbers_keep_their_meaning(folder: Path, tmp_path: Path) -> None:
    first, second = sorted(np.unique(clusters_of(folder / "run"))[:2].tolist())
    merge = Change(kind="merge", clusters=(first, second), cluster=second)
    run = copied(folder, tmp_path, merge, Change(kind="rename", cluster=second, name="both"))
    kept = contents(run)
    better = cluster(IMAGES, improve=run, output=tmp_path / "better", **SHORT)
    assert contents(run) == kept
    assert better.result.improved is not None
    assert better.result.improved.gone == [first]
    assert better.result.summary().startswith("36 images in 3 clusters")
    assert first not in clusters_of(tmp_path / "better")
    assert "36 images in 3 clusters" in better.directory.report.read_text()
    assert "Improved from run: 0 images corrected by hand" in better.directory.report.read_text()
    gallery = opened(tmp_path / "better", tmp_path / "cache")
    shown = {entry["id"]: entry["name"] for entry in gallery.describe()["clusters"]}
    gallery.log.close()
    assert shown == {number: "both" if number == second else "" for number in range(4) if number != first}
    predicted = predict(tmp_path / "better", coloured(6), device="cpu")
    assert predicted.names == {second: "both"}
    assert first not in predicted.assignments.clusters


def test_corrected_images_are_learnt_stay_where_they_are_and_count_again(folder: Path, tmp_path: Path) -> None:
    run = copied(folder, tmp_path, moved(folder / "run"), Change(kind="mark", images=(1, 2), mark="outlier"))
    better = cluster(IMAGES, improve=run, output=tmp_path / "better", **SHORT).directory
    begun = better.read_config().begun
    assert (begun.improved_from, begun.changes) == (str(run.resolve()), 2)
    stored = json.loads(better.result.read_text())["improved"]
    assert (stored["corrected"], stored["labels"], stored["left_out"]) == (8, 6, 2)
    state = corrected(better, better.read_assignments(), 4)
    assert np.flatnonzero(state.placed).tolist() == [0, 3, 6, 9, 12, 15]
    assert np.flatnonzero(state.marks == 2).tolist()[:2] == [1, 2]
    again = cluster(IMAGES, improve=better.path, output=tmp_path / "again", **SHORT)
    assert again.result.improved is not None
    assert again.result.improved.labels == 6


def test_labels_pull_images_to_the_cluster_that_they_were_put_into(folder: Path, tmp_path: Path) -> None:
    before = clusters_of(folder / "run")
    target = int(before[0])
    others = np.flatnonzero(before != target)[:5]
    run = copied(folder, tmp_path, Change(kind="move", images=tuple(others.tolist()), cluster=target))
    cluster(IMAGES, improve=run, output=tmp_path / "better", settings={"learning_rate": 0.01}, budget="passes:30")
    assert (clusters_of(tmp_path / "better")[others] == target).all()


def test_a_created_cluster_gets_an_output(folder: Path, tmp_path: Path) -> None:
    made = Change(kind="create", cluster=4, name="new", images=tuple(range(0, 36, 3)))
    run = copied(folder, tmp_path, made)
    better = cluster(IMAGES, improve=run, output=tmp_path / "better", **SHORT)
    assert better.result.n_clusters == 5
    assert (clusters_of(tmp_path / "better")[::3] == 4).sum() > 6
    assert predict(tmp_path / "better", coloured(6), device="cpu").names == {4: "new"}


def test_a_resumed_run_is_the_same_and_knows_nothing_of_later_corrections(folder: Path, tmp_path: Path) -> None:
    run = copied(folder, tmp_path, moved(folder / "run"))
    cluster(IMAGES, improve=run, output=tmp_path / "whole", epochs=3)
    cluster(IMAGES, improve=run, output=tmp_path / "parts", epochs=1)
    change(run, Change(kind="move", images=(20, 21), cluster=1))
    cluster(IMAGES, improve=run, output=tmp_path / "parts", epochs=3, resume=True)
    for name in SAME:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    with pytest.raises(UserError, match="was not begun with --improve .*elsewhere, but with --improve .*run"):
        cluster(IMAGES, improve=tmp_path / "elsewhere", output=tmp_path / "parts", resume=True)
    shutil.rmtree(run)
    with pytest.raises(UserError, match="There is no run directory .*run"):
        cluster(IMAGES, output=tmp_path / "parts", resume=True)


def test_networks_on_pixels_learn_on_from_the_files_of_their_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DCCM_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    files(tmp_path / "photos", bars(24, side=16, classes=3).images)
    quick = {"mini_batch": 6, "starts": 2, "critic_positions": 1, "uses": 1, "architecture": 32, "width": 0.1}
    cluster("photos", 3, preset="fast", output="run", settings=quick, epochs=1, image_size=16, **CPU)
    monkeypatch.chdir("run")  # Where the images are, the run knows.
    change(tmp_path / "run", Change(kind="move", images=(0, 3, 6), cluster=2))
    words = ("cluster", "--improve", tmp_path / "run", "--budget", "passes:1", "--quiet")
    assert dccm(*words, "-o", tmp_path / "better", monkeypatch=monkeypatch) == 0
    assert "Improved from run: 3 images corrected by hand: 3 labels, 3 pairs." in capsys.readouterr().out
    assert RunDirectory(tmp_path / "better").read_config().settings["starts"] == 1
    next((tmp_path / "photos").iterdir())
    (tmp_path / "photos" / "003.png").unlink()
    assert dccm(*words, "-o", tmp_path / "other", monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert "1 corrected image can no longer be found there, first ['003.png']" in said


def test_estimators_learn_on_too(folder: Path, tmp_path: Path) -> None:
    run = copied(folder, tmp_path, moved(folder / "run"))
    model = ImageClusterer(improve=run, epochs=1, device="cpu", random_state=0).fit(IMAGES)
    assert model.predict_proba(IMAGES).shape == (36, 4)
    with pytest.raises(UserError, match="The images are not those of .*: 6 corrected images can no longer"):
        ImageClusterer(improve=run, epochs=1, device="cpu").fit(bars(12, side=16, channels=3).images)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_clusters": 3}, "n_clusters must be left out with improve, as it is that of the run .*, got 3"),
        ({"encoder": "scratch"}, "encoder must be left out with improve"),
        ({"settings": {"starts": 2}}, "starts must be left out with improve"),
        ({"method": "kmeans"}, "method must be left out with improve, .* got 'kmeans'"),
        ({"preset": "fast"}, "preset must be left out with improve"),
        ({"settings": {"learning_rate": -1}}, "learning_rate must be above 0"),
    ],
)
def test_what_the_run_has_decided_is_refused(given: dict[str, Any], words: str, folder: Path, tmp_path: Path) -> None:
    run = copied(folder, tmp_path, moved(folder / "run"))
    with pytest.raises(UserError, match=words):
        cluster(IMAGES, improve=run, output=tmp_path / "better", **given)
    assert not (tmp_path / "better").exists()


def test_runs_that_cannot_be_improved_are_refused_in_a_sentence(folder: Path, tmp_path: Path) -> None:
    def refused(run: Path, words: str, images: ImageSet | None = IMAGES) -> None:
        with pytest.raises(UserError, match=words):
            cluster(images, improve=run, output=tmp_path / "better")
        assert not (tmp_path / "better").exists()

    refused(folder / "run", "Nobody corrected an image or a cluster of .*, so there is nothing to learn from. Correct")
    refused(tmp_path / "nowhere", "There is no run in .*nowhere")
    run = copied(folder, tmp_path, moved(folder / "run"))
    refused(run, "The images of .* were in memory only. Give them again", None)
    refused(run, "The images are not those of .*: their pixels or their order differ", coloured(36, seed=3))
    shutil.rmtree(run / "model")
    refused(run, "There is no model in .* to go on from. Finish the run")
    cluster(IMAGES, 3, "kmeans", encoder="scratch", output=tmp_path / "other", **CPU)
    refused(tmp_path / "other", "improve goes on from runs of the method 'dccm', and .*other is one of 'kmeans'")
    with pytest.raises(UserError, match="holds a run already"):
        cluster(IMAGES, improve=folder / "run", output=folder / "run")
    with pytest.raises(UserError, match="images must be named, or a run to improve"):
        cluster(output=tmp_path / "better")


def test_an_improved_run_has_the_name_of_the_run() -> None:
    assert default_output(None, Path("photos/clusters")) == Path("clusters-improved")

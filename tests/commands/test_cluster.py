"""The command for Python."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dccm
from dccm.commands.cluster import cluster, default_output
from dccm.data.images import checksum
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.methods.dccm import DCCMConfig
from dccm.runs.directory import RunDirectory
from dccm.runs.model import Model
from dccm.training.progress import Progress, Stage

QUICK = {"epochs": 1, "batch_size": 20, "mini_batch": 8, "critic_positions": 2, "starts": 1, "device": "cpu"}
FOUND = bars(40, side=8)


class Notes:
    """Keeps what a watcher is told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.stages: list[str] = []
        self.epochs = 0

    def say(self, text: str) -> None:
        self.said.append(text)

    def reading(self, done: int, total: int) -> None:
        self.stages.append("reading")

    downloading = reading

    def training(self, progress: Progress | Stage) -> None:
        if isinstance(progress, Stage):
            self.stages.append(progress.what)
        else:
            self.epochs += progress.record is not None


def test_arrays_become_a_run_directory_without_a_word(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = dccm.cluster(FOUND.images, 4, output=tmp_path / "run", settings=QUICK, seed=3)
    assert capfd.readouterr() == ("", "")
    assert made.directory.report.is_file()
    assert replace(made.result, settings={}) == replace(made.directory.read_result(), settings={})
    assert (made.result.n_images, made.result.n_clusters, made.result.seed) == (40, 4, 3)
    assigned = made.directory.read_assignments(made.result)
    assert np.array_equal(assigned.clusters, made.model.predict_proba(FOUND.images).argmax(axis=1))
    assert np.array_equal(made.directory.read_embedding(), made.model.transform(FOUND.images))
    assert made.directory.read_source().checksum == FOUND.origin.checksum


def test_few_images_are_taken_in_smaller_mini_batches_and_the_run_goes_on_with_them(tmp_path: Path) -> None:
    notes = Notes()
    made = cluster(FOUND, 4, output=tmp_path / "run", settings=QUICK | {"mini_batch": 64}, watcher=notes)
    sentence = "There are fewer images than the 64 of a mini-batch, so it takes 10 of them: mini_batch = 10."
    assert notes.said[0] == sentence
    assert made.directory.read_config().settings["mini_batch"] == 10
    again = cluster(FOUND, output=tmp_path / "run", resume=True, watcher=notes)
    assert notes.said.count(sentence) == 1
    assert again.result.settings["mini_batch"] == 10


def test_a_watcher_is_told_and_the_model_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built, untrained, notes = [], Model.untrained, Notes()

    def counted(*given: Any) -> Model:
        built.append(given)
        return untrained(*given)

    monkeypatch.setattr(Model, "untrained", counted)
    cluster(FOUND, 4, output=tmp_path / "run", settings=QUICK | {"starts": 2}, watcher=notes)
    assert len(built) == 1
    assert notes.said[0].startswith("40 images of 8 x 8 x 1 (0 skipped, 0 duplicates) into 4 clusters by dccm with ")
    assert (notes.epochs, set(notes.stages)) == (1, {"assigning", "confidence", "writing results"})


@pytest.mark.parametrize(
    ("images", "name"),
    [
        ("photos/", "dccm-photos"),
        (Path("a/b.zip"), "dccm-b"),
        ("-", "dccm-run"),
        (FOUND.images, "dccm-run"),
    ],
)
def test_the_default_output_is_named_after_the_images(images: Any, name: str) -> None:
    assert default_output(images) == Path(name)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"settings": {"colour": "blue"}}, "No setting 'colour'"),
        ({"dataset": "cifar"}, "No data set 'cifar'."),
        ({"budget": "soon"}, "budget must be minutes:M or passes:P"),
        ({"device": "abacus"}, "device 'abacus' cannot be used"),
        ({"settings": {"compile": True}}, "compile = true needs a C\\+\\+ compiler"),
        ({"output": "taken"}, "holds other files, and nothing is overwritten"),
        ({"output": "nothing", "resume": True}, "There is no run in nothing to resume"),
    ],
)
def test_what_cannot_work_is_refused_before_images_are_read(
    given: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("dccm.commands.cluster.open_images", lambda *_, **__: pytest.fail("images were read"))
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match=words) as caught:
        cluster("somewhere", 4, **given)
    assert "--" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_only_the_images_of_a_split_are_learnt_from(tmp_path: Path) -> None:
    splits = np.repeat(["train", "test"], [30, 10])
    made = cluster(replace(FOUND, splits=splits), 4, output=tmp_path / "run", settings=QUICK, split="train")
    assert made.result.n_images == 30
    assert list(made.directory.read_assignments().paths) == list(FOUND.names[:30])


def test_a_run_goes_on_with_its_own_settings(tmp_path: Path) -> None:
    first = cluster(FOUND, 4, output=tmp_path / "run", settings=QUICK)
    again = cluster(FOUND, output=tmp_path / "run", epochs=2, resume=True)
    assert again.result.settings["batch_size"] == 20
    assert len(again.directory.read_history()) == 2
    assert len(first.result.settings) == len(again.result.settings)
    with pytest.raises(UserError, match="was begun with checksum"):
        cluster(bars(40, side=8, seed=1), output=tmp_path / "run", resume=True)


@pytest.mark.parametrize("name", ["model", "checkpoints", "milestones"])
def test_a_run_of_a_stranger_is_not_resumed_into_other_folders(tmp_path: Path, name: str) -> None:
    cluster(FOUND, 4, output=tmp_path / "run", settings=QUICK)
    link = tmp_path / "run" / name
    if link.exists():
        link.rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "elsewhere").mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    before = {path.name: path.read_bytes() for path in (tmp_path / "elsewhere").iterdir()}
    with pytest.raises(UserError, match=f"{name} is a link, through which a run writes nothing"):
        cluster(FOUND, output=tmp_path / "run", epochs=2, resume=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "elsewhere").iterdir()} == before


def without_line(path: Path, name: str) -> None:
    lines = path.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(f"{name} = ")]
    assert len(kept) == len(lines) - 1
    path.write_text("".join(kept))


def test_a_run_of_a_version_without_a_setting_goes_on_as_if_it_had_its_default(tmp_path: Path) -> None:
    def learn(name: str, **more: Any) -> RunDirectory:
        return cluster(FOUND, output=tmp_path / name, device="cpu", **more).directory

    given = {"n_clusters": 4, "preset": "paper", "settings": QUICK}
    learn("older", **given)
    without_line(tmp_path / "older" / "config.toml", "milestones")
    older, whole = learn("older", resume=True, epochs=2), learn("whole", **given | {"epochs": 2})
    assert older.assignments.read_bytes() == whole.assignments.read_bytes()
    assert older.config.read_text() == whole.config.read_text()
    with pytest.raises(UserError, match="was begun with milestones = 0, now it is 3"):
        learn("older", resume=True, settings={"milestones": 3})


def test_a_setting_that_is_not_mentioned_has_its_default_whatever_a_preset_says_today(tmp_path: Path) -> None:
    made = cluster(FOUND, 4, preset="fast", output=tmp_path / "run", settings=QUICK, epochs=1)
    assert (made.model.config.settings()["uses"], DCCMConfig().uses) == (4, 1)
    without_line(made.directory.config, "uses")
    with pytest.raises(UserError, match="says uses = 1, and the run was trained with 4 so far"):
        cluster(FOUND, output=tmp_path / "run", resume=True)
    document = json.loads((made.directory.model / "model.json").read_text())
    del document["settings"]["uses"]
    (made.directory.model / "model.json").write_text(json.dumps(document))
    assert Model.load(made.directory.model).config.settings()["uses"] == 1


def test_the_checksum_of_prepared_images_is_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, image in zip(FOUND.names, FOUND.images):
        Image.fromarray(image[..., 0]).save(tmp_path / f"{name}.png")
    monkeypatch.setattr("dccm.data.images.checksum", lambda _: pytest.fail("pixels were read for a checksum"))
    made = cluster(tmp_path, 4, output=tmp_path / "run", image_size=8, settings=QUICK, cache=tmp_path / "cache")
    source = made.directory.read_source()
    assert (source.kind, source.place, source.images, source.shape) == ("folder", str(tmp_path), 40, (8, 8, 1))
    assert (tmp_path / "cache" / "images" / source.key).is_dir()
    assert made.directory.read_config().begun.checksum == source.checksum == checksum(np.asarray(made.image_set.images))


def test_the_digits_by_name_take_their_table_of_the_preset(tmp_path: Path) -> None:
    made = cluster("digits", method="kmeans", output=tmp_path / "run")
    assert (made.result.dataset, made.result.n_images) == ("digits", 1797)
    assert RunDirectory(tmp_path / "run").read_config().begun.dataset == "digits"
    assert json.loads(made.directory.result.read_text())["scores"]["acc"] > 0.5


def test_the_default_output_is_named_after_the_folder_that_dots_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "photos.2024" / "inner"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert [str(default_output(place)) for place in (".", "..", "../", "/", inner.parent)] == [
        "dccm-inner", "dccm-photos.2024", "dccm-photos.2024", "dccm-run", "dccm-photos.2024",
    ]  # fmt: skip
    assert str(default_output("set.v2.tar.gz")) == "dccm-set.v2"
    assert len(str(default_output("x" * 5000))) < 255

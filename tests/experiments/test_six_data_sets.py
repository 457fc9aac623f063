"""A run of the grid on each data set of Table 2 by its name, from small files of the published layouts."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dccm.commands.one_run import make_run
from dccm.data.datasets import DATASETS
from dccm.data.published.imagenet import classes
from dccm.evaluation.probe import ProbeConfig
from dccm.experiments.data_sets import DataSets
from dccm.experiments.probing import PROBE, probed_runs
from dccm.experiments.request import Request
from dccm.experiments.targets import Need
from dccm.experiments.targets.table2 import USUAL
from dccm.experiments.worker import Outcome, Work, do
from tests.data.published.official_files import (
    random_images,
    write_cifar10,
    write_cifar100,
    write_images,
    write_stl10,
    write_tiny_imagenet,
)
from tests.experiments.results_of import opened

QUICK = {"mini_batch": 8, "critic_positions": 2, "width": 0.25, "batch_size": 100}


def cifar10(root: Path) -> int:
    files = [b"cat_s_%06d.png" % number for number in range(36)]
    write_cifar10(root / "cifar-10-batches-py", random_images(36, 32), [number % 10 for number in range(36)], files)
    return 36


def cifar100(root: Path, count: int = 40) -> int:
    fine, coarse = [number % 100 for number in range(count)], [number % 20 for number in range(count)]
    write_cifar100(root / "cifar-100-python", random_images(count, 32), fine, coarse, train=count * 5 // 6)
    return count


def stl10(root: Path) -> int:
    labels = [number % 10 for number in range(20)]
    write_stl10(root / "stl10_binary", random_images(8, 96), random_images(12, 96, 1), random_images(4, 96, 2), labels)
    return 20


def imagenet(subset: str) -> Callable[[Path], int]:
    def write(root: Path) -> int:
        for number, wnid in enumerate(classes(subset)):
            write_images(root / "train" / wnid, [f"{wnid}_{place}.JPEG" for place in range(2)], 9 * number)
        return 2 * len(classes(subset))

    return write


def tiny_imagenet(root: Path) -> int:
    write_tiny_imagenet(root / "tiny-imagenet-200", tuple(f"n{number:08d}" for number in range(200)))
    return 400


FILES: dict[str, Callable[[Path], int]] = {
    "cifar10": cifar10,
    "cifar100": cifar100,
    "stl10": stl10,
    "imagenet10": imagenet("imagenet10"),
    "imagenet_dog15": imagenet("imagenet_dog15"),
    "tiny_imagenet": tiny_imagenet,
}


def test_all_data_sets_of_table_2_have_files_here() -> None:
    assert tuple(FILES) == USUAL


@pytest.mark.parametrize("name", FILES)
def test_both_splits_are_clustered_into_the_classes_of_table_1(name: str, tmp_path: Path) -> None:
    count = FILES[name](tmp_path / "files")
    data, results = DataSets(tmp_path / "files"), opened(tmp_path / "results")
    assert data.why_absent(name) == ""
    spec = Request(budget="passes:1").spec("dccm", name, settings=QUICK)
    assert do(Work(results, data, make_run), Need(spec), lambda *_: None) == Outcome("finished")
    result = results.result(spec)
    assert result is not None
    assert (result.n_images, result.n_skipped) == (count, 0)
    assert result.n_clusters == int(DATASETS[name].clusters.partition("/")[0])
    height, width, channels = results.run(spec).read_source().shape
    assert f"{height} x {width} x {channels}" == DATASETS[name].size
    assert result.scores is not None
    assert result.scores["acc"] > 0


def test_the_probe_of_cifar_100_asks_for_all_its_100_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dccm.experiments.probing.ProbeConfig", partial(ProbeConfig, epochs=1, fewest_steps=1))
    cifar100(tmp_path / "files", 240)
    results = opened(tmp_path / "results")
    (spec,) = probed_runs(Request(budget="passes:0.2"), "dccm", "cifar100")
    need, work = Need(spec, (PROBE,)), Work(results, DataSets(tmp_path / "files"), make_run)
    assert do(work, need, lambda *_: None) == Outcome("finished")
    result, probed = results.result(spec), results.measured(spec, PROBE)
    assert result is not None
    assert probed is not None
    assert (result.n_images, result.n_clusters) == (200, 100)
    assert (probed.train_images, probed.test_images) == (200, 40)
    labels = DataSets(tmp_path / "files").images("cifar100", variant="fine").labels
    assert np.unique(np.asarray(labels)).tolist() == list(range(100))

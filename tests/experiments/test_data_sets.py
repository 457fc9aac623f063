from pathlib import Path

import numpy as np
import pytest

from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.experiments.data_sets import DataSets, parse_data_sets


@pytest.fixture
def array(tmp_path: Path) -> str:
    found = bars(20, side=8)
    assert found.labels is not None
    np.savez(tmp_path / "bars.npz", images=found.images, labels=found.labels)
    return str(tmp_path / "bars.npz")


def test_a_limit_draws_the_same_images_every_time_from_all_of_them() -> None:
    some, again = (DataSets().images("digits", limit=100) for _ in range(2))
    names = list(some.names)
    assert names == list(again.names) == sorted(names)
    assert len(set(names)) == 100
    assert names[-1] > "digits/1700"
    assert len(DataSets().images("digits", limit=5000)) == 1797


def test_the_images_of_both_splits_are_those_of_the_whole() -> None:
    whole = DataSets().images("digits", limit=100)
    train, test = (DataSets().images("digits", limit=100, split=name) for name in ("train", "test"))
    assert (len(train), len(test)) == (80, 20)
    assert sorted([*train.names, *test.names]) == list(whole.names)


def test_a_path_gets_its_clusters_from_its_classes_unless_presets_know_them(array: str) -> None:
    data = DataSets(paths={"own": array, "mnist": array})
    assert data.n_clusters("own") == 4
    assert data.n_clusters("mnist") is None
    assert len(data.images("own")) == 20


def test_other_classes_are_another_column_of_a_parquet_file(tmp_path: Path, array: str) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow comes with dccm[data]")
    from pyarrow import parquet

    columns = {"image": [b"x", b"y"], "label": [0, 0], "fine_label": [3, 4], "split": ["train", "test"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "cifar100.parquet")
    data = DataSets(paths={"cifar100": str(tmp_path / "cifar100.parquet"), "own": array})
    fine = data.images("cifar100", variant="fine")
    assert fine.labels is not None
    assert fine.labels.tolist() == [3, 4]
    with pytest.raises(UserError, match="must have a column coarse_label for these classes"):
        data.images("cifar100", variant="coarse")
    with pytest.raises(UserError, match="must be parquet, to have other classes"):
        data.images("own", variant="fine")


def test_what_is_not_there_is_named_with_the_way_to_get_it(tmp_path: Path, array: str) -> None:
    data = DataSets(tmp_path, {"own": array})
    assert data.why_absent("digits") == data.why_absent("own") == ""
    said = data.why_absent("cifar10")
    assert said.startswith(f"CIFAR-10 is not in {tmp_path}: ")
    assert said.endswith('Get it with "dccm prepare cifar10", or give its place: cifar10=PATH.')
    assert data.why_absent("imagenet10").endswith("Give its place: imagenet10=PATH.")


def test_names_and_places_are_told_apart(array: str) -> None:
    assert parse_data_sets(["cifar10", f"own={array}", "cifar10"]) == (("cifar10", "own"), {"own": array})
    for word, said in (
        ("cifer10", "No data set 'cifer10'. Did you mean 'cifar10'?"),
        ("own=", "datasets must be NAME or NAME=PATH, with a plain name of 100 characters at most, got 'own='."),
        (f"a/b={array}", "with a plain name"),
        ("own=nowhere", "There is no file or folder nowhere for the data set 'own'. Correct the path."),
    ):
        with pytest.raises(UserError) as error:
            parse_data_sets([word])
        assert said in str(error.value)

import hashlib
import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dccm.data.datasets import open_benchmark
from dccm.data.published.cifar import Cifar
from dccm.errors import UserError
from tests.data.published.official_files import (
    Python2Pickle,
    corner,
    pack,
    random_images,
    rows_of,
    write_cifar10,
    write_cifar100,
)

LABELS = [6, 9, 9, 4, 1, 1, 2, 7, 8, 3, 4, 7]
FILES = [b"frog_s_%06d.png" % number for number in range(12)]
MD5 = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
}


def small_cifar10(root: Path) -> np.ndarray:
    images = random_images(12, 32)
    images[3] = corner(32)
    write_cifar10(root / "cifar-10-batches-py", images, LABELS, FILES)
    return images


def opened(name: str, root: Path, variant: str = "") -> Cifar:
    source = open_benchmark(name, root, variant=variant, download=False)
    assert isinstance(source, Cifar)
    return source


def test_cifar10_is_read_in_the_official_order_with_every_pixel_in_its_place(tmp_path: Path) -> None:
    images = small_cifar10(tmp_path)
    source = opened("cifar10", tmp_path)
    assert source.images.flags.c_contiguous
    assert np.array_equal(source.images, images)
    assert np.array_equal(source.read(3), corner(32))
    assert source.labels is not None
    assert source.labels.tolist() == LABELS
    assert source.splits is not None
    assert source.splits.tolist() == ["train"] * 10 + ["test"] * 2
    assert source.class_names[6] == "frog"
    assert (source.names[3], source.names[10]) == ("train/00003_frog_s_000003.png", "test/00000_frog_s_000010.png")


@pytest.mark.parametrize("home", ["", "cifar10", "CIFAR-10"])
def test_the_archive_is_read_in_place_and_gives_the_same(tmp_path: Path, home: str) -> None:
    images = small_cifar10(tmp_path)
    (tmp_path / home).mkdir(exist_ok=True)
    pack(tmp_path / "cifar-10-batches-py", tmp_path / home / "cifar-10-python.tar.gz")
    source = opened("cifar10", tmp_path)
    assert np.array_equal(source.images, images)
    assert source.class_names[0] == "airplane"
    assert source.place == f"{tmp_path.resolve() / home / 'cifar-10-python.tar.gz'}#cifar10"


def test_the_folder_itself_may_be_the_root(tmp_path: Path) -> None:
    images = small_cifar10(tmp_path)
    assert np.array_equal(opened("cifar10", tmp_path / "cifar-10-batches-py").images, images)


def test_the_fingerprint_changes_with_a_file(tmp_path: Path) -> None:
    small_cifar10(tmp_path)
    before = opened("cifar10", tmp_path).fingerprint()
    assert opened("cifar10", tmp_path).fingerprint() == before
    os.utime(tmp_path / "cifar-10-batches-py" / "data_batch_4", (1, 1))
    assert opened("cifar10", tmp_path).fingerprint() != before


def test_cifar100_has_superclasses_and_classes(tmp_path: Path) -> None:
    images = random_images(5, 32)
    write_cifar100(tmp_path / "cifar-100-python", images, fine=[19, 29, 0, 11, 1], coarse=[11, 15, 4, 14, 1], train=3)
    source, fine = opened("cifar100", tmp_path), opened("cifar100", tmp_path, "fine")
    assert np.array_equal(source.images, images)
    assert source.labels is not None
    assert source.fine_labels is not None
    assert fine.labels is not None
    assert source.labels.tolist() == [11, 15, 4, 14, 1]
    assert source.fine_labels.tolist() == fine.labels.tolist() == [19, 29, 0, 11, 1]
    assert source.splits is not None
    assert source.splits.tolist() == ["train"] * 3 + ["test"] * 2
    assert (source.class_names, fine.class_names) == (("aquatic_mammals", "fish"), ("apple", "aquarium_fish"))
    assert len(set(source.names)) == 5
    assert source.place != fine.place


def test_class_names_are_not_needed(tmp_path: Path) -> None:
    small_cifar10(tmp_path)
    (tmp_path / "cifar-10-batches-py" / "batches.meta").unlink()
    assert opened("cifar10", tmp_path).class_names == ()


def test_a_missing_batch_is_named(tmp_path: Path) -> None:
    small_cifar10(tmp_path)
    (tmp_path / "cifar-10-batches-py" / "data_batch_3").unlink()
    with pytest.raises(UserError, match=r"cifar-10-batches-py must hold data_batch_3, and does not\. .*delete it"):
        opened("cifar10", tmp_path)


def test_an_archive_without_the_batches_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-py").mkdir()
    pack(tmp_path / "cifar-10-batches-py", tmp_path / "cifar-10-python.tar.gz")
    with pytest.raises(UserError, match=r"cifar-10-python.tar.gz must hold data_batch_1, .*test_batch, and does not"):
        opened("cifar10", tmp_path)


@pytest.mark.parametrize("kept", [0, 30, 5000])
def test_a_cut_archive_is_refused(tmp_path: Path, kept: int) -> None:
    small_cifar10(tmp_path)
    archive = pack(tmp_path / "cifar-10-batches-py", tmp_path / "cifar-10-python.tar.gz")
    archive.write_bytes(archive.read_bytes()[:kept])
    with pytest.raises(UserError, match=r"cifar-10-python.tar.gz (is damaged|must hold).* it will be downloaded"):
        opened("cifar10", tmp_path)


@pytest.mark.parametrize("kept", [0, 1, 40, 2000])
def test_a_cut_batch_is_refused(tmp_path: Path, kept: int) -> None:
    small_cifar10(tmp_path)
    batch = tmp_path / "cifar-10-batches-py" / "data_batch_2"
    batch.write_bytes(batch.read_bytes()[:kept])
    with pytest.raises(UserError, match="data_batch_2 is damaged .* get the official one"):
        opened("cifar10", tmp_path)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({b"data": np.zeros((2, 3000), dtype=np.uint8)}, "data_batch_5 must hold an array 'data' with 3,072 bytes"),
        ({b"labels": [1]}, "data_batch_5 must hold a list 'labels' with one entry for each of its 2 images"),
        ({b"labels": [b"a", b"b"]}, "must hold a list 'labels'"),
        ({b"filenames": b""}, "must hold a list 'filenames'"),
    ],
)
def test_a_batch_of_another_layout_is_refused(tmp_path: Path, fields: dict[bytes, object], words: str) -> None:
    images = small_cifar10(tmp_path)
    whole = {b"labels": [1, 2], b"data": rows_of(images[:2]), b"filenames": [b"a", b"b"]}
    (tmp_path / "cifar-10-batches-py" / "data_batch_5").write_bytes(Python2Pickle().dump(whole | fields))
    with pytest.raises(UserError, match=words):
        opened("cifar10", tmp_path)


@pytest.mark.data
def test_the_official_batches_are_rebuilt_to_the_byte_and_read_back(tmp_path: Path) -> None:
    path = Path(os.environ.get("DCCM_DATA", "")) / "cifar10.parquet"
    if not path.is_file():
        pytest.skip("DCCM_DATA names no folder with cifar10.parquet")
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    cells = table["image"].to_pylist()
    images = np.stack([np.asarray(Image.open(io.BytesIO(cell["bytes"])).convert("RGB")) for cell in cells])
    files = [Path(cell["path"]).with_suffix(".png").name.encode() for cell in cells]
    labels = table["label"].to_pylist()
    folder = write_cifar10(tmp_path / "cifar-10-batches-py", images, labels, files)
    for name, md5 in MD5.items():
        assert hashlib.md5((folder / name).read_bytes(), usedforsecurity=False).hexdigest() == md5
    source = opened("cifar10", tmp_path)
    assert np.array_equal(source.images, images)
    assert source.labels is not None
    assert source.labels.tolist() == labels
    assert source.splits is not None
    assert source.splits.tolist() == table["split"].to_pylist()

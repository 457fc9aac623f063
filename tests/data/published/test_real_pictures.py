"""The real pictures of CIFAR-100 and Tiny-ImageNet, written out in the official layouts and read back by name."""

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dccm.data.read import read_images
from tests.data.published.official_files import write_cifar100


def rows_of(name: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows of a parquet file, and what stands beside it."""
    path = Path(os.environ.get("DCCM_DATA", "")) / f"{name}.parquet"
    if not path.is_file():
        pytest.skip(f"DCCM_DATA names no folder with {path.name}")
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path).to_pylist(), json.loads(path.with_suffix(".json").read_text())["features"]


def pixels(row: dict[str, Any]) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(row["image"]["bytes"])).convert("RGB"))


@pytest.mark.data
def test_cifar_100_comes_back_with_both_kinds_of_classes(tmp_path: Path) -> None:
    rows, _ = rows_of("cifar100")
    rows.sort(key=lambda row: row["split"] == "test")  # Training images first, each split in its order.
    train = sum(row["split"] == "train" for row in rows)
    images = np.stack([pixels(row) for row in rows])
    fine, coarse = ([row[key] for row in rows] for key in ("fine_label", "label"))
    write_cifar100(tmp_path / "root" / "cifar-100-python", images, fine, coarse, train)
    for variant, labels, count in (("", coarse, 20), ("fine", fine, 100)):
        found = read_images(
            "cifar100", data_root=tmp_path / "root", variant=variant, image_size=32, cache=tmp_path / "cache"
        )
        assert np.array_equal(found.images, images)
        assert found.labels is not None
        assert found.labels.tolist() == labels
        assert len(set(labels)) == count
        assert found.splits is not None
        assert found.splits.tolist() == ["train"] * 50_000 + ["test"] * 10_000
    assert train == 50_000
    for superclass in range(20):  # Five classes each: neither column was taken for the other.
        assert len({one for one, other in zip(fine, coarse) if other == superclass}) == 5


@pytest.mark.data
def test_tiny_imagenet_comes_back_with_its_200_classes(tmp_path: Path) -> None:
    rows, features = rows_of("tiny_imagenet200_mini")
    words = dict(name.split(" ", 1) for name in features["label"]["names"])
    wnids = list(words)
    folder = tmp_path / "root" / "tiny-imagenet-200"
    names = []
    for number, row in enumerate(rows):
        wnid = wnids[row["label"]]
        names.append(f"train/{wnid}/images/{wnid}_{number:05d}.JPEG")
        path = folder / names[-1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(row["image"]["bytes"])
    (folder / "wnids.txt").write_text("\n".join(reversed(wnids)) + "\n")  # The official list is in no order.
    (folder / "words.txt").write_text("".join(f"{wnid}\t{name}\n" for wnid, name in words.items()))
    found = read_images("tiny_imagenet", data_root=tmp_path / "root", image_size=64, cache=tmp_path / "cache")
    order = np.argsort(names)
    assert (len(found.images), len(found.skipped)) == (10_000, 0)
    assert list(found.names) == [names[place] for place in order]
    assert found.labels is not None
    assert found.labels.tolist() == [sorted(wnids).index(wnids[rows[place]["label"]]) for place in order]
    assert np.bincount(found.labels).tolist() == [50] * 200
    for place in range(0, 10_000, 97):
        assert np.array_equal(found.images[place], pixels(rows[order[place]]))

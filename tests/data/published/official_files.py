"""Writes small files in the layouts in which the benchmarks are published."""

import gzip
import io
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

RED = (255, 0, 0)


def corner(side: int) -> np.ndarray:
    """Black, with a red block in the upper left that is wider than high, so that no flip or turn goes unseen."""
    image = np.zeros((side, side, 3), dtype=np.uint8)
    image[: side // 8, : side // 4] = RED
    return image


def random_images(count: int, side: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, side, side, 3), dtype=np.uint8)


def pack(folder: Path, archive: Path) -> Path:
    """The folder as a .tar.gz, under its own name; the folder itself is gone."""
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, folder.name)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    return archive


# CIFAR ----------------------------------------------------------------------------------------------------------------


class Python2Pickle:
    """The pickle that cPickle of Python 2 made with protocol 2, opcode by opcode."""

    def __init__(self) -> None:
        self.memo = 0

    def dump(self, fields: Mapping[bytes, object]) -> bytes:
        out = [b"\x80\x02}", self._put(), b"("]
        for key, value in fields.items():
            out += [self._value(key), self._value(value)]
        return b"".join([*out, b"u."])

    def _put(self) -> bytes:
        self.memo += 1  # cPickle counts from 1.
        return b"q" + bytes([self.memo]) if self.memo < 256 else b"r" + struct.pack("<I", self.memo)

    def _value(self, value: object) -> bytes:
        if isinstance(value, bytes):
            return b"U" + bytes([len(value)]) + value + self._put()
        if isinstance(value, int):
            return b"K" + bytes([value]) if value < 256 else b"M" + struct.pack("<H", value)
        if isinstance(value, list):
            return self._list(value)
        assert isinstance(value, np.ndarray)
        return self._array(value)

    def _list(self, values: list) -> bytes:
        out = [b"]", self._put()]
        for start in range(0, len(values), 1000):
            out += [b"(", *(self._value(value) for value in values[start : start + 1000]), b"e"]
        return b"".join(out)

    def _array(self, array: np.ndarray) -> bytes:
        """Only what has more than one owner was given a number, hence the few of them."""
        rows, columns = array.shape
        return b"".join(
            [
                *(b"cnumpy.core.multiarray\n_reconstruct\n", self._put()),
                *(b"cnumpy\nndarray\n", self._put(), b"K\x00\x85U\x01b\x87R", self._put()),
                *(b"(K\x01", self._size(rows), self._size(columns), b"\x86"),
                *(b"cnumpy\ndtype\n", self._put(), b"U\x02u1K\x00K\x01\x87R", self._put()),
                b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89",
                *(b"T", struct.pack("<I", array.size), array.tobytes(), b"tb"),
            ]
        )

    def _size(self, size: int) -> bytes:
        return self._value(size)


def rows_of(images: np.ndarray) -> np.ndarray:
    """Red, green and blue plane of each image, one behind the other."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(len(images), -1)


def write_cifar10(folder: Path, images: np.ndarray, labels: list[int], files: list[bytes]) -> Path:
    """Equal parts to the six batches; the last is the test batch."""
    folder.mkdir(parents=True)
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    titles = [*(b"training batch %d of 5" % number for number in range(1, 6)), b"testing batch 1 of 1"]
    size = len(images) // 6
    for number, (name, title) in enumerate(zip(names, titles)):
        part = slice(number * size, (number + 1) * size)
        fields = {
            b"batch_label": title,
            b"labels": labels[part],
            b"data": rows_of(images[part]),
            b"filenames": files[part],
        }
        (folder / name).write_bytes(Python2Pickle().dump(fields))
    words = [b"airplane", b"automobile", b"bird", b"cat", b"deer", b"dog", b"frog", b"horse", b"ship", b"truck"]
    (folder / "batches.meta").write_bytes(
        Python2Pickle().dump({b"num_cases_per_batch": size, b"label_names": words, b"num_vis": 3072})
    )
    return folder


def write_cifar100(folder: Path, images: np.ndarray, fine: list[int], coarse: list[int], train: int) -> Path:
    folder.mkdir(parents=True)
    for name, part in (("train", slice(0, train)), ("test", slice(train, None))):
        fields = {
            b"filenames": [b"bos_taurus_s_%06d.png" % number for number in range(len(images[part]))],
            b"batch_label": b"training batch 1 of 1",
            b"fine_labels": fine[part],
            b"coarse_labels": coarse[part],
            b"data": rows_of(images[part]),
        }
        (folder / name).write_bytes(Python2Pickle().dump(fields))
    names = {b"fine_label_names": [b"apple", b"aquarium_fish"], b"coarse_label_names": [b"aquatic_mammals", b"fish"]}
    (folder / "meta").write_bytes(Python2Pickle().dump(names))
    return folder


# STL-10 ---------------------------------------------------------------------------------------------------------------


def write_stl10(folder: Path, train: np.ndarray, test: np.ndarray, unlabelled: np.ndarray, labels: list[int]) -> Path:
    """Planes of colour, column by column; classes are counted from 1."""
    folder.mkdir(parents=True)
    for name, images in (("test", test), ("train", train), ("unlabeled", unlabelled)):
        (folder / f"{name}_X.bin").write_bytes(images.transpose(0, 3, 2, 1).tobytes())
    (folder / "train_y.bin").write_bytes(bytes(label + 1 for label in labels[: len(train)]))
    (folder / "test_y.bin").write_bytes(bytes(label + 1 for label in labels[len(train) :]))
    (folder / "class_names.txt").write_text("airplane\nbird\ncar\ncat\ndeer\ndog\nhorse\nmonkey\nship\ntruck\n")
    return folder


# MNIST ----------------------------------------------------------------------------------------------------------------


def idx(array: np.ndarray) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_mnist(folder: Path, images: np.ndarray, labels: np.ndarray, train: int, packed: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for prefix, part in (("train", slice(0, train)), ("t10k", slice(train, None))):
        for name, array in (("images-idx3-ubyte", images[part]), ("labels-idx1-ubyte", labels[part])):
            content = idx(array.astype(np.uint8))
            path = folder / f"{prefix}-{name}{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    return folder


# ImageNet -------------------------------------------------------------------------------------------------------------


def jpeg(seed: int = 0, side: int = 16) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), (seed % 256, 90, 120)).save(buffer, "JPEG")
    return buffer.getvalue()


def write_images(folder: Path, names: list[str], seed: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        (folder / name).write_bytes(jpeg(seed + number))


def write_tiny_imagenet(folder: Path, wnids: tuple[str, ...] = ("n02085620", "n01443537")) -> Path:
    """Two training images a class, a validation image a class, and the lists that come with them."""
    for number, wnid in enumerate(wnids):
        write_images(folder / "train" / wnid / "images", [f"{wnid}_{place}.JPEG" for place in range(2)], 10 * number)
        (folder / "train" / wnid / f"{wnid}_boxes.txt").write_text(f"{wnid}_0.JPEG\t0\t0\t62\t62\n")
    write_images(folder / "val" / "images", [f"val_{number}.JPEG" for number in range(len(wnids))], 100)
    lines = [f"val_{number}.JPEG\t{wnid}\t0\t32\t44\t62\n" for number, wnid in enumerate(wnids)]
    (folder / "val" / "val_annotations.txt").write_text("".join(lines))
    write_images(folder / "test" / "images", ["test_0.JPEG"])
    (folder / "wnids.txt").write_text("".join(f"{wnid}\n" for wnid in wnids))
    (folder / "words.txt").write_text(
        "n00001740\tentity\nn01443537\tgoldfish, Carassius auratus\nn02085620\tChihuahua\n"
    )
    return folder

import io
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dccm.npy import map_array, read_arrays

HEADS = {
    "27 terabytes": "{'descr': '<f4', 'fortran_order': False, 'shape': (3000000, 2500000), }",
    "beyond 64 bits": "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "9" * 40 + ",), }",
    "thousands of digits": "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }",
    "brackets": "(" * 9000,
    "deep": "-" * 9000 + "1",
    "negative": "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -3), }",
    "no type": "{'descr': 'spam', 'fortran_order': False, 'shape': (1,), }",
    "nothing wide": "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "text": "what",
    "empty": "",
}


def with_head(head: str, content: bytes = b"") -> bytes:
    text = head.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


def saved(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.filterwarnings("ignore:Reading `.npy`")
@pytest.mark.parametrize("head", HEADS)
def test_a_head_that_lies_is_refused_before_memory_is_asked_for(tmp_path: Path, head: str) -> None:
    (tmp_path / "a.npy").write_bytes(with_head(HEADS[head]))
    with pytest.raises(ValueError, match="head|objects"):
        map_array(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("images.npy", with_head(HEADS[head]))
    with pytest.raises(ValueError, match="head|objects"):
        read_arrays(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.asfortranarray(np.arange(12).reshape(3, 4)),
        np.array(["a", "bc"]),
        np.zeros((0, 3), np.uint8),
        np.array(3.5),
    ],
)
def test_what_numpy_writes_is_read(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", array)
    np.savez_compressed(tmp_path / "a.npz", images=array, row=array)
    found = [map_array(tmp_path / "a.npy"), *read_arrays(tmp_path / "a.npz").values()]
    assert all(np.array_equal(other, array) and other.dtype == array.dtype for other in found)
    assert set(read_arrays(tmp_path / "a.npz")) == {"images", "row"}


def test_any_length_of_a_file_is_read_or_refused(tmp_path: Path) -> None:
    whole = saved(np.arange(20))
    path = tmp_path / "a.npy"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="head"):
            map_array(path)


def test_arrays_of_strangers_have_a_bound(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", images=np.zeros(1_000_000, np.uint8))
    with pytest.raises(ValueError, match="its arrays are larger than 1,000 bytes"):
        read_arrays(tmp_path / "a.npz", most=1000)


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06", b"PK" * 100, b"x" * 1000])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ValueError, match="."):
        read_arrays(tmp_path / "a.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes by name are Unix's")
@pytest.mark.parametrize("reader", [map_array, read_arrays])
def test_a_pipe_is_not_waited_for(tmp_path: Path, reader: object) -> None:
    os.mkfifo(tmp_path / "a")
    with pytest.raises(OSError, match="not a regular file"):
        reader(tmp_path / "a")  # type: ignore[operator]

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from dccm.data.published.pickled import read_dictionary
from dccm.errors import UserError
from tests.data.published.official_files import Python2Pickle

WHERE = Path("data_batch_1")


class Command:
    """Makes a directory when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self.path,)


def test_lists_text_numbers_and_arrays_come_through() -> None:
    array = np.arange(12, dtype=np.uint8).reshape(3, 4)
    content = Python2Pickle().dump({b"data": array, b"labels": [1, 2, 300], b"name": b"x", b"count": 10})
    found = read_dictionary(content, WHERE)
    assert np.array_equal(found.pop(b"data"), array)
    assert found == {b"labels": [1, 2, 300], b"name": b"x", b"count": 10}


def test_an_array_that_was_written_column_by_column_is_read_so() -> None:
    array = np.arange(12, dtype=np.uint8).reshape(3, 4)
    content = Python2Pickle().dump({b"data": array.T.reshape(3, 4)}).replace(b"tb\x89T", b"tb\x88T")
    assert np.array_equal(read_dictionary(content, WHERE)[b"data"], array)


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_that_would_run_a_program_is_refused_before_it_does(tmp_path: Path, protocol: int) -> None:
    content = pickle.dumps({"data": Command(tmp_path / "ran")}, protocol)
    with pytest.raises(
        UserError, match=rf"data_batch_1 asks to run {os.mkdir.__module__}.mkdir, .* nothing of it was run\. .* delete"
    ):
        read_dictionary(content, WHERE)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name", ["builtins eval", "os system", "numpy load", "numpy.core.multiarray scalar", "functools partial", "numpy f"]
)
def test_only_what_builds_an_array_may_be_named(name: str) -> None:
    module, attribute = name.split()
    with pytest.raises(UserError, match=f"asks to run {module}.{attribute}"):
        read_dictionary(f"c{module}\n{attribute}\n.".encode(), WHERE)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"U\x02u1", b"U\x02O8", "does not hold bytes"),
        (b"K\x03K\x04\x86", b"K\x03K\x05\x86", "another number of bytes than its shape says"),
        (b"K\x03K\x04\x86", b"U\x03abcq\x63\x85", "another number of bytes than its shape says"),
        (b"cnumpy\ndtype\n", b"cnumpy\nndarray\n", "too many values"),
    ],
)
def test_arrays_of_anything_but_bytes_are_refused(old: bytes, new: bytes, words: str) -> None:
    content = Python2Pickle().dump({b"data": np.zeros((3, 4), dtype=np.uint8)})
    assert old in content
    with pytest.raises(UserError, match=f"data_batch_1 is damaged .*{words}"):
        read_dictionary(content.replace(old, new), WHERE)


@pytest.mark.parametrize("content", [b"", b"junk", b"\x80\x02}q\x01(", b"\x80\x02Pid\n.", b"\x80\x02]b."])
def test_damaged_pickles_are_refused(content: bytes) -> None:
    with pytest.raises(UserError, match=r"data_batch_1 is damaged \(.+\)\. Delete it"):
        read_dictionary(content, WHERE)


def test_something_else_than_a_dictionary_is_refused() -> None:
    with pytest.raises(UserError, match="data_batch_1 must hold a dictionary, it holds a list"):
        read_dictionary(b"\x80\x02].", WHERE)

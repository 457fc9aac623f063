"""A large `assignments.csv` is read in another way, and says the same."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dccm.data.names import Names
from dccm.errors import UserError
from dccm.files import write_csv
from dccm.runs.columns import assignments_of, quick_assignments
from dccm.runs.contents import ASSIGNMENT_COLUMNS, Assignments, assignment_rows
from tests.support import few_examples

pytest.importorskip("pyarrow", reason="pyarrow comes with dccm[parquet]")
HEAD = ",".join(ASSIGNMENT_COLUMNS) + "\n"


def written(folder: Path, names: list[str]) -> Path:
    """A file of images with these names, one without confidence and one rejected among them."""
    count, generator = len(names), np.random.default_rng(0)
    confidences = generator.random(count)
    confidences[:1] = np.nan
    flags = generator.random((2, count)) < 0.3
    assigned = Assignments(names, generator.integers(0, 5, count), confidences, *flags)
    write_csv(folder / "assignments.csv", ASSIGNMENT_COLUMNS, assignment_rows(assigned))
    return folder / "assignments.csv"


@few_examples
@given(names=st.lists(st.text('ab,"\n\r é\udcff', max_size=5), min_size=1, max_size=8))
def test_both_ways_say_the_same(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    path = written(tmp_path_factory.mktemp("run"), names)
    quick, usual = quick_assignments(path, least=0), assignments_of(path, "")
    assert quick is not None
    assert isinstance(quick.paths, Names)
    assert list(quick.paths) == list(usual.paths) == names
    for one, other in zip(quick[1:], usual[1:]):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


@pytest.mark.parametrize("row", ["a.png,1,0.5,1", "a.png,x,0.5,1,0", "a.png,,0.5,1,0", "a.png,1,high,1,0", '"a'])
def test_what_is_broken_is_left_to_the_reader_that_says_so(tmp_path: Path, row: str) -> None:
    path = tmp_path / "assignments.csv"
    path.write_text(HEAD + "b.png,1,0.5,1,0\n" + row + "\n")
    assert quick_assignments(path, least=0) is None
    with pytest.raises((UserError, ValueError)):
        assignments_of(path, "take a sound copy")


def test_small_files_and_other_columns_are_read_row_by_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, ["a.png"])
    assert quick_assignments(path) is None
    older = tmp_path / "older.csv"
    older.write_text("path,cluster,confidence\na.png,-1,0.5\n")
    assert quick_assignments(older, least=0) is None
    assert assignments_of(older, "").rejected.tolist() == [True]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert quick_assignments(path, least=0) is None

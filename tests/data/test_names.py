import os
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dccm.data.names import Names
from tests.support import few_examples

NAMES = ["a.png", "", "sub/b.png", "line\nbreak.jpg", '🐟, "quoted".gif', os.fsdecode(b"\xff\xfe.bmp")]
any_names = st.lists(st.text(st.characters(exclude_categories=["Cs"])) | st.binary().map(os.fsdecode), max_size=8)


@few_examples
@given(any_names)
def test_names_come_back_as_they_were_given(names: list[str]) -> None:
    kept = Names(names)
    assert list(kept) == names
    assert len(kept) == len(names)
    assert kept == names


@few_examples
@given(any_names)
def test_names_that_lie_in_one_text_are_the_same(names: list[str]) -> None:
    pieces = [os.fsencode(name) for name in names]
    text, ends = b"before" + b"".join(pieces), 6 + np.cumsum([0, *map(len, pieces)])
    assert Names.of_parts(memoryview(text + b"behind"), ends) == names


@few_examples
@given(any_names)
def test_blocks_have_a_zero_behind_each_name_and_nowhere_else(names: list[str]) -> None:
    blocks = b"".join(Names(names).blocks(3))
    assert blocks.split(b"\0")[:-1] == [os.fsencode(name.replace("\0", " ")) for name in names]


def test_names_are_found_by_number_from_both_ends() -> None:
    kept = Names(NAMES)
    assert [kept[number] for number in range(-6, 6)] == NAMES + NAMES
    assert kept[np.int64(2)] == "sub/b.png"  # type: ignore[call-overload]
    for outside in (6, -7):
        with pytest.raises(IndexError):
            kept[outside]


@pytest.mark.parametrize("part", [slice(None), slice(1, 4), slice(None, None, -2), slice(4, 99), slice(3, 3)])
def test_a_part_of_names_is_names(part: slice) -> None:
    assert isinstance(Names(NAMES)[part], Names)
    assert list(Names(NAMES)[part]) == NAMES[part]


def test_names_behave_as_a_sequence() -> None:
    kept = Names(NAMES)
    assert isinstance(kept, Sequence)
    assert "sub/b.png" in kept
    assert "b.png" not in kept
    assert kept.index("sub/b.png") == 2
    assert list(reversed(kept)) == NAMES[::-1]


def test_names_are_equal_if_each_is() -> None:
    assert Names(["ab", "c"]) == Names(iter(["ab", "c"]))
    assert Names(["ab", "c"]) != Names(["a", "bc"])
    assert Names(["a"]) != ["a", "a"]
    assert Names(["a"]) != 3


def test_no_names_are_fine() -> None:
    assert list(Names([])) == []
    assert Names([]) == []


def test_names_at_some_places_are_taken_in_order() -> None:
    assert Names(NAMES).take(np.array([0, 2, 5])) == [NAMES[0], NAMES[2], NAMES[5]]
    assert Names(NAMES).take(np.arange(6)) == NAMES
    assert Names(NAMES).take(np.array([], dtype=np.int64)) == []


def test_very_many_names_cost_little_more_than_their_text() -> None:
    texts = [f"folder/{number}.jpg" for number in range(25_000)]
    kept = Names(texts)
    assert kept[9_999:10_002] == texts[9_999:10_002]
    assert kept[-1] == texts[-1]
    held = sum(sys.getsizeof(part) for part in vars(kept).values())
    assert held < sum(map(len, texts)) + 8 * len(texts) + 1_000

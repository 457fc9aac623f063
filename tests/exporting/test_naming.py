import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dccm.exporting.naming import FreeNames, safe_name
from tests.support import few_examples


@pytest.mark.parametrize(
    ("given_name", "made"),
    [
        ("apples", "apples"),
        ("../../etc", "__.._etc"),
        ("..", "_"),
        ("", "_"),
        (".hidden", "_hidden"),
        ("a/b\\c:d", "a_b_c_d"),
        ("con", "_con"),
        ("LPT1.txt", "_LPT1.txt"),
        ("console", "console"),
        ("ends. ", "ends"),
        ("-rf", "_-rf"),
        ("=1+1", "_=1+1"),
        ("bad\udcff", "bad_"),
        ("new\nline", "new_line"),
        ("é", "é"),
    ],
)
def test_names_that_lead_elsewhere_or_that_a_system_refuses_are_changed(given_name: str, made: str) -> None:
    assert safe_name(given_name) == made


@few_examples
@given(st.text(max_size=300))
def test_any_text_becomes_the_name_of_one_file(text: str) -> None:
    name = safe_name(text)
    assert name not in ("", ".", "..")
    assert not set(name) & set('/\\:*?"<>|\0')
    assert len(name.encode()) <= 130
    assert name == name.strip().rstrip(".")
    assert safe_name(name) == name


def test_equal_names_get_numbers_also_where_letters_are_large_or_composed() -> None:
    free = FreeNames()
    wanted = ["Ab", "aB", "ab", "caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9"), "ab (2)"]
    assert [free.take(name) for name in wanted] == [
        "Ab",
        "aB (2)",
        "ab (3)",
        "caf\u00e9",
        "caf\u00e9 (2)",
        "ab (2) (2)",
    ]


def test_a_suffix_stays_at_the_end() -> None:
    free = FreeNames()
    assert [free.take("a", ".png"), free.take("A", ".png"), free.take("a", ".jpg")] == ["a.png", "A (2).png", "a.jpg"]

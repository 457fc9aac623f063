import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from dccm.files import csv_lines
from tests.support import few_examples

cells = st.text(st.sampled_from("a,\"'\r\n\t\0 é\udcff") | st.characters(exclude_categories=["Cs"]), min_size=1)


@few_examples
@given(st.lists(st.tuples(cells, cells), max_size=5))
def test_any_text_comes_back_from_csv(rows: list[tuple[str, str]]) -> None:
    text = "".join(csv_lines(rows))
    assert [tuple(row) for row in csv.reader(io.StringIO(text, newline=""))] == rows


def test_lines_of_csv_end_with_a_line_feed_alone() -> None:
    assert list(csv_lines([("a", 1), ("b\r\n", 2.5)])) == ["a,1\n", '"b\r\n",2.5\n']

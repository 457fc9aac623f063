import json
from pathlib import Path

import pytest

from dccm.corrections.change import Change
from dccm.corrections.exchange import as_lines, from_lines
from dccm.errors import UserError
from tests.corrections.runs import log_at

PATHS = ["a.png", "b.png", "c.png", "c.png"]
CHANGES = [
    Change(kind="move", images=(0, 3), cluster=1),
    Change(kind="split", cluster=1, parts=((2, (0,)),)),
    Change(kind="undo", change=2),
    Change(kind="create", cluster=3, name="cats", images=(1,)),
    Change(kind="merge", clusters=(0, 3), cluster=3),
    Change(kind="undo", change=5),
    Change(kind="redo", change=5),
    Change(kind="mark", images=(2,), mark="wrong"),
]


def test_lines_lead_another_log_to_the_same_state(tmp_path: Path) -> None:
    log = log_at(tmp_path / "one.sqlite", 0, 0, 1, 1)
    log.write([("ann", change) for change in CHANGES])
    other = log_at(tmp_path / "other.sqlite", 0, 0, 1, 1)
    other.write(from_lines(as_lines(log.entries(), PATHS), PATHS))
    assert other.replay.state.clusters.tolist() == log.replay.state.clusters.tolist()
    assert other.replay.state.marks.tolist() == log.replay.state.marks.tolist()
    assert other.replay.state.groups == log.replay.state.groups
    assert {entry.who for entry in other.entries()} == {"ann"}


def test_images_are_found_by_path_where_rows_are_others() -> None:
    line = json.dumps({"kind": "move", "cluster": 0, "images": [[0, "b.png"], [3, "c.png"], "a.png"]})
    ((_, change),) = from_lines([line], PATHS)
    assert change.images == (1, 3, 0)  # The row decides where two images have one path.


def test_names_that_are_no_text_travel() -> None:
    odd = ["caf\udce9.png"]
    line = json.dumps({"kind": "mark", "mark": "wrong", "images": odd})
    assert from_lines([line], odd)[0][1].images == (0,)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "Line 1 cannot be taken over: It is no change"),
        ('{"kind": "move", "cluster": 1, "images": ["z.png"]}', "z.png is not one of this run"),
        ('{"kind": "move", "cluster": 1, "images": [7]}', "must be a path"),
        ('{"kind": "move", "cluster": 1, "images": 7}', "no change"),
        ('{"kind": "undo", "change": 1}', "nothing to undo"),
    ],
)
def test_lines_that_are_wrong_are_refused_in_words(line: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        from_lines([line], PATHS)

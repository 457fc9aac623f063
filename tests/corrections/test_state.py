import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dccm.corrections.change import MARKS, Change, Entry, change_from
from dccm.corrections.state import Replay, State, replayed
from dccm.errors import UserError
from tests.corrections.runs import assignments_of, state_of
from tests.support import few_examples

CLUSTERS = (0, 0, 1, 1, 2, 2)


def replay_of(*changes: Change) -> Replay:
    return replayed(state_of(*CLUSTERS), entries_of(*changes))


def entries_of(*changes: Change) -> list[Entry]:
    return [Entry(number, "", "", change) for number, change in enumerate(changes, start=1)]


def merge(*clusters: int, into: int) -> Change:
    return Change(kind="merge", clusters=clusters, cluster=into)


def test_moved_images_are_where_they_were_put_and_a_person_placed_them() -> None:
    state = replay_of(Change(kind="move", images=(0, 4), cluster=1)).state
    assert state.clusters.tolist() == [1, 0, 1, 1, 1, 2]
    assert np.flatnonzero(state.placed).tolist() == [0, 4]


def test_three_clusters_become_one_and_the_others_are_gone() -> None:
    state = replay_of(Change(kind="rename", cluster=2, name="cats"), merge(0, 1, 2, into=1)).state
    assert set(state.clusters.tolist()) == {1}
    assert state.groups.alive == {1}
    assert state.groups.names == {1: "cats"}  # The only name that there was.
    assert [state.groups.of_predicted(cluster) for cluster in (0, 1, 2)] == [1, 1, 1]


def test_what_the_model_predicts_follows_merges_of_merges() -> None:
    groups = replay_of(merge(0, 1, into=1), merge(1, 2, into=2)).state.groups
    assert groups.of_predicted(0) == 2


def test_split_images_go_to_new_clusters() -> None:
    state = replay_of(Change(kind="split", cluster=1, parts=((3, (2,)), (4, (3,))))).state
    assert state.clusters.tolist() == [0, 0, 3, 4, 2, 2]
    assert state.groups.alive == {0, 1, 2, 3, 4}


def test_a_move_takes_the_mark_wrong_away_and_leaves_outliers() -> None:
    marked = [Change(kind="mark", images=(0,), mark="wrong"), Change(kind="mark", images=(1,), mark="outlier")]
    state = replay_of(*marked, Change(kind="move", images=(0, 1), cluster=2)).state
    assert [MARKS[mark] for mark in state.marks[:2]] == ["", "outlier"]


def test_rejected_images_are_in_no_cluster_and_outliers_marked() -> None:
    found = assignments_of([0, 1])
    state = State.of_run(found._replace(rejected=np.array([True, False]), outliers=np.array([False, True])), 2)
    assert state.clusters.tolist() == [-1, 1]
    assert [MARKS[mark] for mark in state.marks] == ["", "outlier"]


def test_numbers_of_clusters_that_were_undone_are_not_used_again() -> None:
    replay = replay_of(Change(kind="create", cluster=3, name="new"), Change(kind="undo", change=1))
    assert replay.highest == 3
    assert replay.state.groups.alive == {0, 1, 2}


def test_a_change_behind_an_undo_leaves_nothing_to_redo() -> None:
    replay = replay_of(merge(0, 1, into=0), Change(kind="undo", change=1), Change(kind="rename", cluster=1, name="b"))
    assert replay.redoable is None
    with pytest.raises(UserError, match="nothing to redo"):
        replay.check(Change(kind="redo", change=1))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Change(kind="move", images=(6,), cluster=0), "no image \\[6\\]"),
        (Change(kind="move", images=(-1,), cluster=0), "no image"),
        (Change(kind="move", images=(), cluster=0), "must name images"),
        (Change(kind="move", images=(0,), cluster=9), "no cluster 9 any more"),
        (Change(kind="mark", images=(), mark="wrong"), "must name images"),
        (merge(0, into=0), "at least two"),
        (merge(0, 1, into=2), "one of the merged clusters"),
        (merge(0, 7, into=0), "no cluster 7"),
        (Change(kind="rename", cluster=5, name="x"), "no cluster 5"),
        (Change(kind="create", cluster=1), "it is taken"),
        (Change(kind="create", cluster=-1), "it is taken"),
        (Change(kind="split", cluster=0, parts=()), "must hold images"),
        (Change(kind="split", cluster=0, parts=((3, (2,)),)), "images of cluster 0"),
        (Change(kind="split", cluster=0, parts=((3, (0,)), (4, (0,)))), "different images"),
        (Change(kind="split", cluster=0, parts=((3, (0,)), (3, (1,)))), "different numbers"),
        (Change(kind="undo", change=1), "nothing to undo"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_changes(change: Change, said: str) -> None:
    replay = Replay(state_of(*CLUSTERS))
    with pytest.raises(UserError, match=said):
        replay.take(Entry(1, "", "", change))
    assert replay.state.clusters.tolist() == list(CLUSTERS)
    assert replay.version == 0


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "JSON object"),
        ({"kind": "mvoe"}, "Did you mean 'move'"),
        ({"kind": "move", "cluster": 1}, "must name images"),
        ({"kind": "move", "cluster": 1, "images": "all"}, "no list"),
        ({"kind": "move", "cluster": 1, "images": [True]}, "no number"),
        ({"kind": "move", "cluster": 1, "images": [1e400]}, "no number"),
        ({"kind": "move", "cluster": 10**30, "images": [1]}, "no number"),
        ({"kind": "rename", "cluster": 1, "name": "a" * 201}, "at most 200"),
        ({"kind": "rename", "cluster": 1, "name": "a\x00b"}, "can be printed"),
        ({"kind": "mark", "images": [1], "mark": "odd"}, "No mark 'odd'"),
        ({"kind": "split", "cluster": 1, "parts": [3]}, "is wrong"),
    ],
)
def test_documents_that_are_no_change_are_refused_in_words(document: object, said: str) -> None:
    with pytest.raises(UserError, match=said):
        change_from(document)


def snapshot(state: State) -> object:
    return (state.clusters.tolist(), state.marks.tolist(), state.placed.tolist(), state.groups)


def draw_change(data: st.DataObject, replay: Replay) -> Change | None:
    """A change that fits what is there."""
    alive = sorted(replay.state.groups.alive)
    some = st.lists(st.integers(0, len(CLUSTERS) - 1), min_size=1, max_size=4, unique=True).map(tuple)
    kind = data.draw(st.sampled_from(["move", "merge", "split", "create", "rename", "mark", "undo", "redo"]))
    if kind in ("undo", "redo"):
        entry = replay.undoable if kind == "undo" else replay.redoable
        return Change(kind=kind, change=entry.number) if entry else None
    if kind == "merge":
        if len(alive) < 2:
            return None
        chosen = data.draw(st.lists(st.sampled_from(alive), min_size=2, unique=True))
        return Change(kind=kind, clusters=tuple(chosen), cluster=chosen[0])
    if kind == "create":
        return Change(
            kind=kind, cluster=replay.highest + 1, name=data.draw(st.sampled_from("ab")), images=data.draw(some)
        )
    cluster = data.draw(st.sampled_from(alive))
    if kind == "split":
        rows = np.flatnonzero(replay.state.clusters == cluster).tolist()
        return Change(kind=kind, cluster=cluster, parts=((replay.highest + 1, tuple(rows[:1])),)) if rows else None
    name, mark = data.draw(st.sampled_from("ab")), data.draw(st.sampled_from(MARKS))
    return Change(kind=kind, cluster=cluster, name=name, mark=mark, images=data.draw(some))


@few_examples
@given(st.data())
def test_any_log_leads_to_what_its_effective_changes_alone_lead_to(data: st.DataObject) -> None:
    replay = Replay(state_of(*CLUSTERS))
    for number in range(1, data.draw(st.integers(1, 25)) + 1):
        change = draw_change(data, replay)
        if change is not None:
            replay.take(Entry(number, "", "", change))
    plain = replayed(state_of(*CLUSTERS), replay.effective())
    assert snapshot(plain.state) == snapshot(replay.state)


@few_examples
@given(st.data())
def test_undoing_all_leads_back_and_redoing_all_leads_forth(data: st.DataObject) -> None:
    replay = Replay(state_of(*CLUSTERS))
    seen = [snapshot(replay.state)]
    for number in range(1, 13):
        change = draw_change(data, replay)
        if change is not None and change.kind not in ("undo", "redo"):
            replay.take(Entry(number, "", "", change))
            seen.append(snapshot(replay.state))
    for before in reversed(seen[:-1]):
        assert replay.undoable is not None
        replay.take(Entry(replay.version + 1, "", "", Change(kind="undo", change=replay.undoable.number)))
        assert snapshot(replay.state) == before
    for after in seen[1:]:
        assert replay.redoable is not None
        replay.take(Entry(replay.version + 1, "", "", Change(kind="redo", change=replay.redoable.number)))
        assert snapshot(replay.state) == after

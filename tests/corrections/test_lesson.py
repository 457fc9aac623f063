"""What corrections teach, and what the next run begins with."""

from pathlib import Path

import numpy as np
import pytest

from dccm.corrections.carried import carried, carry_over
from dccm.corrections.change import Change
from dccm.corrections.lesson import Corrected, lesson_of
from dccm.corrections.of_run import corrected as state_of_run
from dccm.corrections.of_run import open_log
from dccm.corrections.state import State, replayed
from dccm.errors import UserError
from dccm.runs.directory import RunDirectory
from dccm.runs.lesson import Lesson
from tests.corrections.runs import assignments_of
from tests.corrections.test_state import entries_of
from tests.gallery.runs import write_gallery_run

FIRST = Change(kind="move", images=(0, 1), cluster=2)


def corrected(folder: Path, *changes: Change, upto: int | None = None) -> Corrected:
    directory = RunDirectory(write_gallery_run(folder, 60))
    result = directory.read_result()
    log = open_log(directory, directory.read_assignments(result), result.n_clusters)
    log.write([("ann", change) for change in changes])
    log.close()
    return Corrected(directory, upto)


def lesson(folder: Path, *changes: Change) -> Lesson:
    return lesson_of(corrected(folder, *changes))


def test_moved_images_have_a_label_and_marked_ones_leave(tmp_path: Path) -> None:
    learnt = lesson(
        tmp_path,
        FIRST,
        Change(kind="mark", images=(1, 5), mark="outlier"),
        Change(kind="mark", images=(6,), mark="wrong"),
        Change(kind="move", images=(7,), cluster=-1),
    )
    assert np.flatnonzero(learnt.labels >= 0).tolist() == [0]
    assert learnt.labels[0] == 2
    assert np.flatnonzero(learnt.left_out).tolist() == [1, 5, 6, 7]
    assert (learnt.said.corrected, learnt.said.labels, learnt.said.pairs) == (5, 1, 0)
    assert learnt.said.sentence().endswith("5 images corrected by hand: 1 label, 0 pairs; 4 images left out.")
    assert not learnt.centres  # No cluster is another one than it was.


def test_fifty_images_are_fifty_labels_and_all_pairs_of_them(tmp_path: Path) -> None:
    learnt = lesson(tmp_path, Change(kind="move", images=tuple(range(50)), cluster=2))
    assert learnt.said.sentence() == "Improved from run: 50 images corrected by hand: 50 labels, 1,225 pairs."


def test_a_merged_number_is_gone_and_the_surer_half_of_both_clusters_is_known(tmp_path: Path) -> None:
    first = corrected(tmp_path, FIRST).assignments.clusters
    learnt = lesson(tmp_path / "merged", Change(kind="merge", clusters=(0, 1), cluster=1))
    assert (learnt.said.gone, learnt.without, learnt.said.begun) == ([0], "0", [])
    known = np.flatnonzero(learnt.labels >= 0)
    both = np.flatnonzero(first <= 1)
    assert set(known) < set(both)
    assert len(both) / 2 <= len(known) < len(both)
    assert set(learnt.labels[known].tolist()) == {1}
    assert not learnt.by_hand.any()
    assert learnt.centres.keys() == {1}


def test_a_split_gives_a_new_output_at_the_centre_of_its_images(tmp_path: Path) -> None:
    plain = corrected(tmp_path, FIRST)
    members = np.flatnonzero(plain.first.clusters == 0)
    part = tuple(members[:3].tolist())
    count = plain.result.n_clusters
    learnt = lesson(tmp_path / "split", Change(kind="split", cluster=0, parts=((count, part),)))
    assert learnt.said.begun == [count]
    assert learnt.n_clusters == count + 1
    assert learnt.centres.keys() == {0, count}
    features = plain.directory.read_embedding()
    np.testing.assert_allclose(learnt.centres[count], features[list(part)].mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(learnt.middle, features.mean(axis=0), rtol=1e-5)


def test_a_created_cluster_without_images_has_no_output_yet(tmp_path: Path) -> None:
    count = corrected(tmp_path, FIRST).result.n_clusters
    made = Change(kind="create", cluster=count, name="later")
    learnt = lesson(tmp_path / "created", FIRST, made)
    assert (learnt.said.gone, learnt.said.begun) == ([count], [])


def test_later_changes_do_not_count_for_a_run_that_was_begun_before(tmp_path: Path) -> None:
    changes = FIRST, Change(kind="move", images=(9,), cluster=1)
    assert lesson_of(corrected(tmp_path, *changes, upto=1)).said.labels == 2
    with pytest.raises(UserError, match=r"has 2 changes, and the run was begun with 3\. Put the log back"):
        corrected(tmp_path / "other", *changes, upto=3)


def test_what_teaches_nothing_is_refused(tmp_path: Path) -> None:
    run = RunDirectory(write_gallery_run(tmp_path, 60))
    with pytest.raises(UserError, match='Nobody corrected an image or a cluster of .* "dccm serve .*", or take'):
        Corrected(run)
    with pytest.raises(UserError, match="Nobody corrected"):
        lesson(tmp_path / "named", Change(kind="rename", cluster=1, name="ones"))
    with pytest.raises(UserError, match="Nobody corrected"):
        lesson(tmp_path / "undone", FIRST, Change(kind="undo", change=1))
    everything = Change(kind="merge", clusters=tuple(range(RunDirectory(run.path).read_result().n_clusters)), cluster=0)
    with pytest.raises(UserError, match="leave 1 cluster, and training needs 2"):
        lesson(tmp_path / "one", everything)


def test_numbers_names_places_and_marks_are_carried_over(tmp_path: Path) -> None:
    before = corrected(
        tmp_path,
        Change(kind="merge", clusters=(0, 1), cluster=1),
        Change(kind="rename", cluster=1, name="both"),
        FIRST,
        Change(kind="mark", images=(4,), mark="wrong"),
        Change(kind="move", images=(7,), cluster=-1),
    )
    count = lesson_of(before).n_clusters
    anew = State.of_run(assignments_of([2] * 60), count)
    state = replayed(anew, entries_of(*carried(before, count))).state
    assert state.groups.alive == before.state.groups.alive
    assert state.groups.names == {1: "both"}
    assert np.flatnonzero(state.placed).tolist() == [0, 1]
    assert (state.clusters[7], state.marks[4]) == (-1, 1)


def test_what_was_carried_over_is_not_carried_again(tmp_path: Path) -> None:
    before = corrected(tmp_path, FIRST)
    after = RunDirectory(write_gallery_run(tmp_path / "after", 60))
    for _ in range(2):
        carry_over(before, after)
        result = after.read_result()
        log = open_log(after, after.read_assignments(result), result.n_clusters)
        assert log.replay.version == 1
        log.close()
    assert state_of_run(after, after.read_assignments(), result.n_clusters).placed.tolist()[:3] == [True, True, False]

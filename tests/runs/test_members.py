import numpy as np

from dccm.data.images import Duplicate
from dccm.runs.contents import Assignments
from dccm.runs.members import DOUBTFUL, MAPPED, SUREST, mapped_rows, rows_of_pairs, shown_rows

NAMES = [str(number) for number in range(100)]


def assigned(confidences: np.ndarray, outliers: tuple[int, ...] = ()) -> Assignments:
    far = np.isin(np.arange(100), outliers)
    return Assignments(NAMES, np.arange(100) // 50, confidences, np.zeros(100, bool), far)


def test_surest_and_most_doubtful_images_of_each_cluster_are_shown() -> None:
    rows = shown_rows(assigned(np.linspace(1, 0, 100)), None)
    assert sorted(rows) == [*range(SUREST), *range(50 - DOUBTFUL, 50), *range(50, 50 + SUREST), *range(92, 100)]
    assert len(set(rows)) == len(rows)


def test_central_images_lie_nearest_to_the_mean_of_their_cluster() -> None:
    features = np.concatenate([np.arange(50), np.arange(50)]).astype(np.float32)[:, None]
    rows = set(shown_rows(assigned(np.ones(100)), features).tolist())
    assert {23, 24, 25, 26, 73, 74, 75, 76} <= rows  # The mean is 24.5.
    assert {0, 49, 50, 99} <= rows  # All are equally sure, so those far out are in doubt.


def test_outliers_and_what_is_asked_for_are_shown_too() -> None:
    rows = shown_rows(assigned(np.linspace(1, 0, 100), outliers=(20,)), None, also=[30, 0])
    assert {20, 30} <= set(rows.tolist())
    assert len(set(rows)) == len(rows)


def test_the_map_has_all_of_few_images_and_some_of_many() -> None:
    assert mapped_rows(5).tolist() == [0, 1, 2, 3, 4]
    many = mapped_rows(50_000)
    assert len(many) == MAPPED == len(np.unique(many))
    assert np.array_equal(many, mapped_rows(50_000))


def test_pairs_name_rows() -> None:
    assert rows_of_pairs(NAMES, [Duplicate("7", "3"), Duplicate("nowhere", "3")]) == [3, 7]
    assert rows_of_pairs(NAMES, []) == []

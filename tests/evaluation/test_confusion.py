import numpy as np
import pytest

from dccm.evaluation.confusion import confusion, disagreements
from dccm.evaluation.metrics import accuracy

LABELS = np.array(["b", "b", "b", "a", "a", "c"])
CLUSTERS = np.array([0, 0, 4, 4, 4, 7])


def test_rows_and_columns_come_in_the_order_of_the_best_matching() -> None:
    found = confusion(LABELS, CLUSTERS)
    assert (found.classes, found.clusters, found.matched) == (["b", "a", "c"], [0, 4, 7], 3)
    assert found.counts.tolist() == [[2, 1, 0], [0, 2, 0], [0, 0, 1]]
    assert np.trace(found.counts) / 6 == accuracy(LABELS, CLUSTERS)


def test_clusters_without_a_class_come_last() -> None:
    found = confusion(np.array([1, 1, 1, 0]), np.array([2, 2, 5, 3]))
    assert (found.classes, found.clusters, found.matched) == (["1", "0"], [2, 3, 5], 2)


def test_disagreements_come_surest_first_and_count_what_acc_misses() -> None:
    labels = np.array([0, 0, 0, 1, 1, 1])
    clusters = np.array([0, 0, 1, 1, 1, 2])
    rows = disagreements(labels, clusters, np.array([0.9, 0.9, 0.2, 0.9, 0.9, 0.8]))
    assert rows.tolist() == [5, 2]
    assert accuracy(labels, clusters) == pytest.approx(1 - len(rows) / 6)


def test_disagreements_without_confidences_are_there_all_the_same() -> None:
    assert disagreements(np.array([0, 0, 1]), np.array([0, 0, 0]), np.full(3, np.nan)).tolist() == [2]

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from dccm.errors import UserError
from dccm.evaluation.metrics import accuracy, ari, balanced_accuracy, bcubed, graph_bcubed, nmi, scores
from tests.support import few_examples

TRUE = [0, 0, 0, 1, 1, 1]
PREDICTED = [0, 0, 1, 1, 1, 1]
"""Cluster 0 holds two of class 0; cluster 1 holds one of class 0 and all three of class 1."""

LABEL = st.integers(0, 4)
LABEL_PAIRS = st.lists(st.tuples(LABEL, LABEL), min_size=1, max_size=25)
SCORES: list[Callable[[list[int], list[int]], float]] = [
    accuracy,
    nmi,
    ari,
    lambda true, predicted: bcubed(true, predicted).precision,
    lambda true, predicted: bcubed(true, predicted).recall,
]


def bcubed_by_loops(true: list[int], predicted: list[int]) -> tuple[float, float]:
    """For every sample, the share of its cluster that is of its class, and of its class that is in its cluster."""
    samples = range(len(true))
    precision = recall = 0.0
    for sample in samples:
        cluster = [other for other in samples if predicted[other] == predicted[sample]]
        members = [other for other in samples if true[other] == true[sample]]
        both = [other for other in cluster if other in members]
        precision += len(both) / len(cluster) / len(true)
        recall += len(both) / len(members) / len(true)
    return precision, recall


def accuracy_by_trying_all_maps(true: list[int], predicted: list[int]) -> float:
    def best(clusters: list[int], classes: frozenset[int]) -> int:
        if not clusters:
            return 0
        # A cluster may also stay without a class.
        found = best(clusters[1:], classes)
        for name in classes:
            right = sum(t == name and p == clusters[0] for t, p in zip(true, predicted, strict=True))
            found = max(found, right + best(clusters[1:], classes - {name}))
        return found

    return best(sorted(set(predicted)), frozenset(true)) / len(true)


def test_accuracy_worked_by_hand() -> None:
    assert accuracy(TRUE, PREDICTED) == pytest.approx(5 / 6)
    # Three clusters for two classes: the third is all wrong, because the map is one to one.
    assert accuracy([0, 0, 0, 0, 1, 1], [2, 2, 0, 0, 1, 1]) == pytest.approx(4 / 6)
    # The best map is not the greedy one: 3 + 3 beats 4 + 1.
    assert accuracy([0] * 7 + [1] * 4, [0] * 4 + [1] * 3 + [0] * 3 + [1]) == pytest.approx(6 / 11)


def test_nmi_worked_by_hand() -> None:
    # Joint shares 2/6, 1/6, 3/6 against the products of the margins, 1/2 x 1/3, 1/2 x 2/3, 1/2 x 2/3.
    information = 2 / 6 * math.log(2) + 1 / 6 * math.log(1 / 2) + 3 / 6 * math.log(3 / 2)
    of_true = math.log(2)
    of_predicted = -(1 / 3 * math.log(1 / 3) + 2 / 3 * math.log(2 / 3))
    assert nmi(TRUE, PREDICTED) == pytest.approx(information / math.sqrt(of_true * of_predicted))


def test_ari_worked_by_hand() -> None:
    # Pairs together in both: 1 + 3 = 4; in a class: 3 + 3 = 6; in a cluster: 1 + 6 = 7; of 15 pairs.
    # By chance 6 x 7 / 15 = 2.8, at most (6 + 7) / 2 = 6.5.
    assert ari(TRUE, PREDICTED) == pytest.approx((4 - 2.8) / (6.5 - 2.8))


def test_bcubed_worked_by_hand() -> None:
    # Precision: two samples 1, one sample 1/4, three samples 3/4. Recall: two samples 2/3, one 1/3, three 1.
    found = bcubed(TRUE, PREDICTED)
    assert found.precision == pytest.approx((2 + 1 / 4 + 9 / 4) / 6)
    assert found.recall == pytest.approx((4 / 3 + 1 / 3 + 3) / 6)


def test_bcubed_of_a_graph_worked_by_hand() -> None:
    # Sample 0 is linked to 1 (same class) and 2 (another); links need not be transitive.
    graph = [[1, 1, 1], [1, 1, 0], [1, 0, 1]]
    found = graph_bcubed([0, 0, 1], graph)
    assert found.precision == pytest.approx((2 / 3 + 1 + 1 / 2) / 3)
    assert found.recall == pytest.approx((1 + 1 + 1) / 3)


@few_examples
@given(pairs=LABEL_PAIRS)
def test_accuracy_agrees_with_trying_every_map(pairs: list[tuple[int, int]]) -> None:
    true, predicted = (list(labels) for labels in zip(*pairs, strict=True))
    assert accuracy(true, predicted) == pytest.approx(accuracy_by_trying_all_maps(true, predicted))


@few_examples
@given(pairs=LABEL_PAIRS)
def test_nmi_and_ari_agree_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    true, predicted = zip(*pairs, strict=True)
    assert nmi(true, predicted) == normalized_mutual_info_score(true, predicted, average_method="geometric")
    assert ari(true, predicted) == adjusted_rand_score(true, predicted)


@few_examples
@given(pairs=LABEL_PAIRS)
def test_bcubed_agrees_with_its_definition(pairs: list[tuple[int, int]]) -> None:
    true, predicted = (list(labels) for labels in zip(*pairs, strict=True))
    assert bcubed(true, predicted) == pytest.approx(bcubed_by_loops(true, predicted))


@few_examples
@given(pairs=LABEL_PAIRS)
def test_bcubed_of_a_block_graph_equals_that_of_its_partition(pairs: list[tuple[int, int]]) -> None:
    true, predicted = (np.array(labels) for labels in zip(*pairs, strict=True))
    blocks = (predicted[:, None] == predicted[None, :]).astype(np.float32)
    assert graph_bcubed(true, blocks) == pytest.approx(bcubed(true, predicted))
    without_diagonal = blocks - np.eye(len(true), dtype=np.float32)
    assert graph_bcubed(true, without_diagonal) == pytest.approx(bcubed(true, predicted))


@pytest.mark.parametrize("score", SCORES)
@few_examples
@given(pairs=LABEL_PAIRS, names=st.permutations(range(5)), class_names=st.permutations(range(5)), data=st.data())
def test_scores_ignore_the_names_of_clusters_and_classes_and_the_order_of_samples(
    score: Callable[[list[int], list[int]], float],
    pairs: list[tuple[int, int]],
    names: list[int],
    class_names: list[int],
    data: st.DataObject,
) -> None:
    true, predicted = (list(labels) for labels in zip(*pairs, strict=True))
    expected = score(true, predicted)
    renamed = score([class_names[label] for label in true], [names[label] for label in predicted])
    assert renamed == pytest.approx(expected, abs=1e-9)
    new_true, new_predicted = zip(*data.draw(st.permutations(pairs)), strict=True)
    assert score(list(new_true), list(new_predicted)) == pytest.approx(expected, abs=1e-9)
    assert -1 <= expected <= 1 + 1e-9


@pytest.mark.parametrize("score", SCORES)
def test_perfect_clusters_score_one_whatever_their_names(score: Callable[[list[int], list[int]], float]) -> None:
    assert score([0, 0, 1, 2, 2], [7, 7, 3, 0, 0]) == pytest.approx(1)


def test_one_cluster_for_all_has_full_recall_and_no_information() -> None:
    true, single = [0, 0, 1, 1], [0, 0, 0, 0]
    assert bcubed(true, single) == pytest.approx((0.5, 1))
    assert nmi(true, single) == pytest.approx(0)
    assert ari(true, single) == pytest.approx(0)
    assert accuracy(true, single) == pytest.approx(0.5)


def test_every_sample_on_its_own_has_full_precision_and_little_recall() -> None:
    assert bcubed([0, 0, 1, 1], [0, 1, 2, 3]) == pytest.approx((1, 0.5))
    assert accuracy([0, 0, 1, 1], [0, 1, 2, 3]) == pytest.approx(0.5)
    assert graph_bcubed([0, 0, 1, 1], np.eye(4)) == pytest.approx((1, 0.5))


def test_one_sample_scores_one() -> None:
    assert set(scores([3], [8]).values()) == {1}


def test_balanced_accuracy_counts_each_class_alike() -> None:
    assert balanced_accuracy([0, 0, 0, 0, 1], [0, 0, 0, 0, 0]) == 0.5
    assert balanced_accuracy([0, 0, 0, 0, 1], [1, 1, 1, 0, 0]) == pytest.approx((3 / 4 + 1) / 2)
    # One cluster can stand for one class only, here for that of which it holds the larger share.
    assert balanced_accuracy([0, 0, 0, 0, 1, 2], [0, 0, 0, 1, 0, 0]) == pytest.approx((1 / 4 + 1) / 3)


def test_all_scores_come_by_name() -> None:
    cubed = bcubed(TRUE, PREDICTED)
    assert scores(TRUE, PREDICTED) == {
        "acc": accuracy(TRUE, PREDICTED),
        "balanced_acc": balanced_accuracy(TRUE, PREDICTED),
        "nmi": nmi(TRUE, PREDICTED),
        "ari": ari(TRUE, PREDICTED),
        "bcubed_precision": cubed.precision,
        "bcubed_recall": cubed.recall,
    }


@pytest.mark.parametrize("score", [accuracy, nmi, ari, bcubed, scores])
@pytest.mark.parametrize(
    ("true", "predicted", "shapes"),
    [
        ([0, 1], [0, 1, 1], "(2,) and (3,)"),
        ([], [], "(0,) and (0,)"),
        ([[0, 1]], [[0, 1]], "(1, 2) and (1, 2)"),
    ],
)
def test_labels_that_do_not_match_are_refused(
    score: Callable[..., object], true: list[int], predicted: list[int], shapes: str
) -> None:
    text = f"labels must be two lists of the same length, got shapes {shapes}."
    with pytest.raises(UserError, match=f"^{re.escape(text)}"):
        score(true, predicted)


def test_graph_that_does_not_match_the_labels_is_refused() -> None:
    text = "graph must be (3, 3) for 3 labels, got (2, 2)."
    with pytest.raises(UserError, match=f"^{re.escape(text)}"):
        graph_bcubed([0, 0, 1], np.eye(2))

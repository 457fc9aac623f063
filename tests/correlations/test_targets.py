import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dccm.correlations.targets import mine
from tests.support import few_examples, one_hot, permutation, random_prediction

SEEDS = st.integers(0, 10_000)


def test_targets_mined_from_three_predictions_worked_by_hand() -> None:
    # (3/7, 4/7) points along (0.6, 0.8): cosine 0.6 with (1, 0), 0.8 with (0, 1).
    mined = mine(torch.tensor([[1.0, 0.0], [0.0, 1.0], [3 / 7, 4 / 7]]), graph_threshold=0.7, label_threshold=0.9)
    torch.testing.assert_close(mined.similarity, torch.tensor([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8], [0.6, 0.8, 1.0]]))
    assert mined.graph.tolist() == [[1, 0, 0], [0, 1, 1], [0, 1, 1]]
    assert mined.label.tolist() == [0, 1, 1]
    assert mined.confident.tolist() == [1, 1, 0]


def test_no_gradient_flows_through_mined_targets() -> None:
    mined = mine(random_prediction(6, 3).requires_grad_(), graph_threshold=0.5, label_threshold=0.5)
    assert not any(target.requires_grad for target in mined)


@few_examples
@given(size=st.integers(1, 12), seed=SEEDS)
def test_rows_of_the_targets_are_the_targets_of_the_rows(size: int, seed: int) -> None:
    prediction = random_prediction(12, 4, seed)
    index = permutation(12, seed + 1)[:size]
    rows = mine(prediction, graph_threshold=0.9, label_threshold=0.8).rows(index)
    alone = mine(prediction[index], graph_threshold=0.9, label_threshold=0.8)
    torch.testing.assert_close(rows.similarity, alone.similarity)
    assert torch.equal(rows.label, alone.label)
    assert torch.equal(rows.confident, alone.confident)
    # A similarity may round differently in another batch, so the links are compared with those of the rows' own.
    assert torch.equal(rows.graph, (rows.similarity >= 0.9).float())


def test_rows_keep_the_order_that_was_asked_for() -> None:
    mined = mine(one_hot([0, 1, 0, 2], 3), graph_threshold=0.95, label_threshold=0.9)
    rows = mined.rows(torch.tensor([3, 0, 2]))
    assert rows.label.tolist() == [2, 0, 0]
    assert rows.graph.tolist() == [[1, 0, 0], [0, 1, 1], [0, 1, 1]]


@pytest.mark.parametrize("size", [2, 5])
def test_identical_and_uniform_predictions_are_all_linked_and_none_confident(size: int) -> None:
    mined = mine(torch.full((size, 10), 0.1), graph_threshold=0.95, label_threshold=0.9)
    assert mined.graph.tolist() == [[1.0] * size] * size
    assert mined.confident.tolist() == [0.0] * size


def test_different_one_hot_predictions_are_linked_to_themselves_alone() -> None:
    mined = mine(one_hot([0, 1, 2], 3), graph_threshold=0.95, label_threshold=0.9)
    assert torch.equal(mined.graph, torch.eye(3))
    assert mined.confident.tolist() == [1, 1, 1]

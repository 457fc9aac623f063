import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dccm.correlations.local_robustness import invariance_loss, local_robustness_loss
from dccm.correlations.pseudo_graph import pseudo_graph_loss
from dccm.correlations.pseudo_label import pseudo_label_loss
from dccm.correlations.targets import mine
from tests.support import few_examples, one_hot, permutation, random_prediction

SEEDS = st.integers(0, 10_000)


def test_invariance_loss_worked_by_hand() -> None:
    # Differences (0.3, -0.3, 0), of length 0.3 √2, and (0, 0, 0): the mean over both images is 0.15 √2.
    clean = torch.tensor([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
    perturbed = torch.tensor([[0.2, 0.8, 0.0], [0.1, 0.2, 0.7]])
    assert invariance_loss(clean, perturbed).item() == pytest.approx(0.15 * math.sqrt(2), abs=1e-6)


@few_examples
@given(size=st.integers(1, 9), seed=SEEDS)
def test_invariance_loss_is_symmetric_bounded_and_blind_to_order(size: int, seed: int) -> None:
    first, second = random_prediction(size, 4, seed), random_prediction(size, 4, seed + 1)
    order = permutation(size, seed)
    loss = invariance_loss(first, second)
    assert 0 <= loss <= math.sqrt(2)
    torch.testing.assert_close(invariance_loss(second, first), loss)
    torch.testing.assert_close(invariance_loss(first[order], second[order]), loss)


def test_invariance_loss_of_opposite_one_hot_predictions_is_the_largest_there_is() -> None:
    loss = invariance_loss(one_hot([0, 1], 2), one_hot([1, 0], 2))
    assert loss.item() == pytest.approx(math.sqrt(2))


def test_invariance_loss_has_a_finite_gradient_where_both_predictions_agree() -> None:
    logits = torch.tensor([[1.0, 0.0], [1000.0, 0.0]], requires_grad=True)
    prediction = torch.softmax(logits, dim=1)
    invariance_loss(prediction.detach(), prediction).backward()
    assert logits.grad is not None
    assert logits.grad.tolist() == [[0, 0], [0, 0]]


def test_clean_targets_supervise_perturbed_predictions_worked_by_hand() -> None:
    clean = one_hot([0, 1], 2)
    targets = mine(clean, graph_threshold=0.95, label_threshold=0.9)
    # Perturbed, the two have cosine 0.6 and are not linked: two of four pairs cost -log 0.4. Both are confident:
    # the first costs nothing, the second -log (4/7).
    perturbed = torch.tensor([[1.0, 0.0], [3 / 7, 4 / 7]])
    graph, label = local_robustness_loss(perturbed, targets)
    assert graph.item() == pytest.approx(-math.log(0.4) / 2, abs=2e-6)
    assert label.item() == pytest.approx(-math.log(4 / 7) / 2, abs=1e-6)


@few_examples
@given(seed=SEEDS)
def test_local_robustness_is_graph_and_label_loss_with_the_targets_of_the_clean_images(seed: int) -> None:
    targets = mine(random_prediction(7, 4, seed), graph_threshold=0.8, label_threshold=0.7)
    perturbed = random_prediction(7, 4, seed + 1)
    graph, label = local_robustness_loss(
        perturbed, targets, graph_loss="contrastive", label_loss="binary_cross_entropy"
    )
    assert torch.equal(graph, pseudo_graph_loss(perturbed, targets.graph, kind="contrastive"))
    assert torch.equal(
        label, pseudo_label_loss(perturbed, targets.label, targets.confident, kind="binary_cross_entropy")
    )


def test_gradient_flows_into_perturbed_predictions_and_not_into_clean_ones() -> None:
    clean = torch.randn(6, 3, requires_grad=True)
    perturbed = torch.randn(6, 3, requires_grad=True)
    targets = mine(torch.softmax(clean, 1), graph_threshold=0.5, label_threshold=0.1)
    graph, label = local_robustness_loss(torch.softmax(perturbed, 1), targets)
    (graph + label).backward()
    assert clean.grad is None
    assert perturbed.grad is not None
    assert perturbed.grad.isfinite().all()
    assert perturbed.grad.abs().max() > 0


@pytest.mark.parametrize("labels", [[0, 0], [0, 1], [1, 0, 2]])
def test_unchanged_one_hot_predictions_cost_nothing(labels: list[int]) -> None:
    prediction = one_hot(labels, 3)
    graph, label = local_robustness_loss(prediction, mine(prediction, graph_threshold=0.95, label_threshold=0.9))
    assert graph.item() == pytest.approx(0, abs=2e-6)
    assert label.item() == 0


def test_perturbed_predictions_turned_to_the_wrong_one_hot_cost_much_but_stay_finite() -> None:
    targets = mine(one_hot([0, 1], 2), graph_threshold=0.95, label_threshold=0.9)
    logits = torch.tensor([[0.0, 1000.0], [0.0, 1000.0]], requires_grad=True)
    graph, label = local_robustness_loss(torch.softmax(logits, 1), targets)
    (graph + label).backward()
    assert 5 < graph.item() < 100
    assert 5 < label.item() < 100
    assert logits.grad is not None
    assert logits.grad.isfinite().all()

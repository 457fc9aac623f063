import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dccm.correlations.pseudo_label import LabelLoss, confident, pseudo_label, pseudo_label_loss
from tests.support import few_examples, one_hot, permutation, random_prediction

SEEDS = st.integers(0, 10_000)
KINDS: list[LabelLoss] = ["cross_entropy", "binary_cross_entropy"]


def test_pseudo_label_is_the_most_likely_cluster_and_its_probability() -> None:
    label, probability = pseudo_label(torch.tensor([[0.2, 0.7, 0.1], [0.5, 0.1, 0.4]]))
    assert label.tolist() == [1, 0]
    torch.testing.assert_close(probability, torch.tensor([0.7, 0.5]))


@few_examples
@given(size=st.integers(1, 10), clusters=st.integers(2, 8), seed=SEEDS)
def test_pseudo_label_follows_a_permutation_of_clusters(size: int, clusters: int, seed: int) -> None:
    prediction = random_prediction(size, clusters, seed)
    order = permutation(clusters, seed + 1)
    label, probability = pseudo_label(prediction)
    moved, same = pseudo_label(prediction[:, order])
    assert torch.equal(order[moved], label)
    assert torch.equal(same, probability)
    assert (probability >= 1 / clusters - 1e-6).all()


def test_no_gradient_flows_through_the_pseudo_label() -> None:
    label, probability = pseudo_label(random_prediction(4, 3).requires_grad_())
    assert not label.requires_grad
    assert not probability.requires_grad


@pytest.mark.parametrize(
    ("prediction", "probability"), [(torch.full((3, 4), 0.25), 0.25), (one_hot([3, 3, 3], 4), 1.0)]
)
def test_pseudo_label_of_uniform_and_of_one_hot_predictions(prediction: torch.Tensor, probability: float) -> None:
    label, found = pseudo_label(prediction)
    assert label.unique().numel() == 1
    assert found.tolist() == [probability] * 3


def test_sample_at_the_threshold_is_confident_and_one_below_is_not() -> None:
    assert confident(torch.tensor([0.5, 0.49, 0.51, 1.0]), 0.5).tolist() == [1, 0, 1, 1]


@few_examples
@given(seed=SEEDS, low=st.floats(0, 1), high=st.floats(0, 1))
def test_higher_threshold_never_makes_a_sample_confident(seed: int, low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    probability = pseudo_label(random_prediction(9, 4, seed))[1]
    loose, strict = confident(probability, low), confident(probability, high)
    assert set(loose.tolist()) <= {0.0, 1.0}
    assert (strict <= loose).all()


def test_uniform_predictions_are_never_confident_and_one_hot_predictions_always() -> None:
    assert confident(pseudo_label(torch.full((3, 10), 0.1))[1], 0.9).tolist() == [0, 0, 0]
    assert confident(pseudo_label(one_hot([0, 4, 9], 10))[1], 1.0).tolist() == [1, 1, 1]


PREDICTION = torch.tensor([[0.8, 0.2], [0.4, 0.6]])


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([1.0, 1.0], -(math.log(0.8) + math.log(0.6)) / 2),
        ([1.0, 0.0], -math.log(0.8) / 2),  # still over both samples: the mean is not over the confident ones
        ([0.0, 0.0], 0.0),
    ],
)
def test_cross_entropy_label_loss_worked_by_hand(weights: list[float], expected: float) -> None:
    loss = pseudo_label_loss(PREDICTION, torch.tensor([0, 1]), torch.tensor(weights))
    assert loss.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        # Sample 0: -log 0.8 for its own class, -log (1 - 0.2) for the other; sample 1: -log 0.6 twice.
        # The mean is over two samples and two classes.
        ([1.0, 1.0], -(2 * math.log(0.8) + 2 * math.log(0.6)) / 4),
        ([0.0, 1.0], -2 * math.log(0.6) / 4),
        ([0.0, 0.0], 0.0),
    ],
)
def test_binary_cross_entropy_label_loss_worked_by_hand(weights: list[float], expected: float) -> None:
    loss = pseudo_label_loss(PREDICTION, torch.tensor([0, 1]), torch.tensor(weights), kind="binary_cross_entropy")
    assert loss.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@few_examples
@given(size=st.integers(1, 9), seed=SEEDS)
def test_label_loss_ignores_the_order_of_samples_and_of_clusters(kind: LabelLoss, size: int, seed: int) -> None:
    prediction = random_prediction(size, 4, seed)
    label, probability = pseudo_label(prediction)
    weights = confident(probability, 0.7)
    samples, clusters = permutation(size, seed + 1), permutation(4, seed + 2)
    expected = pseudo_label_loss(prediction, label, weights, kind=kind)
    assert expected >= 0
    by_sample = pseudo_label_loss(prediction[samples], label[samples], weights[samples], kind=kind)
    torch.testing.assert_close(by_sample, expected)
    by_cluster = pseudo_label_loss(prediction[:, clusters], clusters.argsort()[label], weights, kind=kind)
    torch.testing.assert_close(by_cluster, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_flows_into_confident_samples_only_and_raises_their_label(kind: LabelLoss) -> None:
    logits = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], requires_grad=True)
    label = torch.tensor([0, 1, 2])
    pseudo_label_loss(torch.softmax(logits, 1), label, torch.tensor([1.0, 0.0, 1.0]), kind=kind).backward()
    assert logits.grad is not None
    assert logits.grad[1].tolist() == [0, 0, 0]
    assert logits.grad[0, 0] < 0
    assert logits.grad[2, 2] < 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("scale", [0.0, 50.0, 1000.0])
def test_label_loss_and_its_gradient_are_finite_at_extremes(kind: LabelLoss, label: int, scale: float) -> None:
    # Uniform, nearly one-hot and exactly one-hot predictions, with the label where they point and where they do not.
    logits = (torch.eye(2)[[0, 0]] * scale).requires_grad_()
    loss = pseudo_label_loss(torch.softmax(logits, 1), torch.full((2,), label), torch.ones(2), kind=kind)
    loss.backward()
    assert loss.isfinite()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_very_unlikely_label_still_pulls_with_the_full_slope_of_the_cross_entropy() -> None:
    # The slope of -log softmax at the label is p - 1, which is -1 when p is tiny; the mean halves nothing here.
    logits = torch.tensor([[50.0, 0.0]], requires_grad=True)
    pseudo_label_loss(torch.softmax(logits, 1), torch.tensor([1]), torch.ones(1)).backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.tensor([[1.0, -1.0]]))

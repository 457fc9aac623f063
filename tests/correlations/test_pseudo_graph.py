import itertools
import math
import re
import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dccm.correlations.pseudo_graph import (
    GraphLoss,
    contrastive_loss,
    k_partition,
    pseudo_graph,
    pseudo_graph_loss,
    same_partition,
    similarity,
)
from dccm.errors import UserError
from tests.support import (
    few_examples,
    graph_with_links,
    one_hot,
    permutation,
    random_prediction,
    random_similarity,
    seeded,
)

SEEDS = st.integers(0, 10_000)
SHARPNESS = st.sampled_from([0.0, 0.1, 1.0, 10.0, 1000.0])
KINDS: list[GraphLoss] = ["cross_entropy", "contrastive"]


def parts_by_flooding(weights: Tensor, threshold: float) -> list[int]:
    """Connected parts of the pairs above the threshold, numbered by first appearance; plain loops."""
    labels = [-1] * len(weights)
    for first in range(len(weights)):
        if labels[first] >= 0:
            continue
        number = max(labels) + 1
        waiting = [first]
        while waiting:
            here = waiting.pop()
            labels[here] = number
            waiting += [j for j in range(len(weights)) if labels[j] < 0 and float(weights[here, j]) > threshold]
    return labels


# Similarity


def test_similarity_keeps_its_digits_where_networks_compute_in_bfloat16() -> None:
    prediction = random_prediction(20, 5, 0)
    with torch.autocast("cpu", torch.bfloat16):
        lower = similarity(prediction)
    assert torch.equal(lower, similarity(prediction))


def test_similarity_of_predictions_worked_by_hand() -> None:
    # (3/7, 4/7) points along (0.6, 0.8); its cosine with (1, 0) is 0.6, with (0, 1) it is 0.8.
    found = similarity(torch.tensor([[1.0, 0.0], [0.0, 1.0], [3 / 7, 4 / 7]]))
    expected = torch.tensor([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8], [0.6, 0.8, 1.0]])
    torch.testing.assert_close(found, expected)


@few_examples
@given(size=st.integers(2, 12), clusters=st.integers(2, 8), seed=SEEDS, sharpness=SHARPNESS)
def test_similarity_is_symmetric_within_bounds_and_one_on_the_diagonal(
    size: int, clusters: int, seed: int, sharpness: float
) -> None:
    found = similarity(random_prediction(size, clusters, seed, sharpness))
    torch.testing.assert_close(found, found.T, rtol=0, atol=1e-6)
    assert found.min() >= 0
    assert found.max() <= 1
    torch.testing.assert_close(found.diagonal(), torch.ones(size), rtol=0, atol=1e-6)


@few_examples
@given(size=st.integers(2, 12), seed=SEEDS)
def test_similarity_follows_a_permutation_of_samples_and_ignores_one_of_clusters(size: int, seed: int) -> None:
    prediction = random_prediction(size, 5, seed)
    order = permutation(size, seed + 1)
    expected = similarity(prediction)
    torch.testing.assert_close(similarity(prediction[order]), expected[order][:, order])
    torch.testing.assert_close(similarity(prediction[:, permutation(5, seed + 2)]), expected)


def test_similarity_of_one_hot_predictions_is_exactly_zero_or_one() -> None:
    assert similarity(one_hot([0, 2, 0], 3)).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]


def test_uniform_predictions_are_fully_similar() -> None:
    torch.testing.assert_close(similarity(torch.full((4, 10), 0.1)), torch.ones(4, 4))


# Pseudo-graph


def test_pair_at_the_threshold_is_linked_and_pair_below_is_not() -> None:
    pairs = torch.tensor([[1.0, 0.5, 0.49], [0.5, 1.0, 0.51], [0.49, 0.51, 1.0]])
    assert pseudo_graph(pairs, 0.5).tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]


@few_examples
@given(seed=SEEDS, low=st.floats(0, 1), high=st.floats(0, 1))
def test_higher_threshold_never_adds_a_link(seed: int, low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    pairs = similarity(random_prediction(8, 4, seed))
    loose, strict = pseudo_graph(pairs, low), pseudo_graph(pairs, high)
    assert set(loose.unique().tolist()) <= {0.0, 1.0}
    assert (strict <= loose).all()


def test_no_gradient_flows_through_the_pseudo_graph() -> None:
    pairs = similarity(random_prediction(5, 3).requires_grad_())
    assert pairs.requires_grad
    assert not pseudo_graph(pairs, 0.5).requires_grad


# Pseudo-graph loss


@pytest.mark.parametrize(
    ("linked", "expected"),
    [
        (True, -math.log(0.6) / 2),  # two of the four pairs cost -log 0.6, the diagonal costs nothing
        (False, -math.log(0.4) / 2),  # two of the four pairs cost -log (1 - 0.6)
    ],
)
def test_cross_entropy_graph_loss_worked_by_hand(linked: bool, expected: float) -> None:
    prediction = torch.tensor([[1.0, 0.0], [3 / 7, 4 / 7]])  # cosine 0.6
    graph = graph_with_links(*([(0, 1)] if linked else []), size=2)
    assert pseudo_graph_loss(prediction, graph).item() == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(
    ("linked", "expected"),
    [
        # (1, 0) and (0.7, 0.3) lie 0.3 √2 apart.
        (True, 0.18 / 2),  # (0.3 √2)² = 0.18
        (False, 0.98 / 2),  # the margin √2 is missed by 0.7 √2, squared 0.98
    ],
)
def test_contrastive_graph_loss_worked_by_hand(linked: bool, expected: float) -> None:
    prediction = torch.tensor([[1.0, 0.0], [0.7, 0.3]])
    graph = graph_with_links(*([(0, 1)] if linked else []), size=2)
    assert contrastive_loss(prediction, graph).item() == pytest.approx(expected, abs=1e-6)
    assert pseudo_graph_loss(prediction, graph, kind="contrastive").item() == pytest.approx(expected, abs=1e-6)


def test_contrastive_loss_respects_another_margin() -> None:
    # Distance 0.3 √2 = 0.424264 is beyond a margin of 0.4, and misses 0.5 by 0.075736.
    prediction = torch.tensor([[1.0, 0.0], [0.7, 0.3]])
    assert contrastive_loss(prediction, torch.eye(2), margin=0.4).item() == 0
    assert contrastive_loss(prediction, torch.eye(2), margin=0.5).item() == pytest.approx(0.075736**2 / 2, rel=1e-4)


def test_cross_entropy_of_a_hopeless_pair_is_bounded_by_how_near_to_zero_a_similarity_may_come() -> None:
    # Linked but opposite: two of four pairs cost -log 0.000001 = 13.8155, the diagonal costs next to nothing.
    loss = pseudo_graph_loss(one_hot([0, 1], 2), torch.ones(2, 2))
    assert loss.item() == pytest.approx(13.8155 / 2, abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@few_examples
@given(size=st.integers(2, 9), seed=SEEDS, sharpness=SHARPNESS)
def test_graph_loss_ignores_the_order_of_samples_and_of_clusters(
    kind: GraphLoss, size: int, seed: int, sharpness: float
) -> None:
    # In double precision: the logarithm of what a cosine lacks to 1 enlarges the rounding of single precision.
    prediction = random_prediction(size, 4, seed, sharpness).double()
    graph = pseudo_graph(random_similarity(size, seed), 0.5).double()
    order = permutation(size, seed + 1)
    expected = pseudo_graph_loss(prediction, graph, kind=kind)
    assert expected >= 0
    torch.testing.assert_close(pseudo_graph_loss(prediction[order], graph[order][:, order], kind=kind), expected)
    torch.testing.assert_close(pseudo_graph_loss(prediction[:, permutation(4, seed)], graph, kind=kind), expected)


@pytest.mark.parametrize("kind", KINDS)
@few_examples
@given(seed=SEEDS, sharpness=SHARPNESS)
def test_no_prediction_beats_one_hot_parts(kind: GraphLoss, seed: int, sharpness: float) -> None:
    labels = [0, 1, 2, 0, 1, 2, 2]
    graph = same_partition(torch.tensor(labels))
    best = pseudo_graph_loss(one_hot(labels, 3), graph, kind=kind)
    assert best.item() == pytest.approx(0, abs=2e-6)
    assert best <= pseudo_graph_loss(random_prediction(7, 3, seed, sharpness), graph, kind=kind) + 1e-7


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "logits",
    [
        torch.eye(3)[[0, 1, 0, 2]] * 1000,  # one-hot, some alike, some apart
        torch.zeros(4, 3),  # uniform, all the same
        torch.tensor([[2.0, 1.0, 0.0]]).repeat(2, 1),  # batch of two, identical
        torch.tensor([[1000.0, 0.0], [0.0, 1000.0]]),  # batch of two, opposite
    ],
)
@pytest.mark.parametrize("all_linked", [True, False])
def test_graph_loss_and_its_gradient_are_finite_at_extremes(kind: GraphLoss, logits: Tensor, all_linked: bool) -> None:
    logits = logits.clone().requires_grad_()
    graph = torch.ones(len(logits), len(logits)) if all_linked else torch.eye(len(logits))
    loss = pseudo_graph_loss(torch.softmax(logits, dim=1), graph, kind=kind)
    loss.backward()
    assert loss.isfinite()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("linked", [True, False])
def test_gradient_step_draws_a_linked_pair_together_and_an_unlinked_pair_apart(kind: GraphLoss, linked: bool) -> None:
    logits = torch.tensor([[1.0, 0.0, 0.2], [0.0, 0.8, 0.1]], requires_grad=True)
    graph = torch.ones(2, 2) if linked else torch.eye(2)
    pseudo_graph_loss(torch.softmax(logits, dim=1), graph, kind=kind).backward()
    assert logits.grad is not None
    before = similarity(torch.softmax(logits, dim=1))[0, 1]
    after = similarity(torch.softmax(logits - 0.1 * logits.grad, dim=1))[0, 1]
    assert (after > before) == linked


# Partition into K parts

CHAIN = {(0, 1): 0.9, (1, 2): 0.3, (2, 3): 0.8, (3, 4): 0.2}
"""A path 0-1-2-3-4 with strong and weak links; every other pair weighs 0.1."""


def chain() -> Tensor:
    weights = torch.full((5, 5), 0.1)
    for (first, second), weight in CHAIN.items():
        weights[first, second] = weights[second, first] = weight
    return weights.fill_diagonal_(1.0)


@pytest.mark.parametrize(
    ("n_parts", "labels", "threshold"),
    [
        (1, [0, 0, 0, 0, 0], -math.inf),
        (2, [0, 0, 0, 0, 1], 0.2),  # the weakest link of the path goes first
        (3, [0, 0, 1, 1, 2], 0.3),
        (4, [0, 0, 1, 2, 3], 0.8),
        (5, [0, 1, 2, 3, 4], 0.9),
    ],
)
def test_partition_of_a_chain_worked_by_hand(n_parts: int, labels: list[int], threshold: float) -> None:
    found = k_partition(chain(), n_parts)
    assert found.parts.tolist() == labels
    assert found.threshold == pytest.approx(threshold)


@few_examples
@given(size=st.integers(2, 10), seed=SEEDS, data=st.data())
def test_partition_agrees_with_a_search_over_all_thresholds(size: int, seed: int, data: st.DataObject) -> None:
    weights = random_similarity(size, seed)
    n_parts = data.draw(st.integers(1, size))
    thresholds = [-math.inf, *sorted(set(weights.flatten().tolist()))]
    searched = [parts_by_flooding(weights, threshold) for threshold in thresholds]
    with_right_count = [labels for labels in searched if max(labels) + 1 == n_parts]
    assert k_partition(weights, n_parts).parts.tolist() in with_right_count
    assert all(labels == with_right_count[0] for labels in with_right_count)


@few_examples
@given(size=st.integers(2, 12), seed=SEEDS, data=st.data())
def test_threshold_separates_the_parts_as_in_lemma_1(size: int, seed: int, data: st.DataObject) -> None:
    weights = random_similarity(size, seed)
    n_parts = data.draw(st.integers(2, size))
    labels, threshold = k_partition(weights, n_parts)
    assert parts_by_flooding(weights, threshold) == labels.tolist()
    across = labels.unsqueeze(0) != labels.unsqueeze(1)
    assert (weights[across] <= threshold).all()
    # One notch lower, the pair at the threshold joins two of the parts.
    assert max(parts_by_flooding(weights, math.nextafter(threshold, 0))) + 1 == n_parts - 1


@pytest.mark.parametrize("n_parts", [1, 2, 5, 19, 20])
@pytest.mark.parametrize(
    "weights",
    [
        random_similarity(20, seed=3),
        torch.ones(20, 20),
        torch.zeros(20, 20),
        torch.full((20, 20), -1.0),
        (random_similarity(20, seed=4) * 3).round() / 3,  # few different values, many ties
    ],
)
def test_partition_has_exactly_k_parts_with_and_without_ties(weights: Tensor, n_parts: int) -> None:
    labels = k_partition(weights, n_parts).parts
    assert sorted(labels.unique().tolist()) == list(range(n_parts))


@few_examples
@given(size=st.integers(1, 15), seed=SEEDS, data=st.data())
def test_parts_are_numbered_in_the_order_of_their_first_appearance(size: int, seed: int, data: st.DataObject) -> None:
    n_parts = data.draw(st.integers(1, size))
    labels = k_partition(random_similarity(size, seed), n_parts).parts.tolist()
    assert list(dict.fromkeys(labels)) == list(range(n_parts))


@few_examples
@given(size=st.integers(2, 12), seed=SEEDS, data=st.data())
def test_partition_does_not_depend_on_the_order_of_samples(size: int, seed: int, data: st.DataObject) -> None:
    weights = random_similarity(size, seed)
    n_parts = data.draw(st.integers(1, size))
    order = permutation(size, seed + 1)
    plain, permuted = k_partition(weights, n_parts), k_partition(weights[order][:, order], n_parts)
    assert torch.equal(same_partition(plain.parts)[order][:, order], same_partition(permuted.parts))
    assert plain.threshold == permuted.threshold


def test_more_parts_only_split_the_parts_there_were() -> None:
    weights = random_similarity(15, seed=6)
    finer_and_coarser = [same_partition(k_partition(weights, n_parts).parts) for n_parts in range(15, 0, -1)]
    for finer, coarser in itertools.pairwise(finer_and_coarser):
        assert (finer <= coarser).all()


def test_partition_is_the_same_every_time_even_where_all_weights_tie() -> None:
    first, second = k_partition(torch.ones(30, 30), 7), k_partition(torch.ones(30, 30), 7)
    assert torch.equal(first.parts, second.parts)
    assert first.threshold == second.threshold == 1.0


def test_of_equal_edges_the_one_with_the_smaller_sample_numbers_goes_first() -> None:
    # With all weights equal the tree is the star of sample 0; its edge to sample 1 is cut, then the one to sample 2.
    assert k_partition(torch.ones(4, 4), 2).parts.tolist() == [0, 1, 0, 0]
    assert k_partition(torch.ones(4, 4), 3).parts.tolist() == [0, 1, 2, 0]


def test_one_sample_is_one_part() -> None:
    found = k_partition(torch.ones(1, 1), 1)
    assert found.parts.tolist() == [0]
    assert found.threshold == -math.inf


def test_partition_takes_predictions_that_still_have_a_gradient() -> None:
    prediction = one_hot([0, 1, 1, 0], 2).requires_grad_()
    labels = k_partition(similarity(prediction), 2).parts
    assert labels.tolist() == [0, 1, 1, 0]
    assert not labels.requires_grad


def test_partition_of_ten_thousand_samples_takes_seconds() -> None:
    prediction = torch.rand(10_000, 16, generator=seeded())
    weights = similarity(prediction)
    started = time.monotonic()
    labels = k_partition(weights, 10).parts
    assert time.monotonic() - started < 20
    assert sorted(labels.unique().tolist()) == list(range(10))


@pytest.mark.parametrize("n_parts", [-1, 0, 6])
def test_impossible_number_of_parts_is_refused(n_parts: int) -> None:
    text = f"n_parts must lie in [1, 5], the number of samples, got {n_parts}."
    with pytest.raises(UserError, match=f"^{re.escape(text)}"):
        k_partition(chain(), n_parts)


def test_same_partition_worked_by_hand() -> None:
    assert same_partition(torch.tensor([0, 1, 0])).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]


@few_examples
@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_same_partition_is_reflexive_symmetric_and_transitive(labels: list[int]) -> None:
    relation = same_partition(torch.tensor(labels))
    assert (relation.diagonal() == 1).all()
    assert torch.equal(relation, relation.T)
    through_another = (relation @ relation > 0).float()
    assert torch.equal(through_another, relation)


SATURATED = [(1.0, [[1.0, 0.0], [1e-8, 1.0]]), (0.0, [[0.6, 0.4], [0.6, 0.4001]])]


@pytest.mark.parametrize(("linked", "prediction"), SATURATED)
def test_pairs_that_are_surely_wrong_rest_or_learn_on(linked: float, prediction: list[list[float]]) -> None:
    """Their similarities are within a millionth of 0 and of 1."""
    graph = torch.tensor([[1.0, linked], [linked, 1.0]])
    slopes = {}
    for saturated in ("rest", "learn"):
        found = torch.tensor(prediction, requires_grad=True)
        pseudo_graph_loss(found, graph, saturated=saturated).backward()
        assert found.grad is not None
        assert found.grad.isfinite().all()
        slopes[saturated] = float(found.grad[1].abs().max())
    assert slopes["rest"] < 1e-5
    assert slopes["learn"] > 1

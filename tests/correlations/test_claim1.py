"""Claim 1, Eq. (6): where the graph has exactly K parts, the optimum of the pseudo-graph loss is one-hot."""

import pytest
import torch
from torch import Tensor, nn

from dccm.correlations.pseudo_graph import GraphLoss, k_partition, pseudo_graph_loss, same_partition
from tests.support import one_hot, seeded

PARTS = [0, 1, 0, 2, 1, 2, 0, 0, 1, 2, 0, 1]


def predictions_at_the_optimum(parts: list[int], clusters: int, kind: GraphLoss, seed: int = 0) -> tuple[Tensor, float]:
    """Drive a small network down the pseudo-graph loss alone, on inputs that are alike within a part."""
    generator = seeded(seed)
    centres = torch.randn(max(parts) + 1, 16, generator=generator)
    inputs = centres[parts] + 0.5 * torch.randn(len(parts), 16, generator=generator)
    graph = same_partition(torch.tensor(parts))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, clusters), nn.Softmax(dim=1))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(300):
        optimizer.zero_grad()
        pseudo_graph_loss(network(inputs), graph, kind=kind).backward()
        optimizer.step()
    with torch.no_grad():
        prediction = network(inputs)
        return prediction, pseudo_graph_loss(prediction, graph, kind=kind).item()


@pytest.mark.parametrize("kind", ["cross_entropy", "contrastive"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_network_at_the_optimum_predicts_one_hot_and_one_cluster_per_part(kind: GraphLoss, seed: int) -> None:
    prediction, loss = predictions_at_the_optimum(PARTS, 3, kind, seed)
    assert loss < 0.001
    assert prediction.max(dim=1).values.min() > 0.99
    clusters = prediction.argmax(dim=1)
    assert torch.equal(same_partition(clusters), same_partition(torch.tensor(PARTS)))


def test_network_at_the_optimum_of_a_k_partition_of_weights_predicts_its_parts() -> None:
    noisy = same_partition(torch.tensor(PARTS)) + 0.1 * torch.rand(12, 12, generator=seeded(5))
    partition = k_partition((noisy + noisy.T) / 2, 3)
    assert partition.parts.tolist() == PARTS
    prediction, _ = predictions_at_the_optimum(partition.parts.tolist(), 3, "cross_entropy")
    assert prediction.max(dim=1).values.min() > 0.99
    assert torch.equal(same_partition(prediction.argmax(dim=1)), same_partition(partition.parts))


@pytest.mark.parametrize("kind", ["cross_entropy", "contrastive"])
def test_prediction_that_mixes_two_clusters_is_worse_than_the_one_hot_optimum(kind: GraphLoss) -> None:
    graph = same_partition(torch.tensor(PARTS))
    best = one_hot(PARTS, 3)
    for share in (0.01, 0.1, 0.5, 1.0):
        mixed = best.clone()
        mixed[0] = (1 - share) * best[0] + share * best[1]
        assert pseudo_graph_loss(mixed, graph, kind=kind) > pseudo_graph_loss(best, graph, kind=kind)


@pytest.mark.parametrize("kind", ["cross_entropy", "contrastive"])
def test_more_parts_than_clusters_leave_no_prediction_without_loss(kind: GraphLoss) -> None:
    # The claim needs exactly K parts: with four parts and three clusters two parts have to share one.
    _, loss = predictions_at_the_optimum([0, 1, 2, 3], 3, kind)
    assert loss > 0.05

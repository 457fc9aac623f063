"""Small helpers that several tests share."""

import signal

import torch
from hypothesis import settings
from torch import Tensor

few_examples = settings(max_examples=30, deadline=None, derandomize=True, database=None)
"""Enough cases to find a broken property, the same ones every time."""


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def graph_with_links(*links: tuple[int, int], size: int) -> Tensor:
    """Symmetric zeros and ones; every sample is linked to itself."""
    graph = torch.eye(size)
    for first, second in links:
        graph[first, second] = graph[second, first] = 1
    return graph


def random_prediction(size: int, clusters: int, seed: int = 0, sharpness: float = 3.0) -> Tensor:
    """Softmax of random logits: nearly uniform for a small sharpness, nearly one-hot for a large one."""
    return torch.softmax(torch.randn(size, clusters, generator=seeded(seed)) * sharpness, dim=1)


def one_hot(labels: list[int], clusters: int) -> Tensor:
    return torch.eye(clusters)[labels]


def random_similarity(size: int, seed: int = 0) -> Tensor:
    """Symmetric, all pairs different, 1 on the diagonal."""
    count = size * (size - 1) // 2
    values = (torch.randperm(count, generator=seeded(seed)) + 1.0) / (count + 2)
    rows, columns = torch.triu_indices(size, size, 1)
    weights = torch.eye(size)
    weights[rows, columns] = values
    weights[columns, rows] = values
    return weights


def permutation(size: int, seed: int) -> Tensor:
    return torch.randperm(size, generator=seeded(seed))


def usual_signals() -> None:
    """For `preexec_fn`: whoever runs tests in the background lets children ignore Ctrl-C, `nohup` a closed terminal."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)

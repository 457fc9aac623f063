import pytest
import torch

from dccm.networks.balance import SharedScale, ShareNorm, balance_norm
from dccm.networks.head import VectorHead
from tests.support import seeded


def logits_with_a_rare_cluster() -> torch.Tensor:
    """Three clusters, each sure of its own images, of which the last has one in forty."""
    labels = torch.tensor([0] * 20 + [1] * 19 + [2])
    return torch.nn.functional.one_hot(labels, 3) * 4.0 + torch.rand(40, 3, generator=seeded())


def test_equal_shares_are_batch_norm() -> None:
    logits = torch.randn(50, 4, generator=seeded())
    assert torch.allclose(ShareNorm(4)(logits), torch.nn.BatchNorm1d(4)(logits), atol=1e-6)


def test_one_scale_keeps_the_order_and_the_distances() -> None:
    logits = torch.randn(50, 4, generator=seeded()) * 7 + 3
    normed = SharedScale()(logits).detach()
    between, before = normed[:, :1] - normed, logits[:, :1] - logits
    assert torch.allclose(between, before / logits.std(correction=0), atol=1e-3)
    assert normed.std() == pytest.approx(1, abs=0.01)


def test_a_rare_cluster_is_not_blown_up() -> None:
    logits, rare = logits_with_a_rare_cluster(), torch.tensor([20, 19, 1])
    norm = ShareNorm(3)
    norm.expect(rare)
    expected = norm(logits).detach().softmax(dim=1).mean(dim=0)[2]
    assert expected < torch.nn.BatchNorm1d(3)(logits).softmax(dim=1).mean(dim=0)[2]
    assert expected == pytest.approx(1 / 40, abs=0.03)


def test_a_cluster_without_images_is_expected_to_be_small_but_not_gone() -> None:
    norm = ShareNorm(3)
    norm.expect(torch.tensor([5, 5, 0]))
    assert 0 < norm.shares[2] < 0.01
    assert norm.shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", ["none", "uniform", "estimated"])
def test_what_is_expected_is_part_of_the_weights(kind: str) -> None:
    heads = [VectorHead(4, 3, kind) for _ in range(2)]  # type: ignore[arg-type]
    heads[0].begin(torch.randn(3, 4, generator=seeded()), torch.tensor([7, 2, 1]))
    heads[1].load_state_dict(heads[0].state_dict())
    images = torch.randn(6, 4, 1, 1, generator=seeded(1))
    assert torch.equal(heads[0].eval()(images).prediction, heads[1].eval()(images).prediction)
    assert type(heads[0].norm) is type(balance_norm(kind, 3))  # type: ignore[arg-type]

import numpy as np
import torch

from dccm.arrays import ImageShape
from dccm.data.loader import Loader
from dccm.methods.heads import begin_from_kmeans
from dccm.networks import build_encoder
from dccm.networks.base import NetworkConfig, is_encoder
from dccm.networks.head import VectorHead
from tests.support import seeded


def groups(per_group: int = 20) -> Loader:
    """Vectors of length one around three directions."""
    centres = np.eye(3, 12).repeat(per_group, axis=0)
    vectors = centres + np.random.default_rng(0).normal(0, 0.05, centres.shape)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    images = vectors.astype(np.float16)[:, None, None]
    return Loader(images, batch_size=30, seed=0, device=torch.device("cpu"))


def test_vectors_get_a_head_that_keeps_the_contract() -> None:
    head = build_encoder(NetworkConfig(), ImageShape(12, 1, 1), 3)
    assert isinstance(head, VectorHead)
    assert is_encoder(head)
    output = head(torch.randn(5, 12, 1, 1, generator=seeded()))
    assert output.prediction.shape == (5, 3)
    assert torch.allclose(output.prediction.sum(dim=1), torch.ones(5))
    assert torch.allclose(output.feature.norm(dim=1), torch.full((5,), 8.0))


def test_the_largest_logit_is_that_of_the_nearest_centre() -> None:
    head = VectorHead(4, 6)
    centres = torch.randn(6, 4, generator=seeded(1)) * 5
    head.begin(centres, torch.ones(6))
    feature = head.feature(torch.randn(40, 4, 1, 1, generator=seeded(2)))
    assert torch.equal(head.output(feature).argmax(dim=1), torch.cdist(feature, centres).argmin(dim=1))


def test_components_are_those_in_which_vectors_differ_most() -> None:
    rows = torch.randn(200, 3, generator=seeded()) * torch.tensor([1.0, 9.0, 3.0]) + 5
    head = VectorHead(3, 2)
    head.look(rows.mean(dim=0), torch.cov(rows.T, correction=0))
    assert head.axes.abs().argmax(dim=0).tolist() == [1, 2, 0]
    assert torch.allclose(((rows - head.mean) @ head.axes).mean(dim=0), torch.zeros(3), atol=1e-4)


def test_a_head_begun_from_kmeans_knows_the_groups() -> None:
    loader, head = groups(), VectorHead(12, 3)
    begin_from_kmeans(head, loader, 3)
    clusters = head(torch.cat(list(loader.ordered()))).prediction.argmax(dim=1).reshape(3, 20)
    assert (clusters == clusters[:, :1]).all()
    assert len(set(clusters[:, 0].tolist())) == 3

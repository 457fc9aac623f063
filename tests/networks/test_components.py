import numpy as np
import pytest
import torch

from dccm.data.loader import Loader
from dccm.networks.components import ComponentMap, Components, LinearHeads
from tests.methods.vectors import blobs
from tests.support import seeded

VECTORS, LABELS = blobs(90, size=100)


def loader() -> Loader:
    return Loader(VECTORS, batch_size=30, seed=0, device=torch.device("cpu"))


def fitted(features: int = 100, first: int = 0) -> Components:
    components = Components(features, first)
    components.fit(loader())
    return components


def test_components_are_those_of_a_singular_value_decomposition_and_of_one_length() -> None:
    rows = VECTORS[:, 0, 0].astype(np.float32)
    axes = np.linalg.svd(rows - rows.mean(axis=0))[2][:64]
    found = fitted()(torch.from_numpy(rows)[:, :, None, None])
    expected = torch.from_numpy((rows - rows.mean(axis=0)) @ axes.T)
    expected = 8 * expected / expected.norm(dim=1, keepdim=True)
    torch.testing.assert_close(found @ found.T, expected @ expected.T, atol=1e-2, rtol=0)
    assert found.norm(dim=1).tolist() == pytest.approx([8] * 90, abs=1e-4)


def test_a_part_of_the_numbers_may_be_looked_at() -> None:
    part = fitted(30, first=20)
    images = torch.from_numpy(VECTORS.astype(np.float32)).permute(0, 3, 1, 2)
    changed = images.clone()
    changed[:, :20] = changed[:, 50:] = 0
    torch.testing.assert_close(part(images), part(changed))
    assert part.size == 30


def test_heads_side_by_side_are_linear_layers() -> None:
    heads, points = LinearHeads(3, 5, 4), torch.randn(7, 5, generator=seeded())
    for head, logits in enumerate(heads(points)):
        torch.testing.assert_close(logits, points @ heads.weight[head] + heads.bias[head])


def test_a_head_that_begins_from_centres_has_squared_distances_as_logits() -> None:
    heads, points = LinearHeads(2, 5, 4), torch.randn(7, 5, generator=seeded())
    centres, scale = torch.randn(4, 5, generator=seeded(1)), torch.tensor(2.0)
    heads.begin(1, centres, scale)
    expected = -torch.cdist(points, centres).square() / scale
    torch.testing.assert_close(heads(points)[1].softmax(dim=1), expected.softmax(dim=1))


def test_the_map_begins_as_no_change() -> None:
    linear = ComponentMap(100)
    linear.components.fit(loader())
    images = next(iter(loader().ordered()))
    torch.testing.assert_close(linear(images), linear.components(images))

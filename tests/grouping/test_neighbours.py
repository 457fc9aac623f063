import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dccm.arrays import Bytes, ImageShape
from dccm.data.loader import Loader
from dccm.data.synthetic import bars
from dccm.grouping.neighbours import ClusterMemory, Pixels, nearest, principal_axes
from tests.support import few_examples, seeded

SHAPE = ImageShape(3, 8, 8)


def loader_of(images: Bytes) -> Loader:
    return Loader(images, batch_size=30, seed=0, device=torch.device("cpu"))


def floats(images: Bytes) -> torch.Tensor:
    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255


def filled(images: Bytes, n_clusters: int = 10, components: int = 6) -> ClusterMemory:
    memory = ClusterMemory(SHAPE, n_clusters, components, "none")
    memory.keep(torch.arange(len(memory.look(loader_of(images)))) % n_clusters)
    return memory


@given(count=st.integers(3, 40), size=st.integers(1, 5), k=st.integers(1, 2), seed=st.integers(0, 99))
@few_examples
def test_nearest_are_those_of_all_pairs(count: int, size: int, k: int, seed: int) -> None:
    points = torch.randn(count, size, generator=seeded(seed))
    every = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist").fill_diagonal_(torch.inf)
    places, distances = nearest(points, k)
    torch.testing.assert_close(distances, every.sort(dim=1).values[:, :k])
    torch.testing.assert_close(every.gather(1, places), distances)


def test_blocks_do_not_change_neighbours_and_shares_rise_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    points = torch.randn(50, 3, generator=seeded())
    whole = nearest(points, 4)[0]
    monkeypatch.setattr("dccm.grouping.neighbours._AT_ONCE", 350)
    shares: list[float] = []
    assert torch.equal(nearest(points, 4, shares.append)[0], whole)
    assert shares == sorted(shares)
    assert len(shares) == 8
    assert shares[-1] == 1


def test_a_point_is_never_its_own_neighbour_even_among_copies() -> None:
    places, distances = nearest(torch.ones(6, 2), 5)
    assert not (places == torch.arange(6)[:, None]).any()
    assert not distances.any()


def test_axes_span_what_the_singular_vectors_span() -> None:
    images = bars(60, side=8, channels=3).images
    pixels = Pixels(192)
    axes = principal_axes(pixels, loader_of(images), 5)
    torch.testing.assert_close(axes.T @ axes, torch.eye(5), atol=1e-5, rtol=0)
    right = torch.linalg.svd(pixels(floats(images)), full_matrices=False).Vh[:5]
    torch.testing.assert_close(axes @ axes.T, right.T @ right, atol=1e-3, rtol=0)


@pytest.mark.parametrize("scaling", ["unit", "centred"])
def test_scaled_rows_have_length_one_and_brightness_does_not_count(scaling: str) -> None:
    images = bars(20, side=8, channels=3).images // 2
    pixels = Pixels(192, scaling)  # type: ignore[arg-type]
    pixels.fit(loader_of(images))
    rows = pixels(floats(images))
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(20))
    same = torch.allclose(pixels(floats(images * 2)), rows, atol=1e-5)
    assert same == (scaling == "unit")
    assert bool(pixels.mean.any()) == (scaling == "centred")


def test_clustered_images_get_exactly_their_own_labels_back() -> None:
    images = np.zeros((40, 8, 8, 3), np.uint8)
    for number in range(40):  # One grey level of one value: in six components many of these are alike.
        images[number].reshape(-1)[number * 4] = 1
    memory = filled(images, n_clusters=40)
    labels = memory(floats(images)).argmax(dim=1)
    assert sorted(labels.tolist()) == list(range(40))
    alone = torch.cat([memory(image[None]) for image in floats(images)]).argmax(dim=1)
    assert torch.equal(alone, labels)


def test_a_new_image_gets_the_label_of_the_nearest() -> None:
    images = bars(30, side=8, channels=3).images
    memory = filled(images, components=192)
    darker = np.maximum(images, 1) - 1
    assert torch.equal(memory(floats(darker)), memory(floats(images)))


def test_copies_of_an_image_are_one_image() -> None:
    images = bars(10, side=8, channels=3).images
    memory = ClusterMemory(SHAPE, 3, 6, "none")
    assert len(memory.look(loader_of(np.concatenate([images, images[:4]])))) == 10


def test_before_anything_is_clustered_all_clusters_are_equally_likely() -> None:
    probability = ClusterMemory(SHAPE, 4, 6, "none")(torch.rand(5, 3, 8, 8))
    torch.testing.assert_close(probability, torch.full((5, 4), 0.25))


def test_a_fresh_memory_takes_any_number_of_images_but_not_another_size() -> None:
    images = bars(30, side=8, channels=3).images
    memory = filled(images)
    fresh = ClusterMemory(SHAPE, 10, 6, "none")
    fresh.load_state_dict(memory.state_dict())
    assert torch.equal(fresh(floats(images)), memory(floats(images)))
    with pytest.raises(RuntimeError, match="points"):
        ClusterMemory(SHAPE, 10, 5, "none").load_state_dict(memory.state_dict())


def test_vectors_that_differ_in_their_last_bit_are_not_taken_for_one() -> None:
    vectors = np.full((3, 1, 1, 4), 0.5, dtype=np.float16)
    vectors[1, 0, 0, 0] = np.nextafter(np.float16(0.5), np.float16(1))
    memory = ClusterMemory(ImageShape(4, 1, 1), 2, 4, "none")
    loader = Loader(vectors, batch_size=3, seed=0, device=torch.device("cpu"))
    assert len(memory.look(loader)) == 2
    memory.keep(torch.tensor([0, 1]))
    [rows] = loader.ordered()
    clusters = memory(rows).argmax(dim=1).tolist()
    assert clusters[0] == clusters[2] != clusters[1]

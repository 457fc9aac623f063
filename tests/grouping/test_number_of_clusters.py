import numpy as np
import pytest
import torch

from dccm.data.loader import Loader
from dccm.data.synthetic import bars
from dccm.grouping.number_of_clusters import (
    SPLITS,
    Curves,
    judge,
    kept_links,
    numbers_between,
    points_of,
    separation,
    smoothed,
    suggest,
)


def clouds(number: int, each: int = 24, spread: float = 0.1, seed: int = 0) -> np.ndarray:
    """Points of length one around `number` directions."""
    random = np.random.default_rng(seed)
    centres = np.linalg.qr(random.normal(size=(16, 16)))[0][:number]
    points = np.repeat(centres, each, axis=0) + spread * random.normal(size=(number * each, 16))
    found: np.ndarray = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    return found


def curves_of(*scores: float) -> Curves:
    """Curves with these scores, on which all halves agree."""
    ones = np.ones((SPLITS, len(scores)))
    return Curves(list(range(2, 2 + len(scores))), np.array(scores), ones[0], ones)


@pytest.mark.parametrize("number", [2, 5, 11])
def test_clouds_that_lie_apart_are_counted(number: int) -> None:
    points = clouds(number)
    shares: list[float] = []
    curves, found = judge(points, numbers_between(2, 12), 0, shares.append)
    suggestion = suggest(curves)
    assert suggestion.number == number
    assert suggestion.sureness == "sure"
    assert len(np.unique(found[curves.candidates.index(number)].clusters)) == number
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


def test_clouds_of_uneven_size_are_counted() -> None:
    points = np.concatenate([clouds(4, each=15)[:45], clouds(4, each=150)[450:]])
    assert suggest(judge(points, numbers_between(2, 12), 0, lambda _: None)[0]).number == 4


def test_a_single_cloud_gives_no_sure_number() -> None:
    points = np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    curves, _ = judge(points, numbers_between(2, 20), 0, lambda _: None)
    assert suggest(curves).sureness != "sure"
    assert curves.scores().max() < 0.5


def test_the_same_seed_gives_the_same_curves() -> None:
    points = clouds(3, spread=0.4)
    one, other = (judge(points, [2, 3, 4], 5, lambda _: None)[0] for _ in range(2))
    assert np.array_equal(one.scores(), other.scores())


def test_copies_of_one_image_have_no_score() -> None:
    points = np.tile(clouds(1, each=1), (60, 1))
    curves, _ = judge(points, [2, 3, 4], 0, lambda _: None)
    assert suggest(curves).sureness != "sure"


def test_links_are_those_kept_less_those_kept_by_chance() -> None:
    clusters = np.array([0, 0, 1, 1])
    neighbours = np.array([[1], [2], [3], [2]])
    assert kept_links(clusters, neighbours) == pytest.approx(3 / 4 - (1 / 4 + 1 / 4))
    assert kept_links(np.zeros(4, np.int64), neighbours) == pytest.approx(0)


def test_separation_compares_the_own_centre_with_the_next_one() -> None:
    points = np.array([[0, 0], [0, 2], [10, 1]], dtype=np.float32)
    expected = np.mean([1 - 1 / 101**0.5, 1 - 1 / 101**0.5, 1])
    assert separation(points, np.array([0, 0, 1])) == pytest.approx(expected, abs=1e-4)
    assert separation(points, np.array([0, 0, 0])) == 0


def test_a_smoothed_point_is_the_mean_of_its_neighbourhood_at_length_one() -> None:
    points = np.array([[1, 0], [0, 1], [-1, 0]], dtype=np.float32)
    found = smoothed(points, np.array([[1], [0], [2]]))
    assert np.allclose(found, [[0.5**0.5, 0.5**0.5], [0.5**0.5, 0.5**0.5], [-1, 0]])


def test_all_numbers_are_tried_up_to_forty_and_then_every_twentieth_part() -> None:
    assert numbers_between(5, 9) == [5, 6, 7, 8, 9]
    assert numbers_between(39, 45) == [39, 40, 42, 44]
    assert numbers_between(7, 7) == [7]


def test_of_nearly_equal_numbers_the_smallest_wins_and_the_other_is_second() -> None:
    assert suggest(curves_of(0.1, 0.798, 0.5, 0.8, 0.2))[:2] == (3, 5)
    assert suggest(curves_of(0.1, 0.7, 0.5, 0.8, 0.2))[:2] == (5, 3)


def test_a_single_number_has_no_runner_up() -> None:
    suggestion = suggest(curves_of(0.1, 0.5, 0.9, 0.6))
    assert suggestion == (4, 5, "sure")
    assert suggest(curves_of(0.4)) == (2, None, "sure")


def test_a_number_close_to_the_best_is_no_runner_up() -> None:
    curves = curves_of(*[0.5] * 18, 0.9, 0.6, 0.8, 0.6, 0.7, 0.5)
    assert suggest(curves)[:2] == (20, 24)


def test_halves_that_disagree_are_not_sure() -> None:
    stability = np.ones((SPLITS, 4))
    stability[: SPLITS - 1, 3] = 0
    stability[SPLITS - 1, :3] = 0
    curves = Curves([2, 3, 4, 9], np.array([0.5, 0.5, 0.5, 3.0]), np.ones(4), stability)
    assert suggest(curves).number == 9
    assert suggest(curves).sureness == "not sure"


def test_images_are_judged_in_few_components_of_length_one() -> None:
    images = bars(50, side=12).images
    points = points_of(Loader(images, batch_size=50, seed=0, device=torch.device("cpu")))
    assert points.shape == (50, 64)
    assert np.allclose(np.linalg.norm(points, axis=1), 1, atol=1e-5)

import numpy as np
import pytest

from dccm.grouping.outliers import are_far, distances, sample_of, usual_end


def crowd(count: int = 500, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = 3 * random.normal(size=(4, 32))
    return (centres[np.arange(count) % 4] + random.normal(size=(count, 32))).astype(np.float32)


def test_the_usual_end_by_hand_and_unmoved_by_a_few() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0], np.float32)
    assert usual_end(values) == pytest.approx(3 + 3 * 1.4826)
    assert usual_end(np.array([1.0, 2.0, 3.0, 4.0, 500.0], np.float32)) == usual_end(values)


def test_the_distance_is_to_the_tenth_nearest() -> None:
    points = np.eye(2, dtype=np.float32)[[0] * 10 + [1] * 2]
    assert distances(np.array([[5.0, 0.0], [0.0, 2.0]], np.float32), points) == pytest.approx([0, np.sqrt(2)], abs=1e-3)


def test_strangers_are_found_and_hardly_any_other() -> None:
    strangers = np.random.default_rng(1).normal(size=(12, 32)).astype(np.float32)
    everything = np.concatenate([crowd(), strangers])
    far = are_far(everything, sample_of(everything, seed=0))
    assert far[500:].mean() > 0.8
    assert far[:500].mean() < 0.02


def test_new_strangers_are_found_and_new_members_are_not() -> None:
    sample = sample_of(crowd(), seed=0)
    assert are_far(np.random.default_rng(1).normal(size=(20, 32)).astype(np.float32), sample).mean() > 0.8
    assert are_far(crowd(1000)[500:], sample).mean() < 0.05


def test_a_sample_is_bounded_and_copies_of_one_image_are_not_odd() -> None:
    assert len(sample_of(np.ones((3000, 8), np.float32), seed=0).points) == 2000
    assert len(sample_of(np.ones((30, 1 << 20), np.float32), seed=0).points) == 4
    same = np.ones((50, 8), np.float32)
    assert not are_far(same, sample_of(same, seed=0)).any()

import numpy as np
import pytest

from dccm.grouping.agreement import OTHERS, fit_temperature, nearest_mean, parts, tempered, votes_of_others


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    scaled: np.ndarray = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return scaled


def blobs(spread: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    clusters = np.arange(600) % 3
    centres = random.normal(size=(3, 64))
    return (centres[clusters] + spread * random.normal(size=(600, 64))).astype(np.float32), clusters


def test_a_temperature_by_hand() -> None:
    assert tempered(np.array([[0.8, 0.2]], np.float32), 2.0) == pytest.approx(np.array([[2 / 3, 1 / 3]]), abs=1e-6)


def test_a_temperature_of_one_changes_nothing_and_the_largest_stays_at_any() -> None:
    probabilities = softmax(np.random.default_rng(0).normal(size=(50, 5)))
    assert tempered(probabilities, 1.0) == pytest.approx(probabilities, abs=1e-6)
    for temperature in (0.05, 20.0):
        found = tempered(probabilities, temperature)
        assert np.array_equal(found.argmax(axis=1), probabilities.argmax(axis=1))
        assert found.sum(axis=1) == pytest.approx(1, abs=1e-5)


def test_the_temperature_that_votes_were_drawn_with_is_found() -> None:
    random = np.random.default_rng(0)
    logits = 3 * random.normal(size=(4000, 4))
    drawn = [random.choice(4, p=row / row.sum()) for row in softmax(logits / 2.5).astype(float)]
    assert fit_temperature(softmax(logits), np.eye(4)[drawn]) == pytest.approx(2.5, rel=0.08)


def test_probabilities_of_zero_and_one_get_the_share_that_agrees() -> None:
    sure = np.eye(4, dtype=np.float32)[np.zeros(1000, int)]
    votes = np.eye(4)[(np.arange(1000) < 100).astype(int)]
    assert tempered(sure, fit_temperature(sure, votes))[0, 0] == pytest.approx(0.9, abs=0.01)


def test_each_of_the_others_sees_features_that_the_next_one_does_not() -> None:
    seen = parts(1280, seed=0)
    assert len(seen) == OTHERS
    assert sorted(np.concatenate(seen)) == list(range(1280))
    assert [len(part) for part in parts(64, seed=0)] == [16] * OTHERS
    assert [len(part) for part in parts(3, seed=0)] == [3] * OTHERS


def test_the_nearest_mean_by_hand() -> None:
    known = np.array([[1.0, 0.1], [1.0, 0.0], [0.0, 1.0], [0.1, 1.0]], np.float32)
    asked = np.array([[1.0, 0.3], [0.3, 1.0]], np.float32)
    assert nearest_mean(known, asked, np.array([0, 0, 2, 2]), 3).tolist() == [0, 2]


def agreement(spread: float) -> float:
    features, clusters = blobs(spread)
    votes = sum(votes_of_others(features, [features], clusters, 3, seed=0)) / OTHERS
    return float(np.asarray(votes)[np.arange(600), clusters].mean())


def test_others_agree_the_less_the_more_clusters_overlap() -> None:
    clear, blurred, mixed = agreement(0.2), agreement(1.0), agreement(3.0)
    assert clear > 0.99
    assert clear > blurred > mixed
    assert mixed < 0.8

import numpy as np
import pytest

from dccm.evaluation.calibration import calibration_error, confidence_scores, reliability, right_ones, risk_coverage
from dccm.evaluation.metrics import accuracy

NONE = np.zeros(4, bool)


def test_right_ones_by_hand_also_with_more_clusters_than_classes() -> None:
    assert right_ones(["a", "a", "b", "b"], [1, 1, 0, 1]).tolist() == [True, True, True, False]
    assert right_ones([0, 0, 0, 1], [0, 0, 5, 2]).tolist() == [True, True, False, True]


def test_their_share_is_the_accuracy() -> None:
    random = np.random.default_rng(0)
    true, clusters = random.integers(5, size=300), random.integers(7, size=300)
    assert right_ones(true, clusters).mean() == pytest.approx(accuracy(true, clusters))


def test_the_calibration_error_by_hand() -> None:
    confidences = np.array([0.95, 0.95, 0.5, 0.5])
    assert calibration_error(confidences, np.array([True, False, True, False])) == pytest.approx(0.225)
    assert calibration_error(np.ones(4), ~NONE) == 0


def test_confidences_that_hold_their_word_have_hardly_an_error() -> None:
    random = np.random.default_rng(0)
    confidences = random.uniform(size=20_000)
    right = random.uniform(size=20_000) < confidences
    assert calibration_error(confidences, right) < 0.02
    assert calibration_error(confidences**0.25, right) > 0.2
    assert sum(part.images for part in reliability(confidences, right)) == 20_000


def test_the_risk_grows_when_less_sure_images_are_covered() -> None:
    right = np.array([True, False, True, True])
    assert risk_coverage(np.array([0.9, 0.1, 0.8, 0.7]), right).tolist() == [0, 0, 0, 0.25]


def test_rejected_images_are_counted_out_by_name_only() -> None:
    true, clusters = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0])
    confidences = np.array([0.9, 0.8, 0.7, 0.2])
    found = confidence_scores(true, clusters, confidences, confidences < 0.5)
    assert found["coverage"] == 0.75
    assert found["acc_kept"] == 1.0
    assert "coverage" not in confidence_scores(true, clusters, confidences, NONE)
    assert confidence_scores(true, clusters, np.full(4, np.nan), NONE) == {}

import math

import numpy as np
import pytest

from dccm.evaluation.unlabelled import beyond_chance, by_cluster, found_again, silhouettes, sureness_and_balance


def whole(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def test_kappa_by_hand() -> None:
    # 3 of 4 agree; chance gives 0.5 * 0.75 + 0.5 * 0.25 = 0.5.
    assert beyond_chance(whole(0, 0, 1, 1), whole(0, 0, 0, 1), 2) == pytest.approx((0.75 - 0.5) / 0.5)


def test_agreement_that_one_cluster_forces_counts_nothing() -> None:
    assert beyond_chance(whole(1, 1, 1), whole(1, 1, 1), 3) == 0
    assert beyond_chance(whole(0, 1, 2), whole(0, 1, 2), 3) == 1


def test_silhouette_by_hand_on_a_circle() -> None:
    # Directions: two at 0 and 90 degrees in one cluster, one at 180 in the other.
    features = np.array([[2, 0], [0, 5], [-1, 0]], np.float32)
    found = silhouettes(features, whole(0, 0, 1))
    assert found is not None
    near, far = math.sqrt(2), 2.0
    assert found == pytest.approx([(far - near) / far, 0, 0], abs=1e-6)


@pytest.mark.parametrize("clusters", [(0, 0, 0), (0, 1, 2)])
def test_silhouettes_need_something_to_compare(clusters: tuple[int, ...]) -> None:
    assert silhouettes(np.eye(3, dtype=np.float32), whole(*clusters)) is None


def test_sure_and_balanced_predictions_tell_all_and_even_ones_nothing() -> None:
    assert sureness_and_balance(np.eye(4, dtype=np.float32)) == pytest.approx((1, 1))
    assert sureness_and_balance(np.full((5, 4), 0.25, np.float32)) == pytest.approx((0, 1))
    collapsed = np.eye(4, dtype=np.float32)[[0, 0, 0]]
    assert sureness_and_balance(collapsed) == pytest.approx((1, 0))


def test_sureness_and_balance_by_hand() -> None:
    sure, balanced = sureness_and_balance(np.array([[1, 0], [0.5, 0.5]], np.float32))
    assert sure == pytest.approx(0.5)
    assert balanced == pytest.approx(-(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)))


def test_means_by_cluster_leave_empty_ones_open() -> None:
    assert by_cluster(np.array([1.0, 0.0, 0.5]), whole(0, 0, 2), 3) == [0.5, None, 0.5]


def test_a_cluster_is_found_again_as_far_as_the_other_run_has_it() -> None:
    found = found_again(whole(0, 0, 1, 1, 1, 1), whole(5, 5, 7, 7, 7, 5), 3)
    assert found == [pytest.approx(2 / 3), pytest.approx(3 / 4), None]

import math
from typing import Any

import pytest

from dccm.collapse import Health, warnings


def healthy(**changes: Any) -> Health:
    return Health([10, 12, 9, 11], 0.4, 0.2)._replace(**changes)


def test_a_healthy_run_is_not_warned_about() -> None:
    assert warnings(healthy(), epoch=50) == []


def test_entropy_is_one_for_equal_sizes_and_zero_for_a_single_cluster() -> None:
    assert healthy(cluster_sizes=[5, 5, 5]).entropy == pytest.approx(1)
    assert healthy(cluster_sizes=[0, 15, 0]).entropy == 0


def test_entropy_of_a_case_by_hand() -> None:
    # Shares 1/2, 1/4, 1/4: (0.5 ln 2 + 0.5 ln 4) / ln 3.
    assert healthy(cluster_sizes=[2, 1, 1]).entropy == pytest.approx(1.5 * math.log(2) / math.log(3))


@pytest.mark.parametrize(
    ("changes", "epoch", "words"),
    [
        ({"cluster_sizes": [14, 14, 14, 0]}, 1, "1 of 4 clusters hold no image. Ask for fewer clusters"),
        ({"cluster_sizes": [30, 4, 4, 4]}, 1, "One cluster holds 71% of the images. Try --set logit_norm=balanced"),
        ({"linked_share": 0.97}, 1, "97% of all pairs are linked"),
        ({"confident_share": 0.0}, 5, "No image is confident after 5 epochs"),
    ],
)
def test_each_way_to_degenerate_is_said_with_a_way_out(changes: dict[str, Any], epoch: int, words: str) -> None:
    found = warnings(healthy(**changes), epoch)
    assert len(found) == 1
    assert words in found[0]


def test_a_young_run_may_be_without_confident_images() -> None:
    assert warnings(healthy(confident_share=0.0), epoch=4) == []


def test_two_clusters_may_be_uneven() -> None:
    assert warnings(healthy(cluster_sizes=[30, 10]), epoch=9) == []

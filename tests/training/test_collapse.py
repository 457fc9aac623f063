import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dccm.training.collapse import Health, cluster_information, warnings
from tests.support import few_examples, one_hot, seeded


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
        ({"cluster_sizes": [30, 4, 4, 4]}, 1, "One cluster holds 71% of the images. Try logit_norm = balanced"),
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


def test_information_worked_by_hand() -> None:
    # Sure and balanced over four clusters: log 4. Sure, but all in one cluster: nothing. Unsure of everything: nothing.
    assert cluster_information(one_hot([0, 1, 2, 3], 4)).item() == pytest.approx(math.log(4), abs=1e-6)
    assert cluster_information(one_hot([2, 2, 2, 2], 4)).item() == pytest.approx(0, abs=1e-6)
    assert cluster_information(torch.full((4, 4), 0.25)).item() == pytest.approx(0, abs=1e-6)
    # Half of the images sure of one of two clusters, half unsure: log 2 - log 2 / 2.
    half = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    assert cluster_information(half).item() == pytest.approx(math.log(2) / 2, abs=1e-6)


@few_examples
@given(seed=st.integers(0, 10_000))
def test_information_is_bounded_and_blind_to_names_and_order(seed: int) -> None:
    prediction = torch.softmax(3 * torch.randn(20, 5, generator=seeded(seed)), dim=1)
    found = cluster_information(prediction)
    assert 0 <= found <= math.log(5)
    torch.testing.assert_close(cluster_information(prediction.flip(0).flip(1)), found)

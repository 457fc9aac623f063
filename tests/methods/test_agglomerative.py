import numpy as np
import pytest

from dccm.data.synthetic import bars
from dccm.evaluation.metrics import accuracy
from dccm.methods.agglomerative import join_mutual, mutual_neighbours
from dccm.runs.config import make_config
from dccm.runs.fitting import fit
from tests.methods.test_spectral import line


def lists(length: int, *points: float) -> tuple[np.ndarray, np.ndarray]:
    places, distances = line(*points)
    return places[:, :length], distances[:, :length].astype(np.float32)


def test_mutual_neighbourhood_values_worked_by_hand() -> None:
    # 0 - 1 - 3: the middle is first to the left one and that to it; the right one is only second to the middle.
    one, other, value, distance = mutual_neighbours(*lists(2, 0.0, 1.0, 3.0))
    assert sorted(zip(one.tolist(), other.tolist(), value.tolist(), distance.tolist())) == [
        (0, 1, 2, 1.0),
        (0, 2, 4, 3.0),
        (1, 2, 3, 2.0),
    ]


def test_a_pair_of_which_only_one_lists_the_other_has_no_value() -> None:
    one, other, *_ = mutual_neighbours(*lists(1, 0.0, 1.0, 3.0))
    assert (one.tolist(), other.tolist()) == ([0], [1])


def test_value_comes_before_distance_and_distance_decides_between_equals() -> None:
    # The wide pair (20, 29) is nearest to each other, so it is joined before 2 joins the narrow pair at distance 2.
    groups = join_mutual(*lists(3, 0.0, 1.0, 3.0, 20.0, 29.0), clusters=3)
    assert len({groups[0], groups[1]}) == len({groups[3], groups[4]}) == 1
    assert groups[2] not in (groups[0], groups[3])
    closer = join_mutual(*lists(3, 0.0, 1.0, 3.0, 20.0, 29.0), clusters=4)
    assert closer[0] == closer[1]
    assert closer[3] != closer[4]


def test_short_lists_leave_more_groups_than_wanted() -> None:
    assert len(set(join_mutual(*lists(1, 0.0, 1.0, 10.0, 11.0), clusters=1).tolist())) == 2


@pytest.mark.parametrize("linkage", ["mutual", "average", "ward"])
def test_there_are_as_many_clusters_as_wanted_and_groups_far_apart_are_found(linkage: str) -> None:
    random, labels = np.random.default_rng(0), np.arange(90) % 3
    images = random.integers(0, 60, (90, 8, 8, 1), dtype=np.uint8)
    images[labels == 0, :4] += 150
    images[labels == 1, 4:] += 150
    images[labels == 2, :, :4] += 150
    config = make_config("agglomerative", overrides={"n_clusters": 3, "linkage": linkage, "neighbours": 4})
    assert accuracy(labels, fit(images, config).model.predict_proba(images).argmax(axis=1)) == 1
    seven = make_config("agglomerative", overrides={"n_clusters": 7, "linkage": linkage, "neighbours": 4})
    assert len(np.unique(fit(images, seven).model.predict_proba(images).argmax(axis=1))) == 7


def test_copies_are_in_one_cluster_and_do_not_disturb() -> None:
    images = np.repeat(bars(6, side=8).images, 20, axis=0)
    labels = fit(images, make_config("agglomerative", overrides={"n_clusters": 6})).model.predict_proba(images)
    assert np.array_equal(labels.argmax(axis=1).reshape(6, 20), labels.argmax(axis=1)[::20, None].repeat(20, axis=1))
    assert len(np.unique(labels.argmax(axis=1))) == 6

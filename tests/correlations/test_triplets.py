import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dccm.correlations.pseudo_graph import pseudo_graph, similarity
from dccm.correlations.triplets import (
    PairStrategy,
    draw_pairs,
    joined,
    negative_partners,
    own_pairs,
    positive_partner,
    top_pairs,
)
from tests.support import few_examples, graph_with_links, one_hot, random_prediction, random_similarity, seeded

SEEDS = st.integers(0, 10_000)
STRATEGIES: list[PairStrategy] = ["nearest+random", "nearest+farthest", "random+random", "top_n+random"]


def mined(size: int, seed: int, threshold: float = 0.5) -> tuple[Tensor, Tensor]:
    """Similarities that all differ, and the graph at a threshold."""
    pairs = random_similarity(size, seed)
    return pairs, pseudo_graph(pairs, threshold)


# Positive partners


def test_positive_partner_is_linked_and_is_not_the_sample_itself() -> None:
    graph = graph_with_links((0, 2), (1, 4), size=6)
    for nearest in (True, False):
        found = positive_partner(random_similarity(6), graph, nearest, seeded())
        assert found.anchor.tolist() == [0, 1, 2, 3, 4, 5]
        assert found.partner.tolist() == [2, 4, 0, 3, 1, 5]  # 3 and 5 have no other: their own
        assert found.weight.tolist() == [1] * 6


@few_examples
@given(size=st.integers(2, 12), seed=SEEDS, threshold=st.floats(0, 1))
def test_nearest_positive_partner_is_the_most_similar_linked_other(size: int, seed: int, threshold: float) -> None:
    pairs, graph = mined(size, seed, threshold)
    found = positive_partner(pairs, graph, True, seeded(seed))
    for sample, partner in enumerate(found.partner.tolist()):
        others = [other for other in range(size) if other != sample and graph[sample, other] > 0]
        assert partner == max(others, key=lambda other: float(pairs[sample, other]), default=sample)


@few_examples
@given(size=st.integers(2, 12), seed=SEEDS, threshold=st.floats(0, 1))
def test_random_positive_partner_is_a_linked_other_or_the_sample_that_has_none(
    size: int, seed: int, threshold: float
) -> None:
    pairs, graph = mined(size, seed, threshold)
    found = positive_partner(pairs, graph, False, seeded(seed))
    for sample, partner in enumerate(found.partner.tolist()):
        others = {other for other in range(size) if other != sample and graph[sample, other] > 0}
        assert partner in (others or {sample})


def test_random_positive_partner_reaches_every_linked_other_about_equally_often() -> None:
    graph = graph_with_links((0, 1), (0, 2), (0, 3), size=5)
    generator = seeded()
    drawn = [positive_partner(random_similarity(5), graph, False, generator).partner[0].item() for _ in range(600)]
    assert set(drawn) == {1, 2, 3}
    assert min(drawn.count(other) for other in (1, 2, 3)) > 150


@pytest.mark.parametrize("nearest", [True, False])
def test_among_equal_linked_others_the_generator_decides(nearest: bool) -> None:
    generator = seeded()
    draws = torch.stack(
        [positive_partner(torch.ones(6, 6), torch.ones(6, 6), nearest, generator).partner for _ in range(100)]
    )
    for sample in range(6):
        assert set(draws[:, sample].tolist()) == set(range(6)) - {sample}


def test_nearest_draws_only_among_the_others_that_tie_for_nearest() -> None:
    pairs = torch.tensor([[1.0, 0.9, 0.9, 0.8], [0.9, 1.0, 0.7, 0.7], [0.9, 0.7, 1.0, 0.7], [0.8, 0.7, 0.7, 1.0]])
    generator = seeded()
    drawn = {positive_partner(pairs, torch.ones(4, 4), True, generator).partner[0].item() for _ in range(50)}
    assert drawn == {1, 2}


# Negative partners


@few_examples
@given(size=st.integers(2, 12), seed=SEEDS, threshold=st.floats(0, 1), count=st.integers(1, 4), farthest=st.booleans())
def test_negative_partners_are_distinct_and_unlinked_and_as_many_as_exist(
    size: int, seed: int, threshold: float, count: int, farthest: bool
) -> None:
    pairs, graph = mined(size, seed, threshold)
    found = negative_partners(pairs, graph, count, farthest, seeded(seed))
    for sample in range(size):
        real = (found.anchor == sample) & (found.weight == 1)
        partners = found.partner[real].tolist()
        unlinked = [other for other in range(size) if graph[sample, other] == 0]
        assert len(set(partners)) == len(partners) == min(count, len(unlinked))
        assert set(partners) <= set(unlinked)
    assert set(found.weight.tolist()) <= {0.0, 1.0}
    assert found.partner.min() >= 0
    assert found.partner.max() < size


@few_examples
@given(size=st.integers(2, 12), seed=SEEDS, threshold=st.floats(0, 1), count=st.integers(1, 4))
def test_farthest_negative_partners_are_the_least_similar_unlinked_ones(
    size: int, seed: int, threshold: float, count: int
) -> None:
    pairs, graph = mined(size, seed, threshold)
    found = negative_partners(pairs, graph, count, True, seeded(seed))
    for sample in range(size):
        real = (found.anchor == sample) & (found.weight == 1)
        unlinked = [other for other in range(size) if graph[sample, other] == 0]
        expected = sorted(unlinked, key=lambda other: float(pairs[sample, other]))[:count]
        assert found.partner[real].tolist() == expected


@pytest.mark.parametrize("farthest", [True, False])
def test_among_equal_unlinked_ones_the_generator_decides(farthest: bool) -> None:
    generator = seeded()
    draws = torch.stack(
        [negative_partners(torch.eye(6), torch.eye(6), 1, farthest, generator).partner for _ in range(100)]
    )
    for sample in range(6):
        assert set(draws[:, sample].tolist()) == set(range(6)) - {sample}


def test_random_negatives_pay_no_heed_to_similarity() -> None:
    pairs = torch.tensor([[1.0, 0.0, 0.1, 0.4], [0.0, 1.0, 0.2, 0.2], [0.1, 0.2, 1.0, 0.2], [0.4, 0.2, 0.2, 1.0]])
    generator = seeded()
    drawn = [negative_partners(pairs, torch.eye(4), 1, False, generator).partner[0].item() for _ in range(600)]
    assert min(drawn.count(other) for other in (1, 2, 3)) > 150


@pytest.mark.parametrize("farthest", [True, False])
@pytest.mark.parametrize("size", [2, 5])
def test_batch_in_which_every_pair_is_linked_has_no_negative_pair(size: int, farthest: bool) -> None:
    found = negative_partners(torch.ones(size, size), torch.ones(size, size), 2, farthest, seeded())
    assert found.weight.sum() == 0


# The most similar pairs of the batch


@few_examples
@given(size=st.integers(2, 12), seed=SEEDS, threshold=st.floats(0, 1))
def test_top_pairs_are_the_most_similar_linked_pairs_of_the_batch_and_own_pairs_fill_up(
    size: int, seed: int, threshold: float
) -> None:
    pairs, graph = mined(size, seed, threshold)
    found = top_pairs(pairs, graph, seeded(seed))
    linked = [(i, j) for i in range(size) for j in range(i + 1, size) if graph[i, j] > 0]
    best = sorted(linked, key=lambda pair: -float(pairs[pair]))[:size]
    chosen = [tuple(sorted(pair)) for pair in zip(found.anchor.tolist(), found.partner.tolist(), strict=True)]
    assert len(chosen) == size
    assert {pair for pair in chosen if pair[0] != pair[1]} == set(best)
    own = [pair for pair in chosen if pair[0] == pair[1]]
    assert len(set(own)) == len(own) == size - len(best)
    assert found.weight.tolist() == [1] * size


def test_top_pairs_worked_by_hand() -> None:
    # Six pairs, four places: 0.9, 0.8, 0.7 are linked, 0.6 is linked, 0.95 is not.
    pairs = torch.eye(4)
    for (i, j), value in {(0, 1): 0.9, (0, 2): 0.8, (0, 3): 0.7, (1, 2): 0.6, (1, 3): 0.95, (2, 3): 0.5}.items():
        pairs[i, j] = pairs[j, i] = value
    graph = torch.ones(4, 4)
    graph[1, 3] = graph[3, 1] = 0
    found = top_pairs(pairs, graph, seeded())
    chosen = {frozenset(pair) for pair in zip(found.anchor.tolist(), found.partner.tolist(), strict=True)}
    assert chosen == {frozenset(pair) for pair in [(0, 1), (0, 2), (0, 3), (1, 2)]}


def test_among_equally_similar_pairs_the_generator_decides_which_are_taken() -> None:
    generator = seeded()
    seen = set()
    for _ in range(100):
        found = top_pairs(torch.ones(6, 6), torch.ones(6, 6), generator)
        assert (found.anchor != found.partner).all()
        seen |= {frozenset(pair) for pair in zip(found.anchor.tolist(), found.partner.tolist(), strict=True)}
    assert len(seen) == 15


# Own pairs, joined pairs, the four strategies


def test_own_pairs_are_each_sample_with_itself() -> None:
    found = own_pairs(3, torch.device("cpu"))
    assert [part.tolist() for part in found] == [[0, 1, 2], [0, 1, 2], [1, 1, 1]]


def test_joined_pairs_are_one_list_after_the_other() -> None:
    graph = graph_with_links((0, 1), size=3)
    both = joined(own_pairs(3, torch.device("cpu")), negative_partners(torch.eye(3), graph, 1, True, seeded()))
    assert both.anchor.tolist() == [0, 1, 2, 0, 1, 2]
    assert both.partner.tolist()[:5] == [0, 1, 2, 2, 2]
    assert both.weight.tolist() == [1] * 6


def test_strategies_follow_their_names() -> None:
    pairs, graph = mined(12, seed=1)

    def same(first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> bool:
        return all(torch.equal(one, other) for one, other in zip(first, second, strict=True))

    def unordered(drawn: tuple[Tensor, ...]) -> set[tuple[int, ...]]:
        return {tuple(sorted(pair)) for pair in torch.stack(drawn[:2]).T.tolist()}

    # Nearest, farthest and top pairs leave nothing to chance where no similarities tie; only who of a top pair is the
    # anchor is drawn.
    nearest = positive_partner(pairs, graph, True, seeded(5))
    farthest = negative_partners(pairs, graph, 2, True, seeded(6))
    top = top_pairs(pairs, graph, seeded(7))
    drawn = {strategy: draw_pairs(pairs, graph, strategy, 2, seeded()) for strategy in STRATEGIES}
    assert same(drawn["nearest+random"][0], nearest)
    assert same(drawn["nearest+farthest"][0], nearest)
    assert same(drawn["nearest+farthest"][1], farthest)
    assert unordered(drawn["top_n+random"][0]) == unordered(top)
    assert not same(drawn["random+random"][0], nearest)
    for strategy in ("nearest+random", "random+random", "top_n+random"):
        assert not same(drawn[strategy][1], farthest)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("size", [2, 7])
@pytest.mark.parametrize("kind", ["one-hot, all different", "identical", "uniform", "random"])
def test_pairs_are_valid_at_extremes(strategy: PairStrategy, size: int, kind: str) -> None:
    prediction = {
        "one-hot, all different": one_hot(list(range(size)), size),
        "identical": one_hot([0] * size, size),
        "uniform": torch.full((size, size), 1 / size),
        "random": random_prediction(size, size),
    }[kind]
    pairs = similarity(prediction)
    graph = pseudo_graph(pairs, 0.95)
    positive, negative = draw_pairs(pairs, graph, strategy, 2, seeded())
    assert len(positive.anchor) == size
    assert len(negative.anchor) == size * min(2, size - 1)
    assert (graph[positive.anchor, positive.partner] == 1).all()
    real = negative.weight == 1
    assert (graph[negative.anchor[real], negative.partner[real]] == 0).all()
    assert real.any() == bool((graph == 0).any())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_same_generator_seed_gives_the_same_pairs(strategy: PairStrategy) -> None:
    pairs = similarity(one_hot([0, 1, 0, 2, 0, 1, 1, 2], 3))
    first, second = (draw_pairs(pairs, pairs, strategy, 1, seeded(3)) for _ in range(2))
    for one, other in zip((*first[0], *first[1]), (*second[0], *second[1]), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pairs_of_a_batch_of_512_take_less_than_a_second(strategy: PairStrategy) -> None:
    pairs = similarity(random_prediction(512, 10))
    graph = pseudo_graph(pairs, 0.95)
    started = time.monotonic()
    draw_pairs(pairs, graph, strategy, 2, seeded())
    assert time.monotonic() - started < 1

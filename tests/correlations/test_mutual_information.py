import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dccm.correlations.mutual_information import jsd_mutual_information, triplet_information_loss
from dccm.correlations.pseudo_graph import pseudo_graph, similarity
from dccm.correlations.triplets import Pairs, draw_pairs
from dccm.networks.critic import Critic
from tests.support import few_examples, one_hot, permutation, seeded

SEEDS = st.integers(0, 10_000)
LN3 = math.log(3)


def pairs(anchor: list[int], partner: list[int], weight: list[float] | None = None) -> Pairs:
    ones = [1.0] * len(anchor)
    return Pairs(torch.tensor(anchor), torch.tensor(partner), torch.tensor(ones if weight is None else weight))


def critic_of_first_entries(of_map: float, of_feature: float) -> Critic:
    """A critic whose score is the positive part of both first entries' weighted sum."""
    critic = Critic(2, 2)
    with torch.no_grad():
        for parameter in critic.parameters():
            parameter.zero_()
        critic.of_map.weight[0, 0] = of_map
        critic.of_feature.weight[0, 0] = of_feature
        critic.middle.weight[0, 0] = 1
        critic.score.weight[0, 0] = 1
    return critic


def test_mutual_information_worked_by_hand() -> None:
    # softplus(-ln 3) = ln(4/3) and softplus(ln 3) = ln 4.
    scores = torch.full((2, 3), LN3)
    assert jsd_mutual_information(scores, scores).item() == pytest.approx(-math.log(4 / 3) - math.log(4), abs=1e-6)
    # A critic that knows nothing scores 0: -2 ln 2.
    nothing = torch.zeros(2, 3)
    assert jsd_mutual_information(nothing, nothing).item() == pytest.approx(-2 * math.log(2), abs=1e-6)


def test_weighted_mutual_information_worked_by_hand() -> None:
    # Only the first joint pair counts, ln(4/3); of the marginal pairs the last two, ln 4 and ln 2, in the mean.
    joint = torch.tensor([[LN3, LN3], [-9.0, 7.0]])
    marginal = torch.tensor([[5.0, 5.0], [LN3, LN3], [0.0, 0.0]])
    found = jsd_mutual_information(joint, marginal, torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0, 1.0]))
    assert found.item() == pytest.approx(-math.log(4 / 3) - (math.log(4) + math.log(2)) / 2, abs=1e-6)


def test_side_without_any_weight_counts_as_zero() -> None:
    scores = torch.full((2, 3), LN3)
    ones, zeros = torch.ones(2), torch.zeros(2)
    assert jsd_mutual_information(scores, scores, ones, zeros).item() == pytest.approx(-math.log(4 / 3), abs=1e-6)
    assert jsd_mutual_information(scores, scores, zeros, ones).item() == pytest.approx(-math.log(4), abs=1e-6)
    assert jsd_mutual_information(scores, scores, zeros, zeros).item() == 0


@few_examples
@given(seed=SEEDS, scale=st.sampled_from([0.1, 3.0, 1e4]))
def test_mutual_information_is_bounded_by_zero_and_blind_to_the_order_of_pairs(seed: int, scale: float) -> None:
    joint, marginal = (torch.randn(6, 4, generator=seeded(seed + more)) * scale for more in (0, 1))
    found = jsd_mutual_information(joint, marginal)
    order = permutation(6, seed)
    assert found.isfinite()
    assert found <= 0
    torch.testing.assert_close(jsd_mutual_information(joint[order], marginal[order]), found)
    torch.testing.assert_close(jsd_mutual_information(joint, marginal, torch.ones(6), torch.ones(6)), found)
    # Scores that tell the two apart better never give less.
    assert jsd_mutual_information(joint + 1, marginal - 1) >= found


def test_perfect_critic_reaches_the_bound_with_finite_gradients() -> None:
    joint, marginal = torch.full((2, 2), 1e4, requires_grad=True), torch.full((2, 2), -1e4, requires_grad=True)
    found = jsd_mutual_information(joint, marginal)
    found.backward()
    assert found.item() == 0
    for scores in (joint, marginal):
        assert scores.grad is not None
        assert scores.grad.isfinite().all()


MAPS = torch.tensor([[[0.0, 9.0]], [[LN3, 9.0]], [[2.0, 9.0]]])
"""Three maps of one position; the first entry is what the critic looks at."""
FEATURES = torch.tensor([[LN3, 9.0], [0.0, 9.0], [0.5, 9.0]])


def test_partner_gives_the_map_and_anchor_gives_the_feature() -> None:
    # By the map alone: the positive pair has partner 1, score ln 3; the negative pair partner 0, score 0.
    by_map = triplet_information_loss(critic_of_first_entries(1, 0), MAPS, FEATURES, pairs([0], [1]), pairs([2], [0]))
    assert by_map.item() == pytest.approx(math.log(4 / 3) + math.log(2), abs=1e-6)
    # By the feature alone: the positive pair has anchor 0, score ln 3; the negative pair anchor 1, score 0.
    by_feature = triplet_information_loss(
        critic_of_first_entries(0, 1), MAPS, FEATURES, pairs([0], [2]), pairs([1], [2])
    )
    assert by_feature.item() == pytest.approx(math.log(4 / 3) + math.log(2), abs=1e-6)


def test_information_loss_is_the_negative_mutual_information_over_its_pairs() -> None:
    critic = Critic(5, 4)
    positions, features = torch.randn(6, 7, 5, generator=seeded()), torch.randn(6, 4, generator=seeded(1))
    positive = pairs([0, 1, 2], [3, 4, 5])
    negative = pairs([0, 0, 1, 1], [1, 2, 3, 4], weight=[1.0, 0.0, 1.0, 1.0])
    joint = critic(positions, features, positive.partner, positive.anchor)
    marginal = critic(positions, features, negative.partner, negative.anchor)
    expected = -jsd_mutual_information(joint, marginal, positive.weight, negative.weight)
    found = triplet_information_loss(critic, positions, features, positive, negative)
    torch.testing.assert_close(found, expected)


def test_loss_and_gradient_in_pieces_are_those_of_the_whole() -> None:
    critic = Critic(5, 4).double()
    positions = torch.randn(9, 300, 5, generator=seeded(), dtype=torch.double).requires_grad_()
    features = torch.randn(9, 4, generator=seeded(1), dtype=torch.double).requires_grad_()
    positive, negative = (
        Pairs(permutation(9, seed), permutation(9, seed + 2), torch.rand(9, generator=seeded(seed)).round().double())
        for seed in (3, 4)
    )
    wanted = (positions, features, *critic.parameters())
    joint = critic(positions, features, positive.partner, positive.anchor)
    marginal = critic(positions, features, negative.partner, negative.anchor)
    expected = -jsd_mutual_information(joint, marginal, positive.weight, negative.weight)
    found = triplet_information_loss(critic, positions, features, positive, negative)
    torch.testing.assert_close(found, expected)
    # A factor on the loss is a factor on its gradient.
    torch.testing.assert_close(torch.autograd.grad(0.1 * found, wanted), torch.autograd.grad(0.1 * expected, wanted))


def test_loss_and_gradient_in_bfloat16_are_as_near_to_the_exact_ones_as_autograd_brings_them() -> None:
    torch.manual_seed(0)
    critic = Critic(5, 4)
    with torch.no_grad():
        for parameter in critic.parameters():
            parameter.mul_(3)  # Scores that differ: positive and negative pairs no longer cancel each other.
    positions = torch.randn(9, 300, 5, generator=seeded()).requires_grad_()
    features = torch.randn(9, 4, generator=seeded(1)).requires_grad_()
    everyone, shifted = list(range(9)), [*range(1, 9), 0]
    positive, negative = pairs(everyone, everyone), pairs(everyone, shifted)
    wanted = (positions, features, *critic.parameters())

    def in_pieces() -> Tensor:
        return triplet_information_loss(critic, positions, features, positive, negative)

    def as_a_whole() -> Tensor:
        joint = critic(positions, features, positive.partner, positive.anchor)
        marginal = critic(positions, features, negative.partner, negative.anchor)
        return -jsd_mutual_information(joint, marginal)

    def found(loss_of: Callable[[], Tensor], lower: bool) -> tuple[Tensor, ...]:
        with torch.autocast("cpu", torch.bfloat16, enabled=lower):
            loss = loss_of()
        return loss, *torch.autograd.grad(loss, wanted)

    exact, usual, ours = found(as_a_whole, False), found(as_a_whole, True), found(in_pieces, True)
    for expected, by_autograd, value in zip(exact, usual, ours, strict=True):
        assert value.dtype == torch.float32
        error, allowed = ((found - expected).norm() / expected.norm() for found in (value, by_autograd))
        assert 0 < error.item() < max(0.01, 1.5 * allowed.item())


def test_pairs_that_are_there_twice_count_twice_but_are_scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    critic = Critic(5, 4)
    positions, features = torch.randn(4, 3, 5, generator=seeded()), torch.randn(4, 4, generator=seeded(1))
    twice = pairs([0, 1, 2, 3, 0, 2], [0, 1, 2, 3, 0, 1])
    negative = pairs([0, 1, 0], [3, 3, 0], weight=[1.0, 0.0, 1.0])  # The last one is a positive pair too.
    joint = critic(positions, features, twice.partner, twice.anchor)
    marginal = critic(positions, features, negative.partner, negative.anchor)
    expected = -jsd_mutual_information(joint, marginal, twice.weight, negative.weight)
    scored = []
    addmv = torch.addmv

    def counting(bias: Tensor, rows: Tensor, vector: Tensor) -> Tensor:
        scored.append(len(rows))
        return addmv(bias, rows, vector)

    monkeypatch.setattr(torch, "addmv", counting)
    torch.testing.assert_close(triplet_information_loss(critic, positions, features, twice, negative), expected)
    assert sum(scored) == 3 * (5 + 2)  # Positions times different pairs with weight.


def test_no_pair_with_weight_is_no_loss_at_all() -> None:
    critic = Critic(5, 4)
    positions, features = torch.randn(2, 3, 5, generator=seeded()), torch.randn(2, 4, generator=seeded(1))
    none = pairs([0, 1], [1, 0], weight=[0.0, 0.0])
    loss = triplet_information_loss(critic, positions, features, none, none)
    loss.backward()
    assert loss.item() == 0
    assert all(not parameter.grad.any() for parameter in critic.parameters() if parameter.grad is not None)


def test_gradient_flows_into_maps_features_and_every_weight_of_the_critic() -> None:
    critic = Critic(5, 4)
    positions = torch.randn(6, 7, 5, generator=seeded()).requires_grad_()
    features = torch.randn(6, 4, generator=seeded(1)).requires_grad_()
    # Sample 5 gives neither a map nor a feature.
    triplet_information_loss(critic, positions, features, pairs([0, 1], [2, 3]), pairs([2, 3], [4, 0])).backward()
    for tensor in (positions, features, *critic.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()
        assert tensor.grad.abs().max() > 0
    assert positions.grad is not None
    assert features.grad is not None
    assert positions.grad[5].abs().max() == 0
    assert features.grad[5].abs().max() == 0


@pytest.mark.parametrize("prediction", [one_hot([1, 1], 2), one_hot([1] * 6, 3), torch.full((6, 4), 0.25)])
def test_batch_in_which_every_pair_is_linked_has_finite_loss_and_gradients(prediction: Tensor) -> None:
    size = len(prediction)
    links = similarity(prediction)
    positive, negative = draw_pairs(links, pseudo_graph(links, 0.95), "nearest+random", 1, seeded())
    assert negative.weight.sum() == 0
    critic = Critic(5, 4)
    positions = torch.randn(size, 7, 5, generator=seeded()).requires_grad_()
    features = torch.randn(size, 4, generator=seeded(1)).requires_grad_()
    loss = triplet_information_loss(critic, positions, features, positive, negative)
    loss.backward()
    # Only the positive pairs are left.
    joint = critic(positions, features, positive.partner, positive.anchor)
    torch.testing.assert_close(loss, torch.nn.functional.softplus(-joint).mean())
    for tensor in (positions, features, *critic.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()


def test_gradient_steps_on_the_critic_raise_the_mutual_information() -> None:
    critic = Critic(5, 4)
    positions, features = torch.randn(8, 3, 5, generator=seeded()), torch.randn(8, 4, generator=seeded(1))
    own, next_one = list(range(8)), [(sample + 1) % 8 for sample in range(8)]
    optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = triplet_information_loss(critic, positions, features, pairs(own, own), pairs(own, next_one))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > losses[-1]
    assert losses[-1] < 2 * math.log(2) - 0.1  # below what a critic reaches that knows nothing

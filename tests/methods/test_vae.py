import math
from typing import Any

import pytest
import torch

from dccm.arrays import ImageShape
from dccm.data.synthetic import bars
from dccm.methods.vae import VAEMethod, divergence_from_prior, draw_code, negative_log_likelihood
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.loop import train
from tests.support import seeded


def test_divergence_is_zero_at_the_prior_and_above_it_elsewhere() -> None:
    assert divergence_from_prior(torch.zeros(4, 3), torch.zeros(4, 3)).item() == 0
    for mean, log_variance in ((0.1, 0.0), (-0.1, 0.0), (0.0, 0.1), (0.0, -0.1)):
        assert divergence_from_prior(torch.full((1, 1), mean), torch.full((1, 1), log_variance)).item() > 0


def test_divergence_worked_by_hand() -> None:
    # (1 + e^2 - 1 - 2) / 2 for the first image's one number, (4 + 1 - 1 - 0) / 2 = 2 for the second's.
    mean, log_variance = torch.tensor([[1.0], [2.0]]), torch.tensor([[2.0], [0.0]])
    expected = ((math.exp(2) - 2) / 2 + 2) / 2
    assert divergence_from_prior(mean, log_variance).item() == pytest.approx(expected)


def test_divergence_is_that_of_torch_distributions() -> None:
    mean, log_variance = torch.randn(2, 5, 3, generator=seeded())
    normal, prior = torch.distributions.Normal(mean, (log_variance / 2).exp()), torch.distributions.Normal(0.0, 1.0)
    expected = torch.distributions.kl_divergence(normal, prior).sum(dim=1).mean()
    torch.testing.assert_close(divergence_from_prior(mean, log_variance), expected)


def test_codes_are_drawn_with_the_given_mean_and_variance_and_let_the_gradient_through() -> None:
    mean, log_variance = torch.full((20000, 1), 3.0), torch.full((20000, 1), math.log(4)).requires_grad_()
    code = draw_code(mean.requires_grad_(), log_variance, seeded())
    assert code.mean().item() == pytest.approx(3, abs=0.05)
    assert code.std().item() == pytest.approx(2, abs=0.05)
    code.sum().backward()
    assert mean.grad is not None
    assert log_variance.grad is not None
    assert (mean.grad == 1).all()
    torch.testing.assert_close(log_variance.grad, (code.detach() - 3) / 2)


def test_likelihood_of_even_odds_is_one_bit_a_pixel() -> None:
    images = torch.rand(3, 2, 4, 5, generator=seeded())
    loss = negative_log_likelihood(torch.zeros_like(images), images)
    assert loss.item() == pytest.approx(40 * math.log(2), rel=1e-5)


def test_the_bound_rises_and_codes_stay_nearer_to_the_prior_than_free_ones() -> None:
    settings: dict[str, Any] = {"n_clusters": 4, "batch_size": 60, "mini_batch": 20, "epochs": 8, "code_size": 4}
    model = Model.untrained(ImageShape(1, 8, 8), make_config("vae", overrides=settings))
    history = train(model.learner, model.loader(bars(120, side=8).images), model.config.training)
    assert history[-1]["loss"] < 0.9 * history[0]["loss"]
    assert history[-1]["loss"] == pytest.approx(history[-1]["reconstruction"] + history[-1]["divergence"], rel=1e-5)
    assert history[-1]["divergence"] > 0.1  # The codes say something.
    assert isinstance(model.method, VAEMethod)
    images = next(model.loader(bars(120, side=8).images).ordered())
    mean, log_variance = model.method.train().posterior(images)
    assert 0.3 < (mean.var(dim=0) + log_variance.exp().mean(dim=0)).mean().item() < 3


def test_features_are_means_and_draw_nothing() -> None:
    model = Model.untrained(ImageShape(1, 8, 8), make_config("vae", overrides={"code_size": 6}))
    images = torch.rand(3, 1, 8, 8, generator=seeded())
    model.method.eval()
    first, second = model.method.embed(images), model.method.embed(images)
    assert first.shape == (3, 6)
    assert torch.equal(first, second)

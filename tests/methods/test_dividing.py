"""Several workers learn what one learns: the same gradients, but for the order in which floats are added."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.data.datasets import load_digits
from dccm.data.loader import Loader
from dccm.methods import METHODS, build_method
from dccm.methods.base import GradientMethod
from dccm.methods.dividing import divided
from dccm.networks.seeds import drawn_from
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.loop import train
from dccm.training.progress import Progress, Record, Stage
from dccm.training.update import Moment
from dccm.training.workers import ALONE, Workers
from tests.training.thread_team import together

SHAPE = ImageShape(3, 12, 10)
LEARNERS = sorted(name for name, kind in METHODS.items() if issubclass(kind, GradientMethod) and not kind.one_process)


class DoubleLoader(Loader):
    """Hands out double precision, so that the order of additions shows in no digit that is looked at."""

    def _travelled(self, images: Any, index: Any) -> Tensor:
        return super()._travelled(images, index).double()


@pytest.fixture(autouse=True)
def _double_precision() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def small(method: str, **settings: Any) -> GradientMethod[Any]:
    config = make_config(method, settings.pop("preset", None), "", {"n_clusters": 3} | suiting(method) | settings)
    with drawn_from(5):
        made = build_method(method, SHAPE, 3, config.own)
    assert isinstance(made, GradientMethod)
    return made


def suiting(method: str) -> dict[str, Any]:
    return {"mini_batch": 7} | ({} if method == "gan" else {"width": 0.1})


def learnt(learner: GradientMethod[Any], workers: Workers, images: int = 3) -> tuple[dict[str, Tensor], list[float]]:
    """Gradients of the first update on the images of this number, and the losses of all those of a large batch."""
    rows = np.random.default_rng(images).integers(0, 256, (22, *SHAPE[1:], SHAPE[0]), dtype=np.uint8)
    loader = DoubleLoader(rows, batch_size=22, seed=1, device=torch.device("cpu"))
    first: dict[str, Tensor] = {}
    losses = []
    with divided(learner, workers):
        learner.before_epoch(loader, Moment(0, 0.0))
        learner.train()
        for batch in loader.shuffled(0):
            for update in learner.updates(batch):
                update.step(workers)
                losses.append(update.loss.item())
                stepped = {id(weight) for group in update.optimizer.param_groups for weight in group["params"]}
                if not first:
                    first = {
                        name: weight.grad.clone()
                        for name, weight in learner.named_parameters()
                        if weight.grad is not None and id(weight) in stepped
                    }
    return first, losses


def assert_same_with(count: int, learner: GradientMethod[Any], images: int = 3) -> None:
    """So many workers follow the gradients that one follows."""
    copies = [deepcopy(learner) for _ in range(count)]
    gradient, losses = learnt(learner, ALONE, images)
    assert any(bool(tensor.abs().max() > 1e-8) for tensor in gradient.values())
    for found, found_losses in together(count, lambda workers: learnt(copies[workers.place.rank], workers, images)):
        assert found.keys() == gradient.keys()
        for name, tensor in gradient.items():
            assert torch.allclose(found[name], tensor, rtol=1e-7, atol=1e-11), name
        # Weights may differ by more: steps divided by their own size make much of rounding.
        assert found_losses == pytest.approx(losses, rel=1e-5)


@pytest.mark.parametrize("method", ["dac", "dae", "dec"])
def test_two_workers_learn_what_one_learns_each_in_its_way(method: str) -> None:
    assert_same_with(2, small(method))


@pytest.mark.slow  # Some seconds in all.
@pytest.mark.parametrize("method", [name for name in LEARNERS if name != "nat"])  # Its targets have single precision.
def test_two_workers_learn_what_one_learns(method: str) -> None:
    assert_same_with(2, small(method))


@pytest.mark.parametrize(
    "settings",
    [
        {"robustness": "invariance", "critic_positions": 3, "deep_feature": "logits", "logit_norm": "balanced"},
        pytest.param({"preset": "paper"}, marks=pytest.mark.slow),
        # Begun like the identity, values that are 0 but for rounding meet the kink of ReLU.
        pytest.param({"preset": "released", "initialisation": "torch", "uses": 1}, marks=pytest.mark.slow),
        pytest.param({"preset": "fast", "starts": 2}, marks=pytest.mark.slow),
        {"joint_views": False, "pairs": "top_n+random"},
    ],
    ids=str,
)
def test_three_workers_learn_the_paper_s_method_in_all_its_forms(settings: dict[str, Any]) -> None:
    # Among other images some start meets partners that are equally near, of which rounding chooses one.
    assert_same_with(3, small("dccm", **settings), images=5)


def test_one_two_and_three_workers_have_one_history_and_the_same_labels() -> None:
    images = load_digits().images[:96]
    config = make_config("dccm", "fast", "digits", {"n_clusters": 10, "epochs": 3, "mini_batch": 24, "starts": 1})
    model = Model.untrained(ImageShape(1, 8, 8), config)

    def trained(workers: Workers, learner: GradientMethod[Any]) -> tuple[list[Record], npt.NDArray[np.int64]]:
        loader = DoubleLoader(images, batch_size=48, seed=0, device=torch.device("cpu"))
        with divided(learner, workers):
            history = train(learner, loader, config.training)
            kept = learner.finish(loader)
        kept.eval()
        with torch.no_grad():
            return history, loader.over_all(kept.predict).argmax(axis=1)

    copies = [deepcopy(model.learner) for _ in range(3)]
    history, clusters = trained(ALONE, model.learner)
    for count in (2, 3):
        learners = [deepcopy(learner) for learner in copies[:count]]
        for found, labels in together(count, lambda workers: trained(workers, learners[workers.place.rank])):  # noqa: B023
            assert labels.tolist() == clusters.tolist()
            for record, expected in zip(found, history, strict=True):
                assert record["cluster_sizes"] == expected["cluster_sizes"]
                assert record["loss"] == pytest.approx(expected["loss"], rel=1e-9)
                assert record["information"] == pytest.approx(expected["information"], rel=1e-9)


def test_workers_keep_step_where_minutes_decide_and_one_of_them_shows_progress() -> None:
    config = make_config(
        "dccm", "fast", "digits", {"n_clusters": 10, "budget_minutes": 0.01, "mini_batch": 24, "starts": 1}
    )
    learners = [deepcopy(Model.untrained(ImageShape(1, 8, 8), config).learner) for _ in range(2)]
    shown: list[Progress | Stage] = []

    def trained(workers: Workers) -> list[Record]:
        learner = learners[workers.place.rank]
        loader = DoubleLoader(load_digits().images[:96], batch_size=48, seed=0, device=torch.device("cpu"))
        with divided(learner, workers):
            return train(learner, loader, config.training, on_progress=shown.append)

    first, second = together(2, trained)
    assert first == second
    assert shown[-1].done == 1

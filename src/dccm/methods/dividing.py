"""The networks of a method, shared among several processes while it learns; its own code does not know of them.

A network is called with a whole batch by all processes. Each computes its own rows of it, batch norm with the
statistics of all, and what comes out is brought together. Maps are an exception where they come with other results:
they stay where they were computed, as the critic goes to them.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from inspect import ismethod
from typing import Any

from torch import Tensor, nn

from dccm.methods.base import GradientMethod
from dccm.training.together import SeveralWorkers
from dccm.training.workers import Workers

_STEPS = ("forward", "feature_map", "conv", "feature")
"""What methods call of a network: all of it, or one of the steps of an encoder."""

_HEADS = ("hidden",)
"""Layers of a network from which on each row is a short vector: all rows are sooner computed by everyone than the
statistics of their batch norms are told."""


@contextmanager
def divided(learner: GradientMethod[Any], workers: Workers) -> Iterator[None]:
    """Let workers share the work of a method's networks."""
    methods = [module for module in learner.modules() if isinstance(module, GradientMethod)]
    with ExitStack() as stack:
        for method in methods:
            stack.enter_context(_set(method, "workers", workers))
        if isinstance(workers, SeveralWorkers) and workers.place.of > 1 and not learner.shape.is_vector:
            workers.averages = True
            for network in _networks(methods):
                for name in _STEPS:
                    if ismethod(getattr(network, name, None)):
                        stack.enter_context(_set(network, name, partial(_shared, workers, getattr(network, name))))
                for name in _HEADS:
                    if isinstance(head := getattr(network, name, None), nn.Module):
                        stack.enter_context(_set(head, "forward", partial(workers.on_all, head.forward)))
                for norm in network.modules():
                    if isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
                        stack.enter_context(_set(norm, "forward", partial(workers.norm, norm, norm.forward)))
        yield


def _networks(methods: list[GradientMethod[Any]]) -> Iterator[nn.Module]:
    for method in methods:
        for name in method.networks:
            network = getattr(method, name)
            assert isinstance(network, nn.Module)
            yield network


def _shared(workers: SeveralWorkers, compute: Callable[..., Any], *inputs: Tensor) -> Any:
    """What a network says of all rows, of which each worker computes its own."""
    count = len(inputs[0])
    if not workers.divides(count):
        return compute(*inputs)
    own = [workers.own(rows) for rows in inputs]
    with workers.dividing(count):
        found = compute(*own)
    if isinstance(found, Tensor):
        return found if len(found) == count else workers.whole([found], count)[0]
    # A named tuple, of which the maps stay.
    places = [place for place, rows in enumerate(found) if rows.ndim <= 2 and len(rows) < count]
    whole = workers.whole([found[place] for place in places], count) if places else []
    return found._replace(**{found._fields[place]: rows for place, rows in zip(places, whole, strict=True)})


@contextmanager
def _set(thing: nn.Module, name: str, value: Any) -> Iterator[None]:
    """Give one object, not its class, another attribute for a while; nothing of it is part of its state."""
    own = vars(thing)
    missing = object()
    before = own.get(name, missing)
    own[name] = value
    try:
        yield
    finally:
        if before is missing:
            del own[name]
        else:
            own[name] = before

"""First weights that a seed decides, in one thread, while the random state of the process stays as it is."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

_INITIAL = (
    *(nn.init.uniform_, nn.init.normal_, nn.init.trunc_normal_, nn.init.orthogonal_),
    *(nn.init.xavier_uniform_, nn.init.xavier_normal_, nn.init.kaiming_uniform_, nn.init.kaiming_normal_),
)
_DRAWING = frozenset(
    {torch.Tensor.uniform_, torch.Tensor.normal_, torch.rand, torch.randn, torch.randint, torch.randperm, *_INITIAL}
)
"""What draws from the process's generator unless it is given one."""


class _Drawing(TorchFunctionMode):
    """Gives a generator to whatever draws; torch keeps such modes apart for each thread."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        if func in _DRAWING and given.get("generator") is None:
            given["generator"] = self.generator
        return func(*args, **given)


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """Let all that draws without a generator, on the CPU and in this thread, draw from one of this seed."""
    with _Drawing(torch.Generator().manual_seed(seed)):
        yield

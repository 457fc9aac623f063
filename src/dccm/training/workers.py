"""The processes that train together. Whatever must be gathered, averaged or done only once goes through here."""

import torch
from torch import Tensor


class Workers:
    """A single process: it has all images, there is nothing to average, and it writes all files."""

    @property
    def writes(self) -> bool:
        """Whether this process writes files and shows progress."""
        return True

    def gather(self, rows: Tensor) -> Tensor:
        """The rows of all workers, in the order of the large batch, (B, ...)."""
        return rows

    def total(self, value: Tensor) -> Tensor:
        """The sum of a value over all workers."""
        return value

    def average_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        """Replace the gradients of an optimizer's weights by their mean over all workers."""


ALONE = Workers()

"""What a method remembers of every image of the data set."""

import torch
from torch import Tensor, nn


class PerImage(nn.Module):
    """One row per image, in a buffer, so that checkpoints hold it.

    How many images there are is known only when training begins: until then there are no rows, and a checkpoint may
    bring any number of them.

    Args:
        row: Shape of a row; nothing for a single number.
        dtype: Kind of the numbers.
    """

    def __init__(self, *row: int, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.rows: Tensor
        self.register_buffer("rows", torch.zeros(0, *row, dtype=dtype))

    def fill(self, rows: Tensor) -> None:
        """Remember these rows, (N, ...), in place of all others."""
        self.rows = rows.to(self.rows)

    def forget(self) -> None:
        """Drop all rows, so that a trained model's file does not grow with the number of images."""
        self.rows = self.rows[:0].clone()

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: object) -> None:
        """Take any number of rows of the right shape."""
        stored = state_dict.get(f"{prefix}rows")
        if stored is not None and stored.ndim == self.rows.ndim and stored.shape[1:] == self.rows.shape[1:]:
            self.rows = self.rows.new_zeros(stored.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)

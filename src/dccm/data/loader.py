"""Batches of images: shuffled ones to train on, ordered ones to predict on.

Images wait as bytes, (N, H, W, C), and become floats on the device. Every order and every random draw depends only
on (seed, epoch, batch), so that a resumed run sees what an unbroken one would have seen.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dccm.arrays import Floats, Inputs

_PIXELS = 256 * 1024
"""Pixels in one forward pass, so that memory does not grow with the size of the images; with more, a CPU is slower."""
_CHANNELS_OF_A_PIXEL = 16
"""Maps of a pretrained encoder in the place of images have more channels: so many cost as much as a pixel."""
_VECTORS = 4096
"""Vectors at once, where they stand in the place of images."""
_FEWEST_FOR_STATISTICS = 128
"""Images that batch norm takes statistics of at least, however large they are."""


@dataclass(frozen=True)
class Batch:
    """Images to learn from, and the randomness that belongs to them. No label: there is no field for one."""

    images: Tensor
    """Values in [0, 1], (B, C, H, W); vectors in their place are as they come, (B, D, 1, 1)."""
    index: Tensor
    """Position of each image in the data set, (B,)."""
    generator: torch.Generator
    """For every draw made on this batch; on the images' device."""
    done: float = 0.0
    """Share of the run that is done, 0 to 1, for everything that changes in its course."""
    views: Tensor | None = None
    """Vectors of perturbed copies of each image, (V, B, D, 1, 1), where images are vectors and copies were kept."""


def equal_parts(count: int, size: int) -> int:
    """Into how many nearly equal parts of about `size` things to divide `count`; no part holds a single one."""
    return max(1, min(round(count / size), count // 2))


def images_at_once(height: int, width: int, channels: int = 1, *, statistics: bool = False) -> int:
    """How many images of this size go through a network at once; more of large ones if their statistics are wanted."""
    if height == width == 1:
        return _VECTORS
    pixels = height * width * max(1, channels // _CHANNELS_OF_A_PIXEL)
    return max(_FEWEST_FOR_STATISTICS if statistics else 2, _PIXELS // pixels)


class Loader:
    """Hands out the images of one data set.

    Args:
        images: (N, H, W, C), or vectors in their place; in memory, or mapped from a file.
        batch_size: Images in a large batch.
        seed: Decides every order and draw.
        device: Where batches are wanted.
        resident: Keep all bytes on the device; None: if that is a GPU with room for twice as much.
        views: Vectors of perturbed copies of the images, as many and of the same shape each.
        times: How often each image is drawn in an epoch, (N,); 0: nothing is learnt from it. None: once.
    """

    def __init__(
        self,
        images: Inputs,
        *,
        batch_size: int,
        seed: int,
        device: torch.device,
        resident: bool | None = None,
        views: Sequence[Inputs] = (),
        times: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self.images, self.views = images, views
        self._drawn = None if times is None else np.repeat(np.arange(len(images)), times)
        self.batch_size = batch_size
        self.seed = seed
        self.device = device
        keeps = _fits(images, device) if resident is None else resident
        self._resident = torch.from_numpy(np.array(images)).to(device) if keeps else None

    def __len__(self) -> int:
        return len(self.images)

    @property
    def batches(self) -> int:
        """Large batches in an epoch; they are of nearly equal size, so none is left over."""
        return equal_parts(len(self.images) if self._drawn is None else len(self._drawn), self.batch_size)

    def shuffled(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, from number `start` on."""
        order = self._permuted(self._drawn, epoch)
        for number, index in enumerate(order.tensor_split(self.batches)):
            if number >= start:
                rows = index.numpy()
                views = torch.stack([self._travelled(view, rows) for view in self.views]) if self.views else None
                yield Batch(self._take(rows), index, self._generator(self.device, epoch, number), views=views)

    def ordered(self) -> Iterator[Tensor]:
        """All images once, in their own order."""
        chunk = images_at_once(*self.images.shape[1:])
        for start in range(0, len(self.images), chunk):
            yield self._take(slice(start, start + chunk))

    def sampled(self, count: int) -> Iterator[Tensor]:
        """So many images drawn at random, in their own order; all of them if there are no more."""
        if count >= len(self):
            yield from self.ordered()
            return
        order = torch.randperm(len(self), generator=self._generator(torch.device("cpu"), -1, -1)).numpy()
        chosen, chunk = np.sort(order[:count]), images_at_once(*self.images.shape[1:3])
        for start in range(0, count, chunk):
            yield self._take(chosen[start : start + chunk])

    def over_all(self, function: Callable[[Tensor], Tensor]) -> Floats:
        """What a function says of every image, (N, D), in their own order.

        All rows are made room for at once: parts, kept until the end, would lie between the large blocks that come and
        go with every batch, so that these no longer fit where they were, and memory would grow.
        """
        rows = np.empty((0, 0), np.float32)
        done = 0
        for images in self.ordered():
            part = function(images).cpu().numpy()
            if not done:
                rows = np.empty((len(self), part.shape[1]), np.float32)
            rows[done : done + len(part)] = part
            done += len(part)
        return rows

    def calibrating(self) -> Iterator[Tensor]:
        """All images that are drawn, once, in a fixed random order and in large batches: for population statistics."""
        order = self._permuted(None if self._drawn is None else np.unique(self._drawn), -1).numpy()
        chunk = images_at_once(*self.images.shape[1:], statistics=True)
        for index in np.array_split(order, equal_parts(len(order), chunk)):
            yield self._take(np.sort(index))

    def _permuted(self, rows: npt.NDArray[np.int64] | None, *place: int) -> Tensor:
        """Rows, or all of them, in the order that belongs to a place of the run."""
        generator = self._generator(torch.device("cpu"), *place)
        if rows is None:
            return torch.randperm(len(self.images), generator=generator)
        return torch.from_numpy(rows)[torch.randperm(len(rows), generator=generator)]

    def _take(self, index: npt.NDArray[np.int64] | slice) -> Tensor:
        """Images as floats on the device."""
        if self._resident is None:
            return self._travelled(self.images, index)
        return _as_values(
            self._resident[index if isinstance(index, slice) else torch.from_numpy(index).to(self.device)]
        )

    def _travelled(self, images: Inputs, index: npt.NDArray[np.int64] | slice) -> Tensor:
        """Images as floats on the device; bytes travel, and only bytes."""
        pixels = torch.from_numpy(np.require(images[index], requirements=["C", "W"]))
        if self.device.type == "cuda":
            pixels = pixels.pin_memory().to(self.device, non_blocking=True)
        return _as_values(pixels.to(self.device))

    def _generator(self, device: torch.device, *place: int) -> torch.Generator:
        state = np.random.SeedSequence([self.seed, *(number + 1 for number in place)]).generate_state(1, np.uint64)
        return torch.Generator(device).manual_seed(int(state[0] >> np.uint64(1)))


def _as_values(pixels: Tensor) -> Tensor:
    """Images (B, H, W, C) as methods take them, (B, C, H, W); bytes are divided by 255."""
    # (B, H, W, C) bytes seen as (B, C, H, W) are channels_last already.
    values = pixels.permute(0, 3, 1, 2).float()
    return values.div_(255) if pixels.dtype == torch.uint8 else values


def _fits(images: Inputs, device: torch.device) -> bool:
    """Whether a GPU has room for all bytes and as much again for the training."""
    if device.type != "cuda":
        return False
    free, _ = torch.cuda.mem_get_info(device)
    return images.nbytes * 2 < free

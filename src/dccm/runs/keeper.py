"""Keeps what a model says of all images while it learns, without changing anything about how it learns."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from dccm.config import TrainingConfig
from dccm.data.loader import Loader
from dccm.methods.base import GradientMethod
from dccm.runs.milestones import Milestone, forget_milestones, write_milestone
from dccm.training.checkpoint import TensorFile
from dccm.training.clock import share_done
from dccm.training.position import Position
from dccm.training.progress import Progress, Stage

_ROUNDING = 1e-9
"""Steps of a share that rounding can be short of a whole one."""


class MilestoneKeeper:
    """Keeps predictions at the start of a run and whenever another step of it is done.

    What it keeps depends on the checkpoint that a run goes on from, and on nothing that was computed after it: so a run
    that was killed ends with the same files. A run limited by minutes has no such order of its own.

    Args:
        folder: Where it is kept.
        learner: The method.
        loader: Its images.
        config: How many steps there are, and what limits the run.
        resume: The checkpoint that the run goes on from; None: it begins.
    """

    def __init__(
        self,
        folder: Path,
        learner: GradientMethod[Any],
        loader: Loader,
        config: TrainingConfig,
        resume: TensorFile | None,
    ) -> None:
        self.folder, self.learner, self.loader, self.steps = folder, learner, loader, config.milestones
        self.seconds = 0.0
        position = Position(**resume.document) if resume else None
        forget_milestones(folder, position.images if position else None)
        if position is None:
            self.step = 0
            self._keep(0, 0.0, with_feature=True)
        else:
            self.step = self._steps(share_done(position, config, len(loader), loader.batches))

    def __call__(self, progress: Progress | Stage) -> None:
        """Keep what the model says now, if a step was done since it was last asked."""
        if not isinstance(progress, Progress):
            return
        step = self._steps(progress.done)
        if step > self.step:
            featured = any(self.step < wanted <= step for wanted in (self.steps // 2, self.steps))
            epoch = progress.epoch if progress.record else progress.epoch - 1 + progress.batch / progress.batches
            self._keep(round(progress.passes * len(self.loader)), epoch, with_feature=featured)
            self.step = step

    def _steps(self, done: float) -> int:
        return int(done * self.steps + _ROUNDING)

    def _keep(self, images: int, epoch: float, *, with_feature: bool) -> None:
        started = time.monotonic()
        with _as_it_was(self.learner), torch.no_grad():
            method = self.learner.finish(self.loader)
            method.eval()
            feature = self.loader.over_all(method.embed) if with_feature else None
            write_milestone(self.folder, Milestone(images, epoch, self.loader.over_all(method.predict), feature))
        self.seconds += time.monotonic() - started


@contextmanager
def _as_it_was(learner: GradientMethod[Any]) -> Iterator[None]:
    """Undo whatever is done to a method: all its state lies in parameters and buffers."""
    state = {name: tensor.detach().clone() for name, tensor in learner.state_dict().items()}
    try:
        yield
    finally:
        learner.load_state_dict(state)

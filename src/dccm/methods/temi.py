"""TEMI: Exploring the Limits of Deep Image Clustering using Pretrained Models (Adaloglou et al., BMVC 2023).

Heads learn from what slowly moving copies of them, their teachers, say of an image's neighbours: that both are of one
cluster must be more likely than chance. Pairs on which teachers disagree count little. Many heads learn side by side;
the one with the smallest loss answers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.config import Count, Handful, Momentum, NotNegative, Positive, Section, Several, Share
from dccm.data.loader import Batch, Loader
from dccm.methods.base import GradientMethod
from dccm.methods.heads import (
    Neighbourhood,
    Start,
    begin_heads,
    mini_batches,
    neighbour_count,
    points_of,
    require_vectors,
    watched,
)
from dccm.networks.components import Components, LinearHeads
from dccm.training.update import Moment, Update

_NEW_SHARE = 0.05
"""Weight of a mini-batch in the running mean of the losses by which heads are compared."""


@dataclass(frozen=True, kw_only=True)
class TEMIConfig(Section):
    """Settings of TEMI; the paper's where it has them."""

    neighbours: Count = 50
    """Nearest others of an image that it is paired with; at most half of a cluster's mean size."""
    sharpness: Share = 0.6
    """Power of the common probability of a pair (β): with 1 few clusters may hold all, lower values use them all."""
    teacher_momentum: Share = 0.996
    """Share of its old weights that a teacher keeps in each step."""
    marginal_momentum: Momentum = 0.9
    """Share of the old mean prediction in the new one."""
    heads: Handful = 16
    """Heads that learn side by side; the paper's 50 take three times as long on a CPU."""
    start: Start = "random"
    """Heads begin at random, as in the paper, or each where another start of k-means ends."""
    mini_batch: Several = 128
    """Images in one gradient step; ours, so that small sets have some steps in an epoch. The paper's is 512."""
    fewest_steps: Count = 20
    """Gradient steps per large batch at least; sets of few mini-batches are gone through several times. Ours."""
    learning_rate: Positive = 1e-3
    """Step size of AdamW; ten times the paper's, as heads are single linear layers here."""
    weight_decay: NotNegative = 1e-4
    """Pull of all weights towards 0."""


def pointwise_information(student: Tensor, teacher: Tensor, marginal: Tensor, sharpness: float) -> Tensor:
    """How much likelier one cluster is for a pair than for two images by chance (pmi), (H, B).

    Args:
        student: Of images, (H, B, K).
        teacher: Of one neighbour of each, (H, B, K).
        marginal: Mean of the teachers' predictions, (H, K).
        sharpness: β.
    """
    # A probability of zero would have an infinite gradient.
    tiny = torch.finfo(student.dtype).tiny
    common = (student * teacher).clamp_min(tiny).pow(sharpness) / marginal.clamp_min(tiny).unsqueeze(1)
    return common.sum(dim=2).log()


def pair_weight(teacher: Tensor, neighbour: Tensor) -> Tensor:
    """Probability that a pair shares a cluster, as all teachers together see it (w), (B,)."""
    return (teacher * neighbour).sum(dim=2).mean(dim=0)


class TEMIMethod(GradientMethod[TEMIConfig]):
    """Student heads and their teachers."""

    year = 2023
    citation = "Adaloglou et al., Exploring the Limits of Deep Image Clustering using Pretrained Models, BMVC 2023"
    learns = "clusters of a pretrained encoder's vectors, by self-distillation among neighbours"
    cost = "neighbours of all images once; 1 step of linear layers per image and pass"
    takes_vectors = True
    needs_vectors = True
    config_type = TEMIConfig
    networks = ()
    one_process = "learns by steps of microseconds, less than a message takes"

    def __init__(self, shape: ImageShape, n_clusters: int, config: TEMIConfig) -> None:
        super().__init__(shape, n_clusters, config)
        require_vectors("temi", shape)
        self.components = Components(shape.channels)
        size = self.components.size
        self.students = LinearHeads(config.heads, size, n_clusters)
        self.teachers = LinearHeads(config.heads, size, n_clusters).requires_grad_(False)
        self.teachers.load_state_dict(self.students.state_dict())
        self.neighbourhood = Neighbourhood(size)
        self.losses: Tensor
        self.marginal: Tensor
        self.register_buffer("losses", torch.zeros(config.heads))  # Running mean of each head's.
        self.register_buffer("marginal", torch.full((config.heads, n_clusters), 1 / n_clusters))

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Of the students alone."""
        weights, rate, decay = self.students.parameters(), self.config.learning_rate, self.config.weight_decay
        return {"all": torch.optim.AdamW(weights, rate, weight_decay=decay, fused=True)}

    @property
    def fewest_images(self) -> int:
        """An image and its neighbour."""
        return 2

    def before_epoch(self, loader: Loader, moment: Moment) -> None:
        """At the very start, find the neighbours of all images."""
        if moment.epoch == 0:
            points = points_of(self.components, loader)
            count = neighbour_count(self.config.neighbours, len(loader), self.n_clusters)
            self.neighbourhood.look(points, count, self.on_progress)
            if self.config.start == "kmeans":
                begin_heads(self.students, points, loader.seed)
                self.teachers.load_state_dict(self.students.state_dict())

    def updates(self, batch: Batch) -> Iterator[Update]:
        """Students learn from mini-batches of pairs; teachers follow them after each step."""
        index = batch.index.to(self.losses.device)
        size, fewest = self.config.mini_batch, self.config.fewest_steps
        for part in mini_batches(index, size, fewest, batch.generator):
            points = torch.cat(self.neighbourhood.pairs(part, batch.generator))
            teacher = self._taught(points)
            losses = self._losses(self.students(points).softmax(dim=2), teacher)
            self.losses.lerp_(losses.detach(), _NEW_SHARE)
            seen = watched(teacher[self.best])
            yield Update(losses.sum(), self.optimizers["all"], len(part), {"best_head": losses[self.best]}, seen)
            self._follow()

    @torch.no_grad()
    def _taught(self, points: Tensor) -> Tensor:
        """What teachers say of points, (H, B, K); their mean prediction goes into the running one."""
        teacher: Tensor = self.teachers(points).softmax(dim=2)
        self.marginal.lerp_(teacher.mean(dim=1), 1 - self.config.marginal_momentum)
        return teacher

    def _losses(self, student: Tensor, teacher: Tensor) -> Tensor:
        """Weighted pointwise mutual information of pairs, both ways, less than zero for good heads, (H,).

        Args:
            student: Of images, then of their neighbours, (H, 2 B, K).
            teacher: Of the same.
        """
        image, neighbour = teacher.chunk(2, dim=1)
        crossed = torch.cat([neighbour, image], dim=1)
        information = pointwise_information(student, crossed, self.marginal, self.config.sharpness)
        return -(pair_weight(image, neighbour).repeat(2) * information).mean(dim=1)

    @torch.no_grad()
    def _follow(self) -> None:
        """Move the teachers a little towards their students."""
        for teacher, student in zip(self.teachers.parameters(), self.students.parameters(), strict=True):
            teacher.lerp_(student, 1 - self.config.teacher_momentum)

    @property
    def best(self) -> Tensor:
        """Number of the head with the smallest loss; it answers."""
        return self.losses.argmin()

    def embed(self, images: Tensor) -> Tensor:
        """Principal components."""
        points: Tensor = self.components(images)
        return points

    def predict(self, images: Tensor) -> Tensor:
        """What the best head's teacher says."""
        probability: Tensor = self.teachers(self.embed(images))[self.best].softmax(dim=1)
        return probability

    def finish(self, loader: Loader) -> GradientMethod[Any]:
        """Neighbours are no longer needed."""
        super().finish(loader)
        self.neighbourhood.forget()
        return self

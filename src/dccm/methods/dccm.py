"""Deep Comprehensive Correlation Mining for Image Clustering (Wu et al., ICCV 2019).

For each large batch, mine from the clean images which pairs and which labels are sure; then let mini-batches of the
clean and the perturbed images learn from that, with the triplet mutual information beside it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from dccm.collapse import Watched
from dccm.correlations.local_robustness import invariance_loss, local_robustness_loss
from dccm.correlations.mutual_information import triplet_information_loss
from dccm.correlations.objective import LossTerms, objective
from dccm.correlations.pseudo_graph import GraphLoss
from dccm.correlations.pseudo_label import LabelLoss
from dccm.correlations.targets import Targets, mine
from dccm.correlations.triplets import PairStrategy, draw_pairs, joined, own_pairs
from dccm.data.loader import Batch, equal_parts
from dccm.data.perturb import PerturbationConfig, perturb
from dccm.errors import require
from dccm.methods.starts import SeveralStarts, Start
from dccm.networks.critic import Critic, map_positions
from dccm.networks.encoder import (
    SMALLEST_SIDE,
    Encoder,
    EncoderOutput,
    ImageShape,
    Initialisation,
    InputSide,
    LogitNorm,
    ShallowMap,
)
from dccm.training import Update


@dataclass(frozen=True, kw_only=True)
class DCCMConfig:
    """Settings of the method; the defaults are the paper's, and choices of ours where it is silent."""

    graph_threshold: float = 0.95
    """Similarity from which two samples are linked (thres_1)."""
    label_threshold: float = 0.9
    """Probability from which a pseudo-label is trained on (thres_2)."""
    label_weight: float = 5.0
    """Weight of the pseudo-label loss (alpha)."""
    information_weight: float = 0.1
    """Weight of the triplet mutual information (beta)."""
    clean_weight: float = 1.0
    """Weight of graph and label loss on clean images; 0: learn from perturbed images only."""
    perturbed_weight: float = 1.0
    """Weight of graph and label loss on perturbed images; 0: no local robustness (M1 of Table 3)."""
    robustness: Literal["targets", "invariance"] = "targets"
    """Perturbed images learn the clean ones' targets (Eq. (12)), or only their prediction (Eq. (11))."""
    graph_loss: GraphLoss = "cross_entropy"
    """Loss on pairs: binary cross-entropy of the similarity, or the contrastive form of the footnote."""
    label_loss: LabelLoss = "cross_entropy"
    """Loss on pseudo-labels: cross-entropy, or one binary cross-entropy for each class."""
    pairs: PairStrategy = "nearest+random"
    """Partners for the mutual information (Table 6)."""
    negatives: int = 1
    """Negative partners of each sample."""
    own_pairs: bool = True
    """Each sample's own map and feature are a positive pair too."""
    critic_positions: int | Literal["all"] = "all"
    """Positions of the shallow map on which the critic is asked: all, or so many random ones."""
    shallow_map: ShallowMap = "pooled"
    """Where the 32-pixel network's shallow map S is taken: behind the pooling after it, or before."""
    deep_feature: Literal["hidden", "logits"] = "hidden"
    """Which layer is D for the critic: the first linear layer, or the last one's outputs."""
    logit_norm: LogitNorm = "batch"
    """Norm on the outputs of the last linear layer: none, batch norm, or batch norm with one scale for all clusters."""
    initialisation: Initialisation = "torch"
    """Start of the weights: PyTorch's, or linear layers like the identity and Kaiming-normal convolutions."""
    starts: int = 1
    """Networks that begin with different weights; from 60 % of the run on the worst are dropped, one is left."""
    input_side: InputSide = "full"
    """Pixels of the shorter side with which larger images enter the network: a pass costs less; full: as they are."""
    detail: int = 1
    """Pixels along each side that enter as the channels of one position, where images are so much larger than
    input_side: details are seen at hardly any cost; 1: images are shrunk instead."""
    mini_batch: int = 32
    """Images in one gradient step."""
    uses: int = 1
    """Times that the targets of a large batch are learnt from before new ones are mined."""
    optimizer: Literal["rmsprop", "adam"] = "rmsprop"
    """Kind of gradient step."""
    learning_rate: float = 1e-4
    """Step size."""

    def __post_init__(self) -> None:
        for name in ("graph_threshold", "label_threshold"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"{name} must lie in [0, 1], got {value:g}. The paper's is 0.95 or 0.9.")
        require(
            self.input_side == "full" or self.input_side >= SMALLEST_SIDE,
            f"input_side must be 'full' or at least {SMALLEST_SIDE} pixels, got {self.input_side}. Take 24 or 32.",
        )
        for name in ("label_weight", "information_weight", "clean_weight", "perturbed_weight"):
            value = getattr(self, name)
            require(value >= 0, f"{name} must not be negative, got {value:g}. 0 turns a term off.")
        require(
            self.clean_weight + self.perturbed_weight > 0,
            "clean_weight and perturbed_weight must not both be 0: nothing would be learnt. Set one to 1.",
        )
        require(self.mini_batch >= 2, f"mini_batch must be at least 2, got {self.mini_batch}. The paper's is 32.")
        require(self.learning_rate > 0, f"learning_rate must be above 0, got {self.learning_rate:g}. Try 0.0001.")
        for name in ("uses", "negatives", "starts", "detail"):
            value = getattr(self, name)
            require(value >= 1, f"{name} must be at least 1, got {value}. Give 1 or more.")
        positions = self.critic_positions
        require(
            positions == "all" or positions >= 1,
            f"critic_positions must be 'all' or at least 1, got {positions}. The paper asks all.",
        )


class DCCMMethod(SeveralStarts):
    """Encoder and critic, learning from what is mined; of several starts the one that tells most stays."""

    year = 2019
    citation = "Wu et al., Deep Comprehensive Correlation Mining for Image Clustering, ICCV 2019"
    learns = "features and clusters together"
    cost = "1 encoder step and 4 critic scores an image and pass"
    sections: ClassVar[list[type[Any]]] = [DCCMConfig, PerturbationConfig]

    def __init__(self, shape: ImageShape, n_clusters: int, configs: list[Any]) -> None:
        super().__init__(shape, n_clusters, configs)
        self.config: DCCMConfig
        self.perturbation: PerturbationConfig
        self.config, self.perturbation = configs
        starts = [self._new_start(shape, n_clusters) for _ in range(self.config.starts)]
        kind = {"rmsprop": torch.optim.RMSprop, "adam": torch.optim.Adam}[self.config.optimizer]
        self.begin(starts, kind, self.config.learning_rate)

    def _new_start(self, shape: ImageShape, n_clusters: int) -> Start:
        """Encoder and critic with fresh weights."""
        encoder = Encoder(
            shape,
            n_clusters,
            input_side=self.config.input_side,
            detail=self.config.detail,
            shallow_map=self.config.shallow_map,
            logit_norm=self.config.logit_norm,
            initialisation=self.config.initialisation,
        )
        feature_size = encoder.feature_size if self.config.deep_feature == "hidden" else n_clusters
        return Start(encoder, critic=Critic(encoder.map_channels, feature_size))

    def learn(
        self, start: Start, batch: Batch, prediction: Tensor, optimizer: torch.optim.Optimizer
    ) -> Iterator[Update]:
        """Mine the large batch, then learn from mini-batches of it."""
        targets = mine(
            prediction, graph_threshold=self.config.graph_threshold, label_threshold=self.config.label_threshold
        )
        watched = _watched(targets, prediction.shape[1])
        for loss, terms, images in self._losses(start, batch, targets):
            yield Update(loss, optimizer, images, terms, watched)

    def _losses(self, start: Start, batch: Batch, targets: Targets) -> Iterator[tuple[Tensor, dict[str, Tensor], int]]:
        """The objective on one mini-batch after the other, with its terms and the number of images."""
        minis = equal_parts(len(batch.images), self.config.mini_batch)
        for _ in range(self.config.uses):
            perturbed = perturb(batch.images, self.perturbation, batch.generator)
            order = torch.randperm(len(batch.images), generator=batch.generator, device=batch.images.device)
            for index in order.tensor_split(minis):
                views = {"clean": batch.images[index], "perturbed": perturbed[index]}
                terms = self._terms(start, views, targets.rows(index), batch.generator)
                loss = objective(
                    terms,
                    label_weight=self.config.label_weight,
                    information_weight=self.config.information_weight,
                )
                yield loss, terms._asdict(), len(index)

    def _terms(self, start: Start, views: dict[str, Tensor], targets: Targets, generator: torch.Generator) -> LossTerms:
        """The three terms of Eq. (15) on one mini-batch."""
        wanted = [name for name in views if self._encodes(name)]
        encoded: EncoderOutput = start.encoder(torch.cat([views[name] for name in wanted]))
        by_view = zip(*(layer.chunk(len(wanted)) for layer in encoded))
        outputs = {name: EncoderOutput(*layers) for name, layers in zip(wanted, by_view)}
        graph = label = encoded.prediction.new_zeros(())
        for name, weight in (("clean", self.config.clean_weight), ("perturbed", self.config.perturbed_weight)):
            if weight:
                more_graph, more_label = self._supervised(name, outputs, targets)
                graph, label = graph + weight * more_graph, label + weight * more_label
        critic = start.critic
        assert isinstance(critic, Critic)
        return LossTerms(graph, label, self._information(critic, outputs[wanted[0]], targets, generator))

    def _encodes(self, view: str) -> bool:
        if view == "perturbed":
            return self.config.perturbed_weight > 0
        return self.config.clean_weight > 0 or self.config.robustness == "invariance"

    def _supervised(self, view: str, outputs: dict[str, EncoderOutput], targets: Targets) -> tuple[Tensor, Tensor]:
        """Graph and label loss of one view; Eq. (11) puts the invariance in their place on perturbed images."""
        if view == "perturbed" and self.config.robustness == "invariance":
            distance = invariance_loss(outputs["clean"].prediction, outputs["perturbed"].prediction)
            return distance, distance.new_zeros(())
        # On clean images Eq. (12) is Eqs. (3) and (9).
        return local_robustness_loss(
            outputs[view].prediction,
            targets,
            graph_loss=self.config.graph_loss,
            label_loss=self.config.label_loss,
        )

    def _information(
        self, critic: Critic, output: EncoderOutput, targets: Targets, generator: torch.Generator
    ) -> Tensor:
        """L_MI of one view; the critic rests when the term has no weight."""
        if not self.config.information_weight:
            return output.prediction.new_zeros(())
        positive, negative = draw_pairs(
            targets.similarity, targets.graph, self.config.pairs, self.config.negatives, generator
        )
        if self.config.own_pairs:
            positive = joined(own_pairs(len(output.feature), output.feature.device), positive)
        count = None if self.config.critic_positions == "all" else self.config.critic_positions
        positions = map_positions(output.feature_map, count, generator)
        feature = output.feature if self.config.deep_feature == "hidden" else output.logits
        return triplet_information_loss(critic, positions, feature, positive, negative)


def _watched(targets: Targets, n_clusters: int) -> Watched:
    """What the targets of a large batch say about the state of the clusters."""
    count = len(targets.label)
    linked = (targets.graph.sum() - count) / max(1, count * (count - 1))
    return Watched(torch.bincount(targets.label, minlength=n_clusters), targets.confident.sum(), linked)

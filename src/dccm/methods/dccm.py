"""Deep Comprehensive Correlation Mining for Image Clustering (Wu et al., ICCV 2019).

For each large batch, mine from the clean images which pairs and which labels are sure. Then mini-batches of the clean
and the perturbed images learn from that, together with the triplet mutual information.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from dccm.arrays import ImageShape
from dccm.config import Count, Handful, Momentum, NotNegative, Positive, Section, Several, Share
from dccm.correlations.local_robustness import invariance_loss, local_robustness_loss
from dccm.correlations.objective import LossTerms, objective
from dccm.correlations.pseudo_graph import GraphLoss, SaturatedPairs
from dccm.correlations.pseudo_label import LabelLoss
from dccm.correlations.targets import Targets, mine
from dccm.correlations.triplets import PairStrategy, draw_pairs, joined, own_pairs
from dccm.data.loader import Batch, Loader, equal_parts
from dccm.data.perturb import PerturbationConfig, draw, perturbed_rows
from dccm.errors import require
from dccm.grouping.readout import KMeansReadout
from dccm.methods.base import GradientMethod, predictions_of
from dccm.methods.heads import begin_from_kmeans
from dccm.methods.known import KnownClusters
from dccm.methods.per_image import PerImage
from dccm.methods.shared_critic import rows_of_views, shared_information_loss
from dccm.networks import build_encoder
from dccm.networks.base import EncoderOutput, NetworkConfig
from dccm.networks.critic import Critic, map_positions
from dccm.networks.head import VectorHead
from dccm.networks.tail import FinetuneConfig, groups_of
from dccm.training.update import Moment, Update


@dataclass(frozen=True, kw_only=True)
class DCCMConfig(Section):
    """Settings of the method; the defaults are the paper's where it gives any (docs/deviations.md says which)."""

    graph_threshold: Share = 0.95
    """Similarity from which two samples are linked (thres_1)."""
    label_threshold: Share = 0.9
    """Probability from which a pseudo-label is trained on (thres_2)."""
    label_weight: NotNegative = 5.0
    """Weight of the pseudo-label loss (alpha)."""
    label_reduction: Literal["mean", "sum"] = "mean"
    """How that loss stands to the graph loss: both as means, or as the sums of Eqs. (3) and (9), which have B² and B
    terms in a mini-batch of B: then it weighs B times less."""
    information_weight: NotNegative = 0.1
    """Weight of the triplet mutual information (beta)."""
    clean_weight: NotNegative = 1.0
    """Weight of graph and label loss on clean images; 0: learn from perturbed images only."""
    perturbed_weight: NotNegative = 1.0
    """Weight of graph and label loss on perturbed images; 0: no local robustness (M1 of Table 3)."""
    robustness: Literal["targets", "invariance"] = "targets"
    """Perturbed images learn the clean ones' targets (Eq. (12)), or only their prediction (Eq. (11))."""
    graph_loss: GraphLoss = "cross_entropy"
    """Loss on pairs: binary cross-entropy of the similarity, or the contrastive form of the footnote."""
    saturated_pairs: SaturatedPairs = "rest"
    """Pairs whose similarity is within a millionth of 0 or 1 give no gradient any more, or learn on."""
    label_loss: LabelLoss = "cross_entropy"
    """Loss on pseudo-labels: cross-entropy, or one binary cross-entropy per class."""
    pairs: PairStrategy = "nearest+random"
    """Partners for the mutual information (Table 6)."""
    negatives: Count = 1
    """Negative partners of each sample."""
    own_pairs: bool = True
    """Each sample's own map and feature are a positive pair too."""
    critic_positions: Count | Literal["all"] = "all"
    """Positions of the shallow map at which the critic is asked: all of them, or this many random ones."""
    deep_feature: Literal["hidden", "logits"] = "hidden"
    """Which layer is D for the critic: the first linear layer, or the last one's outputs."""
    starts: Handful = 1
    """Networks that begin with different weights; from 60 % of the run on the worst are dropped, one is left."""
    without: str = ""
    """Numbers of clusters that no image gets, such as 3,7: what an improved run leaves of those that people merged."""
    corrected_times: Handful = 8
    """Times that an image which people put into its cluster is drawn in an epoch of an improved run."""
    mini_batch: Several = 32
    """Images in one gradient step."""
    mined_by: str = ""
    """Folder of a finished run whose model, as it is, mines the targets of all images once and for all (Table 6);
    empty: the network itself does, anew for each large batch."""
    uses: Count = 1
    """Times that the targets of a large batch are learnt from before new ones are mined."""
    fewest_steps: Count = 1
    """Gradient steps per large batch at least: the targets of few images are learnt from more often."""
    joint_views: bool = True
    """Clean and perturbed images go through the network as one batch and share the statistics of batch norm."""
    optimizer: Literal["rmsprop", "adam"] = "rmsprop"
    """Kind of gradient step."""
    rmsprop_alpha: Momentum = 0.99
    """Share of the old mean square in RMSprop's new one; PyTorch's value, as the paper gives none."""
    learning_rate: Positive = 1e-4
    """Step size."""

    encoder: NetworkConfig = NetworkConfig(logit_norm="batch")
    perturbation: PerturbationConfig = PerturbationConfig()
    finetuning: FinetuneConfig = FinetuneConfig()

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.learns_clusters or bool(self.mined_by and self.information_weight),
            "clean_weight and perturbed_weight must not both be 0: nothing would be learnt. Set one to 1, or let "
            "another run mine the pairs (mined_by) and leave information_weight above 0.",
        )
        require(
            self.starts == 1 or not self.mined_by,
            f"starts must be 1 with mined_by, as all starts would have the same targets, got {self.starts}.",
        )

    @property
    def learns_clusters(self) -> bool:
        """Whether any loss reaches the prediction; the mutual information alone does not."""
        return self.clean_weight + self.perturbed_weight > 0


Views = dict[str, Tensor]
"""The images of a mini-batch by view, `clean` and `perturbed`, (B, C, H, W) each."""


class DCCMMethod(GradientMethod[DCCMConfig]):
    """Encoder and critic, learning from what is mined."""

    year = 2019
    citation = "Wu et al., Deep Comprehensive Correlation Mining for Image Clustering, ICCV 2019"
    learns = "features and clusters together"
    cost = "1 encoder step and 4 critic scores per image and pass"
    takes_vectors = True
    config_type = DCCMConfig

    def __init__(self, shape: ImageShape, n_clusters: int, config: DCCMConfig) -> None:
        super().__init__(shape, n_clusters, config)
        _require_suits(shape, config)
        self.known = KnownClusters(n_clusters, config.without)
        self.encoder = build_encoder(config.encoder, shape, n_clusters, config.finetuning.finetune)
        feature_size = self.encoder.feature_size if config.deep_feature == "hidden" else n_clusters
        self.critic = Critic(self.encoder.map_channels, feature_size)
        self.mined = PerImage(n_clusters) if config.mined_by else None
        # The mutual information alone teaches features only, and the last layer says nothing.
        self.readout = None if config.learns_clusters else KMeansReadout(n_clusters)

    def new_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """One for all weights."""
        rate = self.config.learning_rate
        weights = groups_of(list(self.parameters()), self.encoder, rate, self.config.finetuning.finetune_rate)
        if self.config.optimizer == "adam":
            return {"all": torch.optim.Adam(weights, lr=rate)}
        return {"all": torch.optim.RMSprop(weights, lr=rate, alpha=self.config.rmsprop_alpha)}

    def before_epoch(self, loader: Loader, moment: Moment) -> None:
        """A head on vectors begins where k-means ends, unless it goes on from another run."""
        if isinstance(self.encoder, VectorHead) and moment.epoch == 0 and not self.known.labels_known:
            begin_from_kmeans(self.encoder, loader, self.n_clusters)

    def updates(self, batch: Batch) -> Iterator[Update]:
        """Mine the large batch, then learn from mini-batches of it (Algorithm 1)."""
        config = self.config
        prediction = self._mining(batch)
        targets = mine(prediction, graph_threshold=config.graph_threshold, label_threshold=config.label_threshold)
        watched = None if self.mined else self.known.watched(prediction, targets)
        for index, views in self._mini_batches(batch):
            terms = self._terms(views, targets.rows(index), batch.generator)
            label_weight = config.label_weight / (len(index) if config.label_reduction == "sum" else 1)
            loss = objective(terms, label_weight=label_weight, information_weight=config.information_weight)
            yield Update(loss, self.optimizers["all"], len(index), terms._asdict(), watched)

    def _mining(self, batch: Batch) -> Tensor:
        """The predictions that targets are mined from: the network's own and people's, or another run's model's."""
        if self.mined is None:
            return self.known.told(predictions_of(self.encoder, batch.images), batch.index)
        return self.mined.rows[batch.index.to(self.mined.rows.device)]

    def _mini_batches(self, batch: Batch) -> Iterator[tuple[Tensor, Views]]:
        """Places in the large batch, and the views of the images there; all of them once per use."""
        count = len(batch.images)
        parts = equal_parts(count, self.config.mini_batch)
        for _ in range(max(self.config.uses, math.ceil(self.config.fewest_steps / parts))):
            seen_by = {"clean": batch.images.__getitem__, "perturbed": self._perturbed(batch)}
            order = torch.randperm(count, generator=batch.generator, device=batch.images.device)
            for index in order.tensor_split(parts):
                yield index, {name: seen_by[name](index) for name in self._views()}

    def _perturbed(self, batch: Batch) -> Callable[[Tensor], Tensor]:
        """Another look at images by their places: turned, shifted and zoomed, or one of the views that an encoder saw.

        All is drawn at once, and done to a mini-batch while it is in the cache.
        """
        if batch.views is not None:
            rows = torch.arange(len(batch.images), device=batch.images.device)
            drawn = torch.randint(len(batch.views), rows.shape, generator=batch.generator, device=rows.device)
            return batch.views[drawn, rows].__getitem__
        if self.shape.is_vector or self.config.finetuning.finetune:
            return batch.images.__getitem__  # What an encoder made of them cannot be turned.
        look = draw(batch.images.shape, self.config.perturbation, batch.generator)
        behind = len(self._views()) - 1 if self.config.joint_views else 0
        return lambda index: perturbed_rows(
            batch.images, index, look, self.workers.own_rows(len(index), behind * len(index))
        )

    def _views(self) -> list[str]:
        """The views that the losses need, the clean one first."""
        config = self.config
        clean = config.clean_weight > 0 or config.robustness == "invariance" or not config.learns_clusters
        return ["clean"] * clean + ["perturbed"] * (config.perturbed_weight > 0)

    def _terms(self, views: Views, targets: Targets, generator: torch.Generator) -> LossTerms:
        """The three terms of Eq. (15) on one mini-batch."""
        outputs = self._encoded(views)
        graph = label = targets.similarity.new_zeros(())
        for name, weight in (("clean", self.config.clean_weight), ("perturbed", self.config.perturbed_weight)):
            if weight:
                more_graph, more_label = self._supervised(name, outputs, targets)
                graph, label = graph + weight * more_graph, label + weight * more_label
        return LossTerms(graph, label, self._information(next(iter(outputs.values())), targets, generator))

    def _encoded(self, views: Views) -> dict[str, EncoderOutput]:
        """What the encoder says of each view."""
        if not self.config.joint_views:
            return {name: self.known.among(self.encoder(view)) for name, view in views.items()}
        images = next(iter(views.values()))
        output = self.known.among(self.encoder(torch.cat(list(views.values()))))
        by_view = zip(*(rows_of_views(layer, len(views), len(images), self.workers.place) for layer in output))
        return {name: EncoderOutput(*layers) for name, layers in zip(views, by_view)}

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
            saturated=self.config.saturated_pairs,
        )

    def _information(self, output: EncoderOutput, targets: Targets, generator: torch.Generator) -> Tensor:
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
        return shared_information_loss(self.critic, positions, feature, positive, negative, self.workers)

    def predict(self, images: Tensor) -> Tensor:
        """The prediction feature z; by k-means of the features where no loss reaches it."""
        return self.embed_and_predict(images)[1]

    def embed_and_predict(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Both of one pass through the encoder."""
        output = self.known.among(self.encoder(images))
        return output.feature, output.prediction if self.readout is None else self.readout(output.feature)

    def finish(self, loader: Loader) -> GradientMethod[Any]:
        """What another run's model said of the images is no longer needed."""
        super().finish(loader)
        if self.mined is not None:
            self.mined.forget()
        return self


def _require_suits(shape: ImageShape, config: DCCMConfig) -> None:
    """Refuse terms that need pictures where there are vectors or maps."""
    require(
        not config.finetuning.finetune or config.perturbed_weight == 0,
        "perturbed_weight must be 0 with finetune, as maps of a pretrained encoder cannot be turned like pictures, got "
        f"{config.perturbed_weight:g}. Take the preset 'features'.",
    )
    require(
        not shape.is_vector or not config.information_weight or config.deep_feature == "logits",
        "deep_feature must be 'logits' for an information_weight on vectors of a pretrained encoder, as their "
        f"components do not learn, got '{config.deep_feature}'. Set it, or information_weight = 0.",
    )

"""The critic's pairs, shared among workers: each scores the pairs whose maps it has, so that no map travels."""

from collections.abc import Sequence

from torch import Tensor

from dccm.correlations.mutual_information import Held, triplet_information_loss
from dccm.correlations.triplets import Pairs
from dccm.networks.critic import Critic
from dccm.training.workers import Place, Workers


def shared_information_loss(
    critic: Critic, positions: Tensor, features: Tensor, positive: Pairs, negative: Pairs, workers: Workers
) -> Tensor:
    """`triplet_information_loss`, of which each worker computes its part if it has but a part of the maps.

    Args:
        critic: T.
        positions: This worker's maps as lists of positions, (b, P, C).
        features: Deep features of all images, (B, D).
        positive: Pairs of all images.
        negative: Pairs of all images.
        workers: Who shares the work.
    """
    if len(positions) == len(features):
        return triplet_information_loss(critic, positions, features, positive, negative)
    held = Held(workers.place.rank, workers.place.of)
    part = triplet_information_loss(critic, positions, workers.handed(features), positive, negative, held)
    return workers.total(part)


def rows_of_views(layer: Tensor, views: int, images: int, place: Place) -> Sequence[Tensor]:
    """A layer of several views of the same images that went through the network as one batch, view by view.

    Args:
        layer: All rows, (views * images, ...), or those of one worker.
        views: How many lie behind each other.
        images: Of each view.
        place: The worker whose rows they are, if they are not all.
    """
    if len(layer) == views * images:
        return layer.chunk(views)
    ends = [-(-(view * images - place.rank) // place.of) for view in range(1, views)]
    return layer.tensor_split(ends)

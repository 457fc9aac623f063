"""The critic T of Eq. (13): does this feature belong to this feature map?"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HIDDEN = 512


class Critic(nn.Module):
    """Three 1x1 convolutions on [map, feature at every position], with ReLU between them.

    A 1x1 convolution on a concatenation is the sum of one on the map and one on the feature. Each of the two is
    computed once per image and shared by all the pairs that the image is in; pairs are given by index.
    """

    def __init__(self, map_channels: int, feature_size: int) -> None:
        super().__init__()
        self.of_map = nn.Linear(map_channels, HIDDEN)
        self.of_feature = nn.Linear(feature_size, HIDDEN, bias=False)
        self.middle = nn.Linear(HIDDEN, HIDDEN)
        self.score = nn.Linear(HIDDEN, 1)

    def forward(self, positions: Tensor, features: Tensor, map_index: Tensor, feature_index: Tensor) -> Tensor:
        """Score pairs of a map and a feature.

        Args:
            positions: Maps as lists of positions, (B, P, C).
            features: Deep features, (B, D).
            map_index: For each pair, the image that gives the map, (M,).
            feature_index: For each pair, the image that gives the feature, (M,).

        Returns:
            A score for each pair and position, (M, P).
        """
        maps = self.of_map(positions).index_select(0, map_index)
        others = self.of_feature(features).index_select(0, feature_index)
        hidden = F.relu(maps + others.unsqueeze(1), inplace=True)
        scores: Tensor = self.score(F.relu(self.middle(hidden), inplace=True))
        return scores.squeeze(-1)


def map_positions(feature_map: Tensor, count: int | None, generator: torch.Generator) -> Tensor:
    """A feature map as a list of positions, (B, P, C): all of them, or `count` drawn for the whole batch.

    The mean over drawn positions is an unbiased estimate of the mean over all of them.
    """
    positions = feature_map.flatten(2).transpose(1, 2)
    total = positions.shape[1]
    if count is None or count >= total:
        return positions
    drawn = torch.randperm(total, generator=generator, device=feature_map.device)[:count]
    return positions.index_select(1, drawn)

"""One training step as published, written plainly: what the speed of the package is compared with.

Mini-batches of 32 perturbed images; images are perturbed one after the other with SciPy; partners are searched sample
by sample; the critic sees, for each of four pairs an image, the shallow map and the repeated deep feature side by side,
at all positions. The arithmetic is that of the preset `released`; allocator and memory format are the usual ones.

python -m benchmarks.published_step N    # a step on N images for each line that it is given, and a line back
"""

import math
import sys

import numpy as np
import torch
import torch.nn.functional as F
from scipy import ndimage
from torch import Tensor, nn

from dccm.data.synthetic import bars

MINI = 32
SHALLOW_CHANNELS = 64


def convolution(before: int, after: int) -> nn.Module:
    """3x3 convolution, batch norm, ReLU."""
    return nn.Sequential(nn.Conv2d(before, after, 3), nn.BatchNorm2d(after), nn.ReLU())


class PlainEncoder(nn.Module):
    """The 32-pixel network of the supplement."""

    def __init__(self, n_clusters: int) -> None:
        super().__init__()
        channels = SHALLOW_CHANNELS
        self.shallow = nn.Sequential(convolution(3, channels), convolution(channels, channels), nn.MaxPool2d(2))
        self.deep = nn.Sequential(convolution(channels, 128), nn.MaxPool2d(2), convolution(128, 256))
        self.hidden = nn.Sequential(nn.Linear(256, 64), nn.BatchNorm1d(64), nn.ReLU())
        self.output = nn.Linear(64, n_clusters)
        self.norm = nn.BatchNorm1d(n_clusters)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Shallow map, logits and prediction."""
        shallow = self.shallow(images)
        logits = self.output(self.hidden(self.deep(shallow).mean(dim=(2, 3))))
        return shallow, logits, torch.softmax(self.norm(logits), dim=1)


class PlainCritic(nn.Module):
    """Three 1x1 convolutions on the concatenation of map and feature."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, 512, 1)
        self.second = nn.Conv2d(512, 512, 1)
        self.third = nn.Conv2d(512, 1, 1)

    def forward(self, feature_map: Tensor, feature: Tensor) -> Tensor:
        """Scores of each image's map with its feature, at every position."""
        height, width = feature_map.shape[2:]
        repeated = feature[:, :, None, None].expand(-1, -1, height, width)
        hidden = F.relu(self.first(torch.cat([feature_map, repeated], dim=1)))
        scores: Tensor = self.third(F.relu(self.second(hidden)))
        return scores


def perturbed(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Turn, move, zoom, mirror and shift the channels of one image, (C, H, W) in [0, 1]."""
    _, height, width = image.shape
    angle = math.radians(random.uniform(-20, 20))
    scale = 1 / random.uniform(0.85, 1.15)
    matrix = scale * np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    if random.random() < 0.5:
        matrix[:, 1] *= -1
    middle = np.array([height / 2 - 0.5, width / 2 - 0.5])
    move = random.uniform(-0.18, 0.18, 2) * [height, width]
    offset = middle - matrix @ middle + move
    planes = [ndimage.affine_transform(plane, matrix, offset, order=1, mode="nearest") for plane in image]
    levels = random.uniform(-0.1, 0.1, (len(image), 1, 1))
    return ((np.stack(planes) + levels) * 0.95).clip(0, 1).astype(np.float32)


class PublishedStep:
    """Encoder, critic and optimizer, and the steps of one large batch."""

    def __init__(self, n_clusters: int = 10) -> None:
        self.encoder = PlainEncoder(n_clusters)
        self.critic = PlainCritic(SHALLOW_CHANNELS + n_clusters)
        parameters = [*self.encoder.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.RMSprop(parameters, lr=1e-4)
        self.random = np.random.default_rng(0)

    def learn_from(self, images: Tensor) -> None:
        """Mine a large batch of images, (B, C, H, W), then step on its mini-batches once."""
        with torch.no_grad():
            *_, prediction = self.encoder(images)
        similarity = F.normalize(prediction, dim=1) @ F.normalize(prediction, dim=1).T
        graph = (similarity >= 0.95).float()
        probability, label = prediction.max(dim=1)
        confident = (probability >= 0.9).float()
        order = torch.randperm(len(images))
        for start in range(0, len(images), MINI):
            index = order[start : start + MINI]
            changed = np.stack([perturbed(image, self.random) for image in images[index].numpy()])
            rows = similarity[index][:, index], graph[index][:, index]
            loss = self.loss(torch.from_numpy(changed), *rows, label[index], confident[index])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def loss(self, images: Tensor, similarity: Tensor, graph: Tensor, label: Tensor, confident: Tensor) -> Tensor:
        """Eq. (15) on perturbed images."""
        maps, logits, prediction = self.encoder(images)
        unit = F.normalize(prediction, dim=1)
        cosine = (unit @ unit.T).clamp(1e-6, 1 - 1e-6)
        graph_loss = F.binary_cross_entropy(cosine, graph)
        target = F.one_hot(label, prediction.shape[1]).float()
        label_loss = F.binary_cross_entropy(prediction, target, weight=confident[:, None])
        positive, first, second = partners(similarity, graph, self.random)
        related = [self.critic(maps, logits), self.critic(maps[positive], logits)]
        others = [self.critic(maps[first], logits), self.critic(maps[second], logits)]
        information = sum(F.softplus(-score).mean() for score in related) / 2
        information = information + sum(F.softplus(score).mean() for score in others) / 2
        loss: Tensor = graph_loss + 5 * label_loss + 0.05 * information
        return loss


def partners(similarity: Tensor, graph: Tensor, random: np.random.Generator) -> tuple[list[int], list[int], list[int]]:
    """For each sample its most similar linked partner, and two unlinked ones at random."""
    positive, first, second = [], [], []
    for sample in range(len(graph)):
        linked = similarity[sample].masked_fill(graph[sample] == 0, -1.0)
        linked[sample] = -1.0
        best = int(linked.argmax())
        positive.append(best if float(linked[best]) > -1 else sample)
        unlinked = (graph[sample] == 0).nonzero()[:, 0].tolist() or [sample]
        first.append(int(random.choice(unlinked)))
        second.append(int(random.choice(unlinked)))
    return positive, first, second


def main() -> None:
    """Make a step whenever a line comes in."""
    images = images_of(int(sys.argv[1]))
    step = PublishedStep()
    for _ in sys.stdin:
        step.learn_from(images)
        print("done", flush=True)


def images_of(count: int) -> Tensor:
    """What all contestants learn from."""
    return torch.from_numpy(bars(count, side=32, channels=3, classes=10).images).permute(0, 3, 1, 2).float().div_(255)


if __name__ == "__main__":
    main()

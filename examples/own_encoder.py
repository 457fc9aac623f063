"""Cluster by the features of a network of your own, handed over as an ONNX file or as a PyTorch module.

python examples/own_encoder.py            # a small network, for a try
python examples/own_encoder.py model.onnx photos/
"""

import sys

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from dccm import ImageClusterer
from dccm.networks.feature_encoder import Preprocessing, TorchEncoder


def by_onnx_file(model: str, photos: str) -> ImageClusterer:
    """An ONNX file is named like any other encoder; dccm keeps its features in the cache."""
    return ImageClusterer(n_clusters=12, encoder=f"onnx:{model}", random_state=0).fit(photos)


def by_module(network: nn.Module, images: np.ndarray) -> np.ndarray:
    """A PyTorch module makes the vectors; rows of numbers are clustered like images."""
    wants = Preprocessing(side=32, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
    encoder = TorchEncoder("mine", network, wants, torch.device("cpu"))
    vectors = np.concatenate([encoder(part) for part in np.array_split(images, 10)])
    model = ImageClusterer(n_clusters=10, method="kmeans", random_state=0)
    return model.fit_predict(vectors)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(by_onnx_file(*sys.argv[1:3]).labels_)
    else:
        torch.manual_seed(0)
        network = nn.Sequential(nn.Conv2d(3, 16, 5, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
        images = (load_digits().images[:300, :, :, None] * 15).astype("uint8")
        print("Sizes of the clusters:", np.bincount(by_module(network, images)))

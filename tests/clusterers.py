"""Estimators that are fitted within a second, for the tests of several files."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from dccm import DCCM, ImageClusterer
from dccm.config import DataConfig, TrainingConfig, setting_names
from dccm.methods import METHODS
from dccm.methods.base import DirectMethod

QUICK: dict[str, Any] = {"mini_batch": 4, "batch_size": 50, "critic_positions": 2, "uses": 1, "starts": 1}
CLUSTERER: dict[str, Any] = {"n_clusters": 3, "random_state": 0, "device": "cpu"}
KMEANS = ImageClusterer(**CLUSTERER, method="kmeans", settings={"batch_size": 50})


def estimator(**arguments: Any) -> DCCM:
    defaults: dict[str, Any] = {"epochs": 2, "settings": QUICK}
    return DCCM(**(defaults | CLUSTERER | arguments))


def quick(method: str) -> ImageClusterer:
    """Any method, for a fit of a second."""
    known = [name for kind in (DataConfig, TrainingConfig, METHODS[method].config_type) for name in setting_names(kind)]
    settings = {name: value for name, value in QUICK.items() if name in known}
    epochs = None if issubclass(METHODS[method], DirectMethod) else 1
    return ImageClusterer(**CLUSTERER, method=method, epochs=epochs, settings=settings)


def files(folder: Path, images: np.ndarray) -> list[Path]:
    """One file per image, in the order of their names."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number:03d}.png" for number in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(path)
    return paths

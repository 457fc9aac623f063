"""An image that is no part of the run, looked at as the run's model looks at its own."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dccm.arrays import Bytes, Floats, Inputs
from dccm.data.decode import Preparation, decode
from dccm.errors import UserError

if TYPE_CHECKING:  # They come with torch, which takes seconds.
    from dccm.networks.feature_encoder import FeatureEncoder
    from dccm.runs.model import Model


class Examples:
    """Makes features of images that are dropped in; the model is loaded for the first one.

    Args:
        folder: The run directory.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._model: Model | None = None
        self._encoder: FeatureEncoder | None = None

    def feature(self, content: bytes) -> Floats:
        """The feature of the image that these bytes hold, (D,)."""
        with self._lock:
            model = self._loaded()
            shape = model.picture_shape
            wanted = Preparation((shape.height, shape.width), model.config.data.fit, shape.channels)
            try:
                pixels = decode(content, wanted)
            except Exception as error:  # Decoders of damaged files raise nearly everything.
                raise UserError("What was dropped is no image that can be read. Drop a JPEG or PNG file.") from error
            feature: Floats = model.transform(self._inputs(pixels[np.newaxis]))[0]
            return feature

    def _loaded(self) -> "Model":
        from dccm.runs.features import encoder_like
        from dccm.runs.model import Model

        if self._model is None:
            model = Model.load(self._folder)
            self._encoder = encoder_like(model.pretrained) if model.pretrained else None
            self._model = model
        return self._model

    def _inputs(self, images: Bytes) -> Inputs:
        from dccm.runs.features import halves_of

        if self._encoder is None:
            return images
        halves = halves_of(self._encoder, images)
        return halves if halves.ndim == 4 else halves[:, np.newaxis, np.newaxis]

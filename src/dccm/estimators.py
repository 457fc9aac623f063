"""DCCM as a scikit-learn estimator: `DCCM(n_clusters=10).fit(images)`."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from dccm.arrays import SMALLEST_SIDE, Bytes, Fit, Floats
from dccm.config import DataConfig, Settings, build
from dccm.data.images import ImageSet, as_bytes, resized, with_channels
from dccm.data.read import read_images
from dccm.errors import require
from dccm.runs.model import Model, make_config
from dccm.runs.run import fit


class DCCM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Cluster images by Deep Comprehensive Correlation Mining.

    Images are a uint8 array (N, H, W) or (N, H, W, C), floats in [0, 1] of the same shape, a tensor (N, C, H, W), a
    path of anything that `dccm cluster` reads, a data set of torch or Hugging Face, or an `ImageSet`. Rows of numbers,
    (N, F), are taken as flattened square grey images: their range is brought to 0..1 by the smallest and largest value
    seen in `fit`, missing pixels are 0.

    Args:
        n_clusters: K.
        preset: Name of a preset; "dccm presets" lists them.
        epochs: Times that every image is seen; none: as the preset says.
        image_size: Side to which images are brought; none: see `DataConfig`.
        settings: Any other settings by name; they win over the preset.
        device: auto, cpu, cuda, ...
        random_state: Seed; the same seed gives the same labels on the same machine.
        verbose: Show progress on standard error.

    Attributes:
        labels_: Cluster of each image of `fit`, (N,).
        model_: The trained `Model`.
        history_: One record for each epoch: losses, cluster sizes, shares, warnings.
        n_iter_: Epochs done.
    """

    def __init__(
        self,
        n_clusters: int = 10,
        *,
        preset: str = "fast",
        epochs: int | None = None,
        image_size: int | None = None,
        settings: Settings | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.preset = preset
        self.epochs = epochs
        self.image_size = image_size
        self.settings = settings
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: None = None) -> "DCCM":  # noqa: N803, ARG002 (scikit-learn's names)
        """Train on images; `y` is ignored, as clustering needs no labels."""
        images = self._images(X, fitting=True)
        config = make_config(preset=self.preset, overrides=self._overrides())
        if self.verbose:
            from dccm.progress import Display

            with Display(stream=sys.stderr) as display:
                fitted = fit(images, config, on_progress=display.training)
        else:
            fitted = fit(images, config)
        self.model_ = fitted.model
        self.history_ = fitted.history
        self.n_iter_ = len(fitted.history)
        self._n_features_out = self.model_.transform(images[:1]).shape[1]
        self.labels_ = self.model_.predict_proba(images).argmax(axis=1)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int64]:  # noqa: N803
        """Cluster of each image, (N,); an image gets the same answer alone and in any batch."""
        labels: npt.NDArray[np.int64] = self.predict_proba(X).argmax(axis=1)
        return labels

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Probability of each cluster, (N, K)."""
        check_is_fitted(self)
        return self.model_.predict_proba(self._images(X, fitting=False))

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Deep feature of each image, (N, D)."""
        check_is_fitted(self)
        return self.model_.transform(self._images(X, fitting=False))

    def save(self, folder: str | Path) -> None:
        """Write the trained model as safetensors and JSON; `DCCM.load` and `dccm predict` read it."""
        check_is_fitted(self)
        self.model_.save(Path(folder), rows=getattr(self, "rows_", None))

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> "DCCM":
        """Read a model that `save` or `dccm cluster` wrote. A model file cannot run code."""
        model = Model.load(Path(folder), device)
        own = {"n_clusters", "epochs", "image_size", "device", "seed"}
        settings = {name: value for name, value in model.config.settings().items() if name not in own}
        estimator = cls(
            model.config.data.n_clusters,
            preset=model.config.preset,
            epochs=model.config.training.epochs,
            image_size=model.config.data.image_size,
            settings=settings,
            device=device,
            random_state=model.config.training.seed,
        )
        estimator.model_ = model
        if model.rows is not None:
            estimator.rows_ = model.rows
            estimator.n_features_in_ = model.rows["features"]
        else:
            estimator.n_features_in_ = model.shape.height
        return estimator

    def _overrides(self) -> Settings:
        """The estimator's own arguments as settings."""
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        named = {"n_clusters": self.n_clusters, "epochs": self.epochs, "image_size": self.image_size}
        given = {name: value for name, value in named.items() if value is not None}
        return (self.settings or {}) | given | {"device": self.device, "seed": int(seed)}

    def _images(self, X: Any, fitting: bool) -> Bytes:  # noqa: N803
        """Images of any accepted kind as bytes, in the shape that the model wants."""
        if isinstance(X, str | Path | ImageSet) or _is_data_set(X):
            shape = None if fitting else self.model_.shape
            size = self.image_size if shape is None else shape.height
            found = read_images(X, image_size=size, fit=self._fit(), channels=shape and shape.channels)
            X = found.images  # noqa: N806
        # Strings and objects are refused by the conversion; whole images keep their type.
        X = validate_data(self, X, reset=fitting, allow_nd=True, dtype=None, ensure_min_samples=2 if fitting else 1)  # noqa: N806
        if X.ndim == 2:
            return self._rows_as_images(X.astype(np.float64), fitting)
        images = as_bytes(X)
        if self.image_size is not None:
            images = resized(images, self.image_size, self._fit())
        return images if fitting else with_channels(images, self.model_.shape.channels)

    def _fit(self) -> Fit:
        """How images become square."""
        [data] = build([DataConfig], {"fit": (self.settings or {}).get("fit", "crop")}, "settings")
        fit: Fit = data.fit
        return fit

    def _rows_as_images(self, rows: npt.NDArray[np.float64], fitting: bool) -> Bytes:
        """Flattened images as square ones, enlarged by whole factors to what the network needs at least."""
        if fitting:
            self.rows_ = {"features": rows.shape[1], "low": float(rows.min()), "high": float(rows.max())}
        require(hasattr(self, "rows_"), "The model was trained on images, got rows of numbers. Reshape them to images.")
        low, high = self.rows_["low"], self.rows_["high"]
        levels = ((rows - low) / max(high - low, 1e-12)).clip(0, 1) * 255
        side = int(np.ceil(np.sqrt(rows.shape[1])))
        canvas = np.zeros((len(rows), side * side), dtype=np.uint8)
        canvas[:, : rows.shape[1]] = levels.round()
        factor = -(-SMALLEST_SIDE // side)
        return canvas.reshape(-1, side, side, 1).repeat(factor, axis=1).repeat(factor, axis=2)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        # Features come from a float32 network, whatever the images were.
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _is_data_set(thing: Any) -> bool:
    """Whether this is a tensor, a data set or a list of files, rather than something like an array."""
    if isinstance(thing, list | tuple):
        return bool(thing) and isinstance(thing[0], str | Path)
    like_array = hasattr(thing, "shape") or hasattr(thing, "__array__")
    return hasattr(thing, "detach") or (hasattr(thing, "__getitem__") and not like_array)

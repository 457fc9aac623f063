"""All methods as scikit-learn estimators: `ImageClusterer(n_clusters=10, method="dccm").fit(images)`."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from dccm.arrays import Floats, Inputs
from dccm.config import Settings
from dccm.corrections.going_on import GoingOn, going_on, require_same_images
from dccm.data.datasets import data_set_name
from dccm.data.images import ImageSet, require_all_read, unread
from dccm.data.read import read_images
from dccm.data.rows import Rows, is_rows, plain, require_like, squares
from dccm.errors import require
from dccm.networks.feature_encoder import FeatureEncoder
from dccm.progress import READING, shown
from dccm.runs.choice import Asked
from dccm.runs.choosing import chosen, take_asked
from dccm.runs.confidence import graded_threshold, parse_reject, rejected_ones
from dccm.runs.config import RunConfig, arguments_of, has_epochs, make_config
from dccm.runs.contents import NO_CLUSTER, Assignments
from dccm.runs.directory import RunDirectory
from dccm.runs.features import encoder_for, inputs_like, inputs_of
from dccm.runs.fitting import fewer_at_once, fit, new_model
from dccm.runs.model import Model
from dccm.runs.views import views_of
from dccm.training.progress import ignore


class ImageClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Cluster images by any method of the package.

    Images are whatever `read_images` takes: an array (N, H, W) or (N, H, W, C) of uint8, or of floats in [0, 1], a
    tensor (N, C, H, W), a list of paths or of images of Pillow, the path of anything that `dccm cluster` reads, a data
    set of torch or Hugging Face, the name of a data set, or an `ImageSet`. Rows of numbers, (N, F), are taken as
    flattened square grey images: their range is brought to 0..1 by the smallest and largest value seen in `fit`,
    missing pixels are 0.

    New images are brought to the size and the channels of those that the model was trained on.

    Args:
        n_clusters: K; "auto", or a range such as "5..30", lets it be chosen.
        method: Name of a method; "dccm methods" lists them.
        encoder: Pretrained network whose vectors are clustered; "dccm encoders" lists them. None: as settings say.
        preset: Name of a preset; "dccm presets" lists them. None: the method's default.
        epochs: Times that every image is seen. None: as the preset says; methods without epochs take nothing else.
        image_size: Side to which images are brought. None: see `DataConfig`.
        settings: Any other settings by name; they win over the preset.
        reject: Images without a cluster: a share of the least sure, 0.1, or those "below:0.6". None: all have one.
        improve: Corrected run to learn on from; it decides K, method, encoder and preset. None: begin anew.
        device: auto, cpu, cuda, ...
        random_state: Seed; the same seed gives the same labels on the same machine.
        verbose: Show progress on standard error.

    Attributes:
        labels_: Cluster of each image of `fit`, (N,); -1 for those that were rejected.
        confidences_: Probability of the best cluster of each of them, (N,).
        outliers_: Whether each of them is far from all others, (N,).
        names_: Path or number of each of them, in the same order.
        skipped_: Path and reason of everything that could not be read in `fit`.
        model_: The trained `Model`.
        history_: One record for each epoch: losses, cluster sizes, shares, warnings.
        n_iter_: Epochs done.
        choice_: How K was chosen; None where it was given.
    """

    def __init__(
        self,
        n_clusters: int | str = 10,
        *,
        method: str = "dccm",
        encoder: str | None = None,
        preset: str | None = None,
        epochs: int | None = None,
        image_size: int | None = None,
        settings: Settings | None = None,
        reject: float | str | None = None,
        improve: str | Path | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.method = method
        self.encoder = encoder
        self.preset = preset
        self.epochs = epochs
        self.image_size = image_size
        self.settings = settings
        self.reject = reject
        self.improve = improve
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: N803, ARG002 (scikit-learn's names)
        """Train on images; `y` is ignored, as clustering needs no labels. What cannot be read is in `skipped_`."""
        config, asked, going = self._config(data_set_name(X))  # Before images are read, which can take long.
        rejecting = parse_reject(self.reject)
        encoder = encoder_for(config)
        with shown(self.verbose) as show:
            image_set, rows = self._read_to_fit(X, config, encoder, show)
            if image_set.skipped and not isinstance(X, ImageSet):  # Whoever has one can see what it lacks.
                warnings.warn(f"{unread(image_set)} They have no row in labels_, which is of names_.", stacklevel=2)
            if going:
                require_same_images(going.corrected, image_set)
            lesson = going.lesson if going else None
            told = show.get("training", ignore)
            inputs, pretrained = inputs_of(image_set, encoder, on_progress=told)
            views = views_of(image_set, encoder, config, on_progress=told)
            config, self.choice_ = chosen(inputs, asked, config, told)
            model = new_model(inputs, config, encoder, lesson)
            if note := fewer_at_once(model, config):
                warnings.warn(note, stacklevel=2)
            fitted = fit(inputs, model.config, model=model, views=views, lesson=lesson, on_progress=told)
        self.model_ = fitted.model
        self.model_.rows, self.model_.pretrained = rows, pretrained
        clusters, sure, _, outliers = self.model_.assign(inputs)
        self.model_.reject_below = below = graded_threshold(rejecting, self.model_.method, self.method, sure)
        self._keep(clusters, sure, rejected_ones(sure, below), outliers)
        self.names_: Sequence[str] = image_set.names
        self.skipped_ = list(image_set.skipped)
        self.history_, self.n_iter_ = fitted.history, len(fitted.history)
        return self

    def _keep(self, clusters: Any, confidences: Any, rejected: Any, outliers: Any) -> None:
        self.labels_: npt.NDArray[np.int64] = np.where(rejected, NO_CLUSTER, clusters)
        self._best, self.confidences_, self.outliers_ = clusters, confidences, outliers

    def predict(self, X: Any) -> npt.NDArray[np.int64]:  # noqa: N803
        """Cluster of each image, (N,), -1 if it is rejected; the same answer alone and in any batch."""
        probabilities, below = self.predict_proba(X), self._model().reject_below
        return np.where(rejected_ones(probabilities.max(axis=1), below), NO_CLUSTER, probabilities.argmax(axis=1))

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Probability of each cluster, (N, K), calibrated; also of those that would be rejected."""
        return self._model().predict_proba(self._read_to_predict(X))

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Deep feature of each image, (N, D)."""
        return self._model().transform(self._read_to_predict(X))

    def save(self, folder: str | Path) -> None:
        """Write the model as safetensors and JSON, with what `fit` found; `load` and `dccm predict` read it."""
        model, directory = self._model(), RunDirectory(folder)
        require(
            not directory.holds_run,
            f"{folder} holds a run, and its files are not overwritten. Choose another folder.",
        )
        directory.forget_assignments()  # Of another model.
        model.save(directory.path)
        if hasattr(self, "labels_"):
            none = self.labels_ == NO_CLUSTER
            directory.write_assignments(Assignments(self.names_, self._best, self.confidences_, none, self.outliers_))
            directory.write_skipped(self.skipped_)
            directory.write_history(self.history_)

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """Read what `save` or `dccm cluster` wrote. A model file cannot run code.

        A folder that holds nothing but the model gives an estimator without `labels_`, `names_` and `history_`.
        """
        model = Model.load(Path(folder), device)
        estimator = cls._of(model.config, device)
        estimator.model_ = model
        estimator.reject = None if model.reject_below is None else f"below:{model.reject_below}"
        if model.rows is not None:
            estimator.n_features_in_ = model.rows["features"]
        directory = RunDirectory(folder)
        if directory.assignments.is_file():
            estimator._recall(directory)
        return estimator

    @classmethod
    def _of(cls, config: RunConfig, device: str) -> Self:
        """An estimator with the settings of a model."""
        return cls(method=config.method, **arguments_of(config, device))

    def _recall(self, directory: RunDirectory) -> None:
        """Take over what a run or `save` left in a folder."""
        self.names_, *found = directory.read_assignments()
        self._keep(*found)
        self.skipped_ = directory.read_skipped()
        self.history_ = directory.read_history() if directory.history.is_file() else []
        self.n_iter_ = len(self.history_)

    def _model(self) -> Model:
        check_is_fitted(self, "model_")
        model: Model = self.model_
        return model

    def _config(self, dataset: str) -> tuple[RunConfig, Asked | None, GoingOn | None]:
        """All settings, and the numbers of clusters to choose from; own arguments win over other settings."""
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        own = () if self.improve else ("n_clusters", "encoder", "image_size")
        named = {name: getattr(self, name) for name in ("epochs", *own)}
        given = {name: value for name, value in named.items() if value is not None}
        overrides = dict(self.settings or {}) | given | {"device": self.device, "seed": int(seed)}
        if self.improve:
            going = going_on(RunDirectory(self.improve), overrides)
            return going.config, None, going
        asked = take_asked(overrides)
        config = make_config(self.method, self.preset, dataset, overrides)
        require(
            self.epochs is None or has_epochs(self.method),
            f"epochs must be left out for the method '{self.method}', which has none, got {self.epochs}.",
        )
        return config, asked, None

    def _read_to_fit(
        self, images: Any, config: RunConfig, encoder: FeatureEncoder | None, show: Mapping[str, Any]
    ) -> tuple[ImageSet, Rows | None]:
        """The images, and how they were made of rows of numbers, if they were."""
        for name in {"n_features_in_", "feature_names_in_"} & set(vars(self)):
            delattr(self, name)  # Of the last `fit`, if that was on rows.
        rows = None
        if is_rows(images):
            numbers = validate_data(self, images, dtype=np.float64, ensure_min_samples=2)
            rows = {"features": numbers.shape[1], "low": float(numbers.min()), "high": float(numbers.max())}
            images = squares(numbers, rows)
        reading: dict[str, Any] = {name: show.get(key) for name, key in READING.items()}
        reading["up_to"] = encoder.preprocessing.side if encoder else None
        return read_images(plain(images), image_size=config.data.image_size, fit=config.data.fit, **reading), rows

    def _read_to_predict(self, images: Any) -> Inputs:
        """Images as the model wants them, one for each that was given."""
        model = self._model()
        require_like(images, model.rows, type(self).__name__)
        if model.rows is not None:
            images = squares(validate_data(self, images, reset=False, dtype=np.float64), model.rows)
        channels, *size = model.picture_shape
        image_set = read_images(
            plain(images), image_size=(size[0], size[1]), fit=model.config.data.fit, channels=channels
        )
        if not isinstance(images, ImageSet):  # Whoever has one can see what it lacks.
            require_all_read(image_set)
        return inputs_like(model.pretrained, image_set, device=self.device)

    @property
    def _n_features_out(self) -> int:
        """Length of a feature, for the names of the columns."""
        return int(self.model_.feature_size)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        # Features come from a float32 network, whatever the images were.
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


class DCCM(ImageClusterer):
    """Cluster images by Deep Comprehensive Correlation Mining: `ImageClusterer` with the method `dccm`."""

    def __init__(
        self,
        n_clusters: int | str = 10,
        *,
        preset: str | None = None,
        epochs: int | None = None,
        image_size: int | None = None,
        settings: Settings | None = None,
        reject: float | str | None = None,
        improve: str | Path | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_clusters,
            method="dccm",
            preset=preset,
            epochs=epochs,
            image_size=image_size,
            settings=settings,
            reject=reject,
            improve=improve,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )

    @classmethod
    def _of(cls, config: RunConfig, device: str) -> Self:
        require(
            config.method == "dccm",
            f"DCCM loads models of the method 'dccm', got one of '{config.method}'. Take ImageClusterer.load.",
        )
        return cls(**arguments_of(config, device))

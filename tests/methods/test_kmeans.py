from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

from dccm.data.synthetic import bars
from dccm.evaluation.metrics import accuracy
from dccm.runs.config import make_config
from dccm.runs.fitting import fit
from dccm.runs.model import Model


def labels_of(images: np.ndarray, **settings: object) -> np.ndarray:
    model = fit(images, make_config("kmeans", overrides={"n_clusters": 4} | settings)).model
    return np.asarray(model.predict_proba(images).argmax(axis=1))


def test_clusters_are_those_of_scikit_learn_on_the_same_pixels() -> None:
    images = bars(120, side=12).images
    rows = images.transpose(0, 3, 1, 2).reshape(120, -1).astype(np.float32) / 255
    expected = KMeans(4, n_init=10, random_state=0).fit_predict(rows)
    assert accuracy(expected, labels_of(images, scaling="none")) == 1


def test_starts_in_few_components_lead_to_centres_of_all_pixels() -> None:
    images = bars(120, side=12).images
    rows = images.transpose(0, 3, 1, 2).reshape(120, -1).astype(np.float32) / 255
    labels = labels_of(images, scaling="none", components=2)
    centres = np.stack([rows[labels == cluster].mean(axis=0) for cluster in range(4)])
    distances = ((rows[:, np.newaxis] - centres) ** 2).sum(axis=2)
    assert np.array_equal(distances.argmin(axis=1), labels)


def test_images_of_unit_length_are_told_apart_by_what_they_show_and_not_by_how_bright_they_are() -> None:
    found = bars(120, side=12, seed=1)
    assert found.labels is not None
    images = found.images.copy()
    images[(np.arange(120) // 4) % 2 == 0] //= 8
    assert accuracy(found.labels, labels_of(images, scaling="unit")) > 0.9
    assert accuracy(found.labels, labels_of(images, scaling="none")) < 0.8


def test_the_mean_image_is_saved_with_the_model(tmp_path: Path) -> None:
    images = bars(60, side=8).images
    model = fit(images, make_config("kmeans", overrides={"n_clusters": 4, "scaling": "centred"})).model
    model.save(tmp_path)
    assert np.array_equal(Model.load(tmp_path, "cpu").transform(images), model.transform(images))
    assert abs(model.transform(images).mean()) < 0.02

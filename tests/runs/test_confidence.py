import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.commands.cluster import cluster
from dccm.commands.evaluate import evaluate
from dccm.commands.predict import predict
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.estimators import ImageClusterer
from dccm.runs.confidence import Reject, parse_reject, threshold
from dccm.runs.model import Model
from dccm.runs.run import Clustering

FOUND = bars(120, side=8)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Clustering:
    return cluster(FOUND, 4, "kmeans", output=tmp_path_factory.mktemp("runs") / "run", reject=0.1, device="cpu")


@pytest.mark.parametrize("wrong", ["1.5", "-1", "x", "below:2", "above:0.5", "nan", 0, 1.0, True, "below:"])
def test_a_wrong_reject_is_refused_with_the_rule_and_an_example(wrong: Any) -> None:
    with pytest.raises(UserError, match=r"reject must be a share .*, got .*For example 0.1, or below:0.6"):
        parse_reject(wrong)


def test_both_rules_are_read_from_text_and_numbers() -> None:
    assert parse_reject("0.1") == parse_reject(0.1) == Reject(share=0.1)
    assert parse_reject("below:0.6") == Reject(below=0.6)
    assert parse_reject(None) is None


def test_a_share_becomes_a_threshold_that_rejects_no_more() -> None:
    confidences = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    assert threshold(Reject(share=0.4), confidences) == pytest.approx(0.3)
    assert threshold(Reject(share=0.4), np.ones(5)) == 1
    assert threshold(Reject(below=0.25), confidences) == 0.25


@pytest.mark.parametrize("method", ["spectral", "agglomerative"])
def test_reject_is_refused_before_training_where_all_images_are_equally_sure(tmp_path: Path, method: str) -> None:
    with pytest.raises(UserError, match=f"the method '{method}' gives all the same. Leave it out"):
        cluster(FOUND, 4, method, output=tmp_path / "run", reject=0.1)
    assert not (tmp_path / "run").exists()


def test_a_rejected_image_has_no_cluster_in_the_file_and_its_best_one_beside(finished: Clustering) -> None:
    rows = [line.split(",") for line in finished.directory.assignments.read_text().splitlines()]
    assert rows[0] == ["path", "cluster", "confidence", "best", "outlier"]
    below = finished.model.reject_below
    assert below is not None
    rejected = [row for row in rows[1:] if row[1] == "-1"]
    assert 0 < len(rejected) <= 12
    assert all(float(row[2]) < below + 1e-6 and 0 <= int(row[3]) < 4 for row in rejected)
    assert all(row[1] == row[3] for row in rows[1:] if row[1] != "-1")


def test_the_result_tells_raw_and_calibrated_and_scores_all_images(finished: Clustering) -> None:
    stored = json.loads(finished.directory.result.read_text())
    confidence = stored["confidence"]
    assert confidence["temperature"] == pytest.approx(finished.model.confidence.temperature)  # type: ignore[union-attr]
    assert confidence["mean_raw"] != confidence["mean"]
    assert confidence["scores"]["coverage"] < 1
    scored = evaluate(finished.directory.path, _labels(finished))
    assert scored["acc"] == pytest.approx(stored["scores"]["acc"])
    assert scored["calibration_error"] == pytest.approx(confidence["scores"]["calibration_error"], abs=1e-4)
    assert finished.directory.read_result() == finished.result


def _labels(finished: Clustering) -> Path:
    path = finished.directory.path / "labels.npy"
    np.save(path, np.asarray(FOUND.labels))
    return path


def test_calibration_comes_closer_to_the_truth(finished: Clustering) -> None:
    surety = finished.result.confidence
    assert surety is not None
    assert surety.scores["calibration_error"] < surety.scores["calibration_error_raw"] / 2


def test_predict_takes_temperature_and_threshold_of_the_model(finished: Clustering) -> None:
    again = predict(finished.directory.path, FOUND).assignments
    stored = finished.directory.read_assignments()
    assert again.confidences == pytest.approx(stored.confidences, abs=1e-5)
    assert again.outliers.tolist() == stored.outliers.tolist()
    assert again.rejected.sum() == stored.rejected.sum() > 0
    assert not predict(finished.directory.path, FOUND, reject="below:0").assignments.rejected.any()


def test_new_images_unlike_all_others_are_outliers(finished: Clustering) -> None:
    noise = np.random.default_rng(0).integers(0, 255, size=(20, 8, 8), dtype=np.uint8)
    assert predict(finished.directory.path, noise).assignments.outliers.mean() > 0.9


def test_a_model_of_an_older_version_still_loads_and_is_raw(finished: Clustering, tmp_path: Path) -> None:
    finished.model.save(tmp_path)
    (tmp_path / "outliers.safetensors").unlink()
    document = json.loads((tmp_path / "model.json").read_text())
    for name in ("confidence", "reject_below"):
        del document[name]
    (tmp_path / "model.json").write_text(json.dumps(document))
    old = Model.load(tmp_path).assign(FOUND.images)
    assert old.confidences.tolist() == old.raw.tolist()
    assert not old.outliers.any()


@pytest.mark.parametrize("wrong", [{"temperature": -1, "agreement": 1}, {"temperature": 1}, "hot"])
def test_a_damaged_confidence_is_named(finished: Clustering, tmp_path: Path, wrong: object) -> None:
    finished.model.save(tmp_path)
    document = json.loads((tmp_path / "model.json").read_text()) | {"confidence": wrong}
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(UserError, match="is damaged: confidence "):
        Model.load(tmp_path)


def test_a_file_of_an_older_version_is_read_without_rejects(finished: Clustering, tmp_path: Path) -> None:
    directory = type(finished.directory)(tmp_path)
    directory.assignments.write_text("path,cluster,confidence\na.png,1,0.5\n")
    found = directory.read_assignments()
    assert (found.clusters.tolist(), found.rejected.tolist(), found.outliers.tolist()) == ([1], [False], [False])


def test_the_estimator_rejects_alike_in_fit_predict_and_after_loading(tmp_path: Path) -> None:
    estimator = ImageClusterer(4, method="kmeans", reject=0.1, random_state=0).fit(FOUND.images)
    assert 0 < (estimator.labels_ == -1).sum() <= 12
    assert np.array_equal(estimator.predict(FOUND.images), estimator.labels_)
    assert estimator.predict_proba(FOUND.images).sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert estimator.confidences_ == pytest.approx(estimator.predict_proba(FOUND.images).max(axis=1))
    estimator.save(tmp_path / "model")
    loaded = ImageClusterer.load(tmp_path / "model")
    assert np.array_equal(loaded.labels_, estimator.labels_)
    assert loaded.reject == f"below:{estimator.model_.reject_below}"
    assert np.array_equal(loaded.predict(FOUND.images), estimator.labels_)


def test_too_few_images_leave_confidences_raw() -> None:
    few = ImageClusterer(4, method="kmeans", random_state=0).fit(FOUND.images[:12])
    assert few.model_.confidence is None
    assert few.model_.assign(FOUND.images).confidences == pytest.approx(few.model_.assign(FOUND.images).raw)

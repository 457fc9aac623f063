from typing import Any

import numpy as np
import pytest
import torch

from dccm.errors import UserError
from dccm.methods.known import KnownClusters, gone_clusters
from dccm.runs.config import make_config
from dccm.runs.fitting import fit
from dccm.runs.model import Model
from tests.methods.vectors import blobs
from tests.support import random_prediction

GIVEN: dict[str, Any] = {"n_clusters": 4, "batch_size": 60, "mini_batch": 20, "epochs": 2, "device": "cpu"}
VECTORS, LABELS = blobs(60)


def test_predictions_are_what_people_said_where_they_did() -> None:
    known = KnownClusters(3, "")
    prediction = random_prediction(4, 3)
    assert torch.equal(known.told(prediction, torch.arange(4)), prediction)
    known.teach(torch.tensor([9, -1, 2, -1, 0, 1]).clamp_max(2))
    told = known.told(prediction, torch.tensor([4, 1, 3, 5]))
    assert told[0].tolist() == [1, 0, 0]
    assert told[3].tolist() == [0, 1, 0]
    assert torch.equal(told[1:3], prediction[1:3])


def test_what_is_known_is_no_weight() -> None:
    known = KnownClusters(3, "1")
    known.teach(torch.tensor([0, 2]))
    assert not known.state_dict()


@pytest.mark.parametrize(
    ("without", "words"),
    [
        ("one", "without must be numbers of clusters such as 3,7, got 'one'"),
        ("4", r"without must name clusters from 0 to 3, got \[4\]"),
        ("-1", r"without must name clusters from 0 to 3, got \[-1\]"),
        ("0,1,2", "without must leave at least 2 of 4 clusters, got '0,1,2'"),
    ],
)
def test_clusters_that_cannot_be_gone_are_refused(without: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        gone_clusters(without, 4)
    with pytest.raises(UserError, match=words):
        Model.untrained(_shape(), make_config("dccm", overrides=GIVEN | {"without": without}))


def _shape() -> Any:
    from dccm.arrays import ImageShape

    return ImageShape(1, 8, 8)


def test_no_image_gets_a_cluster_that_is_gone_and_the_others_are_told_apart() -> None:
    config = make_config("dccm", overrides=GIVEN | {"encoder": "efficientnet-lite0", "without": "1"})
    fitted = fit(VECTORS, config)
    probabilities = fitted.model.predict_proba(VECTORS)
    assert 1 not in probabilities.argmax(axis=1)
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert len(fitted.history[-1]["cluster_sizes"]) == 3

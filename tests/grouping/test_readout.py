import numpy as np
import torch

from dccm.grouping.readout import KMeansReadout


def test_the_nearest_centre_has_the_highest_probability_worked_by_hand() -> None:
    readout = KMeansReadout(2)
    readout.keep(torch.tensor([[0.0, 0.0], [2.0, 0.0]]), 1.0, np.ones((2, 2), np.float32))
    probability = readout(torch.tensor([[0.0, 0.0]]))
    torch.testing.assert_close(probability, torch.tensor([[5 / 6, 1 / 6]]))  # 1 and 1 / (1 + 4).


def test_equal_features_have_equal_probabilities_in_every_row_however_close_the_centres_are() -> None:
    feature = torch.nn.functional.normalize(torch.rand(1, 64, generator=torch.Generator().manual_seed(0)))
    readout = KMeansReadout(3)
    centres = feature.repeat(3, 1) + torch.tensor([[0.0], [1e-8], [-1e-8]])
    readout.keep(centres, 0.0, feature.numpy())
    probability = readout(feature.repeat(48, 1))  # Beyond 25 rows torch takes another way.
    assert len(probability.unique(dim=0)) == 1


def test_features_far_from_the_origin_are_as_far_from_each_other() -> None:
    near = torch.rand(50, 8, generator=torch.Generator().manual_seed(0))
    found = []
    for offset in (0.0, 1000.0):
        readout = KMeansReadout(30)
        readout.keep(near[:30] + offset, 0.1, np.ones((1, 8), np.float32))
        found.append(readout(near + offset))
    torch.testing.assert_close(found[0], found[1], atol=1e-3, rtol=0.05)

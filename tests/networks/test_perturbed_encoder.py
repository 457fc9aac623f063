import numpy as np

from dccm.arrays import Bytes, Floats
from dccm.data.perturb import PerturbationConfig
from dccm.data.synthetic import bars
from dccm.networks.feature_encoder import Preprocessing
from dccm.networks.perturbed_encoder import PerturbedEncoder

IMAGES = bars(6, side=12).images


class Pixels:
    """An encoder whose vectors are the pixels."""

    name, identity, feature_size, at_once = "pixels", "pixels 1", 144, 2
    preprocessing = Preprocessing(12, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))

    def __call__(self, images: Bytes) -> Floats:
        return images.reshape(len(images), -1).astype(np.float32)


def view(number: int = 0, **ranges: float) -> PerturbedEncoder:
    return PerturbedEncoder(Pixels(), PerturbationConfig(**ranges), number)  # type: ignore[arg-type]


def test_a_copy_depends_on_its_image_and_not_on_its_place() -> None:
    assert np.array_equal(view()(IMAGES)[3:], view()(IMAGES[3:]))


def test_each_view_has_draws_of_its_own() -> None:
    assert not np.array_equal(view(0)(IMAGES), view(1)(IMAGES))
    assert view(0).identity != view(1).identity != Pixels.identity


def test_other_ranges_are_another_view() -> None:
    assert view(rotation=5.0).identity != view().identity


def test_nothing_is_done_where_ranges_allow_nothing() -> None:
    still = view(rotation=0.0, shift=0.0, zoom=(1.0, 1.0), flip=False, channel_shift=0.0)  # type: ignore[arg-type]
    assert np.array_equal(still.perturbed(IMAGES), IMAGES)


def test_colour_stays_colour() -> None:
    colour = IMAGES.repeat(3, axis=3)
    assert view().perturbed(colour).shape == colour.shape
    assert view().perturbed(colour).dtype == np.uint8

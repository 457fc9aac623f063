from typing import get_args

import numpy as np
import pytest

from dccm.arrays import Fit
from dccm.data.resize import Interpolation, Size, resized
from dccm.errors import UserError
from dccm.exporting.onnx.arithmetic import Number
from dccm.exporting.onnx.resize import resized as as_operators
from dccm.networks.onnx_graph import TYPES, OnnxGraph

SIZES = [(64, 64), (100, 80), (37, 53), (20, 200), (151, 75), (8, 8), (24, 64)]
"""Of images: the wanted one, larger and smaller ones, high and wide ones."""


def session(size: Size, fit: Fit, interpolation: Interpolation) -> object:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    graph = OnnxGraph()
    images = Number(graph, graph.add("Transpose", graph.add("Cast", "images", to=TYPES["float64"]), perm=(0, 3, 1, 2)))
    made = as_operators(images, size, fit, interpolation)
    graph.name(graph.add("Transpose", graph.add("Cast", made.name, to=TYPES["uint8"]), perm=(0, 2, 3, 1)), "made")
    types = {"images": "uint8", "made": "uint8"}
    return runtime.InferenceSession(
        graph.file({"images": ("N", "H", "W", "C")}, {"made": ("N", *size, "C")}, types=types)
    )


@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear", "hamming", "lanczos", "box"])
@pytest.mark.parametrize("fit", get_args(Fit))
@pytest.mark.parametrize("size", [(64, 64), (32, 48)])
def test_images_are_to_the_bit_what_the_loader_makes_of_them(
    size: Size, fit: Fit, interpolation: Interpolation
) -> None:
    draw, running = np.random.default_rng(0), session(size, fit, interpolation)
    for height, width in SIZES:
        images = draw.integers(0, 256, (2, height, width, 3), dtype=np.uint8)
        [made] = running.run(None, {"images": images})  # type: ignore[attr-defined]
        assert np.array_equal(made, resized(images, size, fit, interpolation)), (height, width)


def test_another_way_to_resize_is_refused() -> None:
    graph = OnnxGraph()
    with pytest.raises(UserError, match="takes images by 'nearest' cannot be exported as onnx"):
        as_operators(Number(graph, "images"), (8, 8), "crop", "nearest")

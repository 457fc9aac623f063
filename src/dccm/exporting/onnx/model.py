"""A whole model as one graph: bytes of images of any size in, clusters and probabilities out.

What `dccm predict` does to an image is in it: bringing it to the model's size, the pretrained encoder if there is one,
the method, the temperature of its probabilities, the threshold below which an image is rejected, and where people moved
clusters.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from dccm.corrections.following import Ways
from dccm.errors import require
from dccm.exporting.onnx.arithmetic import Number
from dccm.exporting.onnx.resize import resized
from dccm.exporting.onnx.traced import add_network
from dccm.grouping.agreement import FLOOR
from dccm.grouping.neighbours import ClusterMemory
from dccm.networks.efficientnet_weights import folded_network, weights_file
from dccm.networks.encoders import LITE0, divided
from dccm.networks.feature_encoder import FeatureEncoder, Preprocessing, TorchEncoder
from dccm.networks.map_encoder import MapEncoder
from dccm.networks.onnx_graph import TYPES, OnnxGraph
from dccm.runs.contents import NO_CLUSTER
from dccm.runs.features import encoder_like
from dccm.runs.model import Model

_WIDE, _USUAL, _HALF = TYPES["float64"], TYPES["float32"], TYPES["float16"]
_INSTEAD = "Export safetensors, or use dccm predict"


def model_file(model: Model, ways: Sequence[Ways] | None, texts: Mapping[str, str], *, feature: bool) -> bytes:
    """The content of an ONNX file.

    Args:
        model: What it does.
        ways: Where images of each of its clusters are by now; None: where they were.
        texts: What the file says of itself, by key.
        feature: Whether the deep features go out, too.
    """
    _require_known(model)
    graph, shape = OnnxGraph(), model.picture_shape
    pictures = _pictures(graph, model)
    seen = _seen(graph, model, pictures) if model.pretrained else _shares(graph, pictures)
    what = f"The method '{model.config.method}'"
    deep, raw = add_network(graph, _Both(model.method), seen, tuple(model.shape), what)
    made = {"probabilities": _calibrated(graph, model, raw)}
    made["confidence"] = graph.add("ReduceMax", made["probabilities"], axes=(1,), keepdims=0)
    best = graph.add("ArgMax", raw, axis=1, keepdims=0)
    moved = best if ways is None else _followed(graph, ways, best, deep)
    made["cluster"] = _kept(graph, model, moved, made["confidence"])
    outputs: dict[str, Sequence[int | str]] = {"cluster": ("N",), "confidence": ("N",)}
    outputs |= {"probabilities": ("N", model.method.n_clusters)}
    if feature:
        made["feature"] = deep
        outputs["feature"] = ("N", "D")
    for name in outputs:
        graph.name(made[name], name)
    channels = "C" if shape.channels == 3 else shape.channels
    types = {"images": "uint8", "cluster": "int64"}
    return graph.file({"images": ("N", "H", "W", channels)}, outputs, types=types, texts=texts)


class _Both(nn.Module):
    """A method as a module with two outputs."""

    def __init__(self, method: nn.Module) -> None:
        super().__init__()
        self.method = method

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Features and probabilities."""
        both: tuple[Tensor, Tensor] = self.method.embed_and_predict(images)  # type: ignore[operator]
        return both


def _require_known(model: Model) -> None:
    """Refuse what is no function of one image alone."""
    require(
        not isinstance(getattr(model.method, "memory", None), ClusterMemory),
        f"The method '{model.config.method}' cannot be exported as onnx: it keeps its images, and looks for the "
        f"nearest one of a new one. {_INSTEAD}.",
    )
    require(
        model.rows is None,
        f"A model of rows of numbers cannot be exported as onnx, which takes images. {_INSTEAD}.",
    )


def _pictures(graph: OnnxGraph, model: Model) -> Number:
    """Images as they were prepared for the model, (N, C, H, W), with values from 0 to 255; grey ones in colour."""
    shape = model.picture_shape
    images = Number(graph, graph.add("Transpose", graph.add("Cast", "images", to=_WIDE), perm=(0, 3, 1, 2)))
    if shape.channels == 3:
        images = _in_colour(images)
    return resized(images, (shape.height, shape.width), model.config.data.fit)


def _in_colour(images: Number) -> Number:
    """Three channels of one, and of three the same."""
    return images * images.constant(np.ones((1, 3, 1, 1)))


def _shares(graph: OnnxGraph, pictures: Number) -> str:
    """Values from 0 to 1."""
    return graph.add("Div", graph.add("Cast", pictures.name, to=_USUAL), graph.weight(np.array(255, np.float32)))


def _seen(graph: OnnxGraph, model: Model, pictures: Number) -> str:
    """What a pretrained encoder makes of them, as the method takes it."""
    assert model.pretrained is not None
    encoder = encoder_like(model.pretrained, "cpu")
    pre = encoder.preprocessing
    colour = pictures if model.picture_shape.channels == 3 else _in_colour(pictures)
    square = model.picture_shape.height == model.picture_shape.width
    squares = resized(colour, (pre.side, pre.side), "crop", pre.interpolation, fixed=square)
    scaled = _scaled(graph, squares, pre)
    what = f"The encoder '{encoder.name}'"
    [vectors] = add_network(graph, _network(encoder), scaled, (3, pre.side, pre.side), what)
    if not isinstance(encoder, MapEncoder):
        length = graph.add("ReduceL2", vectors, axes=(1,), keepdims=1)
        vectors = graph.add("Div", vectors, graph.add("Max", length, graph.weight(np.array(1e-12, np.float32))))
    halves = graph.add("Cast", graph.add("Cast", vectors, to=_HALF), to=_USUAL)
    return graph.add("Reshape", halves, graph.weight(np.array([-1, *model.shape], np.int64)))


def _scaled(graph: OnnxGraph, squares: Number, pre: Preprocessing) -> str:
    mean, std = (np.array(values).reshape(1, 3, 1, 1) * 255 for values in (pre.mean, pre.std))
    pixels = graph.add("Cast", squares.name, to=_USUAL)
    centred = graph.add("Sub", pixels, graph.weight(mean.astype(np.float32)))
    return graph.add("Div", centred, graph.weight(std.astype(np.float32)))


def _network(encoder: FeatureEncoder) -> nn.Module:
    """The torch network of an encoder, also where onnxruntime usually computes it."""
    if isinstance(encoder, MapEncoder | TorchEncoder):
        network: nn.Module = encoder.trunk if isinstance(encoder, MapEncoder) else encoder.network
        return network
    kind, rest = divided(encoder.name)
    require(
        kind in (LITE0, "file:"),
        f"A model on vectors of '{encoder.name}' cannot be exported as onnx: what is in that file is not known here. "
        f"{_INSTEAD}.",
    )
    return folded_network(weights_file() if kind == LITE0 else Path(rest))


def _calibrated(graph: OnnxGraph, model: Model, raw: str) -> str:
    """Probabilities whose logarithms are divided by the temperature, in double precision."""
    if model.confidence is None:
        return raw
    floor, temperature = (graph.weight(np.array(value)) for value in (FLOOR, model.confidence.temperature))
    logs = graph.add("Log", graph.add("Max", graph.add("Cast", raw, to=_WIDE), floor))
    return graph.add("Cast", graph.add("Softmax", graph.add("Div", logs, temperature), axis=1), to=_USUAL)


def _followed(graph: OnnxGraph, ways: Sequence[Ways], best: str, deep: str) -> str:
    """Where images of each cluster of the model went that are most like a new one."""
    length = graph.add("ReduceL2", deep, axes=(1,), keepdims=1)
    directions = graph.add("Div", deep, graph.add("Max", length, graph.weight(np.array(1e-12, np.float32))))
    one = graph.weight(np.array([1], np.int64))
    goals = []
    for way in ways:
        likeness = graph.add("MatMul", directions, graph.weight(np.ascontiguousarray(way.centres.T, np.float32)))
        goal = graph.add("Gather", graph.weight(way.clusters), graph.add("ArgMax", likeness, axis=1, keepdims=0))
        goals.append(graph.add("Unsqueeze", goal, one))
    own = graph.add("GatherElements", graph.add("Concat", *goals, axis=1), graph.add("Unsqueeze", best, one), axis=1)
    return graph.add("Squeeze", own, one)


def _kept(graph: OnnxGraph, model: Model, clusters: str, confidence: str) -> str:
    """The same, and no cluster for those that are too unsure."""
    if model.reject_below is None:
        return clusters
    unsure = graph.add("Less", confidence, graph.weight(np.array(model.reject_below, np.float32)))
    return graph.add("Where", unsure, graph.weight(np.array(NO_CLUSTER, np.int64)), clusters)

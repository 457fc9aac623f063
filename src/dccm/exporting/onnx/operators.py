"""Operations of torch, each as operators of ONNX: a function that is given a writer and what the operation is given."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dccm.networks.onnx_graph import TYPES, OnnxGraph


class Made(NamedTuple):
    """What an operator makes, by its name in the graph; what is known now is a tensor or a number instead."""

    name: str
    shape: tuple[Any, ...]
    """Of whole numbers, and of `COUNT` where it depends on the number of images."""


COUNT = object()
"""How many images there are: that is known when the graph runs."""


def name_of(graph: OnnxGraph, value: Any) -> str:
    """The name of what a graph makes, or of a weight that is added for what is known."""
    if isinstance(value, Made):
        return value.name
    array = value.numpy() if isinstance(value, Tensor) else np.array(value, np.float32)
    return graph.weight(array if array.dtype.name in TYPES else array.astype(np.float32))


class Writer:
    """Adds operators whose inputs may be known numbers.

    Args:
        graph: Where they are added.
    """

    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph

    def add(self, kind: str, *inputs: Any, **attributes: Any) -> str:
        """An operator; numbers become weights."""
        names = [entry if isinstance(entry, str) else name_of(self.graph, entry) for entry in inputs]
        return self.graph.add(kind, *names, **attributes)

    def whole(self, *numbers: int) -> str:
        """Whole numbers as a weight."""
        return self.graph.weight(np.array(numbers, np.int64))


def _operator(kind: str) -> Callable[..., str]:
    """An operation that is one operator of the same inputs."""
    return lambda write, *inputs, **_: write.add(kind, *inputs)


def _same(_: Writer, value: Made, *__: Any, **___: Any) -> str:
    """Nothing changes."""
    return value.name


def _axes(value: Made, axes: Any) -> list[int]:
    rank = len(value.shape)
    wanted = range(rank) if axes is None else [axes] if isinstance(axes, int) else axes
    return [axis % rank for axis in wanted]


def _add(write: Writer, first: Any, second: Any, alpha: float = 1) -> str:
    return write.add("Add", first, second if alpha == 1 else write.add("Mul", second, alpha))


def _rsub(write: Writer, value: Any, other: Any, alpha: float = 1) -> str:
    if alpha != 1:
        raise NotImplementedError
    return write.add("Sub", other, value)


def _conv2d(
    write: Writer,
    images: Made,
    weight: Any,
    bias: Any = None,
    stride: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
) -> str:
    if isinstance(padding, str):
        raise NotImplementedError
    inputs = [images, weight] if bias is None else [images, weight, bias]
    both = {"strides": _pair(stride), "pads": _pair(padding) * 2, "dilations": _pair(dilation), "group": groups}
    return write.add("Conv", *inputs, **both)


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[-1])


def _max_pool(
    write: Writer, images: Made, size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> str:
    if ceil or _pair(dilation) != (1, 1):
        raise NotImplementedError
    pads = _pair(padding) * 2
    return write.add("MaxPool", images, kernel_shape=_pair(size), strides=_pair(stride or size), pads=pads)


def _pooled(kind: str) -> Callable[..., str]:
    def pooled(write: Writer, images: Made, size: Any) -> str:
        if _pair(size) != (1, 1):
            raise NotImplementedError
        return write.add(kind, images)

    return pooled


def _batch_norm(write: Writer, values: Made, weight: Any, bias: Any, mean: Tensor, var: Tensor, *rest: Any) -> str:
    ones, zeros = (torch.full_like(mean, fill) for fill in (1.0, 0.0))
    inputs = (values, ones if weight is None else weight, zeros if bias is None else bias, mean, var)
    return write.add("BatchNormalization", *inputs, epsilon=float(rest[1]))


def _linear(write: Writer, values: Made, weight: Tensor, bias: Tensor | None = None) -> str:
    product = write.add("MatMul", values, weight.T.contiguous())
    return product if bias is None else write.add("Add", product, bias)


def _view(write: Writer, values: Made, sizes: Any, *_: Any, **__: Any) -> str:
    if sum(size is COUNT for size in sizes) > 1:
        raise NotImplementedError
    return write.add("Reshape", values, write.whole(*(-1 if size is COUNT else size for size in sizes)))


def _expand(write: Writer, values: Any, sizes: Any, **_: Any) -> str:
    """Axes of length one grow; that of the images is as long as it is already, or stays one for what follows."""
    return write.add("Expand", values, write.whole(*(1 if size is COUNT or size == -1 else size for size in sizes)))


def _softmax(write: Writer, values: Made, axis: int, *_: Any) -> str:
    return write.add("Softmax", values, axis=_axes(values, axis)[0])


def _sum(write: Writer, values: Made, axes: Any = None, keep: bool = False, **_: Any) -> str:
    return write.add("ReduceSum", values, write.whole(*_axes(values, axes)), keepdims=int(keep))


def _mean(write: Writer, values: Made, axes: Any = None, keep: bool = False, **_: Any) -> str:
    return write.add("ReduceMean", values, axes=tuple(_axes(values, axes)), keepdims=int(keep))


def _norm(write: Writer, values: Made, order: float = 2, axes: Any = None, keep: bool = False, **_: Any) -> str:
    if order != 2:
        raise NotImplementedError
    return write.add("ReduceL2", values, axes=tuple(_axes(values, axes)), keepdims=int(keep))


def _clamp(write: Writer, values: Made, low: Any = None, high: Any = None) -> str:
    made = values.name if low is None else write.add("Max", values, low)
    return made if high is None else write.add("Min", made, high)


def _square(write: Writer, values: Made) -> str:
    return write.add("Mul", values, values)


def _cdist(write: Writer, points: Made, centres: Tensor, order: float = 2, *_: Any) -> str:
    """Distances by squares and products, in double precision, as nearly equal points would cancel."""
    if order != 2 or not isinstance(centres, Tensor):
        raise NotImplementedError
    known, wide = centres.double(), write.add("Cast", points, to=TYPES["float64"])
    own = write.add("ReduceSum", write.add("Mul", wide, wide), write.whole(1), keepdims=1)
    product = write.add("MatMul", wide, (-2 * known).T.contiguous())
    squares = write.add("Add", write.add("Add", product, own), known.square().sum(dim=1))
    none = write.graph.weight(np.array(0.0))
    return write.add("Cast", write.add("Sqrt", write.add("Max", squares, none)), to=TYPES["float32"])


def _pixel_unshuffle(write: Writer, images: Made, factor: int) -> str:
    _, channels, height, width = images.shape
    parts = (-1, channels, height // factor, factor, width // factor, factor)
    split = write.add("Transpose", write.add("Reshape", images, write.whole(*parts)), perm=(0, 1, 3, 5, 2, 4))
    sizes = (-1, channels * factor**2, height // factor, width // factor)
    return write.add("Reshape", split, write.whole(*sizes))


def _bilinear(write: Writer, images: Made, size: Any, align: bool, *_: Any) -> str:
    """Antialiased: what becomes of each pixel is found out now, for each axis by itself."""
    if align or size is None:
        raise NotImplementedError
    height, width = images.shape[2:]
    down, across = (_shares(there, made) for there, made in ((height, size[0]), (width, size[1])))
    return write.add("MatMul", write.add("MatMul", down, images), across.T.contiguous())


def _shares(there: int, made: int) -> Tensor:
    """How much each pixel of an axis counts for each that is made, (made, there)."""
    single = torch.eye(there).reshape(1, 1, there, there)
    options: Any = {"mode": "bilinear", "antialias": True, "align_corners": False}
    return nn.functional.interpolate(single, size=(made, there), **options)[0, 0]


def _select(write: Writer, values: Made, axis: int, place: int) -> str:
    axis = axis % len(values.shape)
    if values.shape[axis] is COUNT:
        raise NotImplementedError
    return write.add("Gather", values, write.graph.weight(np.array(place % values.shape[axis], np.int64)), axis=axis)


def _slice(write: Writer, values: Made, axis: int = 0, start: Any = 0, end: Any = None, step: int = 1) -> str:
    axis, most = axis % len(values.shape), 2**62
    bounds = [write.whole(number) for number in (start or 0, min(most if end is None else end, most), axis, step)]
    return write.add("Slice", values, *bounds)


def _split(write: Writer, values: Made, size: int, axis: int = 0) -> list[str]:
    axis = axis % len(values.shape)
    if values.shape[axis] is COUNT:
        raise NotImplementedError
    return [_slice(write, values, axis, start, start + size) for start in range(0, values.shape[axis], size)]


def _permute(write: Writer, values: Made, axes: Any) -> str:
    return write.add("Transpose", values, perm=tuple(_axes(values, axes)))


def _cat(write: Writer, values: Any, axis: int = 0) -> str:
    return write.add("Concat", *values, axis=axis % len(_shape_of(values[0])))


def _shape_of(value: Any) -> tuple[Any, ...]:
    return tuple(value.shape)


def _baddbmm(write: Writer, bias: Any, first: Any, second: Any, **_: Any) -> str:
    return write.add("Add", write.add("MatMul", first, second), bias)


def _pad(write: Writer, images: Made, pads: Any, mode: str = "constant", value: float | None = None) -> str:
    """Torch names the last axis first."""
    if mode != "constant":
        raise NotImplementedError
    rest = [0] * (len(images.shape) - len(pads) // 2)
    before, after = list(pads[::2])[::-1], list(pads[1::2])[::-1]
    return write.add("Pad", images, write.whole(*rest, *before, *rest, *after), float(value or 0))


OPERATORS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("clone", "contiguous", "_to_copy", "to", "alias", "detach", "_assert_tensor_metadata"), _same),
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _view),
    **dict.fromkeys(("matmul", "mm", "bmm"), _operator("MatMul")),
    **dict.fromkeys(("clamp", "clamp_min", "hardtanh", "relu6"), _clamp),
    **{
        name: _operator(name.capitalize())
        for name in ("relu", "sqrt", "reciprocal", "log", "exp", "abs", "sign", "neg")
    },
    "add": _add,
    "sub": _operator("Sub"),
    "mul": _operator("Mul"),
    "div": _operator("Div"),
    "rsub": _rsub,
    "conv2d": _conv2d,
    "max_pool2d": _max_pool,
    "adaptive_avg_pool2d": _pooled("GlobalAveragePool"),
    "adaptive_max_pool2d": lambda *inputs: [_pooled("GlobalMaxPool")(*inputs), ""],
    "_native_batch_norm_legit_no_training": lambda *inputs: [_batch_norm(*inputs), "", ""],
    "leaky_relu": lambda write, values, slope=0.01: write.add("LeakyRelu", values, alpha=float(slope)),
    "linear": _linear,
    "expand": _expand,
    "softmax": _softmax,
    "sum": _sum,
    "mean": _mean,
    "linalg_vector_norm": _norm,
    "square": _square,
    "cdist": _cdist,
    "pixel_unshuffle": _pixel_unshuffle,
    "_upsample_bilinear2d_aa": _bilinear,
    "select": _select,
    "slice": _slice,
    "split": _split,
    "permute": _permute,
    "cat": _cat,
    "baddbmm": _baddbmm,
    "pad": _pad,
}
"""By torch's name."""

"""Images of any size brought to one as `data/resize.py` does it: Pillow's way as operators.

Pillow makes each pixel a weighted mean of those near it, along rows and then along columns; the other way round where
that leaves much less to do. Weights are whole multiples of 2^-22, and each pass is rounded to bytes. Here the weights
of all pixels are a matrix, made when the size is known; a product with it in double precision is exact.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dccm.arrays import Fit
from dccm.data.resize import Interpolation, Size
from dccm.errors import require
from dccm.exporting.onnx.arithmetic import Number
from dccm.networks.onnx_graph import TYPES

_STEPS = 2.0**22
"""Of a weight between 0 and 1."""


class Part(NamedTuple):
    """What of one axis of an image goes where."""

    size: Number
    """Pixels that there are."""
    begin: Number
    """Where the part that is kept begins."""
    length: Number
    """How long it is."""
    wanted: Number
    """Pixels that it becomes."""
    offset: Number
    """Black ones before it."""
    total: int
    """All pixels that are made."""


def resized(
    images: Number, size: Size, fit: Fit, interpolation: Interpolation = "bicubic", *, fixed: bool = False
) -> Number:
    """Images (N, C, H, W) with values from 0 to 255 as (N, C, height, width), whole numbers again.

    Args:
        images: In double precision.
        size: Height and width that are wanted.
        fit: How they are brought to it.
        interpolation: How pixels between pixels are made.
        fixed: Whether the height shrinks no more than the width, as is known of squares that become squares.
    """
    require(
        interpolation in _FILTERS,
        f"An encoder that takes images by '{interpolation}' cannot be exported as onnx. Choose another encoder.",
    )
    height, width = (_along(images, axis) for axis in (2, 3))
    shrinks = width.constant(size[1]).below(width) * height.constant(size[0]).below(height)
    parts = _WAYS[fit](height, width, size)
    down, across = (_weights(part, interpolation, shrinks) for part in parts)
    across = across.then("Transpose", perm=(1, 0))
    usual = _rounded(down.with_("MatMul", _rounded(images.with_("MatMul", across))))
    if fixed:
        return usual
    first, second = parts
    turned = _rounded(_rounded(down.with_("MatMul", images)).with_("MatMul", across))
    lost, other = first.size - first.wanted, second.size - second.wanted
    taller = (lost * -1.0).below(0.0) * (other * 2.0).below(lost)
    return usual + (turned - usual) * taller


def _along(images: Number, axis: int) -> Number:
    graph = images.graph
    shape = graph.add("Shape", images.name)
    return Number(graph, graph.add("Gather", shape, graph.weight(np.array(axis, np.int64)))).then("Cast", to=11)


def _rounded(sums: Number) -> Number:
    """Sums of bytes times whole weights as bytes."""
    whole = ((sums + _STEPS / 2) / _STEPS).then("Floor")
    return whole.of("Clip", whole, 0.0, 255.0)


def _weights(part: Part, interpolation: Interpolation, shrinks: Number) -> Number:
    """How much each pixel counts for each that is made, (made, there), in steps."""
    number = part.size.constant(np.arange(part.total, dtype=np.float64)[:, np.newaxis]) - part.offset
    scale = part.length / part.wanted
    middle = part.begin + (number + 0.5) * scale
    there = part.size.of("Range", 0.0, part.size, 1.0)
    reach = scale.with_("Max", 1.0)
    near = _near(there, middle, reach, interpolation)
    if interpolation == "bicubic":  # To shrink, `data/resize.py` takes the other one.
        near = near * (shrinks * -1.0 + 1.0) + _near(there, middle, reach, "hamming") * shrinks
    shares = near / near.total(1)
    steps = (shares.then("Abs") * _STEPS + 0.5).then("Floor") * shares.then("Sign")
    inside = (number * -1.0).below(0.5) * number.below(part.wanted - 0.5)
    return steps * inside


def _near(there: Number, middle: Number, reach: Number, interpolation: Interpolation) -> Number:
    """What a filter makes of the distance of each pixel, where Pillow looks at all."""
    weight, support = _FILTERS[interpolation]
    first, last = ((middle + far + 0.5).then("Floor") for far in (reach * -support, reach * support))
    inside = (first - 0.5).below(there) * there.below(last - 0.5)
    return weight(((there + 0.5) - middle) * (reach.constant(1.0) / reach)) * inside


def _crop(height: Number, width: Number, size: Size) -> tuple[Part, Part]:
    """The middle of the longer axis."""
    ratio = size[1] / size[0]
    kept_width = width.with_("Min", height * ratio)
    kept_height = height.with_("Min", width / ratio)
    both = ((height, kept_height, size[0]), (width, kept_width, size[1]))
    first, second = (_middle(_whole(there, kept, count)) for there, kept, count in both)
    return first, second


def _middle(part: Part) -> Part:
    """The part in the middle; Pillow takes its ends in single precision."""
    ends = ((part.size - part.length) * 0.5, (part.size + part.length) * 0.5)
    begin, end = (place.then("Cast", to=TYPES["float32"]) for place in ends)
    length = (end - begin).then("Cast", to=TYPES["float64"])
    return part._replace(begin=begin.then("Cast", to=TYPES["float64"]), length=length)


def _pad(height: Number, width: Number, size: Size) -> tuple[Part, Part]:
    """All of the image, and black on both sides of its shorter axis."""
    tall = (height / width * float(size[1])).then("Round").with_("Min", float(size[0])).with_("Max", 1.0)
    wide = (width / height * float(size[0])).then("Round").with_("Min", float(size[1])).with_("Max", 1.0)
    both = ((height, tall, size[0]), (width, wide, size[1]))
    first, second = (
        _whole(there, there, count)._replace(wanted=made, offset=((made * -1.0 + count) * 0.5).then("Round"))
        for there, made, count in both
    )
    return first, second


def _stretch(height: Number, width: Number, size: Size) -> tuple[Part, Part]:
    """Each axis for itself."""
    return _whole(height, height, size[0]), _whole(width, width, size[1])


def _whole(there: Number, kept: Number, count: int) -> Part:
    return Part(there, there.constant(0), kept, there.constant(count), there.constant(0), count)


_WAYS: dict[Fit, Callable[[Number, Number, Size], tuple[Part, Part]]] = {
    "crop": _crop,
    "pad": _pad,
    "stretch": _stretch,
}


def _box(away: Number) -> Number:
    """The nearest ones, all alike."""
    return (away * -1.0).below(0.5) * ((away * -1.0).below(-0.5) * -1.0 + 1.0)


def _bilinear(away: Number) -> Number:
    """Less with each step away, up to one."""
    return (away.then("Abs") * -1.0 + 1.0).with_("Max", 0.0)


def _hamming(away: Number) -> Number:
    """A sinc function, up to one, with Hamming's window."""
    far = away.then("Abs")
    angle = far * math.pi
    window = (angle + math.pi / 2).then("Sin") * float(np.float32(0.46)) + float(np.float32(0.54))
    return _sinc(angle) * window * far.below(1.0)


def _bicubic(away: Number) -> Number:
    """Two cubic polynomials, up to one and up to two (a = -0.5)."""
    far = away.then("Abs")
    inner = ((far * 1.5 - 2.5) * far * far + 1.0) * far.below(1.0)
    outer = (((far - 5.0) * far + 8.0) * far - 4.0) * -0.5
    return inner + outer * far.below(2.0) * (far.below(1.0) * -1.0 + 1.0)


def _lanczos(away: Number) -> Number:
    """A sinc function, up to three, with its own window."""
    far = away.then("Abs")
    return _sinc(far * math.pi) * _sinc(far * (math.pi / 3)) * far.below(3.0)


def _sinc(angle: Number) -> Number:
    """One where the angle is zero."""
    zero = angle.below(1e-12)
    return angle.then("Sin") / (angle + zero) + zero


_FILTERS: dict[Interpolation, tuple[Callable[[Number], Number], float]] = {
    "box": (_box, 0.5),
    "bilinear": (_bilinear, 1.0),
    "hamming": (_hamming, 1.0),
    "bicubic": (_bicubic, 2.0),
    "lanczos": (_lanczos, 3.0),
}
"""What a pixel counts at some distance, and how far one counts at all."""

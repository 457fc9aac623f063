"""A torch network as operators of ONNX: torch says which operations it is made of, and each has its operator here."""

import operator
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Node

from dccm.errors import UserError
from dccm.exporting.onnx.operators import COUNT, OPERATORS, Made, Writer, name_of
from dccm.networks.onnx_graph import OnnxGraph

_EXAMPLES = 40
"""Images that a network is looked at with; some operations are others for very few."""
_FEWEST = 32


def add_network(graph: OnnxGraph, network: nn.Module, images: str, shape: tuple[int, ...], what: str) -> list[str]:
    """Add the operators of a network; returns the names of what it makes.

    Args:
        graph: Where they are added.
        network: With its weights, ready to predict.
        images: Name of what it is given.
        shape: Of one image.
        what: What the network is of, for messages.
    """
    program = _looked_at(network.eval(), shape, what)
    values: dict[Node, Any] = {}
    constants = {spec.arg.name: _constant(program, spec) for spec in program.graph_signature.input_specs}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            known = constants[node.name]
            values[node] = Made(images, (COUNT, *shape)) if known is None else known
        elif node.op == "call_function":
            values[node] = _operated(graph, node, values, what)
        elif node.op == "output":
            made = [values[entry] for entry in node.args[0]]
    return [name_of(graph, value) for value in made]


def _looked_at(network: nn.Module, shape: tuple[int, ...], what: str) -> Any:
    """The operations of a network for any number of images."""
    images = torch.zeros(_EXAMPLES, *shape)
    count = torch.export.Dim("count", min=_FEWEST)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # Of torch, about torch.
            program = torch.export.export(network, (images,), dynamic_shapes=({0: count},), strict=False)
            return program.run_decompositions({})
    except Exception as error:  # Whatever depends on more than the shape of the images.
        raise _not_exported(what, "it does different things with different images") from error


def _constant(program: Any, spec: Any) -> Tensor | None:
    """A weight; None: this is what comes in."""
    if spec.target is None:
        return None
    found = program.state_dict.get(spec.target)
    tensor: Tensor = program.constants[spec.target] if found is None else found
    return tensor.detach()


def _not_exported(what: str, why: str) -> UserError:
    return UserError(f"{what} cannot be exported as onnx: {why}. Export safetensors, or use dccm predict.")


def _operated(graph: OnnxGraph, node: Node, values: dict[Node, Any], what: str) -> Any:
    """What an operation makes: computed now if all is known, else an operator."""
    args: Any = torch.fx.map_arg(node.args, values.__getitem__)
    kwargs: Any = torch.fx.map_arg(node.kwargs, values.__getitem__)
    if node.target is operator.getitem:
        return args[0][args[1]]
    name = str(node.target).removeprefix("aten.").partition(".")[0]
    if not _is_open([args, kwargs]):
        return node.target(*args, **kwargs)  # type: ignore[operator]
    if node.target in (operator.mul, operator.floordiv):  # Of the number of images.
        return COUNT
    if name == "sym_size":
        return args[0].shape[args[1]]
    if name not in OPERATORS:
        raise _not_exported(what, f"it needs the operation {name}")
    found = node.meta.get("val")
    shapes = [_shape(value) for value in (found if isinstance(found, tuple | list) else [found])]
    try:
        made = OPERATORS[name](Writer(graph), *args, **kwargs)
    except NotImplementedError as error:
        raise _not_exported(what, f"it needs the operation {name} in a way that is not known") from error
    names = [made] if isinstance(made, str) else made
    results = [Made(*both) for both in zip(names, shapes)]
    return results if isinstance(found, tuple | list) else results[0]


def _is_open(value: Any) -> bool:
    """Whether anything in it is only known when the graph runs."""
    if isinstance(value, Made) or value is COUNT:
        return True
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(map(_is_open, parts))


def _shape(value: Any) -> tuple[Any, ...]:
    sizes = value.shape if isinstance(value, Tensor) else ()
    return tuple(size if isinstance(size, int) else COUNT for size in sizes)

"""EfficientNet-Lite0 for onnxruntime, which needs 0.6 of torch's time for it on a CPU, and less beside other programs.

The graph is made in memory from the weights of the torch network, which takes six hundredths of a second: a file of it
in the cache would have to be checked against those weights, which costs as much.
"""

from importlib.util import find_spec

import numpy as np
import torch

from dccm.networks.efficientnet import FEATURE_SIZE, PREPROCESSING, EfficientNetLite0, InvertedResidual, NormedConv
from dccm.networks.feature_encoder import FeatureEncoder, TorchEncoder, identity_of, tensors_checksum
from dccm.networks.onnx_encoder import OnnxEncoder, OnnxSession
from dccm.networks.onnx_graph import OnnxGraph

_BOUND = 6.0
"""Of ReLU6."""


def fastest_encoder(name: str, network: EfficientNetLite0, device: torch.device) -> FeatureEncoder:
    """The encoder as fast as this machine computes it: by onnxruntime on a CPU where it is installed, else by torch.

    Features agree up to rounding, so both have one identity.

    Args:
        name: What the user calls it.
        network: With its weights, folded.
        device: Where to compute.
    """
    if device.type != "cpu" or find_spec("onnxruntime") is None:
        return TorchEncoder(name, network, PREPROCESSING, device)
    identity = identity_of(name, tensors_checksum(network.state_dict()), PREPROCESSING)
    return OnnxEncoder(name, identity, OnnxSession(graph_of(network, PREPROCESSING.side), name), PREPROCESSING)


def graph_of(network: EfficientNetLite0, side: int) -> bytes:
    """The network as an ONNX file; batch norm must be in the convolutions already.

    Args:
        network: Folded, see `EfficientNetLite0.folded`.
        side: Of the images.
    """
    graph = OnnxGraph()
    images = _convolved(graph, network.stem, "images")
    for block in network.blocks:
        assert isinstance(block, InvertedResidual)
        wide = images if block.expand is None else _convolved(graph, block.expand, images)
        made = _convolved(graph, block.project, _convolved(graph, block.depthwise, wide))
        images = graph.add("Add", made, images) if block.adds else made
    pooled = graph.add("GlobalAveragePool", _convolved(graph, network.head, images))
    features = graph.add("Flatten", pooled)
    return graph.file({"images": ("B", 3, side, side)}, {features: ("B", FEATURE_SIZE)})


def _convolved(graph: OnnxGraph, layer: NormedConv, images: str) -> str:
    """A convolution and ReLU6 behind it if the layer has it; returns the name of what they make."""
    conv = layer.conv
    assert conv.bias is not None
    weights = [graph.weight(tensor.detach().numpy()) for tensor in (conv.weight, conv.bias)]
    # SAME_UPPER is TensorFlow's padding: the odd one goes right and below.
    made = graph.add("Conv", images, *weights, strides=tuple(conv.stride), group=conv.groups, auto_pad="SAME_UPPER")
    if not layer.bounded:
        return made
    return graph.add("Clip", made, *(graph.weight(np.array(bound, np.float32)) for bound in (0, _BOUND)))

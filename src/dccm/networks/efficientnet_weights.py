"""The weights of EfficientNet-Lite0: from the package that carries them, or from a safetensors file of the same names.

The package holds a pickle. Only the one file whose checksum is known is ever opened, by torch's loader that makes
tensors and runs nothing, and that once: from then on its copy in the cache is read, which is safetensors.
"""

import hashlib
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from dccm.data.cache import locked
from dccm.errors import require
from dccm.files import disk_error, write_atomically
from dccm.networks.efficientnet import PREPROCESSING, EfficientNetLite0
from dccm.networks.encoders import LITE0, LITE0_EXTRA, LITE0_MODULE, converted_file
from dccm.networks.feature_encoder import TorchEncoder
from dccm.tensors import read_safetensors

_FILE = "efficientnet-lite0-57934424.pth"
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
_IN_BLOCKS = {
    "_expand_conv": "expand.conv",
    "_bn0": "expand.norm",
    "_depthwise_conv": "depthwise.conv",
    "_bn1": "depthwise.norm",
    "_project_conv": "project.conv",
    "_bn2": "project.norm",
}
_OUTSIDE = {"_conv_stem": "stem.conv", "_bn0": "stem.norm", "_conv_head": "head.conv", "_bn1": "head.norm"}
"""Names of the published file, and ours."""


def efficientnet_lite0(device: torch.device, cache: str | Path | None = None) -> TorchEncoder:
    """The encoder with the weights of the package.

    Args:
        device: Where to compute.
        cache: Where the copy as safetensors is kept; None: the user's cache folder.
    """
    return efficientnet_from(weights_file(cache), LITE0, device)


def efficientnet_from(path: Path, name: str, device: torch.device) -> TorchEncoder:
    """The encoder with the weights of a safetensors file, under the names of the published ones."""
    return TorchEncoder(name, folded_network(path), PREPROCESSING, device)


def folded_network(path: Path) -> EfficientNetLite0:
    """The network with the weights of a safetensors file, batch norm in the convolutions."""
    network = EfficientNetLite0()
    weights = {_our_name(key): value for key, value in _read(path).items() if not key.startswith("_fc.")}
    _require_fit(weights, network.state_dict(), path)
    network.load_state_dict(weights)
    return network.folded()


def weights_file(cache: str | Path | None = None) -> Path:
    """The weights of the package as safetensors; the copy is made when there is none."""
    copy = converted_file(cache)
    if not copy.is_file():
        _convert_once(copy)
    return copy


def _published_file() -> Path:
    """The file of the package, which is found without running anything of it."""
    package = find_spec(LITE0_MODULE)
    places = list((package and package.submodule_search_locations) or [])
    get = f"Get it with: {LITE0_EXTRA}"
    require(bool(places), f"The encoder '{LITE0}' needs the package that carries its weights. {get}")
    return Path(places[0]) / "models" / _FILE


def _convert_once(copy: Path) -> None:
    """Make the copy, unless another process has just made it."""
    published = _published_file()
    try:
        with locked(copy.parent, lambda: None):
            if not copy.is_file():
                _convert(published, copy)
    except OSError as error:
        raise disk_error(
            error, f"keep weights in {copy.parent}", "nothing is lost", "try again", "cache folder"
        ) from error


def _convert(published: Path, copy: Path) -> None:
    """Write the published weights as safetensors."""
    try:
        sound = hashlib.sha256(published.read_bytes()).hexdigest() == _SHA256
    except OSError:
        sound = False
    require(sound, f"{published} is missing or is not the file that was published. Install its package anew.")
    tensors = torch.load(published, map_location="cpu", weights_only=True)
    write_atomically(copy, save({name: tensor.contiguous() for name, tensor in tensors.items()}))


def _read(path: Path) -> dict[str, Tensor]:
    require(path.is_file(), f"There is no file {path}. Name a safetensors file.")
    way_out = (
        "Nothing else is loaded as weights, pickles least of all; delete it if it lies in the cache, "
        "else take a sound copy"
    )
    return read_safetensors(path, way_out)[0]


def _our_name(published: str) -> str:
    """The name of a tensor in our network: `_blocks.3._bn0.bias` is `blocks.3.expand.norm.bias`."""
    block = re.fullmatch(r"_blocks\.(\d+)\.(\w+)\.(\w+)", published)
    if block and block[2] in _IN_BLOCKS:
        return f"blocks.{block[1]}.{_IN_BLOCKS[block[2]]}.{block[3]}"
    layer, _, tensor = published.partition(".")
    return f"{_OUTSIDE.get(layer, layer)}.{tensor}"


def _require_fit(weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor], path: Path) -> None:
    """Refuse weights of another network, in words shorter than torch's."""
    for name in sorted(set(wanted) | set(weights)):
        shapes = [tuple(tensors[name].shape) if name in tensors else "nothing" for tensors in (wanted, weights)]
        require(
            shapes[0] == shapes[1],
            f"The weights in {path} are not those of {LITE0}: {name} must be {shapes[0]}, got {shapes[1]}. "
            "Take a file of that network.",
        )

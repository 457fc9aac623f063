"""Encoders of timm and of Hugging Face: any image model there, by its name or from a local folder of its layout.

Both libraries are imported only here and only when one is asked for. Code of a model's repository is never run. Weights
are safetensors; timm takes others too, by torch's loader that makes tensors and runs nothing.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from dccm.errors import UserError
from dccm.networks.encoders import HF_EXTRA, TIMM_EXTRA
from dccm.networks.feature_encoder import Preprocessing, TorchEncoder, require_interpolation

_RESAMPLING: dict[Any, Any] = {method.value: method.name.lower() for method in Image.Resampling}


def timm_encoder(model: str, device: torch.device) -> TorchEncoder:
    """A model of timm, such as `vit_small_patch14_dinov2.lvd142m`, or `local-dir:FOLDER`, without its classifier."""
    name = f"timm:{model}"
    timm = _imported("timm", name, TIMM_EXTRA)
    try:
        network = timm.create_model(model, pretrained=True, num_classes=0)
        wanted = timm.data.resolve_model_data_config(network)
    except Exception as error:  # Whatever timm, the hub or the network raise.
        raise _not_opened(name, error) from error
    interpolation = wanted.get("interpolation", "bicubic")
    require_interpolation(interpolation, f"the settings of {name}")
    scale = tuple(wanted["mean"]), tuple(wanted["std"])
    return TorchEncoder(name, network, Preprocessing(wanted["input_size"][-1], *scale, interpolation), device)


def hf_encoder(model: str, device: torch.device) -> TorchEncoder:
    """An image encoder of Hugging Face, such as `facebook/dinov2-small`, or a local folder; of CLIP the image tower."""
    name = f"hf:{model}"
    transformers = _imported("transformers", name, HF_EXTRA)
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(model).to_dict()
        whole = transformers.AutoModel.from_pretrained(model, use_safetensors=True, trust_remote_code=False)
    except Exception as error:
        raise _not_opened(name, error) from error
    preprocessing = _of_processor(processor, name)
    return TorchEncoder(name, _Pooled(getattr(whole, "vision_model", whole)), preprocessing, device)


class _Pooled(nn.Module):
    """A model of Hugging Face as a module with one output: what it pools, or its class token."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """Scaled images (B, 3, side, side) -> (B, D)."""
        output = self.model(pixel_values=images)
        pooled = getattr(output, "pooler_output", None)
        vectors: Tensor = output.last_hidden_state[:, 0] if pooled is None else pooled
        return vectors.flatten(1)  # Convolutional models keep two axes of length one.


def _of_processor(processor: Mapping[str, Any], name: str) -> Preprocessing:
    """What a processor of Hugging Face does to images, in our terms."""
    size = (processor.get("do_center_crop") and processor.get("crop_size")) or processor["size"]
    side = size if isinstance(size, int) else size.get("height") or size.get("shortest_edge")
    scaled = processor.get("do_normalize", True)
    mean, std = (
        tuple(processor[key]) if scaled else (value,) * 3 for key, value in (("image_mean", 0.0), ("image_std", 1.0))
    )
    # Processors have Pillow's number of the way to resize.
    number = processor.get("resample")
    interpolation: Any = "bicubic" if number is None else _RESAMPLING.get(number, number)
    require_interpolation(interpolation, f"the settings of {name}")
    return Preprocessing(int(side), mean, std, interpolation)


def _imported(module: str, encoder: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise UserError(f"The encoder '{encoder}' needs {module}. Get it with: {extra}") from error
    except Exception as error:  # It is there, but what it needs itself is of another version.
        raise _not_opened(encoder, error) from error


def _not_opened(name: str, error: Exception) -> UserError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return UserError(f"The encoder '{name}' cannot be opened ({reason}). Check its name, or name a local folder.")

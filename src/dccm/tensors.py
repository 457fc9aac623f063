"""Safetensors files, which may come from strangers: the one reader of weights."""

from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from dccm.errors import UserError, require


def read_safetensors(path: Path, way_out: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file by name, and its texts; what is no finite number is refused, as nothing follows from it.

    Args:
        path: The file.
        way_out: What to do if it is broken, as a sentence without its full stop.
    """
    try:
        with safe_open(path, framework="pt") as file:
            # Copies: a mapped file that changes on disk would take the process down.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (not a mapping)
            texts = file.metadata() or {}
    except (SafetensorError, OSError, ValueError, RuntimeError, AttributeError) as error:
        raise UserError(f"{path} is not a safetensors file or is cut short ({error}). {way_out}.") from error
    for name, tensor in tensors.items():
        require(bool(tensor.isfinite().all()), f"{path} holds values that are no finite numbers, in {name}. {way_out}.")
    return tensors, texts

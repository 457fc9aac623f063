"""Weights and state on disk: safetensors and JSON only, written whole or not at all, checked when read."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from dccm.errors import UserError, require
from dccm.files import write_atomically

_KEPT = 2
_CHECKSUM_LENGTH = 32
"""Hexadecimal digits."""


class TensorFile(NamedTuple):
    """Named tensors and a JSON document beside them."""

    tensors: dict[str, Tensor]
    document: dict[str, Any]


def write_tensors(path: Path, tensors: Mapping[str, Tensor], document: Mapping[str, Any]) -> None:
    """Write tensors and document into one file, with a checksum over both."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(document)
    # One key only: safetensors writes several in random order, and equal content should give equal files.
    write_atomically(path, save(plain, {"dccm": _checksum(plain, text) + text}))


def read_tensors(path: Path) -> TensorFile:
    """Read a file of `write_tensors`; anything else, or a damaged one, is refused in one sentence."""
    require(path.is_file(), f"There is no file {path}. Give the folder that a run or DCCM.save wrote.")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            # Copies: a mapped file that changes on disk would take the process down.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(
            f"{path} is not a safetensors file or is cut short ({error}). Only that is ever loaded; take a sound copy."
        ) from error
    checksum, text = metadata.get("dccm", "")[:_CHECKSUM_LENGTH], metadata.get("dccm", "")[_CHECKSUM_LENGTH:]
    require(
        checksum == _checksum(tensors, text),
        f"{path} is damaged or was not written by dccm: its checksum does not fit. Take a copy or an earlier one.",
    )
    return TensorFile(tensors, json.loads(text))


def _checksum(tensors: Mapping[str, Tensor], text: str) -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=_CHECKSUM_LENGTH // 2)
    for name in sorted(tensors):
        digest.update(f"{name}{tensors[name].dtype}{tuple(tensors[name].shape)}".encode())
        digest.update(np.ascontiguousarray(tensors[name].numpy()).tobytes())
    return digest.hexdigest()


class CheckpointFolder:
    """The checkpoints of one run: the newest and the one before it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def paths(self) -> list[Path]:
        """All checkpoints, newest first."""
        return sorted(self.folder.glob("[0-9]*.safetensors"), reverse=True)

    def save(self, number: int, content: TensorFile) -> Path:
        """Write a checkpoint, then forget all but the newest two."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{number:09d}.safetensors"
        write_tensors(path, content.tensors, content.document)
        for old in self.paths()[_KEPT:]:
            old.unlink()
        return path

    def newest(self) -> tuple[TensorFile | None, list[str]]:
        """The newest sound checkpoint, and a sentence about each newer one that is not sound."""
        problems: list[str] = []
        for path in self.paths():
            try:
                return read_tensors(path), problems
            except UserError as error:
                problems.append(f"{error} Going back to the checkpoint before it.")
        return None, problems


def optimizer_tensors(name: str, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The tensors of an optimizer's state under flat names; its settings are the config's."""
    state = optimizer.state_dict()["state"]
    return {
        f"{name}.{number}.{key}": value
        if isinstance(value, Tensor)
        else torch.tensor(float(value), dtype=torch.float64)
        for number, entry in state.items()
        for key, value in entry.items()
        if value is not None
    }


def load_optimizer(name: str, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` gave, laid out in memory as the weights are: fused steps go by that order."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for flat, tensor in tensors.items():
        if flat.startswith(f"{name}."):
            number, key = flat[len(name) + 1 :].split(".")
            weight = weights[int(number)]
            like = weight if tensor.shape == weight.shape else tensor
            state.setdefault(int(number), {})[key] = torch.empty_like(like, dtype=tensor.dtype).copy_(tensor)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})

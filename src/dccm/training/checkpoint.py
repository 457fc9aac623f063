"""Weights and state on disk: safetensors and JSON only, written whole or not at all, checked when read."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save
from torch import Tensor

from dccm.config import Settings
from dccm.documents import named_if_broken, parse_json
from dccm.errors import UserError, require
from dccm.files import write_atomically
from dccm.tensors import read_safetensors
from dccm.training.position import Position, position_from

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
    tensors, metadata = read_safetensors(path, "Only that is ever loaded; take a sound copy")
    checksum, text = metadata.get("dccm", "")[:_CHECKSUM_LENGTH], metadata.get("dccm", "")[_CHECKSUM_LENGTH:]
    require(
        checksum == _checksum(tensors, text),
        f"{path} is damaged or was not written by dccm: its checksum does not fit. Take a copy or an earlier one.",
    )
    with named_if_broken(path, "take a sound copy or an earlier one"):
        document = parse_json(text)
        if not isinstance(document, dict):
            raise ValueError("its document is no object")
    return TensorFile(tensors, document)


def _checksum(tensors: Mapping[str, Tensor], text: str) -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=_CHECKSUM_LENGTH // 2)
    for name in sorted(tensors):
        digest.update(f"{name}{tensors[name].dtype}{tuple(tensors[name].shape)}".encode())
        # As bytes: NumPy does not know all of torch's types.
        digest.update(tensors[name].contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


class Checkpoint(NamedTuple):
    """All state of a run at the border of a large batch."""

    tensors: dict[str, Tensor]
    position: Position
    settings: Settings | None = None
    """With which it was trained so far; None: an older version did not note them."""


class CheckpointFolder:
    """The checkpoints of one run: the newest and the one before it.

    Args:
        folder: It need not exist yet.
        settings: Of the run; they are kept in every checkpoint, where nobody edits them.
    """

    def __init__(self, folder: Path, settings: Settings | None = None) -> None:
        self.folder, self.settings = folder, settings

    def paths(self) -> list[Path]:
        """All checkpoints, newest first."""
        return sorted(self.folder.glob("[0-9]*.safetensors"), reverse=True)

    def save(self, number: int, content: Checkpoint) -> Path:
        """Write a checkpoint, then forget all but the newest two."""
        try:
            self.folder.mkdir(exist_ok=True)
        except FileNotFoundError as error:  # Made anew it would lack all that the run began with.
            raise UserError(
                f"The folder {self.folder.parent} was deleted or moved while a run wrote into it. Move it back and "
                "resume the run, or begin another one."
            ) from error
        path = self.folder / f"{number:09d}.safetensors"
        write_tensors(path, content.tensors, asdict(content.position) | {"settings": self.settings})
        for old in self.paths()[_KEPT:]:
            old.unlink()
        return path

    def read(self, name: str) -> Checkpoint:
        """The checkpoint of this name."""
        return _checkpoint(self.folder / name)

    def newest_name(self) -> str:
        """Name of the newest sound checkpoint; nothing if there is none."""
        _, problems = self.newest()
        paths = self.paths()[len(problems) :]
        return paths[0].name if paths else ""

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest sound checkpoint, and a sentence about each newer one that is not sound."""
        problems: list[str] = []
        for path in self.paths():
            try:
                return _checkpoint(path), problems
            except UserError as error:
                problems.append(f"{error} Going back to the checkpoint before it.")
        return None, problems


def _checkpoint(path: Path) -> Checkpoint:
    tensors, document = read_tensors(path)
    with named_if_broken(path, "take an earlier one"):
        settings = document.pop("settings", None)
        if not isinstance(settings, dict | None):
            raise ValueError("settings must be an object")
        return Checkpoint(tensors, position_from(document), settings)


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
            if tensor.ndim and tensor.shape != weight.shape:
                raise ValueError(f"{flat} is not of the shape of its weight")
            like = weight if tensor.shape == weight.shape else tensor
            state.setdefault(int(number), {})[key] = torch.empty_like(like, dtype=tensor.dtype).copy_(tensor)
    kept = _kept_of_a_weight(optimizer)
    if any(entry.keys() != kept for entry in state.values()):
        raise ValueError(f"{name} must keep {', '.join(sorted(kept))} of each weight")
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _kept_of_a_weight(optimizer: torch.optim.Optimizer) -> set[str]:
    """What an optimizer of this kind and with these settings notes of each weight: one of its own tells."""
    weight = torch.nn.Parameter(torch.zeros(1))
    other = type(optimizer)([weight])  # type: ignore[call-arg]  # Those in use have a default for all else.
    other.param_groups[0].update({name: value for name, value in optimizer.param_groups[0].items() if name != "params"})
    weight.grad = torch.zeros(1)
    other.step()
    return {name for name, value in other.state[weight].items() if value is not None}

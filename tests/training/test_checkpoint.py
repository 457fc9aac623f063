import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from dccm.errors import UserError
from dccm.files import write_atomically
from dccm.training.checkpoint import (
    Checkpoint,
    CheckpointFolder,
    TensorFile,
    load_optimizer,
    optimizer_tensors,
    read_tensors,
    write_tensors,
)
from dccm.training.position import Position


def content(value: float = 1.0) -> TensorFile:
    return TensorFile({"weight": torch.full((2, 3), value), "steps": torch.tensor(4)}, {"epoch": 2, "sum": 0.1})


def test_tensors_and_document_come_back_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    write_tensors(path, *content(1 / 3))
    read = read_tensors(path)
    assert torch.equal(read.tensors["weight"], torch.full((2, 3), 1 / 3))
    assert read.tensors["steps"].item() == 4
    assert read.document == {"epoch": 2, "sum": 0.1}


def test_channels_last_tensors_keep_their_values(tmp_path: Path) -> None:
    weight = torch.rand(4, 3, 5, 5).contiguous(memory_format=torch.channels_last)
    write_tensors(tmp_path / "a", {"weight": weight}, {})
    assert torch.equal(read_tensors(tmp_path / "a").tensors["weight"], weight)


@pytest.mark.parametrize("kept", [0, 5, 60, -1])
def test_a_truncated_file_is_refused_in_one_sentence(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "state.safetensors"
    write_tensors(path, *content())
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UserError, match="is not a safetensors file or is cut short"):
        read_tensors(path)


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    write_tensors(path, *content())
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(UserError, match="checksum does not fit"):
        read_tensors(path)


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    torch.save({"weight": torch.ones(2)}, path)
    with pytest.raises(UserError, match="is not a safetensors file"):
        read_tensors(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no file .*nowhere"):
        read_tensors(tmp_path / "nowhere")


def test_a_full_disk_leaves_the_old_file_and_no_partial_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No room on disk to write .*file"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def checkpoint(value: float = 1.0) -> Checkpoint:
    return Checkpoint(content(value).tensors, Position(epoch=2, seconds=0.1))


def test_the_newest_two_checkpoints_are_kept(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "checkpoints")
    for number in (1, 2, 10):
        folder.save(number, checkpoint(number))
    assert [path.name for path in folder.paths()] == ["000000010.safetensors", "000000002.safetensors"]


def test_a_broken_newest_checkpoint_gives_way_to_the_one_before(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.save(1, checkpoint(1.0))
    newest = folder.save(2, checkpoint(2.0))
    newest.write_bytes(newest.read_bytes()[:-3])
    found, problems = folder.newest()
    assert found is not None
    assert found.tensors["weight"][0, 0] == 1
    assert len(problems) == 1
    assert "Going back to the checkpoint before it" in problems[0]


def test_without_any_sound_checkpoint_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "000000001.safetensors").write_bytes(b"no")
    found, problems = CheckpointFolder(tmp_path).newest()
    assert found is None
    assert len(problems) == 1


@pytest.mark.parametrize("kind", [torch.optim.RMSprop, torch.optim.Adam, partial(torch.optim.Adam, fused=True)])
def test_an_optimizer_goes_on_exactly_from_its_tensors(
    kind: Callable[..., torch.optim.Optimizer], tmp_path: Path
) -> None:
    def step(weight: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        (weight**3).sum().backward()
        optimizer.step()

    drawn = torch.rand(4, 3, 2, 2, generator=torch.Generator().manual_seed(0))
    first = torch.nn.Parameter(drawn.to(memory_format=torch.channels_last))
    one = kind([first], lr=0.1)
    step(first, one)
    write_tensors(tmp_path / "state", optimizer_tensors("optimizer", one), {})
    second = torch.nn.Parameter(first.detach().clone())
    other = kind([second], lr=0.1)
    load_optimizer("optimizer", other, read_tensors(tmp_path / "state").tensors)
    step(first, one)
    step(second, other)
    assert torch.equal(first, second)


@pytest.mark.parametrize("name", ["square_avg", "step"])
def test_an_optimizer_that_lacks_what_it_notes_of_a_weight_is_refused(name: str) -> None:
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
    optimizer = torch.optim.RMSprop(weights, lr=0.1)
    sum(weight.sum() for weight in weights).backward()  # type: ignore[union-attr]
    optimizer.step()
    kept = optimizer_tensors("optimizer", optimizer)
    for number in range(2):
        del kept[f"optimizer.{number}.{name}"]
    with pytest.raises(ValueError, match="optimizer must keep square_avg, step of each weight"):
        load_optimizer("optimizer", torch.optim.RMSprop(weights, lr=0.1), kept)

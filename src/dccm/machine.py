"""What the machine offers: the device to compute on, and an allocator that does not hand memory back in the loop."""

import ctypes
import os
import shutil
import sys
from functools import cache
from typing import TYPE_CHECKING, Literal

from dccm.errors import UserError

if TYPE_CHECKING:
    import torch  # It takes seconds, and what never computes can do without.

Precision = Literal["float32", "bfloat16"]

# Parameters of glibc's mallopt.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_KEEP_BYTES = 512 * 1024 * 1024


def choose_device(name: str) -> "torch.device":
    """The device of this name; `auto` takes a GPU if there is one."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device '{name}' cannot be used on this machine. Take cpu or auto.") from error
    return device


def require_compiler(device: "torch.device") -> None:
    """Refuse to compile for a CPU without a C++ compiler, before the first step fails in the depths of torch."""
    names = (os.environ.get("CXX"), "g++", "clang++", "cl")
    if device.type == "cpu" and not any(name and shutil.which(name) for name in names):
        raise UserError("compile = true needs a C++ compiler (g++, clang++ or cl). Install one, or leave it out.")


def has_bfloat16(device: "torch.device") -> bool:
    """Whether the processor is made for bfloat16, and does not just imitate it."""
    import torch

    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # Each maker has a name of its own for the instructions.
    return device.type == "cpu" and any(can for name, can in torch.cpu.get_capabilities().items() if "bf16" in name)


def choose_precision(name: str, device: "torch.device") -> Precision:
    """The precision of this name; `auto` takes bfloat16 where the processor is made for it."""
    if name == "float32" or (name == "auto" and not has_bfloat16(device)):
        return "float32"
    if device.type == "cpu" and not has_bfloat16(device):
        raise UserError(
            "precision must be float32 or auto on this CPU, got bfloat16: it has no instructions for it such as "
            "avx512_bf16, and would only be slower. Leave it out."
        )
    return "bfloat16"


@cache
def keep_memory() -> bool:
    """Let the process keep freed memory; page faults otherwise cost a training step on the CPU a quarter of its time.

    The environment variable DCCM_KEEP_MEMORY=0 leaves the allocator alone.

    Returns:
        Whether the allocator could be told; only glibc can.
    """
    if not sys.platform.startswith("linux") or os.environ.get("DCCM_KEEP_MEMORY") == "0":
        return False
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt") or not hasattr(libc, "gnu_get_libc_version"):
        return False
    wanted = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _KEEP_BYTES), (_TOP_PAD, _KEEP_BYTES // 8))
    return all(libc.mallopt(parameter, value) == 1 for parameter, value in wanted)

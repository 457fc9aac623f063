"""What the machine offers: the device to compute on, an allocator that keeps its memory, threads that wait politely.

torch takes seconds to import, and reads how its threads should wait when it does: only functions that need it do so.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Literal

from dccm.errors import UserError

if TYPE_CHECKING:
    import torch

Precision = Literal["float32", "bfloat16"]

_SPINS = "30000"
"""How often a thread that has nothing to do looks for work before it sleeps; docs/lab/load.md has what was measured."""

_NO_MEMORY = ("allocate memory", "enough memory", "out of memory", "Storage size calculation overflowed")
# Parameters of glibc's mallopt.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_KEEP_BYTES = 512 * 1024 * 1024


def wait_politely() -> bool:
    """Let torch's threads sleep soon when they wait for each other, so that they leave the processor to other programs.

    GNU's OpenMP, which torch computes with on Linux, lets a thread spin for milliseconds. Alone that costs nothing;
    beside other programs a thread spins away the time in which the one that it waits for could run. The runtime reads
    its settings once, when torch is loaded; the user's own OMP_WAIT_POLICY or GOMP_SPINCOUNT wins.

    Returns:
        Whether it was set.
    """
    if "torch" in sys.modules or "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ:
        return False
    os.environ["GOMP_SPINCOUNT"] = _SPINS
    return True


@contextmanager
def using_threads(count: int | Literal["auto"]) -> Iterator[None]:
    """Let torch compute with so many threads for a while; auto: with as many as it has anyway."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(before if count == "auto" else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def choose_device(name: str) -> "torch.device":
    """The device of this name; `auto` takes a GPU if there is one."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(1, device=device).cpu()  # "meta" has no memory to copy from.
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device '{name}' cannot be used on this machine. Choose cpu or auto.") from error
    return device


def require_compiler(device: "torch.device") -> None:
    """Refuse to compile for a CPU without a C++ compiler, before the first step fails in the depths of torch."""
    import shutil

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


@cache
def convolves_faster() -> bool:
    """Whether a convolution with kernels of one pixel is the faster product of matrices in single precision.

    torch multiplies with Intel's MKL, which uses AVX-512 on Intel's own processors only. Its convolutions are oneDNN's,
    which use it on all.
    """
    import torch

    can = torch.cpu.get_capabilities()
    return (
        str(can.get("cpu_name", "")).startswith("AMD")
        and bool(can.get("avx512_f"))
        and torch.backends.mkl.is_available()
    )


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


@contextmanager
def within_memory(what: str) -> Iterator[None]:
    """Say in a sentence that memory is too small.

    Args:
        what: What needs it, for example "the network".
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # torch's own is a RuntimeError.
        if not isinstance(error, MemoryError) and not any(word in str(error) for word in _NO_MEMORY):
            raise
        raise UserError(
            f"Memory is too small for {what}. Choose smaller images, a smaller network or smaller batches."
        ) from error


def require_memory(needed: int, what: str) -> None:
    """Refuse what is larger than all memory of the machine, before it is asked for in many small pieces."""
    if hasattr(os, "sysconf") and needed > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise UserError(
            f"Memory is too small for {what}, which needs {needed / 1e9:,.1f} GB. "
            "Choose smaller images, a smaller network or smaller batches."
        )


@cache
def keep_memory() -> bool:
    """Let the process keep freed memory; page faults otherwise cost a training step on the CPU a quarter of its time.

    The environment variable DCCM_KEEP_MEMORY=0 leaves the allocator alone.

    Returns:
        Whether the allocator could be told; only glibc can.
    """
    if not sys.platform.startswith("linux") or os.environ.get("DCCM_KEEP_MEMORY") == "0":
        return False
    import ctypes

    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt") or not hasattr(libc, "gnu_get_libc_version"):
        return False
    wanted = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _KEEP_BYTES), (_TOP_PAD, _KEEP_BYTES // 8))
    return all(libc.mallopt(parameter, value) == 1 for parameter, value in wanted)

import subprocess
import sys

import pytest
import torch

from dccm.errors import UserError
from dccm.machine import choose_device, choose_precision, require_compiler


def kept(**environment: str) -> str:
    code = "from dccm.machine import keep_memory; print(keep_memory())"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc's allocator can be told")
def test_memory_is_kept_unless_the_user_says_otherwise() -> None:
    assert kept() == "True"
    assert kept(DCCM_KEEP_MEMORY="0") == "False"


def test_auto_takes_what_there_is() -> None:
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="device 'meta:x' cannot be used on this machine. Take cpu or auto."):
        choose_device("meta:x")


def test_compiling_without_a_compiler_is_refused_before_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(UserError, match="compile = true needs a C\\+\\+ compiler"):
        require_compiler(torch.device("cpu"))
    require_compiler(torch.device("cuda"))


def test_bfloat16_is_chosen_on_a_cpu_that_has_it_and_refused_on_one_that_would_imitate_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx512_bf16": True, "amx_bf16": False})
    assert [choose_precision(name, cpu) for name in ("auto", "float32", "bfloat16")] == [
        "bfloat16",
        "float32",
        "bfloat16",
    ]
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx512_bf16": False, "amx_bf16": False})
    assert choose_precision("auto", cpu) == choose_precision("float32", cpu) == "float32"
    with pytest.raises(UserError, match="precision must be float32 or auto on this CPU, got bfloat16"):
        choose_precision("bfloat16", cpu)
    assert choose_precision("bfloat16", torch.device("cuda")) == "bfloat16"
    assert choose_precision("auto", torch.device("mps")) == "float32"

import os
import subprocess
import sys

import pytest
import torch

from dccm.errors import UserError
from dccm.machine import choose_device, choose_precision, convolves_faster, require_compiler, using_threads


def kept(**environment: str) -> str:
    code = "from dccm.machine import using_threads, keep_memory; print(keep_memory())"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc's allocator can be told")
def test_memory_is_kept_unless_the_user_says_otherwise() -> None:
    assert kept() == "True"
    assert kept(DCCM_KEEP_MEMORY="0") == "False"


def printed(code: str, **environment: str) -> str:
    # What this process inherited or set itself must not decide.
    unset = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=unset | environment, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def spins(code: str, **environment: str) -> str:
    return printed(f"import os; {code}; print(os.environ.get('GOMP_SPINCOUNT'))", **environment).strip()


def test_threads_wait_politely_once_the_package_is_imported() -> None:
    assert spins("import dccm").isdigit()


def test_the_package_does_not_import_torch_before_it_says_how_to_wait() -> None:
    assert printed("import sys, dccm, dccm.machine; print('torch' in sys.modules)").strip() == "False"


@pytest.mark.parametrize("own", [{"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "active"}])
def test_how_threads_wait_is_left_to_the_user_who_said_it(own: dict[str, str]) -> None:
    assert spins("import dccm", **own) == own.get("GOMP_SPINCOUNT", "None")


def test_nothing_is_set_when_torch_has_read_its_settings_already() -> None:
    assert spins("import torch, dccm") == "None"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="torch brings GNU's OpenMP on Linux only")
def test_the_runtime_that_torch_brings_reads_it() -> None:
    shown = printed("import os, dccm; print(os.environ['GOMP_SPINCOUNT']); import torch", OMP_DISPLAY_ENV="verbose")
    assert f"GOMP_SPINCOUNT = '{shown.split()[0]}'" in shown


def test_auto_takes_what_there_is() -> None:
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="device 'meta:x' cannot be used on this machine. Choose cpu or auto."):
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


@pytest.mark.parametrize(
    ("capabilities", "faster"),
    [
        ({"cpu_name": "AMD EPYC", "avx512_f": True}, True),
        ({"cpu_name": "AMD EPYC", "avx512_f": False}, False),
        ({"cpu_name": "Intel(R) Xeon(R) Platinum", "avx512_f": True}, False),
        ({}, False),
    ],
)
def test_convolutions_multiply_faster_where_mkl_leaves_long_vectors_alone(
    capabilities: dict[str, object], faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: capabilities)
    monkeypatch.setattr("torch.backends.mkl.is_available", lambda: True)
    assert convolves_faster.__wrapped__() == faster
    monkeypatch.setattr("torch.backends.mkl.is_available", lambda: False)
    assert not convolves_faster.__wrapped__()


def test_threads_are_taken_for_a_while_and_given_back() -> None:
    before = torch.get_num_threads()
    with using_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
    with using_threads("auto"):
        assert torch.get_num_threads() == before
    with pytest.raises(ZeroDivisionError), using_threads(before + 1):
        1 / 0  # noqa: B018
    assert torch.get_num_threads() == before

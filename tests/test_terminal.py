"""A terminal that is closed while a command is at work."""

import errno
import os
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from dccm.cli.terminal import Lasting
from dccm.data.synthetic import bars
from tests.support import usual_signals

SETTINGS = ["batch_size=24", "mini_batch=8", "checkpoint_minutes=0", "critic_positions=4", "uses=1", "starts=2"]
SAME = ("history.jsonl", "assignments.csv", "model/weights.safetensors", "embedding.npy")


class Gone(StringIO):
    """A stream whose other end is gone; what is written reaches a file that stands for the terminal."""

    def __init__(self, number: int, place: Path) -> None:
        super().__init__()
        self.number, self.file = number, place.open("wb")

    def fileno(self) -> int:
        return self.file.fileno()

    def write(self, text: str) -> int:
        raise OSError(self.number, os.strerror(self.number))


def test_a_terminal_that_is_gone_is_written_to_no_more(tmp_path: Path) -> None:
    stream = Gone(errno.EIO, tmp_path / "terminal")
    lasting = Lasting(stream)
    assert lasting.write("progress") == 8
    lasting.writelines(["progress"])
    lasting.flush()
    assert os.path.samestat(os.fstat(stream.fileno()), os.stat(os.devnull))  # noqa: PTH116 (of a descriptor)
    with pytest.raises(OSError, match="No space left"):
        Lasting(Gone(errno.ENOSPC, tmp_path / "log")).write("progress")


def cluster(images: Path, output: Path, *more: str) -> list[str]:
    sets = [word for setting in SETTINGS for word in ("--set", setting)]
    words = ["cluster", str(images), "-k", "4", "-o", str(output), "--epochs", "8", "--preset", "fast", *sets, *more]
    return [sys.executable, "-m", "dccm", *words]


def in_a_terminal() -> None:
    """The terminal that a child has as its standard streams becomes its own, and asks it to end when it is closed."""
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    usual_signals()


@pytest.mark.skipif(sys.platform != "linux", reason="terminals of Linux are used")
def test_a_run_whose_terminal_is_closed_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    images, output = tmp_path / "bars.npz", tmp_path / "run"
    np.savez(images, images=bars(72, side=8).images)
    master, slave = os.openpty()
    streams = {"stdin": slave, "stdout": slave, "stderr": slave}
    process = subprocess.Popen(cluster(images, output), preexec_fn=in_a_terminal, **streams)  # type: ignore[call-overload]
    os.close(slave)
    while not list(output.glob("checkpoints/*.safetensors")):
        assert process.poll() is None
        time.sleep(0.02)
    os.close(master)
    assert process.wait(120) == 128 + signal.SIGINT
    assert not (output / "model").exists()
    again = subprocess.run([*cluster(images, output), "--resume", "-q"], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert subprocess.run([*cluster(images, tmp_path / "whole"), "-q"], capture_output=True, check=True)
    assert [(output / name).read_bytes() for name in SAME] == [
        (tmp_path / "whole" / name).read_bytes() for name in SAME
    ]

"""Two machines in one: network namespaces with addresses of their own, and a link that can be cut."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MEETING = "10.77.0.1:29400"


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


def why_not() -> str:
    """Why namespaces cannot be made here; nothing if they can."""
    try:
        ip("netns", "add", "dccm-try")
        ip("netns", "del", "dccm-try")
    except FileNotFoundError:
        return "iproute2 is not installed"
    except subprocess.CalledProcessError as error:
        return f"network namespaces cannot be made here: {error.stderr.strip()}"
    return ""


class Machine:
    """A namespace, and the processes in it.

    Args:
        number: 1 or 2; the last part of its address.
        folder: For what its processes say.
    """

    def __init__(self, number: int, folder: Path) -> None:
        self.name, self.link, self.address = f"dccm-{number}", f"dccm{number}", f"10.77.0.{number}"
        self.said = folder / f"said{number}"
        self.is_host = number == 1
        self.torchrun: subprocess.Popen[bytes] | None = None

    def begin(self, words: list[str]) -> None:
        """Start torchrun with a worker that does a command of dccm."""
        options = ["--nnodes", "1:2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", MEETING]
        options += [
            "--rdzv-id",
            "tale",
            "--local-addr",
            self.address,
            "--max-restarts",
            "20",
            "--monitor-interval",
            "1",
        ]
        # Both have the name of the one computer, by which torchrun would know who holds the meeting.
        options += ["--rdzv-conf", f"is_host={self.is_host}"]
        command = [sys.executable, "-m", "torch.distributed.run", *options, "-m", "dccm", *words]
        told = {"GLOO_SOCKET_IFNAME": self.link, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}
        with self.said.open("ab") as said:
            inside = ["ip", "netns", "exec", self.name, *command]
            self.torchrun = subprocess.Popen(inside, env=os.environ | told, stdout=said, stderr=said)

    def workers(self) -> list[int]:
        """Processes of the machine that train."""
        pids = [int(pid) for pid in ip("netns", "pids", self.name).split()]
        return [
            pid for pid in pids if b"dccm\0cluster" in _command(pid) and b"torch.distributed.run" not in _command(pid)
        ]

    def lose_power(self) -> None:
        """Kill everything on it at once."""
        for pid in ip("netns", "pids", self.name).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        if self.torchrun is not None:
            self.torchrun.wait()

    def cut(self, *, mended: bool = False) -> None:
        """Take the link down, or up again."""
        ip("-n", self.name, "link", "set", self.link, "up" if mended else "down")

    def text(self) -> str:
        """What its processes have said so far."""
        return self.said.read_text(encoding="utf-8", errors="replace") if self.said.exists() else ""


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def two_machines(folder: Path) -> Iterator[tuple[Machine, Machine]]:
    """Both, with a link between them."""
    machines = Machine(1, folder), Machine(2, folder)
    try:
        for machine in machines:
            ip("netns", "add", machine.name)
            ip("-n", machine.name, "link", "set", "lo", "up")
        first, second = machines
        peer = ["peer", "name", second.link, "netns", second.name]
        ip("link", "add", first.link, "netns", first.name, "type", "veth", *peer)
        for machine in machines:
            ip("-n", machine.name, "address", "add", f"{machine.address}/24", "dev", machine.link)
            machine.cut(mended=True)
        yield machines
    finally:
        for machine in machines:
            if Path(f"/run/netns/{machine.name}").exists():
                while ip("netns", "pids", machine.name):
                    machine.lose_power()
                ip("netns", "del", machine.name)

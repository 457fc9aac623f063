"""Commands in processes of their own that begin at once: each is born of one that has imported what training needs.

To start Python and import torch with its compiler takes longer than a short run. What a command does, what signals do
to it and what it leaves on disk are as if it had been typed.
"""

import multiprocessing
import os
import signal
import sys
from pathlib import Path

from tests.support import usual_signals

_IMPORTED = ["dccm.cli", "dccm.commands.cluster", "torch._dynamo", "sklearn.cluster", "sklearn.decomposition"]


class Command:
    """A command that runs.

    Args:
        words: What is typed behind `dccm`.
        said: The file that takes all that it says.
    """

    def __init__(self, words: list[str], said: Path) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_IMPORTED)
        self._said = said
        self._process = context.Process(target=_run, args=(words, said, dict(os.environ)))
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.exitcode is None

    def signal(self, how: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, how)

    def end(self, seconds: float = 120) -> tuple[int, str]:
        """Its exit code, which is negative after a signal, and what it said."""
        self._process.join(seconds)
        assert self._process.exitcode is not None, "It never ends."
        return self._process.exitcode, self._said.read_text(encoding="utf-8", errors="replace")


def done(words: list[str], said: Path) -> str:
    """What a command says that has to succeed."""
    code, text = Command(words, said).end()
    assert code == 0, text
    return text


def _run(words: list[str], said: Path, environment: dict[str, str]) -> None:
    usual_signals()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # As Python begins.
    os.environ.clear()
    os.environ.update(environment)
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    from dccm import cli

    sys.argv = ["dccm", *words]
    cli.main()

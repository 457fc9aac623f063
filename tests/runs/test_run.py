import sys
from pathlib import Path

import pytest

from dccm.runs import run


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells it in /proc")
def test_peak_memory_is_that_of_this_process_and_known_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    told = run.peak_memory()

    def missing(*_: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    counted = run.peak_memory()
    assert told is not None
    assert counted is not None
    assert 50 < told <= counted * 1.02  # Torch alone is larger.

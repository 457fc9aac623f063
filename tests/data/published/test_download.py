import errno
import hashlib
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.data.published.download import Remote, fetch
from dccm.errors import UserError

CONTENT = np.random.default_rng(0).integers(0, 256, 1_000_000, dtype=np.uint8).tobytes()


class Server(ThreadingHTTPServer):
    """Serves CONTENT at any path, and can be told how to fail."""

    daemon_threads = True
    ignores_range = False
    cut_after: int | None = None
    """Bytes after which each answer ends."""
    statuses: tuple[int, ...] = ()
    """Answers before the first good one."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/set.bin"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers["Range"]
        self.server.ranges.append(asked)
        if self.server.statuses:
            status, *rest = self.server.statuses
            self.server.statuses = tuple(rest)
            return self.send_error(status)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and not self.server.ignores_range else 0
        if start >= len(CONTENT):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start:][: self.server.cut_after])
        return None

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


def remote(server: Server, content: bytes = CONTENT) -> Remote:
    return Remote(server.url, hashlib.md5(content, usedforsecurity=False).hexdigest(), len(content))


def test_a_file_is_downloaded_checked_and_its_progress_told(server: Server, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    fetch([remote(server)], tmp_path / "new" / "folder", lambda done, total: told.append((done, total)))
    assert (tmp_path / "new" / "folder" / "set.bin").read_bytes() == CONTENT
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["set.bin"]
    assert told == sorted(told)
    assert told[-1] == (len(CONTENT), len(CONTENT))


def test_several_files_share_one_progress_and_those_that_are_there_are_kept(server: Server, tmp_path: Path) -> None:
    (tmp_path / "first.bin").write_bytes(b"mine")
    told: list[tuple[int, int]] = []
    first = Remote("http://127.0.0.1:9/first.bin", "", 4)
    fetch([first, remote(server)], tmp_path, lambda done, total: told.append((done, total)))
    assert (tmp_path / "first.bin").read_bytes() == b"mine"
    assert told[0] == (4, 4 + len(CONTENT))
    assert told[-1] == (4 + len(CONTENT), 4 + len(CONTENT))


def test_what_an_earlier_run_left_is_gone_on_with(server: Server, tmp_path: Path) -> None:
    (tmp_path / "set.bin.partial").write_bytes(CONTENT[:400_000])
    fetch([remote(server)], tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT
    assert server.ranges == ["bytes=400000-"]


def test_a_download_that_is_cut_again_and_again_goes_on(server: Server, tmp_path: Path, slept: list[float]) -> None:
    server.cut_after = 90_000
    fetch([remote(server)], tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT
    assert server.ranges == [None, *(f"bytes={start}-" for start in range(90_000, len(CONTENT), 90_000))]
    assert len(slept) == len(server.ranges) - 1


def test_a_server_that_cannot_go_on_is_asked_for_all_of_it(server: Server, tmp_path: Path) -> None:
    server.ignores_range = True
    (tmp_path / "set.bin.partial").write_bytes(b"x" * 400_000)
    fetch([remote(server)], tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT


def test_a_server_that_always_cuts_and_cannot_go_on_is_given_up(server: Server, tmp_path: Path) -> None:
    server.ignores_range, server.cut_after = True, 90_000
    with pytest.raises(UserError, match="set.bin cannot be downloaded from .*: the connection was cut"):
        fetch([remote(server)], tmp_path)
    assert len(server.ranges) == 5


@pytest.mark.parametrize("left", [CONTENT[:-1] + b"?", b"y" * 300_000, CONTENT + b"more"])
def test_a_wrong_beginning_is_thrown_away_once(server: Server, tmp_path: Path, left: bytes) -> None:
    (tmp_path / "set.bin.partial").write_bytes(left)
    fetch([remote(server)], tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT


def test_a_wrong_file_is_refused_and_nothing_is_kept(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not the published file: its md5 sum must be \w+, got \w+; it was deleted"):
        fetch([remote(server, b"z" * len(CONTENT))], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_complete_beginning_needs_no_server(tmp_path: Path, server: Server) -> None:
    (tmp_path / "set.bin.partial").write_bytes(CONTENT)
    fetch([remote(server)], tmp_path)
    assert server.ranges == []


def test_a_busy_server_is_asked_again(server: Server, tmp_path: Path, slept: list[float]) -> None:
    server.statuses = (503, 429)
    fetch([remote(server)], tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT
    assert slept == [1.0, 2.0]


def test_a_file_that_is_gone_is_said_at_once(server: Server, tmp_path: Path, slept: list[float]) -> None:
    server.statuses = (404,)
    with pytest.raises(
        UserError, match=r"set.bin cannot be .* http://127.*: the server answers 404 Not Found\. .*yourself"
    ):
        fetch([remote(server)], tmp_path)
    assert slept == []


def test_without_a_network_the_way_out_is_named(tmp_path: Path, slept: list[float]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = Remote(f"http://127.0.0.1:{unused.getsockname()[1]}/set.bin", "", 10)
    with pytest.raises(UserError) as caught:
        fetch([nobody], tmp_path)
    for words in ("set.bin", nobody.url, "refused", "Go online", f"put the file into {tmp_path}", "data_root"):
        assert words in str(caught.value)
    assert slept == [1.0, 2.0, 4.0]


def test_too_little_room_is_said_before_the_download(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 5, 5))
    with pytest.raises(
        UserError, match="set.bin must be downloaded into .*, 1.0 MB, and 5 bytes are free there. Free some space, or"
    ):
        fetch([remote(server)], tmp_path)
    assert server.ranges == []


def test_a_disk_that_fills_up_keeps_what_has_come(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    class Full:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, block: bytes) -> None:
            self.file.write(block[:1000])
            self.file.flush()
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", lambda self, mode="r", *rest: Full(real(self, mode)))
    with pytest.raises(UserError, match="No room on disk to write .*set.bin.partial; what has come so far is kept"):
        fetch([remote(server)], tmp_path)
    monkeypatch.setattr(Path, "open", real)
    assert (tmp_path / "set.bin.partial").read_bytes() == CONTENT[:1000]
    fetch([remote(server)], tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, server: Server) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="Cannot write .*file: .*Choose another data_root"):
        fetch([remote(server)], tmp_path / "file")


def test_two_at_once_download_one_after_the_other(server: Server, tmp_path: Path) -> None:
    threads = [threading.Thread(target=fetch, args=([remote(server)], tmp_path)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "set.bin").read_bytes() == CONTENT
    assert server.ranges == [None]

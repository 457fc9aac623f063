import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.config import preset_settings
from dccm.data.datasets import BENCHMARKS, DATASETS, load_digits, open_benchmark
from dccm.data.published.download import Remote
from dccm.data.sources.arrays import ArraySource
from dccm.errors import UserError
from tests.data.published.official_files import pack, random_images, write_cifar10, write_mnist


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A folder, and the address at which its files can be had."""
    monkeypatch.setenv("no_proxy", "*")
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def remotes(folder: Path, url: str) -> tuple[Remote, ...]:
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    return tuple(
        Remote(f"{url}/{path.name}", hashlib.md5(path.read_bytes()).hexdigest(), path.stat().st_size) for path in files
    )


def test_a_missing_set_is_downloaded_once_into_the_cache(
    served: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, url = served
    images = random_images(6, 32)
    write_cifar10(folder / "cifar-10-batches-py", images, [0, 1, 2, 3, 4, 5], [b"a.png"] * 6)
    archive = pack(folder / "cifar-10-batches-py", folder / "cifar-10-python.tar.gz")
    monkeypatch.setitem(BENCHMARKS, "cifar10", BENCHMARKS["cifar10"]._replace(remotes=remotes(folder, url)))
    monkeypatch.setenv("DCCM_CACHE", str(tmp_path / "cache"))
    told: list[tuple[int, int]] = []
    for _ in range(2):
        source = open_benchmark("cifar10", on_progress=lambda done, total: told.append((done, total)))
        assert isinstance(source, ArraySource)
        assert np.array_equal(source.images, images)
        archive.unlink(missing_ok=True)  # The second time it is not asked for.
    assert source.place == f"{(tmp_path / 'cache' / 'datasets').resolve() / 'cifar-10-python.tar.gz'}#cifar10"
    assert told[-1][0] == told[-1][1]


def test_four_files_of_mnist_go_into_a_folder_of_their_own(
    served: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, url = served
    write_mnist(folder, np.zeros((5, 28, 28)), np.arange(5), train=3)
    monkeypatch.setitem(BENCHMARKS, "mnist", BENCHMARKS["mnist"]._replace(remotes=remotes(folder, url)))
    (tmp_path / "root" / "mnist").mkdir(parents=True)
    (folder / "t10k-labels-idx1-ubyte.gz").rename(tmp_path / "root" / "mnist" / "t10k-labels-idx1-ubyte.gz")
    assert len(open_benchmark("mnist", tmp_path / "root")) == 5
    assert len(list((tmp_path / "root" / "mnist").iterdir())) == 4


def test_without_a_download_the_files_and_their_address_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        UserError,
        match=r"STL-10 is not in .*: neither the folder stl10_binary nor the file stl10_binary.tar.gz is there; "
        r"put http://ai.stanford.edu/.* there, or let it be downloaded",
    ):
        open_benchmark("stl10", tmp_path, download=False)


def test_a_root_that_is_a_file_an_unknown_name_and_an_unknown_variant_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cifar.tar.gz").touch()
    with pytest.raises(UserError, match="data_root must be a folder, and .* is a file"):
        open_benchmark("cifar10", tmp_path / "cifar.tar.gz")
    with pytest.raises(UserError, match=r"No data set 'cifar11'\. Did you mean 'cifar10'\? See \"dccm datasets\""):
        open_benchmark("cifar11")
    with pytest.raises(UserError, match="variant of cifar100 must be fine, got 'coarse'"):
        open_benchmark("cifar100", variant="coarse")
    with pytest.raises(UserError, match="variant of digits must be left out, got 'fine'"):
        open_benchmark("digits", variant="fine")


def test_the_digits_need_no_file() -> None:
    source, digits = open_benchmark("digits"), load_digits()
    assert isinstance(source, ArraySource)
    assert np.array_equal(source.images, digits.images)
    assert (source.place, list(source.names)[:2]) == ("scikit-learn#digits", ["digits/0000", "digits/0001"])


def test_table_1_is_that_of_the_paper() -> None:
    assert {name: (row.train, row.test, row.clusters) for name, row in DATASETS.items()} == {
        "cifar10": (50_000, 10_000, "10"),
        "cifar100": (50_000, 10_000, "20/100"),
        "stl10": (13_000, None, "10"),
        "imagenet10": (13_000, None, "10"),
        "imagenet_dog15": (19_500, None, "15"),
        "tiny_imagenet": (100_000, None, "200"),
        "mnist": (60_000, 10_000, "10"),
        "digits": (1_797, None, "10"),
    }
    assert all(row.origin and row.licence and row.citation for row in DATASETS.values())


@pytest.mark.parametrize("name", BENCHMARKS)
def test_what_is_downloaded_has_a_checksum_and_what_is_not_says_why(name: str) -> None:
    benchmark = BENCHMARKS[name]
    assert (DATASETS[name].origin == "download") == bool(benchmark.remotes)
    assert all(len(remote.md5) == 32 and remote.size > 0 and remote.name for remote in benchmark.remotes)
    assert benchmark.remotes or "data_root" in benchmark.absent


@pytest.mark.parametrize("name", ["imagenet10", "imagenet_dog15"])
def test_photos_of_imagenet_are_resized_and_not_cropped_as_in_section_4_1(name: str) -> None:
    facts = preset_settings("dccm", "paper", name)
    assert (facts["fit"], facts["image_size"]) == ("stretch", 96)

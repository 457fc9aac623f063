"""A real protocol of a storage, and a real Ray: both need packages that a usual set-up does not have."""

import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from dccm.commands.shards import predict_shards
from dccm.data.read import open_source, read_images
from dccm.data.sources.shards import Shard
from dccm.errors import UserError
from dccm.fleet import engines
from dccm.fleet.shard import Done, Worker
from dccm.processes import join_cluster
from tests.data.pictures import contents
from tests.fleet.test_fleet import model, rows, shards, tables

__all__ = ["model", "shards"]  # They are fixtures here, too.

pytestmark = pytest.mark.slow
KEYS = {"AWS_ACCESS_KEY_ID": "one", "AWS_SECRET_ACCESS_KEY": "two", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture
def s3(shards: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of a server of this process, reached as users reach theirs: by the environment."""
    pytest.importorskip("s3fs", reason="needs s3fs: pip install 'dccm[cloud]'")
    server = pytest.importorskip("moto.server", reason="needs moto: pip install 'moto[server]'")
    running = server.ThreadedMotoServer(port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    for name, value in (KEYS | {"AWS_ENDPOINT_URL": f"http://{host}:{port}"}).items():
        monkeypatch.setenv(name, value)
    storage = fsspec.filesystem("s3", skip_instance_cache=True)
    bucket = f"pictures-{secrets.token_hex(4)}"
    storage.mkdir(bucket)
    for path in shards.iterdir():
        storage.put_file(str(path), f"{bucket}/shards/{path.name}")
    yield f"s3://{bucket}"
    running.stop()
    type(storage).clear_instance_cache()


def test_images_are_prepared_from_s3_with_the_same_bytes_by_any_number_of_processes(s3: str, tmp_path: Path) -> None:
    for processes in (1, 2):
        read_images(f"{s3}/shards", image_size=8, cache=tmp_path / str(processes), processes=processes)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


@pytest.mark.parametrize("processes", [1, 2])
def test_shards_are_assigned_from_s3_to_s3_and_what_is_done_stays(
    model: Path, s3: str, shards: Path, tmp_path: Path, processes: int
) -> None:
    for _ in range(2):
        summary = predict_shards(model, f"{s3}/shards/*.tar", f"{s3}/out", device="cpu", processes=processes)
        assert (summary.images, summary.skipped, summary.missing) == (39, 1, [])
    predict_shards(model, str(shards), tmp_path / "out", device="cpu")
    assert rows(f"{s3}/out") == rows(tmp_path / "out")


def test_a_kill_while_s3_is_written_to_loses_and_doubles_nothing(model: Path, s3: str, shards: Path) -> None:
    code = f"""
import os, signal
from dccm.commands import shards
from dccm.fleet import shard
put = shard.put
def dying(copy, place):
    put(copy, place)
    if place.endswith("1.tar.parquet"):
        os.kill(os.getpid(), signal.SIGKILL)
shard.put = dying
shards.predict_shards({str(model)!r}, "{s3}/shards", "{s3}/out", device="cpu")
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode < 0
    assert predict_shards(model, f"{s3}/shards", f"{s3}/out", device="cpu").images == 39
    assert len({row["path"] for row in rows(f"{s3}/out")}) == len(rows(f"{s3}/out")) == 40


def test_no_credentials_and_no_bucket_end_in_a_sentence(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    with pytest.raises(UserError, match=r"(Cannot list s3://nobody/shards|There are no shards at s3://nobody/shards)"):
        open_source("s3://nobody/shards")
    for name in KEYS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(UserError, match=r"Cannot list s3://pictures-.*/shards: .*Give credentials"):
        open_source(f"{s3}/shards")


@pytest.fixture
def ray() -> Iterator[Any]:
    """A cluster of this machine, as small as it gets; its folder has a short name, as sockets lie in it."""
    pytest.importorskip("ray", reason="needs Ray: pip install 'dccm[ray]'")
    paths = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}}
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as folder:
        try:
            found = join_cluster(num_cpus=2, object_store_memory=100 << 20, _temp_dir=folder, runtime_env=paths)
        except UserError as error:
            pytest.skip(str(error))
        yield found
        found.shutdown()


def test_ray_gives_the_same_results_as_one_process(model: Path, shards: Path, tmp_path: Path, ray: Any) -> None:
    summary = predict_shards(model, str(shards), tmp_path / "ray", device="cpu", engine="ray", processes=2)
    assert (summary.images, summary.skipped, summary.missing) == (39, 1, [])
    predict_shards(model, str(shards), tmp_path / "one", device="cpu")
    assert tables(tmp_path / "ray") == tables(tmp_path / "one")
    (tmp_path / "ray" / "2.tar.parquet").unlink()
    assert predict_shards(model, str(shards), tmp_path / "ray", device="cpu", engine="ray").images == 39


class Dying(Worker):
    """Is killed at its first shard of all, once."""

    def do(self, shard: Shard) -> Done:
        mark = Path(self._output) / ".died.partial"
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().do(shard)


def test_an_actor_that_is_killed_is_begun_again_by_ray(
    model: Path, shards: Path, tmp_path: Path, ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "Worker", Dying)
    summary = predict_shards(model, str(shards), tmp_path / "out", device="cpu", engine="ray", processes=2)
    assert (tmp_path / "out" / ".died.partial").exists()
    assert (summary.images, summary.missing) == (39, [])
    assert len({row["path"] for row in rows(tmp_path / "out")}) == len(rows(tmp_path / "out")) == 40

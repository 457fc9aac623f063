"""What is asked of Ray, which a stand-in answers; tests/fleet/test_storages.py asks the real one."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dccm.commands.shards import predict_shards
from dccm.errors import UserError
from tests.fleet.test_fleet import model, shards, tables

__all__ = ["model", "shards"]  # They are fixtures here, too.


class GoneError(Exception):
    """As Ray says that it gave an actor up."""


class Pool:
    """Gives work to whichever actor is free, and takes the results as they come: here, backwards."""

    actors: int

    def __init__(self, actors: list[Any]) -> None:
        type(self).actors = len(actors)
        self._one = actors[0]

    def map_unordered(self, work: Callable[[Any, Any], Any], values: list[Any]) -> Iterator[Any]:
        for value in reversed(values):
            yield work(self._one, value)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a stand-in for Ray, with three processors, was asked for."""
    asked: dict[str, Any] = {}

    def remote(**options: Any) -> Callable[[Any], Any]:
        asked.update(options)

        def actor(kind: Any) -> Any:
            def begun(*given: Any) -> Any:
                worker = kind(*given)
                return SimpleNamespace(do=SimpleNamespace(remote=worker.do))

            return SimpleNamespace(remote=begun)

        return actor

    ray, util = ModuleType("ray"), ModuleType("ray.util")
    known = {"is_initialized": lambda: True, "cluster_resources": lambda: {"CPU": 3.0}, "put": lambda job: job}
    for name, value in (known | {"remote": remote, "exceptions": SimpleNamespace(RayError=GoneError)}).items():
        setattr(ray, name, value)
    util.ActorPool = Pool  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.util", util)
    return asked


def test_actors_hold_the_model_and_give_the_same_results(
    model: Path, shards: Path, tmp_path: Path, asked: dict[str, Any]
) -> None:
    ray = partial(predict_shards, model, str(shards), device="cpu", engine="ray")
    assert ray(output=tmp_path / "ray").images == 39
    assert Pool.actors == 3
    assert asked == {"num_cpus": 1, "num_gpus": 0, "max_restarts": 3, "max_task_retries": 3}
    predict_shards(model, str(shards), tmp_path / "one", device="cpu")
    assert tables(tmp_path / "ray") == tables(tmp_path / "one")
    (tmp_path / "ray" / "1.tar.parquet").unlink()
    assert ray(output=tmp_path / "ray", processes=2).images == 39
    assert Pool.actors == 1  # There is no work for more.


def test_what_ray_gives_up_is_said_and_what_is_done_is_kept(
    model: Path, shards: Path, tmp_path: Path, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(self: Pool, work: Callable[[Any, Any], Any], values: list[Any]) -> Iterator[Any]:
        yield work(self._one, values[0])
        raise GoneError("The actor died too often.\nIts log is elsewhere.")

    with monkeypatch.context() as patch:
        patch.setattr(Pool, "map_unordered", gone)
        with pytest.raises(UserError, match="Ray could not go on: The actor died too often. Finished shards are kept"):
            predict_shards(model, str(shards), tmp_path / "out", device="cpu", engine="ray")
    assert sorted(path.name for path in (tmp_path / "out").glob("*.parquet")) == ["0.tar.parquet"]
    assert predict_shards(model, str(shards), tmp_path / "out", device="cpu", engine="ray").images == 39


def test_ray_is_asked_for_when_it_is_missing(
    model: Path, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"engine 'ray' needs Ray. Get it with: pip install 'dccm\[ray\]'"):
        predict_shards(model, str(shards), tmp_path / "out", device="cpu", engine="ray")
    assert not (tmp_path / "out").exists()

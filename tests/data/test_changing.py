"""Sources that change while they are read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dccm.data.decode import Preparation
from dccm.data.prepare import prepare
from dccm.data.read import open_source
from tests.data.pictures import noise, photos, png, put
from tests.data.sources.archives import zipped

WORDS = "Images changed while they were read; the next run reads them again."


def read(source: Any, cache: Path, meanwhile: Callable[[], object]) -> tuple[Any, list[str]]:
    """Images of a source, to which something happens before its end is read."""
    said: list[str] = []
    opened = open_source(source)

    def on_progress(done: int, total: int) -> None:
        meanwhile()

    wanted = Preparation((24, 24))
    return prepare(opened, wanted, cache=cache, workers=1, say=said.append, on_progress=on_progress), said


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_a_change_meanwhile_is_said_and_the_next_run_reads_again(kind: str, tmp_path: Path) -> None:
    if kind == "folder":
        source = photos(tmp_path / "photos", 3)

        def change() -> object:
            return put(source / "01.png", png(9))
    else:
        source = zipped(tmp_path / "a.zip", {f"{number:02}.png": png(number) for number in range(3)})

        def change() -> object:
            source.unlink()
            return zipped(source, {"00.png": png(0), "01.png": png(9), "02.png": png(2), "03.png": png(3)})

    image_set, said = read(source, tmp_path / "cache", change)
    assert said == [WORDS]
    assert len(image_set.images) == 3
    again, said = read(source, tmp_path / "cache", lambda: None)
    assert WORDS not in said
    assert np.array_equal(again.images[1], noise(9))
    assert read(source, tmp_path / "cache", lambda: None)[1] == []


def test_a_source_that_is_gone_meanwhile_is_said_to_have_changed(tmp_path: Path) -> None:
    source = photos(tmp_path / "photos", 3)

    def delete() -> None:
        for path in source.iterdir():
            path.unlink()

    image_set, said = read(source, tmp_path / "cache", delete)
    assert len(image_set.images) == 3
    assert said == [WORDS]

"""60,000 images, generated."""

import json
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="uvicorn comes with dccm[serve]")
from dccm.data.names import Names
from dccm.runs.contents import Assignments
from dccm.runs.directory import RunDirectory
from tests.gallery.runs import served
from tests.report.runs import result_of

COUNT, CLUSTERS, SIZE = 60_000, 10, 256


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory, generator = RunDirectory(tmp_path_factory.mktemp("large")), np.random.default_rng(0)
    clusters, centres = generator.integers(0, CLUSTERS, COUNT), generator.normal(size=(CLUSTERS, SIZE))
    paths = Names(f"folder{number % 97:02}/image_{number:07}.jpg" for number in range(COUNT))
    nothing = np.zeros(COUNT, bool)
    directory.write_assignments(Assignments(paths, clusters, generator.beta(6, 1, COUNT), nothing, nothing))
    with directory.writing_embedding(paths) as add:
        for start in range(0, COUNT, 5000):
            block = clusters[start : start + 5000]
            add((centres[block] + generator.normal(size=(len(block), SIZE))).astype(np.float32))
    directory.result.write_text(json.dumps(result_of(COUNT)))
    return directory.path


@pytest.mark.slow
def test_sixty_thousand_images_are_searched_and_changed_quickly_in_little_memory(run: Path) -> None:
    with served(run, 8874) as (server, address):

        def quickest(path: str, change: dict | None = None) -> float:
            """Seconds of the quickest of five: the machine may be busy with other things."""
            data = json.dumps(change).encode() if change else None
            asked = Request(address + path, data, {"content-type": "application/json"})
            seconds = []
            for _ in range(5):
                begun = time.perf_counter()
                with urlopen(asked) as answer:
                    answer.read()
                seconds.append(time.perf_counter() - begun)
            return min(seconds)

        quickest("api/map")
        assert quickest("api/clusters") < 0.2
        assert quickest("api/rows?like=77") < 0.2
        assert quickest("api/rows?text=0012") < 0.2
        assert quickest("api/image/77") < 0.2
        moved = {"kind": "move", "images": list(range(0, COUNT, 2)), "cluster": 3}
        assert quickest("api/changes", moved) < 0.5
        if sys.platform == "linux":
            status = Path(f"/proc/{server.pid}/status").read_text()
            assert int(status.partition("VmHWM:")[2].split()[0]) < 500_000

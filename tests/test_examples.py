"""What stands in `examples/` is run as it is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.data.pictures import photos

EXAMPLES = Path(__file__).parent.parent / "examples"
SAYS = {
    "cluster_folder.py": "% sure",
    "new_method.py": "Sizes of the clusters: [",
    "own_encoder.py": "Sizes of the clusters: [",
    "several_processes.py": "1 processes, ",
    "pipeline.py": "Best number of clusters: ",
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == SAYS.keys()


@pytest.mark.slow  # A process each, some with seconds of training.
@pytest.mark.parametrize("name", SAYS)
def test_examples_say_what_they_promise(name: str, tmp_path: Path) -> None:
    places = [str(photos(tmp_path / "photos", 60)), str(photos(tmp_path / "new", 5))]
    arguments = places if name == "cluster_folder.py" else places[:1] if name == "several_processes.py" else []
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_run_from_top_to_bottom(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, object] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "Outputs are not committed."
            exec("".join(cell["source"]), names)
    assert names["later"]

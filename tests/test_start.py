"""What a command imports before it answers: torch takes seconds, and its compiler as long again."""

import json
import subprocess
import sys

import pytest

from dccm.arrays import ImageShape
from dccm.methods import METHODS, method_facts
from dccm.methods.facts import Facts
from dccm.runs.config import make_config
from dccm.runs.model import Model


def modules_after(code: str) -> set[str]:
    """What another process has imported after this."""
    code += "\nimport json, sys; print(json.dumps(list(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("command", [["methods"], ["datasets"], ["presets"], ["encoders"], ["methods", "--json"]])
def test_lists_answer_without_torch(command: list[str]) -> None:
    code = (
        f"import sys; sys.argv = ['dccm', *{command}]\nfrom dccm import cli\ntry: cli.main()\nexcept SystemExit: pass"
    )
    heavy = {"torch", "sklearn", "scipy", "pyarrow", "matplotlib", "onnxruntime"}
    assert not heavy & modules_after(code)


@pytest.mark.parametrize("method", METHODS)
def test_facts_that_are_read_are_those_of_the_class(method: str) -> None:
    kind = METHODS[method]
    assert method_facts(method) == Facts(*(getattr(kind, name) for name in Facts._fields))


LOADS_ALL = """
import json, sys
from pathlib import Path
import numpy as np
from dccm.runs.model import Model

found = {}
for folder in (Path(sys.argv[1]) / name for name in sys.argv[2:]):
    model = Model.load(folder, "cpu")
    images = np.zeros((4, *(model.shape.height, model.shape.width, model.shape.channels)), np.uint8)
    assert model.assign(images if model.shape.height > 1 else images.astype(np.float16)).clusters.shape == (4,)
    assert "optimizers" not in vars(model.method)
    found[folder.name] = list(sys.modules)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def modules_of_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What one process has imported after it predicted with a model of each method, one after the other."""
    folder = tmp_path_factory.mktemp("models")
    for name, kind in METHODS.items():
        shape = ImageShape(16, 1, 1) if kind.needs_vectors else ImageShape(1, 8, 8)
        starts = {"starts": 1} if name in ("dccm", "dac") else {}
        Model.untrained(shape, make_config(name, overrides={"n_clusters": 3} | starts)).save(folder / name)
    words = [sys.executable, "-c", LOADS_ALL, folder, *METHODS]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return {name: set(modules) for name, modules in json.loads(done.stdout).items()}


@pytest.mark.parametrize("method", METHODS)
def test_a_model_that_predicts_has_no_optimizers_and_no_compiler(
    method: str, modules_of_models: dict[str, set[str]]
) -> None:
    found = modules_of_models[method]
    assert "torch" in found
    assert not {"torch._dynamo", "torch._inductor"} & found


def test_a_model_that_predicts_imports_no_other_methods(modules_of_models: dict[str, set[str]]) -> None:
    assert next(iter(modules_of_models)) == "dccm"
    own = ["base", "facts", "dccm", "dac", "starts", "heads", "known", "per_image", "shared_critic", "dividing"]
    found = {name for name in modules_of_models["dccm"] if name.startswith("dccm.methods.")}
    assert found < {f"dccm.methods.{name}" for name in own}

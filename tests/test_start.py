"""What a command imports before it answers: torch takes seconds, and its compiler as long again."""

import json
import subprocess
import sys
from pathlib import Path

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


def test_a_model_that_predicts_has_no_optimizers_and_no_compiler(tmp_path: Path) -> None:
    Model.untrained(ImageShape(1, 8, 8), make_config(overrides={"n_clusters": 3, "starts": 1})).save(tmp_path)
    code = f"""
import numpy as np
from pathlib import Path
from dccm.runs.model import Model
model = Model.load(Path({str(tmp_path)!r}), "cpu")
assert model.assign(np.zeros((4, 8, 8, 1), np.uint8)).clusters.shape == (4,)
assert "optimizers" not in vars(model.method)
"""
    found = modules_after(code)
    assert "torch" in found
    assert not {"torch._dynamo", "torch._inductor"} & found
    assert {name for name in found if name.startswith("dccm.methods.")} < {
        f"dccm.methods.{name}" for name in ("base", "facts", "dccm", "dac", "starts", "heads", "per_image")
    }

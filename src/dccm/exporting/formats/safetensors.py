"""The weights of the model in one safetensors file, read-out included, and what belongs to them as JSON beside them.

The tensors have the names that `model/weights.safetensors` has; the sample by which outliers are found is with them.
Of a pretrained encoder that was not trained further there is the name and the checksum, not the weights.
"""

import json
from pathlib import Path
from typing import Any

from dccm import __version__
from dccm.exporting.content import Content
from dccm.exporting.formats import Format

_KEY = "dccm"
"""Of the one text beside the tensors: several would be written in random order."""


def write(content: Content, path: Path) -> list[str]:
    """Write weights and description, after a look whether they fit each other."""
    import torch
    from safetensors.torch import save

    from dccm.runs.model import Model

    model = Model.load(content.directory.path, "cpu")
    tensors = {name: tensor.contiguous() for name, tensor in model.method.state_dict().items()}
    facts: dict[str, Any] = {
        "written_by": f"dccm {__version__}",
        "model": json.loads((content.directory.model / "model.json").read_text("utf-8")),
        "names": {str(number): name for number, name in sorted(content.rows.names.items())},
    }
    if model.sample is not None:
        tensors["outliers.points"] = torch.from_numpy(model.sample.points)
        facts["outliers"] = {"far": model.sample.far}
    path.write_bytes(save(tensors, {_KEY: json.dumps(facts)}))
    return []


FORMAT = Format("the weights, for other programs of PyTorch, JAX and others", write, suffix=".safetensors")

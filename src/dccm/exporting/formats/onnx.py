"""The model as one ONNX file, which onnxruntime runs without dccm or torch, in any language that it has.

In: `images`, bytes (N, H, W, C) of any size. Out: `cluster`, `confidence`, `probabilities` and `feature`. Names of
clusters, and where the model came from, stand in the metadata.
"""

import json
from pathlib import Path

from dccm import __version__
from dccm.exporting.content import Content
from dccm.exporting.formats import Format
from dccm.training.progress import Stage


def write(content: Content, path: Path) -> list[str]:
    """Write the model, and ask onnxruntime whether it does the same."""
    from dccm.corrections.following import following_of
    from dccm.exporting.onnx.check import agreement
    from dccm.exporting.onnx.model import model_file
    from dccm.runs.model import Model

    content.on_progress(Stage("reading the model", 0.0))
    model = Model.load(content.directory.path, "cpu")
    following = following_of(content.directory, model)
    config, shape = model.config, model.picture_shape
    texts = {
        "written_by": f"dccm {__version__}",
        "method": config.method,
        "preset": config.preset,
        "encoder": model.pretrained.identity if model.pretrained else "scratch",
        "image_shape": json.dumps([shape.height, shape.width, shape.channels]),
        "fit": config.data.fit,
        "names": json.dumps({str(number): name for number, name in sorted(content.rows.names.items())}),
    }
    ways = following.ways if following else None
    path.write_bytes(model_file(model, ways, texts, feature=content.rows.embedding is not None))
    content.on_progress(Stage("comparing clusters", 0.0))
    return [agreement(content, path, shape.channels)]


FORMAT = Format("the model, for onnxruntime", write, suffix=".onnx")

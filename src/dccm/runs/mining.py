"""The model of another run mines the pairs that a new one learns from: Table 6 of the paper."""

from pathlib import Path

import torch

from dccm.arrays import Inputs
from dccm.errors import require
from dccm.methods.dccm import DCCMMethod
from dccm.runs.model import Model


def let_other_run_mine(model: Model, images: Inputs) -> None:
    """Give a method what the model of the run that `mined_by` names predicts for each image, if it names one.

    Nothing of that run is needed again: checkpoints hold the predictions.

    Args:
        model: The one that will learn.
        images: (N, H, W, C), that it will learn from.
    """
    method = model.method
    if not isinstance(method, DCCMMethod) or method.mined is None:
        return
    folder = Path(method.config.mined_by)
    require(
        any((folder / place / "model.json").is_file() for place in ("", "model")),
        f"mined_by must be the folder of a finished run, and {folder} has no model. Finish that run first.",
    )
    other = Model.load(folder, model.config.training.device)
    found, wanted = other.config.data.n_clusters, model.config.data.n_clusters
    require(
        found == wanted,
        f"mined_by must name a run with {wanted} clusters, as this one, got {found}. Choose another one.",
    )
    other.confidence = None  # Pairs are mined from predictions as they are, not from calibrated ones.
    method.mined.fill(torch.from_numpy(other.predict_proba(images)))

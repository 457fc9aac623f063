"""Group unlabelled images into clusters by Deep Comprehensive Correlation Mining."""

from typing import TYPE_CHECKING, Any

from dccm.machine import wait_politely

__version__ = "0.1.0"
__all__ = [
    "DCCM",
    "ImageClusterer",
    "ImageSet",
    "Model",
    "RunDirectory",
    "UserError",
    "__version__",
    "cluster",
    "export",
    "read_images",
]

if TYPE_CHECKING:
    from dccm.commands.cluster import cluster
    from dccm.commands.export import export
    from dccm.data.images import ImageSet
    from dccm.data.read import read_images
    from dccm.errors import UserError
    from dccm.estimators import DCCM, ImageClusterer
    from dccm.runs.directory import RunDirectory
    from dccm.runs.model import Model

wait_politely()  # Here, because nothing of the package can import torch before.

_HOMES = {
    "DCCM": "dccm.estimators",
    "ImageClusterer": "dccm.estimators",
    "ImageSet": "dccm.data.images",
    "Model": "dccm.runs.model",
    "RunDirectory": "dccm.runs.directory",
    "UserError": "dccm.errors",
    "cluster": "dccm.commands.cluster",
    "export": "dccm.commands.export",
    "read_images": "dccm.data.read",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: torch takes seconds, and `dccm --help` needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dccm' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)

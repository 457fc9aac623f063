"""Make one run of a grid: an ordinary run directory, as "dccm cluster" writes it."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dccm.commands.cluster import cluster
from dccm.config import Settings, parse_budget
from dccm.errors import UserError
from dccm.experiments.data_sets import DataSets
from dccm.experiments.request import known_data_set
from dccm.experiments.results import Results
from dccm.experiments.spec import RunSpec
from dccm.networks.encoders import SCRATCH
from dccm.progress import Silent
from dccm.runs.config import make_config, with_defaults
from dccm.runs.contents import config_text, parse_config
from dccm.runs.directory import RunDirectory
from dccm.runs.run import MAY_DIFFER
from dccm.training.progress import OnProgress


class _Told(Silent):
    """A watcher of one run of many: shares are handed on, sentences are in the run's own files."""

    def __init__(self, on_progress: OnProgress) -> None:
        self.training = on_progress  # type: ignore[method-assign, assignment]


def make_run(spec: RunSpec, data: DataSets, results: Results, on_progress: OnProgress) -> None:
    """Make the run directory of a description, or go on with it."""
    directory, settings = results.run(spec), _settings(spec, data, results)
    images = data.images(spec.dataset, limit=spec.limit, split=spec.split, variant=spec.variant)
    arguments: dict[str, Any] = {"output": directory.path, "watcher": _Told(on_progress)}
    if can_go_on(directory, spec, settings):
        cluster(images, resume=True, **arguments)
        return
    _clear(directory.path)
    named: dict[str, Any] = {"method": spec.method, "preset": spec.preset, "dataset": known_data_set(spec.dataset)}
    cluster(images, settings=settings, encoder=SCRATCH, **named, **arguments)


def _clear(path: Path) -> None:
    """Delete what stands in the place of a run; of a link, the link alone."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"Cannot delete {path}, to make the run anew: {error.strerror}. Delete it yourself.") from error


def _settings(spec: RunSpec, data: DataSets, results: Results) -> Settings:
    """All that the run states itself."""
    clusters = data.n_clusters(spec.dataset)
    settings: Settings = {"n_clusters": clusters} if clusters else {}
    settings |= dict(spec.settings) | {"seed": spec.seed, "encoder": SCRATCH}
    settings |= {name: str(results.run(other).path) for name, other in spec.after}
    return settings | (parse_budget(spec.budget) if spec.budget else {})


def can_go_on(directory: RunDirectory, spec: RunSpec, settings: Mapping[str, object]) -> bool:
    """Whether a run has begun, and with settings that still mean the same: another version may have others."""
    if not directory.holds_run:
        return False
    stored = directory.read_config()
    config = make_config(spec.method, spec.preset, known_data_set(spec.dataset), settings)
    wanted = parse_config(config_text(stored.begun, config.sections))
    before, now = (with_defaults(spec.method, settings) for settings in (stored.settings, wanted.settings))
    return all(before.get(name) == now.get(name) for name in (set(before) | set(now)) - MAY_DIFFER)

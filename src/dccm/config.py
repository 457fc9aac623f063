"""Settings as frozen dataclasses, and their strict reading from TOML and the command line.

Every setting has one default, in its dataclass. A preset states only what differs. Names are unique over all
sections, so that `--set key=value` needs no section name.
"""

import dataclasses
import tomllib
import types
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from dccm.errors import UserError, choose, did_you_mean, require

Section = TypeVar("Section")
Settings = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """What is clustered."""

    n_clusters: int = 10
    """K, the number of clusters."""
    image_size: int | None = None
    """Side in pixels to which images are brought; none: arrays keep theirs, others get the nearest of 32, 64, 96."""
    fit: Literal["crop", "pad"] = "crop"
    """How images become square: the longer side is cropped to its middle, or the shorter one padded with black."""

    def __post_init__(self) -> None:
        require(self.n_clusters >= 2, f"n_clusters must be at least 2, got {self.n_clusters}. Ask for two or more.")
        size = self.image_size
        require(size is None or size >= 8, f"image_size must be at least 8 pixels, got {size}. Take 32, 64 or 96.")


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How long, in which order and on what the loop runs; the same for every method."""

    epochs: int = 200
    """Times that every image is drawn into a large batch."""
    batch_size: int = 1000
    """Images in a large batch: the unit that the loader hands out and in which correlations are mined."""
    seed: int = 0
    """Decides every random draw."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda, cuda:1, mps."""
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    """Numbers that networks learn in; bfloat16 is faster where a GPU or CPU is made for it, auto takes it there."""
    compile: bool = False
    """Let torch.compile rewrite the networks; it costs a minute at the start and needs a C++ compiler on a CPU."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Learning rate over the run: as given, or down to zero along half a cosine."""
    budget_minutes: float | None = None
    """Stop after this many minutes of training, whatever `epochs` says."""
    budget_passes: float | None = None
    """Stop after this many gradient passes over the images, whatever `epochs` says."""
    checkpoint_minutes: float = 2.0
    """Time between checkpoints, which are written between large batches; one more is written at the end."""

    @property
    def has_budget(self) -> bool:
        """Whether minutes or passes decide when the run ends, not epochs."""
        return self.budget_minutes is not None or self.budget_passes is not None

    def __post_init__(self) -> None:
        require(self.epochs >= 1, f"epochs must be at least 1, got {self.epochs}. Give 1 or more.")
        require(self.batch_size >= 2, f"batch_size must be at least 2, got {self.batch_size}. The paper's is 1000.")
        require(self.seed >= 0, f"seed must not be negative, got {self.seed}. Give 0 or more.")
        for name in ("budget_minutes", "budget_passes"):
            value = getattr(self, name)
            require(value is None or value > 0, f"{name} must be above 0, got {value}. Leave it out for no limit.")


def parse_budget(text: str) -> Settings:
    """Read `minutes:M` or `passes:P`."""
    kind, _, amount = text.partition(":")
    require(
        kind in ("minutes", "passes") and amount.replace(".", "", 1).isdigit(),
        f"budget must be minutes:M or passes:P, got '{text}'. For example --budget minutes:10.",
    )
    return {f"budget_{kind}": float(amount)}


def parse_assignments(assignments: list[str]) -> Settings:
    """Read `key=value` words of the command line; values are written as in TOML, quotes may be left out."""
    settings: Settings = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        require(bool(equals), f"set must be key=value, got '{assignment}'. For example --set learning_rate=0.001.")
        try:
            settings[key.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            settings[key.strip()] = text.strip()
    return settings


def build(sections: list[type[Any]], settings: Mapping[str, object], where: str) -> list[Any]:
    """Make one instance of each section from flat settings; unknown keys and wrong types are errors."""
    hints = {section: get_type_hints(section) for section in sections}
    known = [name for section in sections for name in hints[section]]
    for name in settings:
        require(name in known, f"No setting '{name}' in {where}.{did_you_mean(name, known)} See \"dccm presets\".")
    return [
        section(**{name: _checked(name, settings[name], hint) for name, hint in own.items() if name in settings})
        for section, own in hints.items()
    ]


def _checked(name: str, value: object, hint: Any) -> object:
    """The value in the type that the setting wants, or an error that names both."""
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    for option in options:
        if get_origin(option) is Literal and value in get_args(option):
            return value
        if get_origin(option) is tuple and isinstance(value, list | tuple) and len(value) == len(get_args(option)):
            return tuple(_checked(name, item, kind) for item, kind in zip(value, get_args(option), strict=True))
        if option is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if isinstance(option, type) and type(value) is option:
            return value
    raise UserError(f"{name} must be {' or '.join(map(_wording, options))}, got {value!r}.")


def _wording(option: Any) -> str:
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "left out"}
    if get_origin(option) is Literal:
        return "one of " + ", ".join(f"'{value}'" for value in get_args(option))
    if get_origin(option) is tuple:
        return f"a list of {len(get_args(option))} numbers"
    return words[option]


def read_presets(method: str) -> dict[str, dict[str, Settings]]:
    """Preset name -> data set name ('' for any other images) -> settings of `presets/<method>.toml`.

    The tables of `presets/datasets.toml` stand for all methods and presets.
    """
    datasets = _read_toml("datasets")
    presets: dict[str, dict[str, Settings]] = {}
    for preset, table in _read_toml(method).items():
        shared = {key: value for key, value in table.items() if not isinstance(value, dict)}
        own = {name: shared | facts | table.get(name, {}) for name, facts in datasets.items()}
        presets[preset] = {"": shared} | own
    return presets


def _read_toml(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(resources.files("dccm.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def default_preset(method: str) -> str:
    """What a method takes when no preset is named: `fast` if it has one, else `paper`."""
    return "fast" if "fast" in read_presets(method) else "paper"


def preset_settings(method: str, preset: str, dataset: str = "") -> Settings:
    """The settings of a preset for a data set, or for any other images."""
    presets = read_presets(method)
    tables = presets[choose(preset, presets, "preset", "dccm presets")]
    return dict(tables.get(dataset, tables[""]))


def to_toml(sections: list[Any]) -> str:
    """All settings of the sections as flat TOML, readable by `build`."""
    lines = []
    for section in sections:
        lines.append(f"# {type(section).__name__}")
        for field in dataclasses.fields(section):
            value = getattr(section, field.name)
            if value is not None:
                lines.append(f"{field.name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)

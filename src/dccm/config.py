"""Settings as frozen dataclasses, and their strict reading from TOML and the command line.

Every setting has one default and its bounds, in its dataclass. A preset states only what differs. Names are unique over
all sections, so that `--set key=value` needs no section name.
"""

import dataclasses
import math
import re
import tomllib
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from dccm.arrays import LARGEST_SIDE, SMALLEST_SIDE, Fit
from dccm.documents import parse_toml
from dccm.errors import UserError, choose, did_you_mean, require, short

Settings = dict[str, object]
"""Values by name, of all sections together."""
Kind = TypeVar("Kind", bound="Section")


@dataclass(frozen=True)
class Bounds:
    """The numbers that a setting may be; written beside its type: `Annotated[int, Bounds(1)]`."""

    low: float = -math.inf
    high: float = math.inf
    without: Literal["neither", "low", "high", "both"] = "neither"
    """Which end is itself left out."""

    def hold(self, value: float) -> bool:
        """Whether a number lies within; what is no number does not, and nothing is infinite."""
        at_end = (value == self.low and self.without in ("low", "both")) or (
            value == self.high and self.without in ("high", "both")
        )
        return math.isfinite(value) and self.low <= value <= self.high and not at_end

    def __str__(self) -> str:
        if self.high < math.inf:
            left = "(" if self.without in ("low", "both") else "["
            right = ")" if self.without in ("high", "both") else "]"
            return f"lie in {left}{self.low:.10g}, {self.high:.10g}{right}"
        return f"be above {self.low:g}" if self.without == "low" else f"be at least {self.low:g}"


Count = Annotated[int, Bounds(1)]
Several = Annotated[int, Bounds(2)]
Handful = Annotated[int, Bounds(1, 1000)]
"""Of what is made anew for each."""
Positive = Annotated[float, Bounds(0, without="low")]
NotNegative = Annotated[float, Bounds(0)]
Share = Annotated[float, Bounds(0, 1)]
Momentum = Annotated[float, Bounds(0, 1, without="high")]


@dataclass(frozen=True, kw_only=True)
class Section:
    """Settings that belong together; a field may be a section itself.

    Bounds are checked whenever one is made. A rule on several settings goes into `__post_init__`, after the call of
    this one.
    """

    def __post_init__(self) -> None:
        for name, hint in _hints(type(self)).items():
            value = getattr(self, name)
            if not isinstance(value, Section):
                _require_bounds(name, value, hint, getattr(type(self), name, None))


@dataclass(frozen=True, kw_only=True)
class DataConfig(Section):
    """What is clustered."""

    n_clusters: Several = 10
    """K, the number of clusters."""
    image_size: Annotated[int, Bounds(SMALLEST_SIDE, LARGEST_SIDE)] | None = None
    """Side in pixels to which images are brought; None: arrays keep theirs, others get the nearest of 32, 64, 96."""
    encoder: str = "scratch"
    """Pretrained network whose vectors are clustered in the place of images; scratch: the images themselves are."""
    views: Annotated[int, Bounds(0)] = 0
    """Perturbed copies of each image of which that network makes vectors too: for local robustness."""
    fit: Fit = "crop"
    """How images become square: the longer side is cropped to its middle, the shorter one is padded with black, or
    the image is stretched."""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Section):
    """How long, in which order and on what the loop runs; the same for every method."""

    epochs: Count = 200
    """Times that every image is drawn into a large batch."""
    batch_size: Several = 1000
    """Images in a large batch: the unit that the loader hands out and in which correlations are mined."""
    seed: Annotated[int, Bounds(0, 2**32 - 1)] = 0
    """Decides every random draw."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda, cuda:1, mps."""
    threads: Handful | Literal["auto"] = "auto"
    """CPU threads to learn with; auto: one per core. For small networks on small images one is as fast, and leaves the
    other cores to other programs."""
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    """Numbers that networks learn in; bfloat16 is faster where a GPU or CPU is made for it, auto takes it there."""
    compile: bool = False
    """Let torch.compile rewrite the networks; it costs a minute at the start and needs a C++ compiler on a CPU."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Learning rate over the run: as given, or down to zero along half a cosine."""
    budget_minutes: Positive | None = None
    """Stop after this many minutes of training, whatever `epochs` says."""
    budget_passes: Positive | None = None
    """Stop after this many gradient passes over the images, whatever `epochs` says."""
    checkpoint_minutes: NotNegative = 2.0
    """Time between checkpoints, which are written between large batches; one more is written at the end."""
    milestones: Annotated[int, Bounds(0)] = 0
    """Equal steps of the run after which the predictions for all images are kept, and once at its start: what figures
    of the paper are drawn from; 0: nothing is kept."""

    @property
    def has_budget(self) -> bool:
        """Whether minutes or passes decide when the run ends, not epochs."""
        return self.budget_minutes is not None or self.budget_passes is not None


def parse_budget(text: str) -> Settings:
    """Read `minutes:M` or `passes:P`."""
    kind, _, amount = text.partition(":")
    require(
        kind in ("minutes", "passes") and re.fullmatch(r"[0-9]{1,9}\.?[0-9]{0,9}", amount) is not None,
        f"budget must be minutes:M or passes:P, got '{text}'. For example minutes:10.",
    )
    return {f"budget_{kind}": float(amount)}


def parse_assignments(assignments: list[str]) -> Settings:
    """Read `key=value` words of the command line; values are written as in TOML, quotes may be left out."""
    settings: Settings = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        require(bool(equals), f"set must be key=value, got '{assignment}'. For example learning_rate=0.001.")
        try:
            settings[key.strip()] = parse_toml(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            settings[key.strip()] = text.strip()
        except ValueError as error:
            raise UserError(f"set must be key=value, got {error} in '{assignment[:40]}'. Correct it.") from error
    return settings


def build(kinds: Sequence[type[Section]], settings: Mapping[str, object], where: str) -> list[Any]:
    """Make one instance of each kind of section from flat settings; unknown keys and wrong types are errors."""
    known = [name for kind in kinds for name in setting_names(kind)]
    for key in settings:
        require(key in known, f"No setting '{short(key)}' in {where}.{did_you_mean(key, known)} See \"dccm presets\".")
    return [_filled(kind(), settings) for kind in kinds]


def flat(section: Section) -> Settings:
    """All settings of a section by name, with those of the sections in it."""
    found: Settings = {}
    for field in dataclasses.fields(section):
        value = getattr(section, field.name)
        found |= flat(value) if isinstance(value, Section) else {field.name: value}
    return found


def setting_names(kind: type[Section]) -> list[str]:
    """Names of all settings of a kind of section."""
    return list(flat(kind()))


def _filled(section: Kind, settings: Mapping[str, object]) -> Kind:
    """The section with these settings in place of its own, where it has them."""
    changes: dict[str, Any] = {}
    for name, hint in _hints(type(section)).items():
        value = getattr(section, name)
        if isinstance(value, Section):
            changes[name] = _filled(value, settings)
        elif name in settings:
            changes[name] = _checked(name, settings[name], hint)
    return dataclasses.replace(section, **changes)


def _hints(kind: type[Section]) -> dict[str, Any]:
    """The types of the fields, with their bounds."""
    return get_type_hints(kind, include_extras=True)


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _checked(name: str, value: object, hint: Any) -> object:
    """The value in the type that the setting wants, or an error that names both."""
    options = [get_args(option)[0] if get_origin(option) is Annotated else option for option in _options(hint)]
    for option in options:
        if get_origin(option) is Literal and value in get_args(option):
            return get_args(option)[get_args(option).index(value)]  # Not a number of NumPy's, which is equal to it.
        if get_origin(option) is tuple and isinstance(value, list | tuple) and len(value) == len(get_args(option)):
            return tuple(_checked(name, item, kind) for item, kind in zip(value, get_args(option), strict=True))
        if option in (int, float) and isinstance(value, Integral) and not isinstance(value, bool):
            return option(_within_64_bits(name, int(value)))  # NumPy's numbers too.
        if option is float and isinstance(value, Real) and math.isfinite(value) and not isinstance(value, bool):
            return float(value)
        if option in (bool, str, type(None)) and type(value) is option:
            return value
        if option is bool and type(value).__name__ == "bool" and hasattr(value, "dtype"):
            return bool(value)  # NumPy's, as from a grid of settings.
        if option is str and isinstance(value, str):
            return str(value)
    raise UserError(f"{name} must be {' or '.join(map(_wording, options))}, got {_shown(value)}.")


def _within_64_bits(name: str, value: int) -> int:
    require(abs(value) < 2**63, f"{name} must be a whole number of 64 bits at most, got {_shown(value)}. Lower it.")
    return value


def _shown(value: object) -> str:
    """A value that may be of any length, shortened."""
    if isinstance(value, int) and abs(value) >= 2**63:
        return "one that is larger"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]}... ({len(text):,} characters)"


def _require_bounds(name: str, value: object, hint: Any, default: object) -> None:
    """Refuse a number that is out of the setting's bounds."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return
    for option in _options(hint):
        if get_origin(option) is Annotated:
            bounds = get_args(option)[1]
            words = [word for other in _options(hint) if get_origin(other) is Literal for word in get_args(other)]
            rule = " or ".join([*(f"be '{word}'" for word in words), str(bounds)])
            require(bounds.hold(float(value)), f"{name} must {rule}, got {value:g}. The default is {default}.")


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


def default_preset(method: str, *, pretrained: bool = False) -> str:
    """What a method takes when no preset is named: `fast` if it has one, else `paper`; on vectors, `features` first."""
    wanted = ["features", "fast"] if pretrained else ["fast"]
    return next((name for name in wanted if name in read_presets(method)), "paper")


def preset_settings(method: str, preset: str, dataset: str = "") -> Settings:
    """The settings of a preset for a data set, or for any other images."""
    presets = read_presets(method)
    tables = presets[choose(preset, presets, "preset", "dccm presets")]
    return dict(tables.get(dataset, tables[""]))


def to_toml(sections: Sequence[Section]) -> str:
    """All settings of the sections as flat TOML, readable by `build`."""
    lines = []
    for section in sections:
        lines.append(f"# {type(section).__name__}")
        lines += [f"{name} = {_toml(value)}" for name, value in flat(section).items() if value is not None]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)

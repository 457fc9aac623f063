"""Everything that decides a run, except its images."""

from collections.abc import Mapping
from dataclasses import dataclass

from dccm.config import DataConfig, Section, Settings, TrainingConfig, build, default_preset, flat, preset_settings
from dccm.errors import choose, require
from dccm.methods import METHODS
from dccm.methods.base import DirectMethod
from dccm.networks.pretrained import SCRATCH, require_encoder


@dataclass(frozen=True)
class RunConfig:
    """Method, preset, data set and all settings."""

    method: str
    preset: str
    dataset: str
    data: DataConfig
    training: TrainingConfig
    own: Section
    """The method's own settings."""

    @property
    def sections(self) -> tuple[Section, ...]:
        """All settings."""
        return self.data, self.training, self.own

    def settings(self) -> Settings:
        """All settings by name."""
        return {name: value for section in self.sections for name, value in flat(section).items()}


def make_config(
    method: str = "dccm", preset: str | None = None, dataset: str = "", overrides: Mapping[str, object] | None = None
) -> RunConfig:
    """Settings of a preset, or of the method's default one, with the user's own on top of them."""
    kind = METHODS[choose(method, METHODS, "method", "dccm methods")]
    pretrained = (overrides or {}).get("encoder", SCRATCH) != SCRATCH
    preset = preset or default_preset(method, pretrained=pretrained)
    settings = preset_settings(method, preset, dataset) | dict(overrides or {})
    data, training, own = build([DataConfig, TrainingConfig, kind.config_type], settings, f"method '{method}'")
    require_encoder(data.encoder)
    able = ", ".join(name for name, other in METHODS.items() if other.takes_vectors)
    require(
        data.encoder == SCRATCH or kind.takes_vectors,
        f"encoder must be '{SCRATCH}' for the method '{method}', which learns from pictures, got '{data.encoder}'. "
        f"Methods that take vectors: {able}.",
    )
    return RunConfig(method, preset, dataset, data, training, own)


def has_epochs(method: str) -> bool:
    """Whether a method goes over the images again and again."""
    return not issubclass(METHODS[method], DirectMethod)

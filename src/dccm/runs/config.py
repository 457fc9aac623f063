"""Everything that decides a run, except its images."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dccm.config import (
    DataConfig,
    Section,
    Settings,
    TrainingConfig,
    build,
    default_preset,
    flat,
    preset_settings,
    setting_names,
)
from dccm.errors import UserError, choose, require
from dccm.methods import METHODS, method_facts
from dccm.methods.base import DirectMethod
from dccm.networks.encoders import SCRATCH, require_encoder
from dccm.networks.map_encoder import require_finetune

_OWN_ARGUMENTS = frozenset({"n_clusters", "epochs", "image_size", "device", "seed"})
"""Settings that are arguments of their own."""


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

    @property
    def finetune(self) -> int:
        """Last blocks of the pretrained encoder that are trained; only some methods can."""
        blocks = self.settings().get("finetune", 0)
        assert isinstance(blocks, int)
        return blocks


def make_config(
    method: str = "dccm", preset: str | None = None, dataset: str = "", overrides: Mapping[str, object] | None = None
) -> RunConfig:
    """Settings of a preset, or of the method's default one, with the user's own on top of them."""
    kind = METHODS[choose(method, METHODS, "method", "dccm methods")]
    pretrained = (overrides or {}).get("encoder", SCRATCH) != SCRATCH
    preset = preset or default_preset(method, pretrained=pretrained)
    settings = preset_settings(method, preset, dataset) | dict(overrides or {})
    _require_takes_finetune(method, settings)
    require(
        has_epochs(method) or not settings.get("milestones"),
        f"milestones must be left out for the method '{method}', which has no epochs, got "
        f"{settings.get('milestones')}.",
    )
    data, training, own = build([DataConfig, TrainingConfig, kind.config_type], settings, f"method '{method}'")
    require_encoder(data.encoder)
    _require_takes_vectors(method, data.encoder)
    config = RunConfig(method, preset, dataset, data, training, own)
    require_finetune(data.encoder, config.finetune)
    _require_views(config)
    return config


def kept_config(
    method: str, preset: str, dataset: str, kept: Mapping[str, object], given: Mapping[str, object] | None = None
) -> RunConfig:
    """Settings that were kept with a run or a model, and the user's own on top of them; no preset says any more."""
    return make_config(method, preset, dataset, with_defaults(method, kept) | dict(given or {}))


def with_defaults(method: str, kept: Mapping[str, object]) -> Settings:
    """Kept settings, and those that they do not mention.

    Such came later, and have their default, which leaves all results as they were; a preset may say otherwise by now.
    """
    kind = METHODS[choose(method, METHODS, "method", "dccm methods")]
    sections = (DataConfig(), TrainingConfig(), kind.config_type())
    return {name: value for section in sections for name, value in flat(section).items()} | dict(kept)


def _require_takes_vectors(method: str, encoder: str) -> None:
    """Refuse a pretrained encoder for a method that learns from pictures."""
    if encoder == SCRATCH or METHODS[method].takes_vectors:
        return
    able = ", ".join(name for name in METHODS if method_facts(name).takes_vectors)
    raise UserError(
        f"encoder must be '{SCRATCH}' for the method '{method}', which {METHODS[method].no_vectors}, got '{encoder}'. "
        f"Methods that take vectors: {able}."
    )


def has_epochs(method: str) -> bool:
    """Whether a method goes over the images again and again."""
    return not issubclass(METHODS[method], DirectMethod)


def _require_views(config: RunConfig) -> None:
    """Refuse views where nothing makes them or learns from them, and what learns from views where there are none."""
    encoder, views = config.data.encoder, config.data.views
    perturbed = config.settings().get("perturbed_weight", 0)
    require(
        not views or (encoder != SCRATCH and not config.finetune),
        f"views must be 0 with the encoder '{SCRATCH}', and where blocks of one are trained, got {views}. "
        "Name a pretrained encoder and set finetune = 0, or leave views out.",
    )
    require(
        not views or bool(perturbed),
        f"views must be 0 where nothing learns from perturbed images, got {views}. "
        "Take the method 'dccm' and set perturbed_weight = 1, or leave views out.",
    )
    require(
        encoder == SCRATCH or not perturbed or views > 0 or config.finetune > 0,
        f"perturbed_weight must be 0 on vectors of the encoder '{encoder}', which cannot be turned like pictures, "
        f"unless views of the images are kept, got {perturbed}. Set views = 4, or take the preset 'features'.",
    )


def _require_takes_finetune(method: str, settings: Mapping[str, object]) -> None:
    """Refuse to train blocks by a method that has no head to train with them."""
    if "finetune" not in settings or "finetune" in setting_names(METHODS[method].config_type):
        return
    able = [name for name, kind in METHODS.items() if "finetune" in setting_names(kind.config_type)]
    require(
        method in able,
        f"finetune must be left out for the method '{method}', which does not train a head on a pretrained encoder, "
        f"got {settings.get('finetune')}. Methods that do: {', '.join(able)}.",
    )


def arguments_of(config: RunConfig, device: str) -> dict[str, Any]:
    """The arguments of an estimator that would train with these settings."""
    return {
        "n_clusters": config.data.n_clusters,
        "preset": config.preset,
        "epochs": config.training.epochs if has_epochs(config.method) else None,
        "image_size": config.data.image_size,
        "settings": {name: value for name, value in config.settings().items() if name not in _OWN_ARGUMENTS},
        "device": device,
        "random_state": config.training.seed,
    }

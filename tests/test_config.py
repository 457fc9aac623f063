import math
import tomllib
from dataclasses import fields
from importlib import resources
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from dccm.config import (
    Bounds,
    DataConfig,
    Section,
    TrainingConfig,
    build,
    parse_assignments,
    parse_budget,
    read_presets,
    to_toml,
)
from dccm.data.datasets import DATASETS
from dccm.data.perturb import PerturbationConfig
from dccm.errors import UserError
from dccm.methods import METHODS
from dccm.methods.dccm import DCCMConfig
from dccm.networks.base import NetworkConfig
from dccm.runs.config import make_config


def bounds_of(hint: Any) -> list[Bounds]:
    """The bounds in a type, which may be one of several."""
    if get_origin(hint) is Annotated:
        return [bounds for bounds in get_args(hint)[1:] if isinstance(bounds, Bounds)]
    return [bounds for option in get_args(hint) for bounds in bounds_of(option)]


ALL_TABLES = [(m, p, t) for m in METHODS for p, tables in read_presets(m).items() for t in tables]


@pytest.mark.parametrize(("method", "preset", "table"), ALL_TABLES)
def test_every_preset_parses_for_every_data_set(method: str, preset: str, table: str) -> None:
    config = make_config(method, preset, table)
    assert config.data.n_clusters == (int(DATASETS[table].clusters.split("/")[0]) if table else 10)


@pytest.mark.parametrize("method", METHODS)
def test_every_preset_knows_all_data_sets_and_has_tables_for_no_others(method: str) -> None:
    assert all(set(tables) == {"", *DATASETS} for tables in read_presets(method).values())
    text = resources.files("dccm.presets").joinpath(f"{method}.toml").read_text(encoding="utf-8")
    presets = tomllib.loads(text).values()
    assert {name for preset in presets for name, table in preset.items() if isinstance(table, dict)} <= set(DATASETS)


def test_the_papers_numbers_are_the_defaults() -> None:
    method = make_config("dccm", "paper", "cifar10").own
    assert isinstance(method, DCCMConfig)
    perturbation = method.perturbation
    assert (method.graph_threshold, method.label_threshold) == (0.95, 0.9)
    assert (method.label_weight, method.information_weight) == (5.0, 0.1)
    assert (method.optimizer, method.learning_rate) == ("rmsprop", 1e-4)
    assert method.critic_positions == "all"
    assert (perturbation.rotation, perturbation.shift, perturbation.zoom) == (20.0, 0.18, (0.85, 1.15))


def test_released_differs_from_paper_where_the_documents_say() -> None:
    paper, released = (make_config("dccm", preset, "cifar100").settings() for preset in ("paper", "released"))
    changed = {name for name in paper if paper[name] != released[name]}
    assert changed == {
        "clean_weight", "label_loss", "information_weight", "initialisation", "uses", "brightness",
        "deep_feature", "negatives", "learning_rate",
    }  # fmt: skip


def test_an_unknown_setting_is_refused_with_the_likely_one() -> None:
    with pytest.raises(UserError, match=r"No setting 'learning_rat' .* Did you mean 'learning_rate'\?"):
        make_config(overrides={"learning_rat": 0.1})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epochs": "many"}, "epochs must be a whole number, got 'many'"),
        ({"epochs": 1.5}, "epochs must be a whole number, got 1.5"),
        ({"epochs": True}, "epochs must be a whole number, got True"),
        ({"flip": 1}, "flip must be true or false, got 1"),
        ({"pairs": "nearest"}, "pairs must be one of 'nearest\\+random', "),
        ({"zoom": [1.0]}, "zoom must be a list of 2 numbers, got \\[1.0\\]"),
        ({"zoom": [1.2, 0.8]}, "zoom must be \\[low, high\\]"),
        ({"critic_positions": "some"}, "critic_positions must be a whole number or one of 'all', got 'some'"),
        ({"critic_positions": 0}, "critic_positions must be 'all' or be at least 1, got 0. The default is all."),
        ({"detail": 0}, "detail must be at least 1, got 0. The default is 1."),
        ({"input_side": 7}, "input_side must be 'full' or be at least 8, got 7. The default is full."),
        ({"graph_threshold": 95}, "graph_threshold must lie in \\[0, 1\\], got 95"),
        ({"label_weight": -1}, "label_weight must be at least 0, got -1"),
        ({"clean_weight": 0, "perturbed_weight": 0}, "must not both be 0"),
        ({"n_clusters": 1}, "n_clusters must be at least 2, got 1"),
        ({"image_size": 4}, "image_size must lie in \\[8, 10000\\], got 4"),
        ({"mini_batch": 1}, "mini_batch must be at least 2, got 1"),
        ({"batch_size": 1}, "batch_size must be at least 2, got 1"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"seed": -1}, "seed must lie in \\[0, 4294967295\\], got -1"),
        ({"budget_minutes": 0}, "budget_minutes must be above 0, got 0"),
        ({"learning_rate": 0}, "learning_rate must be above 0, got 0"),
        ({"uses": 0}, "uses must be at least 1, got 0"),
        ({"rotation": -1}, "rotation must be at least 0, got -1"),
        ({"brightness": 0}, "brightness must be above 0, got 0"),
    ],
)
def test_a_wrong_value_is_refused_with_setting_rule_and_value(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        make_config(overrides=settings)


SECTIONS = (DataConfig, TrainingConfig, NetworkConfig, PerturbationConfig)
BOUNDED = [
    (kind, name, bounds)
    for kind in (*SECTIONS, *(method.config_type for method in METHODS.values()))
    for name, hint in get_type_hints(kind, include_extras=True).items()
    for bounds in bounds_of(hint)
]


@pytest.mark.parametrize(("kind", "name", "bounds"), BOUNDED, ids=lambda part: getattr(part, "__name__", str(part)))
def test_every_bound_is_checked_and_said_in_one_wording(kind: type[Section], name: str, bounds: Bounds) -> None:
    default = getattr(kind(), name)
    outside = [bounds.low - 1, *([bounds.low] if bounds.without in ("low", "both") else [])]
    if bounds.high < math.inf:
        outside += [bounds.high + 1, *([bounds.high] if bounds.without in ("high", "both") else [])]
    for value in outside:
        with pytest.raises(UserError) as raised:
            kind(**{name: value})
        text = str(raised.value)
        assert text.startswith(f"{name} must ")
        assert text.endswith(f"{bounds}, got {value:g}. The default is {default}.")


def test_what_is_no_number_lies_within_no_bounds() -> None:
    with pytest.raises(UserError, match="learning_rate must be above 0, got nan"):
        DCCMConfig(learning_rate=math.nan)


@pytest.mark.parametrize("method", METHODS)
def test_no_two_settings_of_a_method_have_the_same_name(method: str) -> None:
    kinds: list[type[Section]] = [DataConfig, TrainingConfig, METHODS[method].config_type]
    names = [name for kind in kinds for name in all_names(kind())]
    assert len(names) == len(set(names))


def all_names(section: Section) -> list[str]:
    """Names of all settings, with repetitions."""
    names: list[str] = []
    for field in fields(section):
        value = getattr(section, field.name)
        names += all_names(value) if isinstance(value, Section) else [field.name]
    return names


def test_numbers_of_numpy_are_numbers() -> None:
    config = make_config(overrides={"n_clusters": np.int64(4), "label_weight": np.float32(2), "epochs": np.uint8(3)})
    assert (config.data.n_clusters, config.training.epochs) == (4, 3)
    assert type(config.data.n_clusters) is int
    assert type(config.settings()["label_weight"]) is float
    assert "n_clusters = 4\n" in to_toml(config.sections)


def test_a_section_inside_a_section_keeps_its_own_defaults() -> None:
    assert make_config("dccm", "paper").settings()["logit_norm"] == "batch"
    assert make_config("dccm", "paper", overrides={"width": 0.5}).settings()["logit_norm"] == "batch"
    assert make_config("rotnet").settings()["logit_norm"] == "none"


def test_a_whole_number_is_a_number() -> None:
    assert build([DCCMConfig], {"label_weight": 3}, "test")[0].label_weight == 3.0


def test_fast_is_the_default_where_there_is_one() -> None:
    assert make_config().preset == make_config("dccm", "fast").preset == "fast"
    assert make_config() == make_config("dccm", "fast")
    assert make_config("kmeans").preset == "paper"


def test_unknown_methods_and_presets_are_refused() -> None:
    with pytest.raises(UserError, match=r"No method 'dcm'\. Did you mean 'dccm'\? See \"dccm methods\"\."):
        make_config("dcm")
    with pytest.raises(UserError, match=r"No preset 'papre'\. Did you mean 'paper'\?"):
        make_config(preset="papre")


def test_assignments_of_the_command_line_are_toml_values_or_words() -> None:
    words = ["learning_rate=1e-3", "flip=false", "pairs=random+random", "zoom=[1.0, 1.1]", "critic_positions=16"]
    assert parse_assignments(words) == {
        "learning_rate": 1e-3, "flip": False, "pairs": "random+random", "zoom": [1.0, 1.1], "critic_positions": 16,
    }  # fmt: skip
    with pytest.raises(UserError, match="set must be key=value, got 'flip'"):
        parse_assignments(["flip"])


def test_budgets_are_minutes_or_passes() -> None:
    assert parse_budget("minutes:1.5") == {"budget_minutes": 1.5}
    assert parse_budget("passes:20") == {"budget_passes": 20.0}
    for text in ("hours:1", "minutes", "minutes:soon"):
        with pytest.raises(UserError, match=f"budget must be minutes:M or passes:P, got '{text}'"):
            parse_budget(text)


def test_settings_survive_the_way_through_toml() -> None:
    config = make_config("dccm", "released", "cifar10", {"device": 'odd "name\\'})
    read = build([DataConfig, TrainingConfig, DCCMConfig], tomllib.loads(to_toml(config.sections)), "test")
    assert tuple(read) == config.sections


def test_ablations_are_values() -> None:
    # M1 to M4 of Table 3.
    for weights in ((0, 0, 0), (1, 0, 0), (1, 5, 0), (1, 5, 0.1)):
        names = ("perturbed_weight", "label_weight", "information_weight")
        method = make_config("dccm", "paper", overrides=dict(zip(names, weights))).own
        assert isinstance(method, DCCMConfig)
        assert (method.perturbed_weight, method.label_weight, method.information_weight) == weights

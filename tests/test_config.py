import tomllib
from importlib import resources
from typing import Any

import pytest

from dccm.config import DataConfig, TrainingConfig, build, parse_assignments, parse_budget, read_presets, to_toml
from dccm.data.datasets import DATASETS
from dccm.errors import UserError
from dccm.methods import METHODS
from dccm.methods.dccm import DCCMConfig
from dccm.runs.model import make_config

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
    method, perturbation = make_config("dccm", "paper", "cifar10").own
    assert (method.graph_threshold, method.label_threshold) == (0.95, 0.9)
    assert (method.label_weight, method.information_weight) == (5.0, 0.1)
    assert (method.optimizer, method.learning_rate, method.mini_batch) == ("rmsprop", 1e-4, 32)
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
        ({"critic_positions": 0}, "critic_positions must be 'all' or at least 1, got 0"),
        ({"detail": 0}, "detail must be at least 1, got 0. Give 1 or more."),
        ({"input_side": 7}, "input_side must be 'full' or at least 8 pixels, got 7. Take 24 or 32."),
        ({"graph_threshold": 95}, "graph_threshold must lie in \\[0, 1\\], got 95"),
        ({"label_weight": -1}, "label_weight must not be negative, got -1"),
        ({"clean_weight": 0, "perturbed_weight": 0}, "must not both be 0"),
        ({"n_clusters": 1}, "n_clusters must be at least 2, got 1"),
        ({"image_size": 4}, "image_size must be at least 8 pixels, got 4"),
        ({"mini_batch": 1}, "mini_batch must be at least 2, got 1"),
        ({"batch_size": 1}, "batch_size must be at least 2, got 1"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"seed": -1}, "seed must not be negative, got -1"),
        ({"budget_minutes": 0}, "budget_minutes must be above 0, got 0"),
        ({"learning_rate": 0}, "learning_rate must be above 0, got 0"),
        ({"uses": 0}, "uses must be at least 1, got 0"),
        ({"rotation": -1}, "rotation must not be negative, got -1"),
        ({"brightness": 0}, "brightness must be above 0, got 0"),
    ],
)
def test_a_wrong_value_is_refused_with_setting_rule_and_value(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        make_config(overrides=settings)


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
    read = build(
        [DataConfig, TrainingConfig, *METHODS["dccm"].sections], tomllib.loads(to_toml(config.sections)), "test"
    )
    assert read == config.sections


def test_ablations_are_values() -> None:
    # M1 to M4 of Table 3.
    for weights in ((0, 0, 0), (1, 0, 0), (1, 5, 0), (1, 5, 0.1)):
        names = ("perturbed_weight", "label_weight", "information_weight")
        method = make_config("dccm", "paper", overrides=dict(zip(names, weights))).own[0]
        assert (method.perturbed_weight, method.label_weight, method.information_weight) == weights

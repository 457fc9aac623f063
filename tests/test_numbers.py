"""Numbers that nobody means: each is refused in one sentence, and NumPy's are as good as Python's."""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from dccm import ImageClusterer, cli
from dccm.arrays import ImageShape
from dccm.config import TrainingConfig, build, parse_assignments, parse_budget, to_toml
from dccm.data.synthetic import bars
from dccm.errors import UserError
from dccm.machine import choose_device, within_memory
from dccm.networks.base import NetworkConfig
from dccm.runs.config import make_config
from dccm.runs.model import Model

QUICK = {"batch_size": 30, "mini_batch": 8, "starts": 1, "critic_positions": 2, "epochs": 2, "n_clusters": 3}


@pytest.mark.parametrize(
    "text", ["minutes:²", "minutes:", "minutes:.", "minutes:" + "9" * 400, "minutes:-1", "minutes:nan", "hours:1"]
)
def test_a_budget_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="budget must be minutes:M or passes:P"):
        parse_budget(text)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"seed": 10**22}, "seed must be a whole number of 64 bits at most, got one that is larger"),
        ({"epochs": 10**5000}, "epochs must be a whole number of 64 bits at most"),
        ({"seed": 2**32}, r"seed must lie in \[0, 4294967295\]"),
        ({"checkpoint_minutes": math.nan}, "checkpoint_minutes must be a number, got nan"),
        ({"checkpoint_minutes": -1}, "checkpoint_minutes must be at least 0, got -1"),
        ({"learning_rate": math.inf}, "learning_rate must be a number, got inf"),
        ({"zoom": [math.nan, 1]}, "zoom must be a number, got nan"),
        ({"starts": 10**9}, r"starts must lie in \[1, 1000\]"),
        ({"image_size": 10**6}, r"image_size must lie in \[8, 10000\]"),
        ({"pairs": "x" * 10**6}, r"pairs must be one of .*\.\.\. \(1,000,002 characters\)\.$"),
    ],
)
def test_a_number_beyond_all_bounds_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        make_config(overrides=settings)


@pytest.mark.parametrize("text", ["seed=" + "9" * 5000, "learning_rate=1e999", "zoom=" + "[" * 20_000])
def test_words_of_the_command_line_have_bounds_too(text: str) -> None:
    with pytest.raises(UserError, match="set must be key=value, got .* Correct it"):
        parse_assignments([text])


def test_numbers_of_numpy_become_plain_ones() -> None:
    given = {"architecture": np.int64(32), "input_side": np.str_("full"), "width": np.float32(0.5)}
    [network] = build([NetworkConfig], given, "a test")
    assert [type(value) for value in (network.architecture, network.input_side, network.width)] == [int, str, float]
    assert "np." not in to_toml([network])
    [training] = build([TrainingConfig], {"compile": np.bool_(False), "epochs": np.uint8(3)}, "a test")
    assert training.compile is False
    assert type(training.epochs) is int


def test_a_grid_of_numpys_numbers_is_searched() -> None:
    images = bars(40, side=8)
    grid = {"n_clusters": np.arange(2, 4), "settings": [{"n_init": np.int32(2)}]}
    search = GridSearchCV(
        ImageClusterer(method="kmeans", random_state=int(np.int64(0))),
        grid,
        scoring=lambda *_: 0.0,
        cv=2,
        error_score="raise",
    )
    search.fit(images.images)
    assert search.best_params_["n_clusters"] == 2


def test_a_device_without_memory_is_refused() -> None:
    with pytest.raises(UserError, match="device 'meta' cannot be used on this machine. Choose cpu or auto"):
        choose_device("meta")


@pytest.mark.parametrize("setting", ["learning_rate=1e30", "label_weight=1e308"])
def test_training_that_leaves_all_numbers_ends_in_a_sentence(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "images.npy", bars(60, side=8).images)
    words = ["cluster", tmp_path / "images.npy", "-o", tmp_path / "run", "-q"]
    words += [word for name, value in QUICK.items() for word in ("--set", f"{name}={value}")]
    monkeypatch.setattr(sys, "argv", ["dccm", *map(str, words), "--set", setting])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert "so training stopped. The last good checkpoint is" in said
    assert "Lower the learning rate" in said


def test_a_network_that_no_machine_holds_is_refused_at_once() -> None:
    config = make_config(preset="paper", overrides={"n_clusters": 3, "width": 1e6})
    with pytest.raises(UserError, match=r"Memory is too small for the network, which needs .* GB\. Choose smaller"):
        Model.untrained(ImageShape(3, 32, 32), config)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: ...")])
def test_memory_that_is_used_up_is_said_in_a_sentence(error: Exception) -> None:
    with pytest.raises(UserError, match=r"^Memory is too small for training\."), within_memory("training"):
        raise error


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="shapes"), within_memory("training"):
        raise RuntimeError("shapes do not fit")

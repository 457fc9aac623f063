from pathlib import Path

import pytest

from dccm import UserError, cluster
from dccm.data.synthetic import bars

SETTINGS = {"batch_size": 20, "mini_batch": 8, "critic_positions": 2, "starts": 1, "image_size": 8}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    cluster(bars(40, side=8), 3, output=tmp_path / "run", settings=SETTINGS, epochs=1, preset="paper", seed=0)
    return tmp_path / "run"


def edit(run: Path, before: str, after: str) -> None:
    text = (run / "config.toml").read_text()
    assert before in text
    (run / "config.toml").write_text(text.replace(before, after))


def test_a_setting_that_somebody_edited_is_noticed_when_a_run_goes_on(run: Path) -> None:
    edit(run, "learning_rate = 0.0001", "learning_rate = 0.1")
    with pytest.raises(UserError) as caught:
        cluster(bars(40, side=8), output=run, resume=True)
    assert str(caught.value) == (
        f"{run / 'config.toml'} says learning_rate = 0.1, and the run was trained with 0.0001 so far. "
        "Put that back, or choose another output folder."
    )


def test_how_long_a_run_goes_on_may_be_edited(run: Path) -> None:
    edit(run, "epochs = 1\n", "epochs = 2\n")
    assert cluster(bars(40, side=8), output=run, resume=True).result.settings["epochs"] == 2

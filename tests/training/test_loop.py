import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from dccm.config import TrainingConfig
from dccm.data.loader import Batch, Loader
from dccm.errors import UserError
from dccm.training.checkpoint import CheckpointFolder
from dccm.training.collapse import Watched
from dccm.training.loop import InterruptedRunError, train
from dccm.training.progress import Progress
from dccm.training.update import Moment, Update
from dccm.training.workers import ALONE


class Toy(nn.Module):
    """Learns the mean grey level; can be told to break, to wait or to raise."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.level = nn.Parameter(torch.zeros(1))
        self.optimizer = torch.optim.RMSprop(self.parameters(), lr=0.01)
        self.optimizers = {"all": self.optimizer}
        self.settings = settings
        self.workers = ALONE
        self.epochs_begun: list[int] = []
        self.rates: list[float] = []
        self.batches_seen = 0

    def before_epoch(self, loader: Loader, moment: Moment) -> None:
        self.epochs_begun.append(moment.epoch)

    def updates(self, batch: Batch) -> Iterator[Update]:
        self.batches_seen += 1
        self.rates.append(self.optimizer.param_groups[0]["lr"])
        self.settings.get("clock", time).sleep(self.settings.get("seconds", 0))
        noise = torch.rand(1, generator=batch.generator)
        loss = (batch.images.mean() + 0.1 * noise - self.level).square().sum()
        if self.batches_seen == self.settings.get("breaks_at"):
            loss = loss * float("nan")
        if self.batches_seen == self.settings.get("raises_at"):
            raise KeyboardInterrupt
        sizes = torch.tensor(self.settings.get("sizes", [2, 2]))
        watched = Watched(sizes, torch.tensor(1.0), torch.tensor(0.5), torch.tensor(0.0))
        yield Update(loss, self.optimizer, len(batch.images), {"part": loss}, watched)


def loader(count: int = 12, batch_size: int = 4) -> Loader:
    images = np.random.default_rng(0).integers(0, 256, (count, 8, 8, 1), dtype=np.uint8)
    return Loader(images, batch_size=batch_size, seed=0, device=torch.device("cpu"))


def config(**settings: Any) -> TrainingConfig:
    return TrainingConfig(**({"epochs": 3} | settings))


def test_history_has_one_record_an_epoch_with_losses_and_the_state_of_the_clusters() -> None:
    toy = Toy()
    history = train(toy, loader(), config())
    assert [record["epoch"] for record in history] == [1, 2, 3]
    assert [record["passes"] for record in history] == [1, 2, 3]
    assert toy.epochs_begun == [0, 1, 2]
    assert history[0]["cluster_sizes"] == [6, 6]
    assert history[0]["entropy"] == pytest.approx(1)
    assert history[0]["confident_share"] == pytest.approx(3 / 12)
    assert history[0]["linked_share"] == pytest.approx(0.5)
    assert history[0]["loss"] == history[0]["part"]


def test_loss_falls() -> None:
    history = train(Toy(), loader(), config(epochs=30))
    assert history[-1]["loss"] < history[0]["loss"] / 5


def test_a_budget_of_passes_overrules_fewer_epochs_too() -> None:
    assert train(Toy(), loader(), config(epochs=1, budget_passes=2.5))[-1]["passes"] == pytest.approx(8 / 3)


def test_of_two_budgets_the_tighter_one_decides() -> None:
    assert train(Toy(), loader(), config(budget_minutes=10, budget_passes=1))[-1]["passes"] == 1


def test_a_budget_of_passes_overrules_more_epochs() -> None:
    assert [r["passes"] for r in train(Toy(), loader(), config(epochs=50, budget_passes=1.5))] == pytest.approx(
        [1, 5 / 3]
    )


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("dccm.training.loop.time", self)
        monkeypatch.setattr("dccm.training.clock.time", self)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_budget_of_minutes_ends_the_run_whatever_epochs_says(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Toy(seconds=20, clock=Clock(monkeypatch))
    train(toy, loader(), config(epochs=1, budget_minutes=2))
    assert toy.batches_seen == 6


def test_a_budget_of_minutes_is_overrun_by_one_update_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    class Slow(Toy):
        def updates(self, batch: Batch) -> Iterator[Update]:
            for _ in range(100):
                clock.sleep(1)
                yield from super().updates(batch)

    slow = Slow()
    history = train(slow, loader(), config(epochs=5, budget_minutes=0.1))
    assert slow.batches_seen == 6
    assert len(history) == 1


def test_the_clock_stands_still_while_progress_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    toy = Toy(seconds=20, clock=clock)
    train(toy, loader(), config(epochs=1, budget_minutes=2), on_progress=lambda progress: clock.sleep(500))
    assert toy.batches_seen == 6


def test_cosine_schedule_falls_from_the_full_rate_towards_zero() -> None:
    toy = Toy()
    train(toy, loader(), config(epochs=4, schedule="cosine"))
    expected = [0.01 * 0.5 * (1 + math.cos(math.pi * step / 12)) for step in range(12)]
    assert toy.rates == pytest.approx(expected)


def test_progress_tells_share_rate_time_left_and_losses() -> None:
    seen: list[Progress] = []
    train(Toy(seconds=0.01), loader(), config(epochs=2), on_progress=seen.append)
    assert [progress.done for progress in seen] == pytest.approx([step / 6 for step in range(1, 7)])
    assert [progress.record is not None for progress in seen] == [False, False, True] * 2
    assert all(progress.images_per_second > 0 for progress in seen)
    assert seen[0].seconds_left > seen[-1].seconds_left == 0
    assert set(seen[0].means) >= {"loss", "part", "confident_share", "linked_share"}


def test_a_loss_that_is_no_number_stops_the_run_and_names_the_last_good_checkpoint(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    with pytest.raises(UserError, match=r"loss became nan in epoch 2, .*last good checkpoint is .*000000004") as error:
        train(Toy(breaks_at=5), loader(), config(), checkpoints=folder)
    assert "Lower the learning rate" in str(error.value)
    found, _ = folder.newest()
    assert found is not None
    assert found.tensors["method.level"].isfinite().all()


def test_without_checkpoints_a_broken_loss_says_so() -> None:
    with pytest.raises(UserError, match="No checkpoint was kept"):
        train(Toy(breaks_at=1), loader(), config())


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = Toy()
    expected = train(whole, loader(), config())
    folder = CheckpointFolder(tmp_path)
    with pytest.raises(InterruptedRunError) as stop:
        train(Toy(raises_at=5), loader(), config(), checkpoints=folder)
    assert stop.value.checkpoint == str(folder.paths()[0])
    found, problems = folder.newest()
    assert problems == []
    resumed = Toy()
    history = train(resumed, loader(), config(), resume=found)
    assert history == expected
    assert torch.equal(resumed.level, whole.level)
    assert resumed.epochs_begun == [2]


def test_a_finished_run_resumed_does_nothing_more(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    expected = train(Toy(), loader(), config(), checkpoints=folder)
    toy = Toy()
    assert train(toy, loader(), config(), checkpoints=folder, resume=folder.newest()[0]) == expected
    assert toy.batches_seen == 0


def test_a_checkpoint_of_another_method_is_refused(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    train(Toy(), loader(), config(), checkpoints=folder)
    found, _ = folder.newest()
    assert found is not None
    strange = found._replace(tensors={"method.other": torch.ones(1)})
    with pytest.raises(UserError, match="belongs to another kind of run"):
        train(Toy(), loader(), config(), resume=strange)


def test_a_collapse_is_in_the_history_in_plain_words() -> None:
    record = train(Toy(sizes=[4, 0, 0]), loader(), config(epochs=1))[0]
    assert record["dead_clusters"] == 2
    assert record["entropy"] == 0
    assert any("2 of 3 clusters hold no image" in warning for warning in record["warnings"])


def test_losses_are_computed_in_the_wanted_precision_and_steps_are_not() -> None:
    seen: list[bool] = []

    class Watching(Toy):
        def updates(self, batch: Batch) -> Iterator[Update]:
            seen.append(torch.is_autocast_enabled("cpu"))
            yield from super().updates(batch)
            seen.append(torch.is_autocast_enabled("cpu"))

    train(Watching(), loader(), config(epochs=1, precision="bfloat16"))
    assert seen
    assert all(seen)
    assert not torch.is_autocast_enabled("cpu")
    seen.clear()
    train(Watching(), loader(), config(epochs=1))
    assert not any(seen)


class Alternating(Toy):
    """Two losses in turns, as a generator and its critic have."""

    def updates(self, batch: Batch) -> Iterator[Update]:
        for value, name in ((2.0, "critic"), (4.0, "generator")):
            loss = (self.level * 0 + value).sum()
            yield Update(loss, self.optimizer, len(batch.images), {name: loss})


def test_losses_that_only_some_updates_have_are_means_over_those() -> None:
    [record] = train(Alternating(), loader(), config(epochs=1))
    assert (record["critic"], record["generator"], record["loss"]) == (2, 4, 3)

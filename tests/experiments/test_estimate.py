import time
from typing import Any

import pytest
import torch

from dccm.experiments import estimate
from dccm.experiments.data_sets import DataSets
from dccm.experiments.estimate import Watch, computing_with, estimated, in_words
from dccm.experiments.targets import Need
from tests.experiments.stand_ins import QUICK

AE = QUICK.spec("ae", "digits")


def compute(seconds: float) -> None:
    """Keep this thread busy for so long."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_other_programs_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def epoch(*_: Any) -> list[dict[str, float]]:
        threads.append(torch.get_num_threads())
        compute(0.02)
        time.sleep(0.4)  # Somebody else has the processor.
        return [{"passes": 1.0}]

    monkeypatch.setattr(estimate, "train", epoch)
    before = torch.get_num_threads()
    found = estimated([Need(AE), Need(QUICK.spec("kmeans", "digits"))], DataSets(), threads=3)
    assert list(found) == [AE.key]  # How long a method without epochs takes is not known.
    assert 0.02 <= found[AE.key] < 0.2
    assert (threads, torch.get_num_threads()) == ([3], before)


def test_what_several_threads_compute_is_shared_by_them() -> None:
    with computing_with(1):
        alone, watch = Watch(), Watch()
        compute(0.02)
        one = watch.seconds("cpu")
        torch.set_num_threads(4)
        four = alone.seconds("cpu")
    assert 0.02 <= one < 0.2
    assert 0.02 <= four < 0.2  # This thread did all of it: three others would not have helped.


def test_a_gpu_is_timed_by_the_clock_as_its_work_is_not_of_this_process() -> None:
    watch = Watch()
    time.sleep(0.05)
    assert watch.seconds("cuda") >= 0.05
    assert watch.seconds("cpu") < 0.05


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.2, "1 seconds"), (89, "89 seconds"), (300, "5 minutes"), (7200, "2.0 hours")]
)
def test_a_rough_time_is_a_round_one(seconds: float, said: str) -> None:
    assert in_words(seconds) == said
